package edgetest

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestLimitPolls checks that a client which polls one task too fast must wait, for this task only,
// and that no other client is affected. Checks that precede the task lookup come first (T-39).
func TestLimitPolls(t *testing.T) {
	rules.Covers(t, "C-95", "B-90", "E-26", "E-77", "E-72")
	inBubble(t, func(t *testing.T) {
		const most = 2
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true, Options: taskserver.Options{Limits: taskserver.Limits{Polls: most, Lists: most}}})
		for _, revision := range wiretest.AllRevisions {
			a, b := wiretest.NewPeer(t, url, revision, "a"), wiretest.NewPeer(t, url, revision, "b")
			methods := []string{"tasks/get", "tasks/cancel", "tasks/result"}
			if revision == wiretest.ModernRevision {
				methods = []string{"tasks/get", "tasks/cancel", "tasks/update"}
			}
			for _, method := range methods {
				id, other := a.Create("ponder", nil), a.Create("ponder", nil)
				once := func(p *wiretest.Peer, id string) *wiretest.Response {
					return p.Call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}})
				}
				wiretest.Flood(t, func() *wiretest.Response { return once(b, id) }) // does not count for a
				if r := once(a, id); r.Status == http.StatusTooManyRequests {
					t.Errorf("%s %s: b's polls count for a", revision, method)
				}
				wiretest.Flood(t, func() *wiretest.Response { return once(a, id) }).WantLimit(http.StatusTooManyRequests, "polls", most)
				if revision == wiretest.ModernRevision {
					a.Caps = `{}`
					a.Task(method, id).Want(http.StatusBadRequest, wiretest.MissingCapability)
					a.Caps = wiretest.TasksExtension
					a.Task(method, id, wiretest.WithHeader("Mcp-Name", "x")).Want(http.StatusBadRequest, wiretest.HeaderMismatch)
				} else {
					a.Task(method, id, wiretest.WithHeader("Mcp-Session-Id", "made-up")).Want(http.StatusNotFound, wiretest.InvalidRequest)
					b.Task(method, id, wiretest.WithHeader("Mcp-Session-Id", a.Session)).Want(http.StatusForbidden, wiretest.InvalidRequest)
				}
				if r := once(a, other); r.Status == http.StatusTooManyRequests {
					t.Errorf("%s %s: another task: %s", revision, method, r.Body)
				}
				if method != methods[0] {
					continue
				}
				time.Sleep(time.Second) // what Retry-After says
				if r := once(a, id); r.Status == http.StatusTooManyRequests {
					t.Errorf("%s %s: after a second: %s", revision, method, r.Body)
				}
			}
			// A made-up task does not exist, however fast a client asks for it, and its polls are limited too.
			wiretest.Flood(t, func() *wiretest.Response { return a.Task("tasks/get", "made-up") }).WantLimit(http.StatusTooManyRequests, "polls", most)
			for i := range 20 {
				if r := a.Task("tasks/get", fmt.Sprint("made-up", i)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
					t.Errorf("%s", r.Body)
				}
			}
		}
		a := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		wiretest.Flood(t, func() *wiretest.Response { return a.Call("tasks/list", nil) }).WantLimit(http.StatusTooManyRequests, "lists", most)
		wiretest.NewPeer(t, url, wiretest.LegacyRevision, "b").Call("tasks/list", nil).OK()
		if r := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a").Call("tasks/list", nil); r.Error == nil || r.Error.Code != wiretest.MethodNotFound {
			t.Errorf("%s", r.Body)
		}
	})
}

