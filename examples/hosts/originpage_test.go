//go:build long && unix

package main

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// originPage calls a server in both revisions, and returns the parts of the answers that a page can
// see.
const originPage = `<!doctype html><title>a client</title><script>
const version = "io.modelcontextprotocol/protocolVersion", capabilities = "io.modelcontextprotocol/clientCapabilities"
async function message(response) {
	const text = await response.text()
	const line = text.split("\n").find(line => line.startsWith("data: {"))
	return JSON.parse(line ? line.slice(6) : text)
}
async function call(url) {
	const headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": "Bearer good"}
	const post = (more, body) => fetch(url, {method: "POST", headers: {...headers, ...more}, body: JSON.stringify({jsonrpc: "2.0", ...body})})
	const seen = []
	let response = await post({}, {id: 1, method: "initialize",
		params: {protocolVersion: "2025-11-25", capabilities: {}, clientInfo: {name: "page", version: "1"}}})
	const session = {"Mcp-Session-Id": response.headers.get("Mcp-Session-Id"), "Mcp-Protocol-Version": "2025-11-25"}
	await message(response)
	seen.push("session " + (session["Mcp-Session-Id"] != null))
	await post(session, {method: "notifications/initialized"})
	seen.push("tools " + ((await message(await post(session, {id: 2, method: "tools/list"}))).result.tools.length > 0))
	response = await fetch(url, {headers: {...headers, ...session}})
	seen.push("stream " + response.status)
	await response.body.cancel()
	const meta = {[version]: "2026-07-28", [capabilities]: {}, "io.modelcontextprotocol/clientInfo": {name: "page", version: "1"}}
	response = await post({"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list", "Mcp-Param-Region": "eu"},
		{id: 3, method: "tools/list", params: {_meta: meta}})
	seen.push("2026-07-28 " + ((await message(response)).result.tools.length > 0))
	response = await post({"Authorization": "Bearer expired"}, {id: 4, method: "ping"})
	seen.push("expired " + response.status + " " + response.headers.get("WWW-Authenticate"))
	response = await fetch(url, {method: "DELETE", headers: {...headers, ...session}})
	seen.push("end " + response.ok)
	return seen
}
const tell = url => call(url).then(seen => seen.join(", "), error => String(error))
</script>`

// servePage serves the page at an origin of its own.
func servePage(t *testing.T) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, originPage) }))
	t.Cleanup(server.Close)
	return server.URL
}

// TestOtherOrigin calls servers from pages of other origins in Chromium: a page of an allowed origin can do all that a
// client does, behind a check of tokens, and the page of another one can do nothing.
func TestOtherOrigin(t *testing.T) {
	allowed, stranger := servePage(t), servePage(t)
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if token != "good" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "a"}, nil
	}
	authenticated := auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{AllowMissingExpiration: true, ResourceMetadataURL: "https://a.example"})
	tab := chromium.open(t)
	for name, serve := range map[string]func(*taskserver.Server) http.Handler{
		"gosdk": func(tasks *taskserver.Server) http.Handler {
			sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1"}, nil)
			gosdk.AddTools(sdk, tasks)
			return gosdk.AllowOrigins(tasks, authenticated(gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)))
		},
		"mcpgo": func(tasks *taskserver.Server) http.Handler {
			s := mcpgoserver.NewMCPServer("ci", "1", mcpgoserver.WithToolCapabilities(true))
			mcpgo.AddTools(s, tasks)
			return mcpgo.AllowOrigins(tasks, authenticated(mcpgo.NewHandler(tasks, s, mcpgo.Options{})))
		},
	} {
		t.Run(name, func(t *testing.T) {
			unused := struct{ pipeline.CI }{}
			tasks, err := taskserver.New(taskserver.Options{AllowedOrigins: []string{allowed}}, pipeline.CITools(unused))
			if err != nil {
				t.Fatal(err)
			}
			server := httptest.NewServer(wirecheck.Handler(t, serve(tasks)))
			t.Cleanup(func() {
				_ = tasks.Close()
				server.CloseClientConnections()
				server.Close()
			})
			seen := func(page string) string {
				if err := chromedp.Do(tab, chromedp.Navigate(page)); err != nil {
					t.Fatal(err)
				}
				return evaluate[string](tab, t, fmt.Sprintf("tell(%q)", server.URL+"/mcp"))
			}
			const want = `session true, tools true, stream 200, 2026-07-28 true, expired 401 Bearer resource_metadata="https://a.example", end true`
			if got := seen(allowed); got != want {
				t.Errorf("an allowed page sees %s, want %s", got, want)
			}
			if got := seen(stranger); !strings.Contains(got, "Failed to fetch") {
				t.Errorf("another page sees %s", got)
			}
		})
	}
}
