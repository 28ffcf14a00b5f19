package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/MicahParks/keyfunc/v3"
	"github.com/golang-jwt/jwt/v5"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"golang.org/x/time/rate"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// oauth makes a server a resource server of OAuth 2: it takes the access tokens of one authorization server.
type oauth struct {
	// resource is the URL by which callers know the server. Behind a proxy it is that of the proxy.
	resource *url.URL
	// audience is the audience that tokens must have. If it is empty, it is resource, as the MCP specification has it.
	audience string
	// issuer is the authorization server, exactly as it names itself in its tokens.
	issuer string
	// jwks is the URL of the authorization server's public keys: jwks_uri in its metadata.
	jwks string
	// signIn are the scopes that hosts ask their users for when they sign in.
	signIn []string
	// toolScopes are what a token needs to call a tool, by the name of the tool. Hosts can ask for them later.
	toolScopes map[string][]string
	// logger gets the reasons for which tokens are refused.
	logger *slog.Logger
}

// addFlags adds a flag for each field that does not belong to the code.
func (o *oauth) addFlags(flags *flag.FlagSet) {
	flags.Func("url", "the `URL` by which callers know the server, such as https://tasks.example.com/mcp behind a proxy", func(text string) (err error) {
		o.resource, err = url.Parse(text)
		if err != nil || o.resource.Host == "" || o.resource.Scheme != "https" && o.resource.Scheme != "http" || o.resource.RawQuery != "" || o.resource.Fragment != "" {
			return errors.New("it is not the URL of a server: give the one that callers use, such as https://tasks.example.com/mcp")
		}
		return nil
	})
	flags.StringVar(&o.issuer, "issuer", o.issuer, "take the access tokens of this OAuth authorization `server`, named as in its tokens")
	flags.StringVar(&o.jwks, "jwks", o.jwks, "the `URL` of its keys: jwks_uri in its metadata")
	flags.StringVar(&o.audience, "audience", o.audience, "the `audience` of its tokens, if it is not the -url")
	flags.Func("scopes", "the `scopes` that hosts ask for when a user signs in, with blanks between them; for others they ask later", func(text string) error {
		o.signIn = strings.Fields(text)
		return nil
	})
}

// hosts returns the name in the URL of the server, for taskserver.Options.AllowedHosts: a proxy on this machine may keep it.
func (o *oauth) hosts() []string {
	if o.resource == nil {
		return nil
	}
	return []string{o.resource.Hostname()}
}

// metadataPath is the path of the metadata of a resource at the root of its host (RFC 9728, section 3.1).
const metadataPath = "/.well-known/oauth-protected-resource"

// protect puts the check of tokens in front of the handler of gosdk.NewHandler. It adds the metadata, by which clients
// find the authorization server, to mux. The keys are read until ctx ends.
func (o *oauth) protect(ctx context.Context, mux *http.ServeMux, handler http.Handler) (http.Handler, error) {
	switch {
	case o.issuer == "":
		return nil, errors.New("-issuer is missing: set it to the authorization server, named as in its tokens")
	case o.jwks == "":
		return nil, fmt.Errorf("-jwks is missing: set it to the URL of the keys of %s, which is jwks_uri in its metadata", o.issuer)
	case o.resource == nil:
		return nil, errors.New("-url is missing: set it to the URL that callers use, such as https://tasks.example.com/mcp")
	}
	verify, err := o.newVerifier(ctx)
	if err != nil {
		return nil, err
	}
	metadata := auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{
		Resource:               o.resource.String(),
		AuthorizationServers:   []string{o.issuer},
		ScopesSupported:        o.signIn,
		BearerMethodsSupported: []string{"header"},
	})
	path := strings.TrimSuffix(metadataPath+o.resource.EscapedPath(), "/")
	mux.Handle(path, metadata)
	if path != metadataPath {
		mux.Handle(metadataPath, metadata) // for clients that look only there
	}
	metadataURL := o.resource.Scheme + "://" + o.resource.Host + path
	admit := gosdk.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: metadataURL})
	return admit(gosdk.RequireToolScopes(handler, o.toolScopes, metadataURL)), nil
}

// algorithms are the signatures that a token may have. None of them has a secret, so a public key cannot make one.
var algorithms = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// claims are the claims of an access token (RFC 9068) that the server reads.
type claims struct {
	jwt.RegisteredClaims
	Scope scopes `json:"scope"`
	// Scp is what Microsoft Entra and Okta write in place of scope.
	Scp scopes `json:"scp"`
	// Confirmation binds the token to a key of the client (RFC 7800).
	Confirmation json.RawMessage `json:"cnf"`
}