// TestLimitKept checks that the limits on stored tasks reach the client through the SDK, with their
// data, in both revisions.
func TestLimitKept(t *testing.T) {
	rules.Covers(t, "C-96", "B-91")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true, Options: taskserver.Options{
			Limits: taskserver.Limits{Running: 2, Tasks: 3, Arguments: 500, Result: 300, Polls: -1}}})
		for _, revision := range wiretest.AllRevisions {
			p := wiretest.NewPeer(t, url, revision, "user-of-"+revision)
			params := func(tool string, args map[string]any) map[string]any {
				return map[string]any{"name": tool, "arguments": args, "task": map[string]any{}}
			}
			p.Call("tools/call", params("ponder", map[string]any{"x": strings.Repeat("x", 500)})).WantLimit(200, "arguments", 500)
			p.Call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": strings.Repeat("x", 500)}}).WantLimit(200, "arguments", 500)
			big := p.Create("raw", nil) // some 500 bytes
			failed := p.Until(big, "failed")
			if revision == wiretest.ModernRevision {
				if data, ok := failed.Get("error", "data").(map[string]any); !ok || data["limit"] != "result" {
					t.Errorf("%s", failed.Body)
				}
				p.Call("tasks/update", map[string]any{"taskId": big, "inputResponses": map[string]any{"x": strings.Repeat("x", 500)}}).WantLimit(200, "arguments", 500)
			} else {
				p.Task("tasks/result", big).WantLimit(200, "result", 300)
			}
			ids := []string{p.Create("run_pipeline", wiretest.PipelineArgs("endless")), p.Create("run_pipeline", wiretest.PipelineArgs("endless"))}
			p.Call("tools/call", params("run_pipeline", wiretest.PipelineArgs("endless"))).WantLimit(200, "tasks", 3)
			p2 := wiretest.NewPeer(t, url, revision, "another-of-"+revision)
			p2.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			p2.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			p2.Call("tools/call", params("run_pipeline", wiretest.PipelineArgs("endless"))).WantLimit(200, "running", 2)
			p.Task("tasks/cancel", ids[0]).OK()
		}
	})
}

// TestLimitOpen checks that calls without a task and requests that wait for a task count as open,
// because each holds a connection.
func TestLimitOpen(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 3
		gates := map[string]chan struct{}{}
		for _, name := range []string{wiretest.LegacyRevision, wiretest.ModernRevision, "task"} {
			gates[name] = make(chan struct{})
		}
		held := mcptask.Tools{Service: "Held", Impl: struct{}{}, Tools: []mcptask.Tool{mcptask.NewTool(
			mcptask.ToolSpec{Name: "held", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(ctx context.Context, _ *mcptask.Task, in struct{ Gate string }) (string, error) {
				select {
				case <-gates[in.Gate]:
					return "let go", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			})}}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{held}, Options: taskserver.Options{
			Limits: taskserver.Limits{Running: most, Waiting: most, Polls: -1}}})
		// crowd sends twice as many requests as allowed. It checks that the excess is refused while the others wait,
		// and that they are answered after their release.
		crowd := func(name, gate string, send func() *wiretest.Response) {
			t.Helper()
			answers := make(chan *wiretest.Response)
			for range 2 * most {
				go func() { answers <- send() }()
			}
			for range most {
				(<-answers).WantLimit(200, name, most)
			}
			close(gates[gate])
			for range most {
				if r := <-answers; r.Error != nil {
					t.Errorf("%s", r.Body)
				}
			}
		}
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "a")
			if revision == wiretest.ModernRevision {
				p.Caps = `{}`
			}
			crowd("running", revision, func() *wiretest.Response {
				return p.Call("tools/call", map[string]any{"name": "held", "arguments": map[string]any{"gate": revision}})
			})
			p.Call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "p"}}).OK()
		}
		p, q := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "b"), wiretest.NewPeer(t, url, wiretest.LegacyRevision, "c")
		id, other := p.Create("held", map[string]any{"gate": "task"}), q.Create("raw", nil)
		var one sync.Mutex
		crowd("waiting", "task", func() *wiretest.Response {
			one.Lock()
			q.Task("tasks/result", other).OK() // its own account
			one.Unlock()
			p.Task("tasks/get", id).OK() // does not wait
			return p.Task("tasks/result", id)
		})
		p.Task("tasks/result", id).OK()
	})
}

// TestLimitAnswers checks that an answer is limited like arguments, in every form and also as an
// error, because the record stores it.
func TestLimitAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = 500
		big := strings.Repeat("x", most+1)
		url, tasks := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{wiretest.AskTools()},
			Options: taskserver.Options{Limits: taskserver.Limits{Arguments: most, Polls: -1}}})
		p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		for _, response := range []string{
			`"result":{"action":"accept","content":{"note":"n","more":"` + big + `"}}`,
			`"error":{"code":-1,"message":"` + big + `"}`,
			`"error":{"code":-1,"message":"m","data":"` + big + `"}`,
		} {
			id := p.Create("ask", wiretest.AskArguments("one"))
			f := p.Result(id)
			p.Respond(f.NextQuestion(id).ID, response)
			if got := f.Next(); wiretest.ToolText(got.Result) != "cannot ask" {
				t.Errorf("%s", got.Text)
			}
			r, err := tasks.Backend().Peek(id)
			if err != nil || len(r.Inputs) != 1 || len(r.Inputs[0].Response) > 0 || r.Inputs[0].Error == nil || r.Inputs[0].Error.Limit() != "arguments" {
				t.Errorf("%v %+v", err, r.Inputs)
			}
			f = p.Send("tools/call", map[string]any{"name": "ask", "arguments": wiretest.AskArguments("one")}) // without a task
			p.Respond(f.NextQuestion("").ID, response)
			if got := f.Next(); wiretest.ToolText(got.Result) != "cannot ask" {
				t.Errorf("%s", got.Text)
			}
		}
	})
}

