package gosdk_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// TestRequireBearerToken checks that each refusal has its challenge, and that the handler gets the writer as it came.
func TestRequireBearerToken(t *testing.T) {
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		switch token {
		case "right":
		case "later":
			return nil, errors.New("the keys cannot be read now")
		default:
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "alice", Expiration: time.Now().Add(time.Hour)}, nil
	}
	metadata := &auth.RequireBearerTokenOptions{ResourceMetadataURL: "https://example.com/.well-known/oauth-protected-resource"}
	scopes := &auth.RequireBearerTokenOptions{Scopes: []string{"ci"}}
	for _, c := range []struct {
		name, authorization string
		options             *auth.RequireBearerTokenOptions
		status              int
		challenge           string
	}{
		{"no token", "", nil, http.StatusUnauthorized, "Bearer"},
		{"a wrong token", "Bearer wrong", nil, http.StatusUnauthorized, `Bearer error="invalid_token"`},
		{"another scheme", "Basic eDp5", nil, http.StatusUnauthorized, `Bearer error="invalid_token"`},
		{"metadata", "", metadata, http.StatusUnauthorized, `Bearer resource_metadata="https://example.com/.well-known/oauth-protected-resource"`},
		{"a wrong token, with metadata", "Bearer wrong", metadata, http.StatusUnauthorized, `Bearer error="invalid_token", resource_metadata="https://example.com/.well-known/oauth-protected-resource"`},
		{"a token without the scope", "Bearer right", scopes, http.StatusForbidden, `Bearer error="insufficient_scope", scope="ci"`},
		{"a token that cannot be checked now", "Bearer later", metadata, http.StatusServiceUnavailable, ""},
		{"the token", "Bearer right", nil, http.StatusNoContent, ""},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/mcp", http.NoBody)
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		gosdk.RequireBearerToken(verify, c.options)(http.HandlerFunc(func(got http.ResponseWriter, r *http.Request) {
			if got != http.ResponseWriter(w) || auth.TokenInfoFromContext(r.Context()).UserID != "alice" {
				t.Errorf("%s: the handler gets another writer, or no user", c.name)
			}
			got.WriteHeader(http.StatusNoContent)
		})).ServeHTTP(w, r)
		if got := w.Result().Header["Www-Authenticate"]; w.Code != c.status || len(got) > 1 || w.Header().Get("WWW-Authenticate") != c.challenge {
			t.Errorf("%s: HTTP %d, %q, want %q", c.name, w.Code, got, c.challenge)
		}
	}
}
