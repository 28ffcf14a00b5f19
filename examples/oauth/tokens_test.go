package main

import (
	"bytes"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// TestTokens sends tokens that the server must take, and tokens that it must not.
func TestTokens(t *testing.T) {
	t.Parallel()
	s := serve(t)
	as := s.as
	good := jwt.MapClaims{"sub": "alice", "scope": "releases releases:approve"}
	with := func(changes jwt.MapClaims) jwt.MapClaims {
		claims := jwt.MapClaims{}
		for _, each := range []jwt.MapClaims{good, changes} {
			for name, value := range each {
				claims[name] = value
			}
		}
		return claims
	}
	other := makeKey(t)
	resign := func(method jwt.SigningMethod, key any) string {
		token := jwt.NewWithClaims(method, with(jwt.MapClaims{"iss": as.URL, "aud": s.url, "exp": time.Now().Add(time.Hour).Unix()}))
		token.Header["kid"] = as.keys[0].id
		signed, err := token.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	der, err := x509.MarshalPKIXPublicKey(&as.keys[0].key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	parts := strings.Split(as.sign(good, nil), ".")
	parts[1] = base64.RawURLEncoding.EncodeToString([]byte(fmt.Sprintf(`{"iss":%q,"aud":%q,"sub":"alice","scope":"releases releases:approve","exp":%d}`, as.URL, s.url, time.Now().Add(time.Hour).Unix())))
	now := time.Now()
	for name, c := range map[string]struct {
		token  string
		status int
		text   string // in the body
	}{
		"an access token":           {as.sign(good, nil), http.StatusOK, `"approvals":[]`},
		"of type JWT":               {as.sign(good, map[string]any{"typ": "JWT"}), http.StatusOK, ""},
		"of a long type":            {as.sign(good, map[string]any{"typ": "application/at+jwt"}), http.StatusOK, ""},
		"without a type":            {as.sign(good, map[string]any{"typ": nil}), http.StatusOK, ""},
		"without a key ID":          {as.sign(good, map[string]any{"kid": nil}), http.StatusOK, ""},
		"for several audiences":     {as.sign(with(jwt.MapClaims{"aud": []string{"https://x.example", s.url}}), nil), http.StatusOK, ""},
		"scp, a text":               {as.sign(with(jwt.MapClaims{"scope": nil, "scp": "releases releases:approve"}), nil), http.StatusOK, ""},
		"scp, a list":               {as.sign(with(jwt.MapClaims{"scope": nil, "scp": []string{"releases", "releases:approve"}}), nil), http.StatusOK, ""},
		"another audience":          {as.sign(with(jwt.MapClaims{"aud": "https://x.example"}), nil), http.StatusUnauthorized, `its audience is ["https://x.example"], and that of this server is "` + s.url + `"`},
		"no audience":               {as.sign(with(jwt.MapClaims{"aud": nil}), nil), http.StatusUnauthorized, "aud"},
		"another issuer":            {as.sign(with(jwt.MapClaims{"iss": "https://x.example"}), nil), http.StatusUnauthorized, `its issuer is "https://x.example", and this server takes tokens of "` + as.URL + `"`},
		"no issuer":                 {as.sign(with(jwt.MapClaims{"iss": nil}), nil), http.StatusUnauthorized, "iss"},
		"expired":                   {as.sign(with(jwt.MapClaims{"exp": now.Add(-time.Second).Unix()}), nil), http.StatusUnauthorized, "expired"},
		"never expires":             {as.sign(with(jwt.MapClaims{"exp": nil}), nil), http.StatusUnauthorized, "exp"},
		"not yet valid":             {as.sign(with(jwt.MapClaims{"nbf": now.Add(time.Minute).Unix()}), nil), http.StatusUnauthorized, "not valid yet"},
		"no subject":                {as.sign(with(jwt.MapClaims{"sub": nil}), nil), http.StatusUnauthorized, "belongs to no user"},
		"bound to a key":            {as.sign(with(jwt.MapClaims{"cnf": map[string]any{"jkt": "x"}}), nil), http.StatusUnauthorized, "bound to a key"},
		"another type":              {as.sign(good, map[string]any{"typ": "logout+jwt"}), http.StatusUnauthorized, `its type is "logout+jwt"`},
		"critical parameters":       {as.sign(good, map[string]any{"crit": []string{"x"}}), http.StatusUnauthorized, "critical"},
		"no signature":              {resign(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType), http.StatusUnauthorized, "signing method none is invalid"},
		"the public key as secret":  {resign(jwt.SigningMethodHS256, public), http.StatusUnauthorized, "signing method HS256 is invalid"},
		"another key":               {resign(jwt.SigningMethodRS256, other), http.StatusUnauthorized, "signature is invalid"},
		"other claims":              {strings.Join(parts, "."), http.StatusUnauthorized, "signature is invalid"},
		"no token at all":           {"x", http.StatusUnauthorized, "malformed"},
		"without the first scope":   {as.sign(with(jwt.MapClaims{"scope": "releases:approve"}), nil), http.StatusForbidden, `the token needs the scopes releases releases:approve`},
		"without the tool's scope":  {as.sign(with(jwt.MapClaims{"scope": "releases"}), nil), http.StatusForbidden, `the token needs the scopes releases releases:approve`},
		"a scope by another name":   {as.sign(with(jwt.MapClaims{"scope": nil, "SCOPE": "releases releases:approve"}), nil), http.StatusForbidden, "needs the scopes"},
		"a subject by another name": {as.sign(with(jwt.MapClaims{"sub": nil, "ſub": "bob"}), nil), http.StatusUnauthorized, "belongs to no user"},
		"scopes that are no scopes": {as.sign(with(jwt.MapClaims{"scope": 1}), nil), http.StatusUnauthorized, ""},
	} {
		response, body := s.post(c.token, "list_approvals")
		if response.StatusCode != c.status || !strings.Contains(body, c.text) {
			t.Errorf("%s: HTTP %d, %s", name, response.StatusCode, body)
		}
		challenge, metadata := response.Header.Get("WWW-Authenticate"), s.base+"/.well-known/oauth-protected-resource/mcp"
		switch c.status {
		case http.StatusUnauthorized:
			if want := fmt.Sprintf(`Bearer error="invalid_token", resource_metadata=%q`, metadata); challenge != want {
				t.Errorf("%s: %s, want %s", name, challenge, want)
			}
		case http.StatusForbidden:
			if want := fmt.Sprintf(`Bearer error="insufficient_scope", scope="releases releases:approve", resource_metadata=%q`, metadata); challenge != want {
				t.Errorf("%s: %s, want %s", name, challenge, want)
			}
		}
	}
	response, _ := s.post("", "list_approvals")
	want := fmt.Sprintf(`Bearer resource_metadata="%s/.well-known/oauth-protected-resource/mcp"`, s.base)
	if got := response.Header.Get("WWW-Authenticate"); response.StatusCode != http.StatusUnauthorized || got != want {
		t.Errorf("without a token: HTTP %d, %s", response.StatusCode, got)
	}
}

// TestRefusalInLog tells the operator why a token was refused.
func TestRefusalInLog(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	s := newTestServer(t)
	m := s.mode()
	m.oauth.logger = slog.New(slog.NewTextHandler(&log, nil))
	verify, err := m.oauth.newVerifier(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	token := s.as.sign(jwt.MapClaims{"sub": "alice", "aud": "https://x.example"}, nil)
	if _, err := verify(t.Context(), token, nil); err == nil {
		t.Error("the token is taken")
	}
	if got := log.String(); !strings.Contains(got, `level=INFO msg="token refused" reason="its audience is`) || strings.Contains(got, token) {
		t.Errorf("the log is:\n%s", got)
	}
}

// TestAudience takes tokens of an authorization server that does not know the resource by its URL.
func TestAudience(t *testing.T) {
	t.Parallel()
	s := serve(t, func(_ *testServer, m *mode) { m.oauth.audience = "api://releases" })
	claims := jwt.MapClaims{"sub": "alice", "scope": "releases releases:approve", "aud": "api://releases"}
	if response, body := s.post(s.as.sign(claims, nil), "list_approvals"); response.StatusCode != http.StatusOK {
		t.Errorf("HTTP %d, %s", response.StatusCode, body)
	}
	if response, body := s.post(s.as.token("alice", scopeReleases, scopeApprove), "list_approvals"); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the resource as audience: HTTP %d, %s", response.StatusCode, body)
	}
}

// TestKeys checks that a new key is found at once, that unknown keys do not make the server ask for keys again and again,
// and that it goes on with the keys that it has if they cannot be read.
func TestKeys(t *testing.T) {
	t.Parallel()
	s := serve(t)
	s.as.rotate()
	token := s.as.token("alice", scopeReleases, scopeApprove)
	if response, body := s.post(token, "list_approvals"); response.StatusCode != http.StatusOK {
		t.Errorf("after the rotation: HTTP %d, %s", response.StatusCode, body)
	}
	s.as.mu.Lock()
	s.as.isDown = true
	s.as.mu.Unlock()
	for range 30 {
		response, body := s.post(s.as.sign(jwt.MapClaims{"sub": "alice"}, map[string]any{"kid": rand.Text()}), "list_approvals")
		if response.StatusCode != http.StatusUnauthorized || !strings.Contains(body, "is not one of "+s.as.URL+"/jwks") {
			t.Errorf("an unknown key: HTTP %d, %s", response.StatusCode, body)
		}
	}
	if response, body := s.post(token, "list_approvals"); response.StatusCode != http.StatusOK {
		t.Errorf("while the keys cannot be read: HTTP %d, %s", response.StatusCode, body)
	}
	s.as.mu.Lock()
	defer s.as.mu.Unlock()
	if s.as.reads != 2 {
		t.Errorf("the keys were read %d times", s.as.reads)
	}
}

// TestNoKeys starts the server while the keys cannot be read. It does not blame the client, whose token may be good.
func TestNoKeys(t *testing.T) {
	t.Parallel()
	s := serve(t, func(s *testServer, _ *mode) { s.as.isDown = true })
	response, body := s.post(s.as.token("alice", scopeReleases), "list_approvals")
	if response.StatusCode != http.StatusServiceUnavailable || !strings.Contains(body, "cannot be read now") || response.Header.Get("WWW-Authenticate") != "" {
		t.Errorf("HTTP %d, %s", response.StatusCode, body)
	}
}

// TestMetadata reads the metadata at both of its places, as a page of any origin may.
func TestMetadata(t *testing.T) {
	t.Parallel()
	s := serve(t)
	for _, path := range []string{"/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"} {
		response, body := get(t, s.base+path)
		var metadata struct {
			Resource             string   `json:"resource"`
			AuthorizationServers []string `json:"authorization_servers"`
			ScopesSupported      []string `json:"scopes_supported"`
		}
		err := json.Unmarshal([]byte(body), &metadata)
		if err != nil || response.Header.Get("Access-Control-Allow-Origin") != "*" {
			t.Errorf("%s: %v, %v", path, response.Header, err)
		}
		if got, want := fmt.Sprint(metadata), fmt.Sprintf("{%s [%s] [releases]}", s.url, s.as.URL); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

// TestBadFlags checks that a server that no client could find does not start.
func TestBadFlags(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*mode){
		"-url is missing":    func(m *mode) { m.oauth.resource = nil },
		"-issuer is missing": func(m *mode) { m.oauth.issuer = "" },
		"-jwks is missing":   func(m *mode) { m.oauth.jwks = "" },
		`no such file`:       func(m *mode) { m.people = "nobody.json" },
	} {
		m := newTestServer(t).mode()
		change(&m)
		if err := run(t.Context(), t.Output(), m); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	for _, url := range []string{"", "/mcp", "mcp.example", "ftp://x.example/mcp", "https://x.example/mcp?a=b"} {
		flags := flag.NewFlagSet("", flag.ContinueOnError)
		flags.SetOutput(io.Discard)
		new(oauth).addFlags(flags)
		if err := flags.Parse([]string{"-url", url}); err == nil || !strings.Contains(err.Error(), "flag -url: it is not the URL of a server") {
			t.Errorf("%q: %v", url, err)
		}
	}
}
