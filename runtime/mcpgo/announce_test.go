package mcpgo_test

import (
	"bufio"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// A call of the proposal SEP-1686 in front of mcp-go: announced on its own stream,
// or, for a client that takes none there, on the session's.
func TestAnnounced(t *testing.T) {
	rules.Covers(t, "A-06", "A-08")
	tools := pipeline.CITools(ci{})
	tools.Capabilities = mcptask.Declared() // as if it were generated for the proposal
	tasks, err := mcptask.NewServer(mcptask.Options{Revisions: []string{mcptask.RevisionSEP1686}}, tools)
	if err != nil {
		t.Fatal(err)
	}
	s := server.NewMCPServer("ci", "1.0.0", server.WithToolCapabilities(true))
	mcpgo.AddTools(s, tasks)
	web := httptest.NewServer(wirecheck.Handler(t, mcpgo.NewHandler(tasks, server.NewStreamableHTTPServer(s, server.WithStateful(true)), mcpgo.Options{})))
	t.Cleanup(func() { _ = tasks.Close(); web.CloseClientConnections(); web.Close() })

	var session string
	send := func(method, accept, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, web.URL+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]string{"Content-Type": "application/json", "Accept": accept, "Mcp-Session-Id": session} {
			if value != "" {
				r.Header.Set(name, value)
			}
		}
		res, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { res.Body.Close() })
		return res
	}
	// data reads the messages of a stream, or the one of a body.
	data := func(res *http.Response) <-chan string {
		messages := make(chan string, 10)
		go func() {
			defer close(messages)
			for lines := bufio.NewScanner(res.Body); lines.Scan(); {
				if text := strings.TrimPrefix(lines.Text(), "data: "); strings.HasPrefix(text, "{") {
					messages <- text
				}
			}
		}()
		return messages
	}
	next := func(messages <-chan string) string {
		t.Helper()
		select {
		case text := <-messages:
			return text
		case <-time.After(time.Minute):
			t.Fatal("nothing comes")
			return ""
		}
	}
	call := func(id string) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r"},"_meta":{"modelcontextprotocol.io/task":{"taskId":%[1]q}}}}`, id)
	}
	const both = "application/json, text/event-stream"
	// mcp-go has no form for what the proposal's clients declare.
	opened := send(http.MethodPost, both, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"tasks":{"requests":{"elicitation":{"create":true}}},"roots":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	session = opened.Header.Get("Mcp-Session-Id")
	if text := next(data(opened)); !strings.Contains(text, `"tasks":{"requests":{"tools":{"call":true}}}`) {
		t.Errorf("%s", text)
	}
	stream := data(send(http.MethodPost, both, call("S")))
	if text := next(stream); !strings.Contains(text, "notifications/tasks/created") || !strings.Contains(text, `"S"`) {
		t.Errorf("%s", text)
	}
	if text := next(stream); !strings.Contains(text, `"result"`) || !strings.Contains(text, `{"taskId":"S"}`) {
		t.Errorf("%s", text)
	}
	// Without a stream of its own, and without one of the session: the answer alone.
	res := send(http.MethodPost, "application/json", call("A"))
	if text := next(data(res)); res.Header.Get("Content-Type") != "application/json" || !strings.Contains(text, `{"taskId":"A"}`) {
		t.Errorf("%v %s", res.Header, text)
	}
	standalone := data(send(http.MethodGet, "text/event-stream", ""))
	res = send(http.MethodPost, "application/json", call("B"))
	if text := next(standalone); !strings.Contains(text, "notifications/tasks/created") || !strings.Contains(text, `"B"`) {
		t.Errorf("%s", text)
	}
	if text := next(data(res)); !strings.Contains(text, `"result"`) || !strings.Contains(text, `{"taskId":"B"}`) {
		t.Errorf("%s", text)
	}
}
