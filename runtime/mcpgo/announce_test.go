package mcpgo_test

import (
	"bufio"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// A call of the proposal SEP-1686 in front of mcp-go is announced on its own stream. If the client accepts none there,
// it is announced on the session's.
func TestAnnounced(t *testing.T) {
	rules.Covers(t, "A-06", "A-08")
	tools := pipeline.CITools(wiretest.CI{})
	tools.Capabilities = mcptask.Declared() // as if it were generated for the proposal
	tasks, s := newServer(t, taskserver.Options{Revisions: []string{mcptask.RevisionSEP1686}}, tools)
	url := serve(t, tasks, s)

	headers := map[string]string{"Content-Type": "application/json"}
	send := func(method, accept, body string) *http.Response {
		t.Helper()
		headers["Accept"] = accept
		return post(t, method, url, body, headers)
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
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","steps":["build"]},"_meta":{"modelcontextprotocol.io/task":{"taskId":%[1]q}}}}`, id)
	}
	const both = "application/json, text/event-stream"
	// mcp-go has no form for what the proposal's clients declare.
	opened := send(http.MethodPost, both, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"tasks":{"requests":{"elicitation":{"create":true}}},"roots":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	headers["Mcp-Session-Id"] = opened.Header.Get("Mcp-Session-Id")
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
