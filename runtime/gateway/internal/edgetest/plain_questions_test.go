package edgetest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const elicits = `{"elicitation":{}}`

// askingTools are tools whose plain calls ask: with a task behind the call that goes on, with one that does not, and
// without.
func askingTools(wait time.Duration) []mcptask.Tools {
	return []mcptask.Tools{slowTools(wait, nil), wiretest.AskTools()}
}

// plainAsks are calls of these tools, and the answers that they return.
var plainAsks = map[string]struct {
	arguments map[string]any
	result    string
}{
	"slow_ask":     {nil, "noted milk"},
	"ask":          {wiretest.AskArguments("one"), "milk"},
	"never_a_task": {nil, "milk"},
}

// TestPlainCallIsQuiet checks that the client of a plain call gets its question and the result, and is told nothing of the
// task behind the call, which it does not know.
func TestPlainCallIsQuiet(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "http", func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: askingTools(time.Minute)})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "a", elicits)
		own := p.OpenGet()
		for tool, c := range plainAsks {
			f := p.Send("tools/call", map[string]any{"name": tool, "arguments": c.arguments})
			q := f.NextQuestion("")
			time.Sleep(10 * time.Second)
			p.Respond(q.ID, wiretest.AcceptNote("milk"))
			if m := f.Next(); wiretest.ToolText(m.Result) != c.result {
				t.Errorf("%s", m.Text)
			}
		}
		own.WantSilence()
	})
	bubble.Run(t, "pipe", func(t *testing.T) {
		tasks, err := taskserver.New(taskserver.Options{}, askingTools(time.Minute)...)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tasks.Close() })
		p := wiretest.PipeTo(t, tasks, 100)
		p.InitializeWith(elicits)
		for tool, c := range plainAsks {
			q := p.Ask(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%[1]q,"arguments":{"steps":["one"]}}}`, tool)
			var m wiretest.PipedMessage
			if err := json.Unmarshal([]byte(q), &m); err != nil {
				t.Fatal(err)
			}
			if m.Method != "elicitation/create" || strings.Contains(q, "related-task") {
				t.Fatalf("%s", q)
			}
			time.Sleep(10 * time.Second)
			answer := p.Ask(`{"jsonrpc":"2.0","id":%q,%s}`, m.ID, wiretest.AcceptNote("milk"))
			if !strings.Contains(answer, c.result) {
				t.Errorf("%s", answer)
			}
		}
	})
}

// TestPlainQuestionsOfJSON checks that a plain call whose answer is JSON asks on the session's own stream, and that it does
// not wait if there is none.
func TestPlainQuestionsOfJSON(t *testing.T) {
	for _, revision := range plainRevisions[1:3] {
		for tool, c := range plainAsks {
			t.Run(revision+" "+tool, func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: askingTools(time.Minute), HTTP: wiretest.HTTPOptions(true)})
					p := wiretest.NewPeerWith(t, url, revision, "", elicits)
					began := time.Now()
					r := p.CallTool(tool, c.arguments)
					if text := r.Content(); !strings.Contains(text, "slow_task_answer") && text != "cannot ask" || time.Since(began) > time.Second {
						t.Errorf("after %v: %s", time.Since(began), r.Body)
					}
					own := p.OpenGet()
					done := make(chan *wiretest.Response, 1)
					go func() { done <- p.CallTool(tool, c.arguments) }()
					p.Respond(own.NextQuestion("").ID, wiretest.AcceptNote("milk"))
					if r := <-done; r.Content() != c.result {
						t.Errorf("%s", r.Body)
					}
					own.WantSilence()
				})
			})
		}
	}
}

// TestPlainQuestionIsResumed checks that a plain call whose client has lost the connection asks when the client is back: on
// the stream that resumes the call, or on the session's own.
func TestPlainQuestionIsResumed(t *testing.T) {
	for _, signed := range []bool{false, true} {
		for _, onOwn := range []bool{false, true} {
			for tool, c := range plainAsks {
				t.Run(fmt.Sprintf("%s signed=%v own=%v", tool, signed, onOwn), func(t *testing.T) {
					inBubble(t, func(t *testing.T) {
						goOn := make(chan struct{})
						setup := wiretest.Setup{Bearer: true, Tools: askingTools(time.Minute), HTTP: &mcp.StreamableHTTPOptions{EventStore: gosdk.NewEventStore()},
							Middleware: wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
								<-goOn
								return next()
							})}
						if signed {
							setup.Options.SessionKey = sessionKey
						}
						url, _ := wiretest.ServeWith(t, setup)
						p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "a", elicits)
						client := &http.Client{Transport: p.Client.Transport}
						body, edits := p.Request("tools/call", map[string]any{"name": tool, "arguments": c.arguments})
						res, err := client.Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
						if err != nil {
							t.Fatal(err)
						}
						last, _ := readEvent(t, res, func(id, _ string) bool { return id != "" })
						_ = res.Body.Close()
						synctest.Wait()
						close(goOn)
						time.Sleep(5 * time.Second)
						var own *wiretest.Feed
						if onOwn {
							own = p.OpenGet()
							if signed && tool != "never_a_task" {
								time.Sleep(10 * time.Second) // other replicas' requests come first
							}
							p.Respond(own.NextQuestion("").ID, wiretest.AcceptNote("milk"))
						}
						back, err := client.Do(p.NewRequest(t.Context(), http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream"), wiretest.WithHeader("Last-Event-ID", last)))
						if err != nil {
							t.Fatal(err)
						}
						defer back.Body.Close()
						if !onOwn {
							_, data := readEvent(t, back, func(_, data string) bool { return strings.Contains(data, "elicitation/create") })
							var q wiretest.WireMessage
							if err := json.Unmarshal([]byte(data), &q); err != nil {
								t.Fatal(err)
							}
							p.Respond(q.ID, wiretest.AcceptNote("milk"))
						}
						if _, data := readEvent(t, back, func(_, data string) bool { return strings.Contains(data, `"result"`) }); !strings.Contains(data, c.result) {
							t.Errorf("%s", data)
						}
					})
				})
			}
		}
	}
}

// TestPlainQuestionIsAskedElsewhere checks that a question which a plain call has left with its client is asked again in
// another session of the caller's, and that a form which a tool has answered is withdrawn.
func TestPlainQuestionIsAskedElsewhere(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: askingTools(5 * time.Second)})
		first := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "a", elicits)
		second := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "a", elicits)
		own := first.OpenGet()
		f := first.Send("tools/call", map[string]any{"name": "slow_ask"})
		left := f.NextQuestion("")
		reply := f.Next()
		id := (&wiretest.Response{T: t, Status: http.StatusOK, Body: []byte(reply.Text), Result: reply.Result}).WantTask("input_required")
		result := map[string]any{"name": "slow_task_result", "arguments": map[string]any{"task": id}}
		f = second.Send("tools/call", result)
		shown := f.NextQuestion("")
		second.CallTool("slow_task_answer", map[string]any{"task": id, "question": "note", "answer": map[string]any{"note": "milk"}}).OK()
		f.NextCancellation(shown)
		if m := f.Next(); wiretest.ToolText(m.Result) != "noted milk" {
			t.Errorf("%s", m.Text)
		}
		own.NextCancellation(left)
	})
}

// TestPlainQuestionOfRepeatedCall checks that a call which is repeated with its idempotency key asks the question that came
// when the client of the first had left.
func TestPlainQuestionOfRepeatedCall(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		goOn := make(chan struct{})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: askingTools(time.Minute),
			Middleware: wiretest.WrapCalls(func(next func() (mcp.Result, error), _ *mcp.CallToolRequest) (mcp.Result, error) {
				<-goOn
				return next()
			})})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "a", elicits)
		call := map[string]any{"name": "slow_ask", "arguments": map[string]any{}, "_meta": map[string]any{"io.github.mcptaskgen/idempotency-key": "key-0123456789abcdef"}}
		body, edits := p.Request("tools/call", call)
		client := &http.Client{Transport: p.Client.Transport}
		res, err := client.Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		synctest.Wait()
		close(goOn)
		time.Sleep(5 * time.Second)
		f := p.Send("tools/call", call)
		p.Respond(f.NextQuestion("").ID, wiretest.AcceptNote("milk"))
		if m := f.Next(); wiretest.ToolText(m.Result) != "noted milk" {
			t.Errorf("%s", m.Text)
		}
	})
}
