package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// authServer is an authorization server: metadata, keys, dynamic registration, codes with PKCE, and refresh tokens that
// serve once. The login_hint of an authorization request is the user who signs in and agrees to all.
type authServer struct {
	t *testing.T
	*httptest.Server

	mu sync.Mutex
	// rights are the scopes that each user can have. Others are left out.
	rights map[string][]string
	// resource is the resource that clients must name, in each request (RFC 8707).
	resource string
	// refreshes says that tokens come with a refresh token.
	refreshes bool
	keys      []signingKey // the last one signs
	isDown    bool         // the keys cannot be read
	reads     int          // how often the keys were read
	clients   map[string][]string
	grants    map[string]grant // by code and by refresh token
	asked     []string         // the scopes of each authorization request, sorted
}

type signingKey struct {
	id  string
	key *rsa.PrivateKey
}

// grant is what a user agreed to.
type grant struct {
	user, client, redirect, challenge string
	scopes                            []string
}

// startAuthServer starts an authorization server.
func startAuthServer(t *testing.T, rights map[string][]string) *authServer {
	t.Helper()
	as := &authServer{t: t, rights: rights, clients: map[string][]string{}, grants: map[string]grant{}}
	as.keys = []signingKey{{rand.Text(), makeKey(t)}}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/oauth-authorization-server", as.serveMetadata)
	mux.HandleFunc("GET /jwks", as.serveKeys)
	mux.HandleFunc("POST /register", as.register)
	mux.HandleFunc("GET /authorize", as.authorize)
	mux.HandleFunc("POST /token", as.serveToken)
	as.Server = httptest.NewServer(mux)
	t.Cleanup(as.Close)
	return as
}

// makeKey makes a key to sign with.
func makeKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// rotate makes a new key, which signs from now on.
func (as *authServer) rotate() {
	as.t.Helper()
	key := makeKey(as.t)
	as.mu.Lock()
	defer as.mu.Unlock()
	as.keys = append(as.keys, signingKey{rand.Text(), key})
}

func (as *authServer) serveMetadata(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]any{
		"issuer": as.URL, "authorization_endpoint": as.URL + "/authorize", "token_endpoint": as.URL + "/token",
		"registration_endpoint": as.URL + "/register", "jwks_uri": as.URL + "/jwks", "response_types_supported": []string{"code"},
		"grant_types_supported": []string{"authorization_code", "refresh_token"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported": []string{"none"},
	})
}

func (as *authServer) serveKeys(w http.ResponseWriter, _ *http.Request) {
	as.mu.Lock()
	defer as.mu.Unlock()
	as.reads++
	if as.isDown {
		http.Error(w, "down", http.StatusServiceUnavailable)
		return
	}
	keys := []map[string]string{}
	for _, k := range as.keys {
		keys = append(keys, map[string]string{
			"kty": "RSA", "use": "sig", "alg": "RS256", "kid": k.id,
			"n": base64.RawURLEncoding.EncodeToString(k.key.N.Bytes()),
			"e": base64.RawURLEncoding.EncodeToString(big.NewInt(int64(k.key.E)).Bytes()),
		})
	}
	writeJSON(w, http.StatusOK, map[string]any{"keys": keys})
}

func (as *authServer) register(w http.ResponseWriter, r *http.Request) {
	var metadata map[string]any
	if err := json.NewDecoder(r.Body).Decode(&metadata); err != nil {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_client_metadata"})
		return
	}
	id := rand.Text()
	redirects := []string{}
	uris, _ := metadata["redirect_uris"].([]any)
	for _, uri := range uris {
		text, _ := uri.(string)
		redirects = append(redirects, text)
	}
	as.mu.Lock()
	defer as.mu.Unlock()
	as.clients[id] = redirects
	metadata["client_id"], metadata["token_endpoint_auth_method"] = id, "none"
	writeJSON(w, http.StatusCreated, metadata)
}

func (as *authServer) authorize(w http.ResponseWriter, r *http.Request) {
	as.mu.Lock()
	defer as.mu.Unlock()
	q := r.URL.Query()
	g := grant{user: q.Get("login_hint"), client: q.Get("client_id"), redirect: q.Get("redirect_uri"), challenge: q.Get("code_challenge")}
	switch {
	case !slices.Contains(as.clients[g.client], g.redirect):
		http.Error(w, "this client has not registered this redirect_uri", http.StatusBadRequest)
		return
	case q.Get("response_type") != "code", g.challenge == "", q.Get("code_challenge_method") != "S256", q.Get("resource") != as.resource, as.rights[g.user] == nil:
		http.Error(w, "bad request: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	scopes := strings.Fields(q.Get("scope"))
	slices.Sort(scopes)
	as.asked = append(as.asked, strings.Join(scopes, " "))
	for _, scope := range scopes {
		if slices.Contains(as.rights[g.user], scope) {
			g.scopes = append(g.scopes, scope)
		}
	}
	code := rand.Text()
	as.grants[code] = g
	http.Redirect(w, r, g.redirect+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
}

func (as *authServer) serveToken(w http.ResponseWriter, r *http.Request) {
	name := "code"
	if r.FormValue("grant_type") == "refresh_token" {
		name = "refresh_token"
	}
	as.mu.Lock()
	g, ok := as.grants[r.FormValue(name)]
	delete(as.grants, r.FormValue(name))
	refreshes, resource := as.refreshes, as.resource
	as.mu.Unlock()
	sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
	isVerified := name == "refresh_token" || base64.RawURLEncoding.EncodeToString(sum[:]) == g.challenge && r.FormValue("redirect_uri") == g.redirect
	if !ok || !isVerified || r.FormValue("client_id") != g.client || r.FormValue("resource") != resource {
		writeJSON(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant"})
		return
	}
	reply := map[string]any{
		"access_token": as.token(g.user, g.scopes...), "token_type": "Bearer", "expires_in": 3600, "scope": strings.Join(g.scopes, " "),
	}
	if refreshes {
		again := rand.Text()
		as.mu.Lock()
		as.grants[again] = g
		as.mu.Unlock()
		reply["refresh_token"] = again
	}
	writeJSON(w, http.StatusOK, reply)
}

// token returns an access token of a user.
func (as *authServer) token(user string, scopes ...string) string {
	return as.sign(jwt.MapClaims{"sub": user, "scope": strings.Join(scopes, " ")}, nil)
}

// sign returns an access token. It adds what is missing to the claims and the header. A value of nil is left out.
func (as *authServer) sign(claims jwt.MapClaims, header map[string]any) string {
	as.t.Helper()
	as.mu.Lock()
	key := as.keys[len(as.keys)-1]
	all := jwt.MapClaims{
		"iss": as.URL, "aud": as.resource, "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "jti": rand.Text(), "client_id": "test",
	}
	as.mu.Unlock()
	token := jwt.NewWithClaims(jwt.SigningMethodRS256, all)
	token.Header["typ"], token.Header["kid"] = "at+jwt", key.id
	for target, changes := range map[*map[string]any]map[string]any{(*map[string]any)(&all): claims, &token.Header: header} {
		for name, value := range changes {
			if (*target)[name] = value; value == nil {
				delete(*target, name)
			}
		}
	}
	signed, err := token.SignedString(key.key)
	if err != nil {
		as.t.Error(err)
	}
	return signed
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(value) // fails if the client has left
}
