package edgetest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// retrier repeats plain calls of 2026-07-28 that are answered with questions.
type retrier struct {
	*wiretest.Peer
	tool      string
	arguments map[string]any
	key       string // the idempotency key; "" means none
}

// call calls the tool. An empty state and no responses make it a first call.
func (c retrier) call(state string, responses ...string) *wiretest.Response {
	c.T.Helper()
	return c.Call("tools/call", c.params(state, responses))
}

// params are the parameters of a call.
func (c retrier) params(state string, responses []string) map[string]any {
	params := map[string]any{"name": c.tool, "arguments": c.arguments}
	if c.key != "" {
		params["_meta"] = map[string]any{spec.MetaIdempotencyKey: c.key}
	}
	if state != "" {
		params["requestState"] = state
	}
	if len(responses) > 0 {
		params["inputResponses"] = wiretest.InputResponses(responses...)
	}
	return params
}

// wantAsked fails the test unless the response asks the question with the key. It returns the state.
func wantAsked(r *wiretest.Response, key, message string) (state string) {
	r.T.Helper()
	if got := r.OK().Text("inputRequests", key, "params", "message"); r.Text("resultType") != "input_required" || got != message || r.Get("taskId") != nil {
		r.T.Fatalf("%s, want the question %s: %s", r.Body, key, message)
	}
	return r.Text("requestState")
}

// note returns the response to a question for a note.
func note(text string) string { return fmt.Sprintf(`{"action":"accept","content":{"note":%q}}`, text) }

// questionTools ask in every order, with and without fallback tools.
func questionTools(ran *atomic.Int32, wait time.Duration) []mcptask.Tools {
	optional := mcptask.Policy{Task: mcptask.TaskOptional, Wait: wait, TTL: time.Hour, Poll: 50 * time.Millisecond}
	required := optional
	required.Task = mcptask.TaskRequired
	first := wiretest.NoteSpec
	first.Name = "First"
	tools := func(prefix string) []mcptask.Tool {
		return []mcptask.Tool{
			mcptask.NewTool(mcptask.ToolSpec{Name: prefix + "both", InputSchema: wiretest.OpenObject, Policy: optional, Questions: []mcptask.InputSpec{first}},
				func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
					ran.Add(1)
					before, err := mcptask.Asked[wiretest.NoteInput](task, 0)
					if err != nil {
						return "", err
					}
					later, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "later", "Later?")
					return before.Note + " and " + later.Note, err
				}),
			mcptask.NewTool(mcptask.ToolSpec{Name: prefix + "work", InputSchema: wiretest.OpenObject, Policy: optional},
				func(ctx context.Context, task *mcptask.Task, in wiretest.PonderInput) (string, error) {
					ran.Add(1)
					answer, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "go", "Go?")
					if err != nil {
						return "", err
					}
					task.Progress(ctx, 1, 2, "working")
					select {
					case <-time.After(time.Duration(in.MS) * time.Millisecond):
						return "worked on " + answer.Note, nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}),
			mcptask.NewTool(mcptask.ToolSpec{Name: prefix + "mixed", InputSchema: wiretest.OpenObject, Policy: optional},
				func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
					roots := make(chan error, 1)
					go func() {
						_, err := task.Roots(ctx, "where")
						roots <- err
					}()
					time.Sleep(time.Millisecond) // the questions come in this order
					answer, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "go", "Go?")
					if err != nil {
						return "", err
					}
					return fmt.Sprint(answer.Note, " ", <-roots), nil
				}),
			mcptask.NewTool(mcptask.ToolSpec{Name: prefix + "name", InputSchema: wiretest.OpenObject, Policy: optional},
				func(ctx context.Context, task *mcptask.Task, in wiretest.PonderInput) (string, error) {
					select {
					case <-time.After(time.Duration(in.MS) * time.Millisecond):
						return "id " + task.ID(), nil
					case <-ctx.Done():
						return "", ctx.Err()
					}
				}),
			mcptask.NewTool(mcptask.ToolSpec{Name: prefix + "always", InputSchema: wiretest.OpenObject, Policy: required},
				func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
					answer, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "go", "Go?")
					return answer.Note, err
				}),
		}
	}
	return []mcptask.Tools{
		{Service: "None", Impl: 1, Asks: true, Tools: tools("none_")},
		{Service: "Slow", Impl: 1, Prefix: "slow_", Asks: true, Fallback: mcptask.FallbackTools, Tools: tools("slow_")},
	}
}