// TestLimitWaitingEnds checks that a client which has received the answer to a waiting request may
// send the next one before its stream has ended.
func TestLimitWaitingEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var d wiretest.Driven
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{d.Tools()}, Options: taskserver.Options{Limits: taskserver.Limits{Waiting: 1, Polls: -1}}})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "a")
		id := p.Create("driven", nil)
		f := p.Result(id)
		for range 100 {
			d.Tell(id, "done")
			if m := f.Next(); m.Result == nil {
				t.Fatalf("%s", m.Text)
			}
			id = p.Create("driven", nil)
			f = p.Result(id)
		}
		d.Tell(id, "done")
	})
}

// TestLimitAnonymous checks that anonymous callers count by session, or together if they have no
// session.
func TestLimitAnonymous(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: taskserver.Options{Limits: taskserver.Limits{Running: 1, Polls: -1, Anonymous: taskserver.Totals{Running: 6}}}})
		params := map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "task": map[string]any{}}
		for range 3 {
			p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
			p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
			p.Call("tools/call", params).WantLimit(200, "running", 1)
		}
		p, q := wiretest.NewPeer(t, url, wiretest.ModernRevision, ""), wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		q.Call("tools/call", params).WantLimit(200, "running", 1)
		q.Task("tasks/cancel", id).OK() // the ID is the key
		p.Until(id, "cancelled")
		q.Create("run_pipeline", wiretest.PipelineArgs("endless"))
	})
}

// sendInitialize sends the request that opens one more session for a peer's principal.
func sendInitialize(p *wiretest.Peer, capabilities string) *wiretest.Response {
	p.T.Helper()
	return p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":%s,"clientInfo":{"name":"t","version":"1"}}}`, capabilities),
		wiretest.WithHeader("Mcp-Session-Id", ""), wiretest.WithHeader("MCP-Protocol-Version", ""))
}

// TestLimitSessions checks that a flood of sessions ends only idle sessions of the flooding caller,
// also in the SDK.
func TestLimitSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = 4
		var g *gateway.Gateway
		var sdk *mcp.Server
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Gateway: &g, SDK: func(s *mcp.Server) { sdk = s },
			Options: taskserver.Options{Limits: taskserver.Limits{Sessions: most, Polls: -1}}})
		victim := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "victim")
		id := victim.Create("ponder", map[string]any{"ms": 1})
		first := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "mallory")
		streaming := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "mallory")
		feeds := []*wiretest.Feed{streaming.OpenGet()}
		wiretest.Eventually(t, "it streams", func() bool { return g.Counts().Streams == 1 })
		initialize := func() *wiretest.Response { return sendInitialize(first, `{}`) }
		wiretest.RunTogether(200, func(int) { // some find no idle session, because all are being opened
			if r := initialize(); r.Error != nil {
				r.WantLimit(http.StatusOK, "sessions", most)
			}
		})
		for range most {
			initialize().OK()
		}
		wiretest.Eventually(t, "there are no more", func() bool { return g.Counts().Sessions == most+1 && len(slices.Collect(sdk.Sessions())) == most+1 })
		victim.Task("tasks/get", id).OK()
		streaming.Call("tools/list", nil).OK()
		for _, method := range []string{"tools/list", "tasks/list"} {
			if r := first.Call(method, nil); r.Status != http.StatusNotFound {
				t.Errorf("the first session goes on: %d %s", r.Status, r.Body)
			}
		}
		for len(feeds) < most {
			feeds = append(feeds, wiretest.NewPeer(t, url, wiretest.LegacyRevision, "mallory").OpenGet())
		}
		wiretest.Eventually(t, "all stream", func() bool { return g.Counts().Streams == most })
		initialize().WantLimit(http.StatusOK, "sessions", most)
		wiretest.NewPeer(t, url, wiretest.LegacyRevision, "another")
		feeds[1].Stop()
		wiretest.Eventually(t, "there is room again", func() bool { return initialize().Error == nil })
	})
}

