package gosdk_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestStatelessPassthrough checks that a server whose user has turned sessions off serves other tools without a session,
// also after a client has opened one for its tasks.
func TestStatelessPassthrough(t *testing.T) {
	tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tasks.Close() })
	s := newCorpusServer()
	gosdk.AddTools(s, tasks)
	handler := wirecheck.Handler(t, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true}))
	for range 2 {
		for body, want := range map[string]string{
			`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`:                                                           `"typed"`,
			`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"typed","arguments":{"text":"returned"}}}`: `"returned"`,
		} {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			r.Header.Set("Accept", "application/json, text/event-stream")
			w := httptest.NewRecorder()
			if handler.ServeHTTP(w, r); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), want) {
				t.Errorf("%s: %d %s", body, w.Code, w.Body)
			}
		}
		web := httptest.NewServer(handler)
		wiretest.NewPeer(t, web.URL, wiretest.LegacyRevision, "").Create("run_pipeline", wiretest.PipelineArgs("main"))
		web.CloseClientConnections()
		web.Close()
	}
}