// eachRetrier runs a test with a server of questionTools, for tools with and without the fallback.
// call makes calls of a client that answers forms.
func eachRetrier(t *testing.T, wait time.Duration, test func(t *testing.T, p *wiretest.Peer, call func(tool string, arguments map[string]any) retrier, ran *atomic.Int32)) {
	t.Helper()
	eachStoredRetrier(t, wait, func() taskstore.Store { return taskstore.NewMemory() }, test)
}

// eachStoredRetrier is eachRetrier with a store of the test.
func eachStoredRetrier(t *testing.T, wait time.Duration, newStore func() taskstore.Store, test func(t *testing.T, p *wiretest.Peer, call func(tool string, arguments map[string]any) retrier, ran *atomic.Int32)) {
	t.Helper()
	for _, prefix := range []string{"none_", "slow_"} {
		bubble.Run(t, prefix, func(t *testing.T) {
			ran := new(atomic.Int32)
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: questionTools(ran, wait), Options: taskserver.Options{Store: newStore()}})
			p := wiretest.NewPeerWith(t, url, wiretest.ModernRevision, "a", `{"elicitation":{}}`)
			test(t, p, func(tool string, arguments map[string]any) retrier {
				return retrier{Peer: p, tool: prefix + tool, arguments: arguments}
			}, ran)
		})
	}
}

