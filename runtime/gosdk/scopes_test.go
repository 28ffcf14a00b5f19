package gosdk_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// scopedMetadata is the URL of the metadata of serveScoped's server.
const scopedMetadata = "https://example.com/.well-known/oauth-protected-resource"

// serveScoped serves task tools and a tool of the SDK, some of which need scopes. A token is a list of scopes.
func serveScoped(t *testing.T, revision string, options taskserver.Options) (url string) {
	t.Helper()
	tasks, sdk := newServer(t, options, renamedTools(mcptask.FallbackTools))
	mcp.AddTool(sdk, &mcp.Tool{Name: "own"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "mine"}}}, nil, nil
	})
	handler := gosdk.RequireToolScopes(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil), map[string][]string{
		"transcode": {"media", "media:write"}, "own": {"media:own"}, "put": {"media:place"}, // the former name of place
	}, scopedMetadata)
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: "alice", Scopes: strings.Split(token, ","), Expiration: time.Now().Add(time.Hour)}, nil
	}
	web := memnet.NewServer(gosdk.RequireBearerToken(verify, nil)(wirecheck.RevisionHandler(t, revision, handler)), nil)
	t.Cleanup(func() {
		web.Close()
		wiretest.EndSessions(sdk)
	})
	return web.URL
}

// TestRequireToolScopes calls tools with and without their scopes, by all of their names.
func TestRequireToolScopes(t *testing.T) {
	const challenge = `Bearer error="insufficient_scope", scope="media media:write", resource_metadata="` + scopedMetadata + `"`
	const placeChallenge = `Bearer error="insufficient_scope", scope="media:place", resource_metadata="` + scopedMetadata + `"`
	arguments := map[string]any{"region": "x"}
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		bubble.Run(t, revision, func(t *testing.T) {
			url := serveScoped(t, revision, taskserver.Options{})
			for _, c := range []struct{ token, tool, challenge string }{
				{"media", "transcode", challenge},
				{"media:write", "transcode", challenge},
				{"media", "convert", challenge}, // its former name
				{"media,media:write", "transcode", ""},
				{"media,media:write", "convert", ""},
				{"media", "encode", ""},
				{"media", "put", placeChallenge},
				{"media", "place", placeChallenge},
				{"media", "own", `Bearer error="insufficient_scope", scope="media:own", resource_metadata="` + scopedMetadata + `"`},
				{"media:own", "own", ""},
			} {
				in := arguments
				if c.tool == "own" {
					in = map[string]any{}
				}
				r := wiretest.NewPeer(t, url, revision, c.token).Call("tools/call", map[string]any{"name": c.tool, "arguments": in})
				if got := r.Header.Get("WWW-Authenticate"); got != c.challenge || (r.Status == http.StatusForbidden) != (c.challenge != "") || (r.Error != nil) != (c.challenge != "") {
					t.Errorf("%s with %s: HTTP %d, %q, %s", c.tool, c.token, r.Status, got, r.Body)
				} else if c.challenge != "" && !strings.Contains(r.Error.Message, "may not be called: the token needs the scopes ") {
					t.Errorf("%s with %s: %s", c.tool, c.token, r.Error.Message)
				}
			}
		})
	}
}

// TestToolScopesAudit checks that the audit trail has a refused call, once a second.
func TestToolScopesAudit(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		options := taskserver.Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
		p := wiretest.NewPeer(t, serveScoped(t, wiretest.ModernRevision, options), wiretest.ModernRevision, "media")
		for range 3 {
			p.Call("tools/call", map[string]any{"name": "convert", "arguments": map[string]any{}})
		}
		const want = `level=INFO msg="call refused" audit=refused tool=transcode reason="the token needs the scopes media media:write" principal=alice`
		if strings.Count(log.String(), want) != 1 || strings.Count(log.String(), "audit=refused") != 1 {
			t.Errorf("the log is:\n%s", log.String())
		}
	})
}

// TestToolScopesInBatches checks that a batch of 2025-03-26 has no way around the scopes.
func TestToolScopesInBatches(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPeer(t, serveScoped(t, "2025-03-26", taskserver.Options{}), "2025-03-26", "media")
		for _, name := range []string{"own", "transcode"} {
			body, edits := p.Request("tools/call", map[string]any{"name": name, "arguments": map[string]any{}})
			if r := p.Post("["+body+"]", edits...); strings.Contains(string(r.Body), "mine") || r.Status != http.StatusBadRequest {
				t.Errorf("%s: HTTP %d, %s", name, r.Status, r.Body)
			}
		}
		body, edits := p.Request("ping", nil)
		if r := p.Post("["+body+"]", edits...); r.Status != http.StatusOK {
			t.Errorf("ping: HTTP %d, %s", r.Status, r.Body)
		}
	})
}

// TestToolScopesNeedOurHandler checks that scopes that nothing would check are an error.
func TestToolScopesNeedOurHandler(t *testing.T) {
	defer func() {
		if text, _ := recover().(string); !strings.Contains(text, "needs the handler of NewHandler, and got *http.ServeMux") {
			t.Errorf("it panics with %q", text)
		}
	}()
	gosdk.RequireToolScopes(http.NewServeMux(), nil, "")
	t.Error("it returns")
}
