package edgetest

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// pageOrigin is the origin of the pages that the tests allow.
const pageOrigin = "https://app.example"

// send sends a request from a page.
func sendFrom(t *testing.T, p *wiretest.Peer, origin, method, body string, edits ...wiretest.Edit) *http.Response {
	t.Helper()
	edits = append(edits, wiretest.WithHeader("Origin", origin), wiretest.WithHeader("Sec-Fetch-Site", "cross-site"))
	res, err := p.Client.Do(p.NewRequest(t.Context(), method, body, edits...))
	if err != nil {
		t.Fatal(err)
	}
	_ = res.Body.Close()
	return res
}

// wantReadable checks that a page of the allowed origin may read a response.
func wantReadable(t *testing.T, what string, res *http.Response, status int) {
	t.Helper()
	h := res.Header
	if res.StatusCode != status || len(h.Values("Access-Control-Allow-Origin")) != 1 || h.Get("Access-Control-Allow-Origin") != pageOrigin ||
		h.Get("Vary") != "Origin" || len(h.Values("Vary")) != 1 || h.Get("Access-Control-Allow-Credentials") != "" {
		t.Errorf("%s: %d %v", what, res.StatusCode, h)
	}
	for _, name := range []string{"Mcp-Session-Id", "WWW-Authenticate", "Retry-After"} {
		if !strings.Contains(h.Get("Access-Control-Expose-Headers"), name) {
			t.Errorf("%s: a page cannot read %s: %v", what, name, h)
		}
	}
}

// TestAllowedOrigins checks that a page of an allowed origin gets answers to its preflights and its requests, with and
// without an authentication in front, and that pages of other origins do not.
func TestAllowedOrigins(t *testing.T) {
	const headers = "authorization,content-type,last-event-id,mcp-method,mcp-name,mcp-param-region,mcp-protocol-version,mcp-session-id,x-own"
	preflight := func(method string) []wiretest.Edit {
		return []wiretest.Edit{
			wiretest.WithHeader("Access-Control-Request-Method", method), wiretest.WithHeader("Access-Control-Request-Headers", headers),
			wiretest.WithHeader("Authorization", ""), wiretest.WithHeader("Mcp-Session-Id", ""), wiretest.WithHeader("MCP-Protocol-Version", ""),
		}
	}
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if token != "good" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "a"}, nil
	}
	for name, behindTokens := range map[string]bool{"alone": false, "behind tokens": true} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				setup := wiretest.Setup{Options: taskserver.Options{AllowedOrigins: []string{pageOrigin}}}
				var url string
				var tasks *taskserver.Server
				if behindTokens {
					var front http.Handler
					setup.Wrap = func(h http.Handler, _ *mcp.Server) http.Handler {
						front = auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ResourceMetadataURL: "https://a.example"})(h)
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							gosdk.AllowOrigins(tasks, front).ServeHTTP(w, r)
						})
					}
				}
				url, tasks = wiretest.ServeWith(t, setup)
				for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
					p := wiretest.NewPeer(t, url, revision, "good")
					for _, method := range []string{"POST", "GET", "DELETE"} {
						res := sendFrom(t, p, pageOrigin, http.MethodOptions, "", preflight(method)...)
						wantReadable(t, "the preflight of "+method, res, http.StatusNoContent)
						if res.Header.Get("Access-Control-Allow-Headers") != headers || !strings.Contains(res.Header.Get("Access-Control-Allow-Methods"), method) {
							t.Errorf("the preflight of %s: %v", method, res.Header)
						}
					}
					body, edits := p.Request("tools/list", nil)
					wantReadable(t, "a list", sendFrom(t, p, pageOrigin, "POST", body, edits...), http.StatusOK)
					body, edits = p.Request("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}})
					wantReadable(t, "a call", sendFrom(t, p, pageOrigin, "POST", body, edits...), http.StatusOK)
					wantReadable(t, "no JSON", sendFrom(t, p, pageOrigin, "POST", "{", edits...), http.StatusBadRequest)
					if revision == wiretest.LegacyRevision {
						wantReadable(t, "a stream", sendFrom(t, p, pageOrigin, "GET", ""), http.StatusOK)
						wantReadable(t, "a made-up session", sendFrom(t, p, pageOrigin, "GET", "", wiretest.WithHeader("Mcp-Session-Id", "x")), http.StatusNotFound)
					}
					if behindTokens {
						res := sendFrom(t, p, pageOrigin, "POST", body, append(edits, wiretest.WithHeader("Authorization", "Bearer bad"))...)
						wantReadable(t, "a bad token", res, http.StatusUnauthorized)
					}
					for _, origin := range []string{"https://evil.example", "http://app.example", "https://app.example:444", "https://sub.app.example", "null"} {
						res := sendFrom(t, p, origin, http.MethodOptions, "", preflight("POST")...)
						refused := http.StatusForbidden
						if behindTokens {
							refused = http.StatusUnauthorized
						}
						if res.StatusCode != refused || res.Header.Get("Access-Control-Allow-Origin") != "" {
							t.Errorf("the preflight of %s: %d %v", origin, res.StatusCode, res.Header)
						}
						res = sendFrom(t, p, origin, "POST", body, edits...)
						if res.StatusCode != http.StatusForbidden || res.Header.Get("Access-Control-Allow-Origin") != "" || res.Header.Get("Vary") != "Origin" {
							t.Errorf("a request of %s: %d %v", origin, res.StatusCode, res.Header)
						}
					}
				}
			})
		})
	}
}