// TestRetry answers the questions of plain calls in 2026-07-28 by repeated calls, before the work and
// during it. A call may be repeated any number of times.
func TestRetry(t *testing.T) {
	eachRetrier(t, time.Minute, func(t *testing.T, p *wiretest.Peer, call func(string, map[string]any) retrier, ran *atomic.Int32) {
		c := call("both", map[string]any{})
		wantAsked(c.call(""), "before/First", "A note?")
		state := wantAsked(c.call("", "before/First", note("milk")), "later", "Later?")
		if wantAsked(c.call(state), "later", "Later?") != state || wantAsked(c.call(state, "other", `{}`), "later", "Later?") != state {
			t.Error("another state for the same task")
		}
		for _, bad := range []string{`7`, `{}`, `{"action":"x"}`, note("too long")} {
			c.call(state, "later", bad).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		c.arguments = map[string]any{"other": true} // they are those of the first call
		var same sync.WaitGroup
		for range 3 {
			same.Go(func() { c.call(state, "later", note("eggs")).WantText(false, "milk and eggs") })
		}
		same.Wait()
		c.call(state, "later", note("eggs")).WantText(false, "milk and eggs")
		c.call(state, "later", `{"action":"decline"}`).WantText(false, "milk and eggs")
		if n := ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
		// The task of a call without questions is not kept.
		call("name", nil).call("").WantText(false, "id ")
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 {
			t.Errorf("%v", tasks)
		}
		state = wantAsked(call("work", nil).call(""), "go", "Go?")
		call("work", nil).call(state, "go", `{"action":"cancel"}`).WantText(true, "dismissed")
	})
}

// TestRetryRefused checks states that name no task of the caller's for the tool.
func TestRetryRefused(t *testing.T) {
	eachRetrier(t, time.Minute, func(t *testing.T, p *wiretest.Peer, call func(string, map[string]any) retrier, ran *atomic.Int32) {
		c := call("work", nil)
		state := wantAsked(c.call(""), "go", "Go?")
		refused := func(c retrier, state, want string) {
			t.Helper()
			if r := c.call(state, "go", note("a")).Want(http.StatusBadRequest, wiretest.InvalidParams); r.Error == nil || !strings.Contains(r.Error.Message, want) {
				t.Errorf("%s, want %q", r.Body, want)
			}
		}
		stranger := c
		stranger.Peer = wiretest.NewPeerWith(t, p.URL, p.Revision, "b", `{"elicitation":{}}`)
		refused(stranger, state, "is gone")
		refused(c, `{"task":"made-up"}`, "is gone")
		refused(call("mixed", nil), state, "is that of a call of "+c.tool)
		for _, bad := range []string{"x", "[]", "7", `{"task":7}`, `{"task":""}`, `{"task":null}`, `{"task":{}}`} {
			refused(c, bad, "not what the server has sent")
		}
		params := map[string]any{"name": c.tool, "arguments": map[string]any{}, "requestState": state, "inputResponses": []int{1}}
		p.Call("tools/call", params).Want(http.StatusBadRequest, wiretest.InvalidParams)
		if n := ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
		c.call(state, "go", note("a")).WantText(false, "worked on a")
		// A client that declares tasks by now gets the result, and no second task.
		state = wantAsked(c.call(""), "go", "Go?")
		p.Caps = wiretest.WithQuestions
		c.call(state, "go", note("b")).WantText(false, "worked on b")
		p.Caps = `{"elicitation":{}}`
		// Nobody came back for it.
		state = wantAsked(c.call(""), "go", "Go?")
		time.Sleep(2 * time.Hour)
		refused(c, state, "is gone")
	})
}

// beginRetry repeats a call in a connection of its own. leave closes the connection.
func beginRetry(c retrier, state string, responses ...string) (leave func()) {
	c.T.Helper()
	ctx, cancel := context.WithCancel(c.T.Context())
	body, edits := c.Request("tools/call", c.params(state, responses))
	gone := make(chan error, 1)
	go func() {
		res, err := c.Client.Do(c.NewRequest(ctx, http.MethodPost, body, edits...))
		if err == nil {
			for message := range wiretest.Events(res.Body) {
				err = fmt.Errorf("an answer: %s", message)
			}
			res.Body.Close()
		}
		gone <- err
	}()
	synctest.Wait()
	return func() {
		c.T.Helper()
		cancel()
		if err := <-gone; err != nil && !strings.Contains(err.Error(), "context canceled") {
			c.T.Error(err)
		}
	}
}

// TestRetryLeft checks that a repeated call that is cut short ends the work, as a first call does, and
// that the next one is told so.
func TestRetryLeft(t *testing.T) {
	eachRetrier(t, time.Minute, func(t *testing.T, p *wiretest.Peer, call func(string, map[string]any) retrier, ran *atomic.Int32) {
		c := call("work", map[string]any{"ms": 3600_000})
		state := wantAsked(c.call(""), "go", "Go?")
		beginRetry(c, state, "go", note("a"))()
		wiretest.Eventually(t, "the task is cancelled", func() bool { return wiretest.ListTasks(t, p)[0]["status"] == "cancelled" })
		if r := c.call(state, "go", note("a")); r.Error == nil || !strings.Contains(r.Error.Message, "without params.requestState") {
			t.Errorf("%s", r.Body)
		}
		if n := ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
	})
}

// TestRetryWait checks repeated calls whose work outlasts the wait. With the fallback, the work goes
// on as a task. Otherwise it is cancelled. Progress reaches the call that waits.
func TestRetryWait(t *testing.T) {
	const wait = 2 * time.Second
	eachRetrier(t, wait, func(t *testing.T, p *wiretest.Peer, call func(string, map[string]any) retrier, _ *atomic.Int32) {
		c := call("work", map[string]any{"ms": 60_000})
		state := wantAsked(c.call(""), "go", "Go?")
		time.Sleep(10 * wait) // nobody waits while the user thinks
		f := p.Send("tools/call", map[string]any{"name": c.tool, "requestState": state, "_meta": map[string]any{"progressToken": "p"},
			"inputResponses": wiretest.InputResponses("go", note("a"))})
		if m := f.Next(); m.Method != "notifications/progress" || !strings.Contains(m.Text, `"progress":1`) || !strings.Contains(m.Text, "working") {
			t.Errorf("%s", m.Text)
		}
		answer := f.Next()
		r := &wiretest.Response{T: t, Status: http.StatusOK, Body: []byte(answer.Text), Result: answer.Result}
		if strings.HasPrefix(c.tool, "slow_") {
			id := r.WantTask("working")
			time.Sleep(time.Minute)
			p.CallTool("slow_task_result", map[string]any{"task": id}).WantText(false, "worked on a")
			c.call(state).WantText(false, "worked on a")
			return
		}
		r.WantText(true, "did not finish within the 2s that a call without a task may take")
		if r := c.call(state); r.Error == nil || !strings.Contains(r.Error.Message, "cancelled") {
			t.Errorf("%s", r.Body)
		}
		// A first call leaves nothing behind.
		call("name", map[string]any{"ms": 60_000}).call("").WantText(true, "did not finish within the 2s that a call without a task may take")
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 {
			t.Errorf("%v", tasks)
		}
	})
}

// TestRetryPartly checks callers that can answer some questions, or none.
func TestRetryPartly(t *testing.T) {
	eachRetrier(t, time.Minute, func(t *testing.T, p *wiretest.Peer, call func(string, map[string]any) retrier, _ *atomic.Int32) {
		const roots = `{"roots":[{"uri":"file:///a"}]}`
		p.Caps = `{"elicitation":{},"roots":{}}`
		c := call("mixed", nil)
		state := c.call("").OK().Text("requestState")
		p.Caps = `{"roots":{}}`
		r := c.call(state).OK()
		if requests, _ := r.Get("inputRequests").(map[string]any); len(requests) != 1 || requests["where"] == nil {
			t.Errorf("%s", r.Body)
		}
		fallback := strings.HasPrefix(c.tool, "slow_")
		if r = c.call(state, "where", roots); fallback {
			r.WantTask("input_required")
		} else {
			r.WantText(true, "waits for an answer that this client has not declared that it can give. Go?")
		}
		p.Caps = `{"elicitation":{}}`
		c.call(state, "go", note("a")).WantText(false, "a <nil>")

		// A client that answers forms alone gets an error for the roots.
		state = wantAsked(c.call(""), "go", "Go?")
		c.call(state, "go", note("a")).WantText(false, "has not declared that it answers roots/list")
		// A client that answers nothing has no task behind its call without the fallback.
		p.Caps = `{}`
		if c = call("name", nil); !fallback && c.call("").Content() != "id " {
			t.Error("a task")
		}
		if c = call("work", nil); !fallback {
			c.call("").WantText(true, "has not declared that it answers elicitation/create")
		}
		// Without the fallback, a tool that requires a task requires it in a client that is asked, too.
		p.Caps = `{"elicitation":{}}`
		if c = call("always", nil); fallback {
			state := wantAsked(c.call(""), "go", "Go?")
			c.call(state, "go", note("a")).WantText(false, "a")
		} else {
			c.call("").Want(http.StatusBadRequest, wiretest.MissingCapability)
		}
	})
}

// TestRetryLimits checks that repeated calls count as requests for their task, and that their tasks
// count as the account's.
func TestRetryLimits(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: questionTools(new(atomic.Int32), time.Minute),
			Options: taskserver.Options{Limits: taskserver.Limits{Polls: 2, Tasks: 1}}})
		c := retrier{Peer: wiretest.NewPeerWith(t, url, wiretest.ModernRevision, "a", `{"elicitation":{}}`), tool: "none_work"}
		state := wantAsked(c.call(""), "go", "Go?")
		for range 4 {
			wantAsked(c.call(state), "go", "Go?")
		}
		if r := c.call(state, "go", note("a")); r.Error == nil || !strings.Contains(string(r.Error.Data), `"polls"`) {
			t.Errorf("%s", r.Body)
		}
		if r := c.call(""); r.Error == nil || !strings.Contains(string(r.Error.Data), `"tasks"`) {
			t.Errorf("%s", r.Body)
		}
		time.Sleep(time.Second)
		c.call(state, "go", note("a")).WantText(false, "worked on a")
	})
}

// TestRetryOnPipe answers the question of a plain call of 2026-07-28 on a pipe.
func TestRetryOnPipe(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		tasks, err := taskserver.New(taskserver.Options{}, questionTools(new(atomic.Int32), time.Minute)...)
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		p := wiretest.PipeTo(t, tasks, 100)
		call := func(id int, more string) (result map[string]any) {
			t.Helper()
			line := p.Ask(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"none_work","arguments":{}%s,"_meta":{`+
				`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},`+
				`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}`, id, more)
			var message struct{ Result map[string]any }
			if err := json.Unmarshal([]byte(line), &message); err != nil || message.Result == nil {
				t.Fatalf("%s: %v", line, err)
			}
			return message.Result
		}
		state, _ := json.Marshal(call(1, "")["requestState"])
		result := call(2, fmt.Sprintf(`,"requestState":%s,"inputResponses":{"go":%s}`, state, note("a")))
		if !strings.Contains(fmt.Sprint(result), "worked on a") {
			t.Errorf("%v", result)
		}
	})
}