// TestLimitListen checks that every subscription counts as a waiting request, and as one poll for
// each task that it names, because it reports each task at once.
func TestLimitListen(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = 3
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Limits: taskserver.Limits{Waiting: most, Polls: 2}}})
		a, b := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "b")
		ids := []string{a.Create("run_pipeline", wiretest.PipelineArgs("endless")), a.Create("run_pipeline", wiretest.PipelineArgs("endless"))}
		listen := func(p *wiretest.Peer, filter map[string]any) *wiretest.Response {
			return p.Call("subscriptions/listen", map[string]any{"notifications": filter})
		}
		others := map[string]any{"toolsListChanged": true}
		f, _ := a.Subscribe(map[string]any{"taskIds": ids})
		g, _ := a.Subscribe(map[string]any{"taskIds": []string{ids[0]}, "toolsListChanged": true})
		h, _ := a.Subscribe(others)
		for _, filter := range []map[string]any{{"taskIds": ids[1:]}, {"taskIds": []string{ids[1], "made-up"}, "toolsListChanged": true}, others} {
			listen(a, filter).WantLimit(http.StatusOK, "waiting", most)
		}
		other, _ := b.Subscribe(others)
		other.Stop()
		wiretest.Flood(t, func() *wiretest.Response { return listen(a, map[string]any{"taskIds": []string{"made-up", ids[1]}}) }).WantLimit(http.StatusTooManyRequests, "polls", 2)
		a.Task("tasks/get", ids[0]).OK()
		for _, open := range []*wiretest.Feed{f, g, h} {
			open.Stop()
		}
		wiretest.Eventually(t, "the subscriptions are freed", func() bool { return listen(a, map[string]any{"taskIds": []string{}}).Error == nil })
	})
}

// TestLimitFallback checks that a call of a fallback tool counts as a poll of the task that it
// names, and that a result which it returns counts as retrieved.
func TestLimitFallback(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, revision := range []string{"2025-06-18", wiretest.LegacyRevision, wiretest.ModernRevision} {
			logs, gate := &wiretest.SafeBuffer{}, make(chan struct{})
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{slowTools(time.Millisecond, gate)}, Options: taskserver.Options{
				Limits: taskserver.Limits{Polls: 2}, Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
			a, b := wiretest.NewPeerWith(t, url, revision, "a", `{}`), wiretest.NewPeerWith(t, url, revision, "b", `{}`)
			id := a.CallTool("slow_sleep", map[string]any{"ms": -1}).WantTask("working")
			close(gate)
			time.Sleep(600 * time.Millisecond) // polls are limited
			if r := a.CallTool("slow_task_result", map[string]any{"task": id}); !strings.Contains(string(r.Body), `"slept":3000`) {
				t.Fatalf("%s", r.Body)
			}
			if text := logs.String(); strings.Count(text, "audit=retrieved task="+id+" tool=slow_sleep principal=a") != 1 {
				t.Errorf("%s: %s", revision, text)
			}
			for _, tool := range []string{"slow_task_status", "slow_task_result", "slow_task_cancel", "slow_task_answer"} {
				once := func(p *wiretest.Peer) *wiretest.Response {
					return p.CallTool(tool, map[string]any{"task": tool, "question": "q"})
				}
				wiretest.FloodUntil(t, func() *wiretest.Response { return once(b) }, func(r *wiretest.Response) bool { return r.Error != nil }).WantLimit(http.StatusOK, "polls", 2)
				if r := once(a); r.Error != nil {
					t.Errorf("%s: b's calls count for a: %s", tool, r.Body)
				}
				b.CallTool(tool, map[string]any{"task": "other than " + tool, "question": "q"}).OK()
			}
		}
	})
}

