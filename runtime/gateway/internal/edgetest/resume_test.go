package edgetest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// readEvent reads the stream of a response until an event fits. It returns the event's ID and data.
func readEvent(t *testing.T, res *http.Response, fits func(id, data string) bool) (id, data string) {
	t.Helper()
	lines := bufio.NewScanner(res.Body)
	for lines.Scan() {
		switch name, value, _ := strings.Cut(lines.Text(), ": "); {
		case name == "id":
			id = value
		case name == "data":
			data = value
		case lines.Text() == "" && fits(id, data):
			return id, data
		case lines.Text() == "":
			data = ""
		}
	}
	t.Fatalf("the stream of %d has ended: %v", res.StatusCode, lines.Err())
	return "", ""
}

// TestPlainCallIsResumed checks that a client whose connection breaks during a plain call gets the result by
// Last-Event-ID, if the handler has an EventStore: whether the call ends before it is back or later, as a task behind the
// call or not, and in a session with and without a key.
func TestPlainCallIsResumed(t *testing.T) {
	for _, tool := range []string{"plain", "behind_task"} {
		for _, early := range []bool{false, true} {
			for _, signed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s early=%v signed=%v", tool, early, signed), func(t *testing.T) {
					inBubble(t, func(t *testing.T) { checkResumed(t, tool, early, signed) })
				})
			}
		}
	}
}

func checkResumed(t *testing.T, tool string, early, signed bool) {
	t.Helper()
	goOn := make(chan struct{})
	work := func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
		select {
		case <-goOn:
			return "the result", nil
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	tools := mcptask.Tools{Service: "Slow", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Prefix: "slow_", Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "plain", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskForbidden}}, work),
		mcptask.NewTool(mcptask.ToolSpec{Name: "behind_task", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}, work),
	}}
	setup := wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{tools}, HTTP: &mcp.StreamableHTTPOptions{EventStore: gosdk.NewEventStore()}}
	if signed {
		setup.Options.SessionKey = sessionKey
	}
	url, _ := wiretest.ServeWith(t, setup)
	p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
	client := &http.Client{Transport: p.Client.Transport}
	body, edits := p.Request("tools/call", map[string]any{"name": tool, "arguments": struct{}{}})
	ctx, disconnect := context.WithCancel(t.Context())
	res, err := client.Do(p.NewRequest(ctx, http.MethodPost, body, edits...))
	if err != nil {
		t.Fatal(err)
	}
	id, _ := readEvent(t, res, func(id, _ string) bool { return id != "" })
	disconnect()
	_ = res.Body.Close()
	synctest.Wait()
	if early {
		close(goOn)
		synctest.Wait()
	}
	again, err := client.Do(p.NewRequest(t.Context(), http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream"), wiretest.WithHeader("Last-Event-ID", id)))
	if err != nil {
		t.Fatal(err)
	}
	defer again.Body.Close()
	if !early {
		synctest.Wait()
		close(goOn)
	}
	_, data := readEvent(t, again, func(_, data string) bool { return strings.Contains(data, `"id"`) })
	var m struct{ Result json.RawMessage }
	if err := json.Unmarshal([]byte(data), &m); err != nil || wiretest.ToolText(m.Result) != "the result" {
		t.Errorf("%v: %s", err, data)
	}
}

// TestOwnStreamAfterManyRequests checks that a session's own stream opens, and resumes, when the event store has forgotten
// it for the streams of later requests.
func TestOwnStreamAfterManyRequests(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		setup := wiretest.Setup{Bearer: true, HTTP: &mcp.StreamableHTTPOptions{EventStore: gosdk.NewEventStore()}}
		url, _ := wiretest.ServeWith(t, setup)
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		client := &http.Client{Transport: p.Client.Transport}
		for range 70 {
			p.Call("tools/list", nil)
		}
		for _, last := range []string{"", "_0", "_7"} {
			edits := []wiretest.Edit{wiretest.WithHeader("Accept", "text/event-stream")}
			if last != "" {
				edits = append(edits, wiretest.WithHeader("Last-Event-ID", last))
			}
			ctx, disconnect := context.WithCancel(t.Context())
			res, err := client.Do(p.NewRequest(ctx, http.MethodGet, "", edits...))
			if err != nil {
				t.Fatal(err)
			}
			if res.StatusCode != http.StatusOK {
				t.Errorf("the stream after %q: %s", last, res.Status)
			}
			disconnect()
			_ = res.Body.Close()
			synctest.Wait()
		}
	})
}