// UnmarshalJSON implements json.Unmarshaler. The names of claims are case-sensitive, but package encoding/json also takes
// a claim such as SUB for sub.
func (c *claims) UnmarshalJSON(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	known := []string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "scope", "scp", "cnf"}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !slices.Contains(known, name) })
	exact, err := json.Marshal(members)
	if err != nil {
		return err
	}
	type plain claims // without this method
	return json.Unmarshal(exact, (*plain)(c))
}

// scopes are written as a list, or as a text with blanks.
type scopes []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *scopes) UnmarshalJSON(data []byte) error {
	var text string
	if json.Unmarshal(data, &text) != nil {
		return json.Unmarshal(data, (*[]string)(s))
	}
	*s = strings.Fields(text)
	return nil
}

// newVerifier returns the check of an access token. It reads the keys of the authorization server now, every ten
// minutes, and at most once a minute for a token whose key it does not know.
func (o *oauth) newVerifier(ctx context.Context) (auth.TokenVerifier, error) {
	keys, err := keyfunc.NewDefaultOverrideCtx(ctx, []string{o.jwks}, keyfunc.Override{
		HTTPTimeout:       10 * time.Second,
		RateLimitWaitMax:  10 * time.Second,
		RefreshInterval:   10 * time.Minute,
		RefreshUnknownKID: rate.NewLimiter(rate.Every(time.Minute), 1),
	})
	if err != nil {
		return nil, fmt.Errorf("-jwks: %w", err)
	}
	audience := o.audience
	if audience == "" {
		audience = o.resource.String()
	}
	parser := jwt.NewParser(jwt.WithValidMethods(algorithms), jwt.WithIssuer(o.issuer), jwt.WithAudience(audience),
		jwt.WithExpirationRequired(), jwt.WithLeeway(10*time.Second)) // for clocks that differ
	refusals := rate.Sometimes{Interval: time.Second} // made-up tokens must not fill the log
	return func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		var c claims
		_, err := parser.ParseWithClaims(token, &c, func(token *jwt.Token) (any, error) {
			if err := checkHeader(token.Header); err != nil {
				return nil, err
			}
			// A client that leaves must not stop the one reading of the keys in a minute.
			key, err := keys.KeyfuncCtx(context.WithoutCancel(ctx))(token)
			if err != nil {
				return nil, fmt.Errorf("its key %.100q is not one of %s: %w", token.Header["kid"], o.jwks, err)
			}
			return key, nil
		})
		switch {
		case errors.Is(err, jwt.ErrTokenUnverifiable):
			if known, _ := keys.Storage().KeyReadAll(ctx); len(known) == 0 { // not the client's fault, so no 401
				return nil, errors.New("the keys of the authorization server cannot be read now: try again later")
			}
		case errors.Is(err, jwt.ErrTokenInvalidIssuer):
			err = fmt.Errorf("its issuer is %q, and this server takes tokens of %q", c.Issuer, o.issuer)
		case errors.Is(err, jwt.ErrTokenInvalidAudience):
			err = fmt.Errorf("its audience is %q, and that of this server is %q", c.Audience, audience)
		case err == nil && c.Subject == "":
			err = errors.New("it has no subject, so it belongs to no user")
		case err == nil && c.Confirmation != nil:
			err = errors.New("it is bound to a key of the client, which this server does not check")
		}
		if err != nil {
			refusals.Do(func() { o.logger.InfoContext(ctx, "token refused", "reason", fmt.Sprintf("%.300s", err)) })
			return nil, fmt.Errorf("%w: %w", auth.ErrInvalidToken, err)
		}
		return &auth.TokenInfo{UserID: c.Subject, Scopes: slices.Concat(c.Scope, c.Scp), Expiration: c.ExpiresAt.Time}, nil
	}, nil
}

// checkHeader refuses tokens that are not access tokens, or that need what this program does not know.
func checkHeader(header map[string]any) error {
	if _, ok := header["crit"]; ok {
		return errors.New("its header has critical parameters")
	}
	kind, ok := header["typ"]
	if !ok {
		return nil
	}
	name, _ := kind.(string)
	switch strings.TrimPrefix(strings.ToLower(name), "application/") {
	case "jwt", "at+jwt":
		return nil
	}
	return fmt.Errorf("its type is %q, and that of an access token is at+jwt or JWT", name)
}