// TestLimitLasting checks that a message which stays in memory with its session or its wait must be
// small, even if large bodies are allowed. There may be thousands of them.
func TestLimitLasting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.Serve(t, taskserver.Options{})
		const bytes = 64 << 10
		padded := func(more map[string]any) map[string]any {
			more["padding"] = strings.Repeat("x", bytes)
			return more
		}
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		p.Call("tasks/result", padded(map[string]any{"taskId": id})).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		q := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		q.Call("subscriptions/listen", padded(map[string]any{"notifications": map[string]any{"taskIds": []string{id}}})).
			Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		q.Call("subscriptions/listen", padded(map[string]any{"notifications": map[string]any{"toolsListChanged": true}})).
			Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		named := func(r *http.Request) { r.Header.Set("Mcp-Name", "run_pipeline") }
		for _, p := range []*wiretest.Peer{p, q} {
			p.Call("tools/call", padded(map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("quick")}), named).
				Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			long := wiretest.PipelineArgs("quick")
			long["unknown"] = strings.Repeat("x", bytes)
			if r := p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": long}, named); r.Status == http.StatusRequestEntityTooLarge {
				t.Errorf("long arguments: %s", r.Body)
			}
		}
		crumbs := map[string]any{"taskId": id}
		for i := range 2000 {
			crumbs[fmt.Sprint(i)] = 0
		}
		p.Call("tasks/result", crumbs).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		delete(crumbs, "taskId")
		q.Call("subscriptions/listen", map[string]any{"notifications": crumbs}).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		for _, name := range []string{"arguments", "inputResponses", "requestState"} { // only a call has them, with a limit of their own
			p.Call("tasks/result", map[string]any{"taskId": id, name: crumbs}).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			q.Call("subscriptions/listen", map[string]any{"notifications": map[string]any{"toolsListChanged": true}, name: crumbs}).
				Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		}
		for _, p := range []*wiretest.Peer{p, q} {
			p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("quick"), "x": crumbs}, named).
				Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			if r := p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": crumbs}, named); r.Status == http.StatusRequestEntityTooLarge {
				t.Errorf("many arguments: %s", r.Body)
			}
		}

		initialize := func(experimental string) *wiretest.Response {
			return sendInitialize(p, `{"experimental":{"x":`+experimental+`}}`)
		}
		initialize(`{"y":"`+strings.Repeat("x", bytes)+`"}`).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		initialize(`{"y":[{}`+strings.Repeat(`,{}`, 1000)+`]}`).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		initialize(`{"y":"` + strings.Repeat(`,{[\"`, 1001) + `"}`).OK() // one large value
	})
}

// TestPipeLimitLasting checks the same on a pipe.
func TestPipeLimitLasting(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{})
		p.Initialize()
		for _, method := range []string{"tasks/result", "initialize"} {
			line := p.Ask(`{"jsonrpc":"2.0","id":"long","method":%q,"params":{"padding":%q}}`, method, strings.Repeat("x", 64<<10))
			if !strings.Contains(line, `"id":"long"`) || !strings.Contains(line, `exceeds 65536 bytes`) {
				t.Errorf("%.300s", line)
			}
		}
	})
}

// TestLimitProgressToken checks that a progress token must be short: it stays until the task ends,
// and no other limit counts it.
func TestLimitProgressToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.Serve(t, taskserver.Options{})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			call := func(token string) *wiretest.Response {
				params := map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "_meta": map[string]any{"progressToken": token}}
				if revision == wiretest.LegacyRevision {
					params["task"] = map[string]any{}
				}
				return p.Call("tools/call", params)
			}
			call(strings.Repeat("x", 1<<10)).OK()
			if r := call(strings.Repeat("x", 1<<10+1)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
				t.Errorf("%s: %.300s", revision, r.Body)
			}
		}
	})
}

// TestPipeMemory checks that large requests which have no answer yet are bounded on a pipe, that small
// ones go on, and that there is room again once a request is answered.
func TestPipeMemory(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{})
		p.Initialize()
		call := func(id int, size int) string {
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"endless","arguments":{"x":%q}}}`, id, strings.Repeat("x", size))
		}
		const size, most = 1<<20 - 100, 7 // of 32 MiB, four times a body's size
		for id := range most {
			p.Say("%s", call(id, size))
		}
		if line := p.Ask("%s", call(most, size)); !strings.Contains(line, `"limit":"memory"`) || !strings.Contains(line, fmt.Sprintf(`"id":%d`, most)) {
			t.Errorf("%.300s", line)
		}
		p.Say("%s", call(most, 1000))
		p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":3}}`)
		if line := p.Ask(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`); !strings.Contains(line, `"ping"`) {
			t.Errorf("%.300s", line)
		}
		synctest.Wait()
		p.Say("%s", call(most+1, size))
		if line := p.Ask(`{"jsonrpc":"2.0","id":"ping","method":"ping"}`); !strings.Contains(line, `"ping"`) {
			t.Errorf("%.300s", line)
		}
	})
}
