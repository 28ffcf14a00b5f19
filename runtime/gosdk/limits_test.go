package gosdk_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// limited fails unless the response is the refusal of a limit, with an HTTP status.
func (r *response) limited(status int, name string, most int) *response {
	r.t.Helper()
	r.want(status, internalError)
	if want := fmt.Sprintf(`{"limit":%q,"max":%d}`, name, most); r.Error != nil && string(r.Error.Data) != want {
		r.t.Errorf("%s, want data %s", r.body, want)
	}
	if retry := r.header.Get("Retry-After"); (retry == "1") != (status == http.StatusTooManyRequests) {
		r.t.Errorf("HTTP %d with Retry-After %q", status, retry)
	}
	return r
}

// flood repeats a request, several at once, until it is refused, and returns the
// refusal.
func flood(t *testing.T, once func() *response) *response {
	t.Helper()
	return floodUntil(t, once, func(r *response) bool { return r.status == http.StatusTooManyRequests })
}

// floodUntil is flood with another sign of the refusal.
func floodUntil(t *testing.T, once func() *response, refused func(*response) bool) *response {
	t.Helper()
	const atOnce = 10
	for range 20 {
		answers := make(chan *response, atOnce)
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() { answers <- once() })
		}
		all.Wait()
		close(answers)
		for r := range answers {
			if refused(r) {
				return r
			}
		}
	}
	t.Fatal("never refused")
	return nil
}

// Who polls one task too fast is told to wait, for this task only, and nobody
// else is. What comes before the task is looked up is checked before (T-39).
func TestLimitPolls(t *testing.T) {
	rules.Covers(t, "C-95", "B-90", "E-26", "E-77", "E-72")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 2
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true, options: mcptask.Options{Limits: mcptask.Limits{Polls: most, Lists: most}}})
		for _, revision := range allRevisions {
			a, b := newPeer(t, url, revision, "a"), newPeer(t, url, revision, "b")
			methods := []string{"tasks/get", "tasks/cancel", "tasks/result"}
			if revision == modernRevision {
				methods = []string{"tasks/get", "tasks/cancel", "tasks/update"}
			}
			for _, method := range methods {
				id, other := a.create("ponder", nil), a.create("ponder", nil)
				once := func(p *peer, id string) *response {
					return p.call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}})
				}
				flood(t, func() *response { return once(b, id) }) // uses up nothing of a's
				if r := once(a, id); r.status == http.StatusTooManyRequests {
					t.Errorf("%s %s: a pays for b", revision, method)
				}
				flood(t, func() *response { return once(a, id) }).limited(http.StatusTooManyRequests, "polls", most)
				if revision == modernRevision {
					a.caps = `{}`
					a.task(method, id).want(http.StatusBadRequest, missingCapability)
					a.caps = tasksExtension
					a.task(method, id, withHeader("Mcp-Name", "x")).want(http.StatusBadRequest, headerMismatch)
				} else {
					a.task(method, id, withHeader("Mcp-Session-Id", "made-up")).want(http.StatusNotFound, invalidRequest)
					b.task(method, id, withHeader("Mcp-Session-Id", a.session)).want(http.StatusForbidden, invalidRequest)
				}
				if r := once(a, other); r.status == http.StatusTooManyRequests {
					t.Errorf("%s %s: another task: %s", revision, method, r.body)
				}
				if method != methods[0] {
					continue
				}
				time.Sleep(time.Second) // what Retry-After says
				if r := once(a, id); r.status == http.StatusTooManyRequests {
					t.Errorf("%s %s: after a second: %s", revision, method, r.body)
				}
			}
			// A made-up task is none, however fast one asks, and is limited like any.
			flood(t, func() *response { return a.task("tasks/get", "made-up") }).limited(http.StatusTooManyRequests, "polls", most)
			for i := range 20 {
				if r := a.task("tasks/get", fmt.Sprint("made-up", i)); r.Error == nil || r.Error.Code != invalidParams {
					t.Errorf("%s", r.body)
				}
			}
		}
		a := newPeer(t, url, legacyRevision, "a")
		flood(t, func() *response { return a.call("tasks/list", nil) }).limited(http.StatusTooManyRequests, "lists", most)
		newPeer(t, url, legacyRevision, "b").call("tasks/list", nil).ok()
		if r := newPeer(t, url, modernRevision, "a").call("tasks/list", nil); r.Error == nil || r.Error.Code != methodNotFound {
			t.Errorf("%s", r.body)
		}
	})
}

// The limits on what is kept come through the SDK with their data, in both revisions.
func TestLimitKept(t *testing.T) {
	rules.Covers(t, "C-96", "B-91")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: candidateRevision, bearer: true, options: mcptask.Options{
			Limits: mcptask.Limits{Running: 2, Tasks: 3, Arguments: 500, Result: 300, Polls: -1}}})
		for _, revision := range allRevisions {
			p := newPeer(t, url, revision, "user-of-"+revision)
			params := func(tool string, args map[string]any) map[string]any {
				return map[string]any{"name": tool, "arguments": args, "task": map[string]any{}}
			}
			p.call("tools/call", params("ponder", map[string]any{"x": strings.Repeat("x", 500)})).limited(200, "arguments", 500)
			p.call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": strings.Repeat("x", 500)}}).limited(200, "arguments", 500)
			big := p.create("raw", nil) // some 500 bytes
			failed := p.until(big, "failed")
			if revision == modernRevision {
				if data, ok := failed.get("error", "data").(map[string]any); !ok || data["limit"] != "result" {
					t.Errorf("%s", failed.body)
				}
				p.call("tasks/update", map[string]any{"taskId": big, "inputResponses": map[string]any{"x": strings.Repeat("x", 500)}}).limited(200, "arguments", 500)
			} else {
				p.task("tasks/result", big).limited(200, "result", 300)
			}
			ids := []string{p.create("run_pipeline", pipelineArgs("endless")), p.create("run_pipeline", pipelineArgs("endless"))}
			p.call("tools/call", params("run_pipeline", pipelineArgs("endless"))).limited(200, "tasks", 3)
			p2 := newPeer(t, url, revision, "another-of-"+revision)
			p2.create("run_pipeline", pipelineArgs("endless"))
			p2.create("run_pipeline", pipelineArgs("endless"))
			p2.call("tools/call", params("run_pipeline", pipelineArgs("endless"))).limited(200, "running", 2)
			p.task("tasks/cancel", ids[0]).ok()
		}
	})
}

// Calls without a task that block count too, and so do requests that wait for
// a task: each holds a connection.
func TestLimitOpen(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 3
		gates := map[string]chan struct{}{}
		for _, name := range []string{legacyRevision, modernRevision, "task"} {
			gates[name] = make(chan struct{})
		}
		held := mcptask.Tools{Service: "Held", Impl: struct{}{}, Tools: []mcptask.Tool{mcptask.NewTool(
			mcptask.ToolSpec{Name: "held", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(ctx context.Context, _ *mcptask.Task, in struct{ Gate string }) (string, error) {
				select {
				case <-gates[in.Gate]:
					return "let go", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			})}}
		url, _ := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{held}, options: mcptask.Options{
			Limits: mcptask.Limits{Running: most, Waiting: most, Polls: -1}}})
		// crowd sends twice as many as may be: what is too much is refused while the
		// rest is held, and the rest is answered when it is let go.
		crowd := func(name, gate string, send func() *response) {
			t.Helper()
			answers := make(chan *response)
			for range 2 * most {
				go func() { answers <- send() }()
			}
			for range most {
				(<-answers).limited(200, name, most)
			}
			close(gates[gate])
			for range most {
				if r := <-answers; r.Error != nil {
					t.Errorf("%s", r.body)
				}
			}
		}
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "a")
			if revision == modernRevision {
				p.caps = `{}`
			}
			crowd("running", revision, func() *response {
				return p.call("tools/call", map[string]any{"name": "held", "arguments": map[string]any{"gate": revision}})
			})
			p.call("tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "p"}}).ok()
		}
		p, q := newPeer(t, url, legacyRevision, "b"), newPeer(t, url, legacyRevision, "c")
		id, other := p.create("held", map[string]any{"gate": "task"}), q.create("raw", nil)
		var one sync.Mutex
		crowd("waiting", "task", func() *response {
			one.Lock()
			q.task("tasks/result", other).ok() // its own account
			one.Unlock()
			p.task("tasks/get", id).ok() // does not wait
			return p.task("tasks/result", id)
		})
		p.task("tasks/result", id).ok()
	})
}

// An answer is bounded like arguments, however it comes: the record keeps it. An
// error is one too.
func TestLimitAnswers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 500
		big := strings.Repeat("x", most+1)
		url, tasks := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{askTools()},
			options: mcptask.Options{Limits: mcptask.Limits{Arguments: most, Polls: -1}}})
		p := newAsked(t, url, legacyRevision, "a", canAll)
		for _, response := range []string{
			`"result":{"action":"accept","content":{"note":"n","more":"` + big + `"}}`,
			`"error":{"code":-1,"message":"` + big + `"}`,
			`"error":{"code":-1,"message":"m","data":"` + big + `"}`,
		} {
			id := p.create("ask", ask("one"))
			f := p.result(id)
			p.respond(f.question(id).ID, response)
			if got := f.next(); toolText(got.Result) != "cannot ask" {
				t.Errorf("%s", got.text)
			}
			r, err := tasks.Peek(id)
			if err != nil || len(r.Inputs) != 1 || len(r.Inputs[0].Response) > 0 || r.Inputs[0].Error == nil || r.Inputs[0].Error.Limit() != "arguments" {
				t.Errorf("%v %+v", err, r.Inputs)
			}
			f = p.send("tools/call", map[string]any{"name": "ask", "arguments": ask("one")}) // through the SDK
			p.respond(f.question("").ID, response)
			if got := f.next(); toolText(got.Result) != "cannot ask" {
				t.Errorf("%s", got.text)
			}
		}
	})
}

// Who has the answer to a request that waits may send the next one, before its
// stream has ended.
func TestLimitWaitingEnds(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d driven
		url, _ := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{d.tools()}, options: mcptask.Options{Limits: mcptask.Limits{Waiting: 1, Polls: -1}}})
		p := newPeer(t, url, legacyRevision, "a")
		id := p.create("driven", nil)
		f := p.result(id)
		for range 100 {
			d.say(id, "done")
			if m := f.next(); m.Result == nil {
				t.Fatalf("%s", m.text)
			}
			id = p.create("driven", nil)
			f = p.result(id)
		}
		d.say(id, "done")
	})
}

// Anonymous callers count by their session where they have one, else together.
func TestLimitAnonymous(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{options: mcptask.Options{Limits: mcptask.Limits{Running: 1, Polls: -1}}})
		params := map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless"), "task": map[string]any{}}
		for range 3 {
			p := newPeer(t, url, legacyRevision, "")
			p.create("run_pipeline", pipelineArgs("endless"))
			p.call("tools/call", params).limited(200, "running", 1)
		}
		p, q := newPeer(t, url, modernRevision, ""), newPeer(t, url, modernRevision, "")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		q.call("tools/call", params).limited(200, "running", 1)
		q.task("tasks/cancel", id).ok() // the ID is the key
		p.until(id, "cancelled")
		q.create("run_pipeline", pipelineArgs("endless"))
	})
}

// Bodies are bounded over HTTP, a made-up length too.
func TestLimitBody(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{options: mcptask.Options{MaxBody: 1000}})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			p.task("tasks/get", strings.Repeat("x", 1000)).want(http.StatusRequestEntityTooLarge, invalidRequest)
			res := p.tooBig(func() *http.Request {
				r := p.start(t.Context(), http.MethodPost, "x")
				r.Body, r.ContentLength = io.NopCloser(endless{}), -1
				return r
			})
			if res.StatusCode != http.StatusRequestEntityTooLarge {
				t.Fatalf("%v", res)
			}
			res.Body.Close()
		}
	})
}

// endless is a body without an end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// A flood of sessions ends the flooder's own, in the SDK too, but none in use and
// nobody else's.
func TestLimitSessions(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 4
		var g *gateway.Gateway
		var sdk *mcp.Server
		url, _ := serveWith(t, setup{bearer: true, gateway: &g, sdk: func(s *mcp.Server) { sdk = s },
			options: mcptask.Options{Limits: mcptask.Limits{Sessions: most, Polls: -1}}})
		until := func(what string, done func() bool) {
			t.Helper()
			for end := time.Now().Add(patience); !done(); time.Sleep(5 * time.Millisecond) {
				if time.Now().After(end) {
					t.Fatalf("not so: %s: %+v", what, g.Counts())
				}
			}
		}
		victim := newPeer(t, url, legacyRevision, "victim")
		id := victim.create("ponder", map[string]any{"ms": 1})
		first := newPeer(t, url, legacyRevision, "mallory")
		streaming := newPeer(t, url, legacyRevision, "mallory")
		feeds := []*feed{streaming.get()}
		until("it streams", func() bool { return g.Counts().Streams == 1 })
		initialize := func() *response {
			p := &peer{t: t, url: url, client: first.client, revision: legacyRevision, token: "mallory"}
			return p.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		}
		together(200, func(int) { // some find none that is idle: all of them are being opened
			if r := initialize(); r.Error != nil {
				r.limited(http.StatusOK, "sessions", most)
			}
		})
		for range most {
			initialize().ok()
		}
		until("there are no more", func() bool { return g.Counts().Sessions == most+1 && len(slices.Collect(sdk.Sessions())) == most+1 })
		victim.task("tasks/get", id).ok()
		streaming.call("tools/list", nil).ok()
		for _, method := range []string{"tools/list", "tasks/list"} {
			if r := first.call(method, nil); r.status != http.StatusNotFound {
				t.Errorf("the first one goes on: %d %s", r.status, r.body)
			}
		}
		for len(feeds) < most {
			feeds = append(feeds, newPeer(t, url, legacyRevision, "mallory").get())
		}
		until("all stream", func() bool { return g.Counts().Streams == most })
		initialize().limited(http.StatusOK, "sessions", most)
		newPeer(t, url, legacyRevision, "another")
		feeds[1].stop()
		until("there is room again", func() bool { return initialize().Error == nil })
	})
}

// A flood of sessions of anonymous callers, even of those that ask for something, does not end the session
// of one whose task runs: the one that has named the task last. Where all of them have tasks that run, a new one
// is refused.
func TestLimitSessionsOfWorkers(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 4
		url, _ := serveWith(t, setup{options: mcptask.Options{Limits: mcptask.Limits{Sessions: most, Polls: -1}}})
		victim := newPeer(t, url, legacyRevision, "")
		id := victim.create("run_pipeline", pipelineArgs("endless"))
		initialize := func() *response {
			p := &peer{t: t, url: url, client: victim.client, revision: legacyRevision}
			return p.post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
		}
		flood := func() {
			for range 2 * most {
				initialize().ok()
				newPeer(t, url, legacyRevision, "").call("tools/list", nil).ok()
			}
		}
		flood()
		victim.task("tasks/get", id).ok()
		again := newPeer(t, url, legacyRevision, "") // the same client, after it has lost its session
		again.task("tasks/get", id).ok()
		flood()
		again.task("tasks/get", id).ok()
		if r := victim.task("tasks/get", id); r.status != http.StatusNotFound {
			t.Errorf("one task keeps two sessions: %s", r.body)
		}
		workers := []*peer{again}
		for len(workers) < most {
			p := newPeer(t, url, legacyRevision, "")
			p.create("run_pipeline", pipelineArgs("endless"))
			workers = append(workers, p)
		}
		r := initialize().want(http.StatusOK, internalError)
		if want := fmt.Sprintf(`{"limit":"sessions","max":%d,"scope":"anonymous"}`, most); r.Error != nil && string(r.Error.Data) != want {
			t.Errorf("%s, want %s", r.Error.Data, want)
		}
		again.task("tasks/cancel", id).ok()
		for end := time.Now().Add(patience); initialize().Error != nil; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatal("there is no room when the task has ended")
			}
		}
		for _, p := range workers[1:] {
			p.call("tools/list", nil).ok()
		}
	})
}

// Subscriptions count among what waits, whatever they are to, and each as a
// request for every task that it names: it tells of them at once.
func TestLimitListen(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		const most = 3
		url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Limits: mcptask.Limits{Waiting: most, Polls: 2}}})
		a, b := newPeer(t, url, modernRevision, "a"), newPeer(t, url, modernRevision, "b")
		ids := []string{a.create("run_pipeline", pipelineArgs("endless")), a.create("run_pipeline", pipelineArgs("endless"))}
		listen := func(p *peer, filter map[string]any) *response {
			return p.call("subscriptions/listen", map[string]any{"notifications": filter})
		}
		others := map[string]any{"toolsListChanged": true}
		f, _ := a.subscribe(map[string]any{"taskIds": ids})
		g, _ := a.subscribe(map[string]any{"taskIds": []string{ids[0]}, "toolsListChanged": true})
		h, _ := a.subscribe(others)
		for _, filter := range []map[string]any{{"taskIds": ids[1:]}, {"taskIds": []string{ids[1], "made-up"}, "toolsListChanged": true}, others} {
			listen(a, filter).limited(http.StatusOK, "waiting", most)
		}
		other, _ := b.subscribe(others)
		other.stop()
		flood(t, func() *response { return listen(a, map[string]any{"taskIds": []string{"made-up", ids[1]}}) }).limited(http.StatusTooManyRequests, "polls", 2)
		a.task("tasks/get", ids[0]).ok()
		for _, open := range []*feed{f, g, h} {
			open.stop()
		}
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if r := listen(a, map[string]any{"taskIds": []string{}}); r.Error == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatal("they are not freed")
			}
		}
	})
}

// The fallback tools count as requests for the task that they name, and a result
// that they give is retrieved.
func TestLimitFallback(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		for _, revision := range []string{"2025-06-18", legacyRevision, modernRevision} {
			logs, gate := &safeBuffer{}, make(chan struct{})
			url, _ := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{slowTools(time.Millisecond, gate)}, options: mcptask.Options{
				Limits: mcptask.Limits{Polls: 2}, Logger: slog.New(slog.NewTextHandler(logs, &slog.HandlerOptions{Level: slog.LevelDebug}))}})
			a, b := newPeerThat(t, url, revision, "a", `{}`), newPeerThat(t, url, revision, "b", `{}`)
			id := a.tool("slow_sleep", map[string]any{"ms": -1}).goesOn("working")
			close(gate)
			var r *response
			for end := time.Now().Add(patience); ; time.Sleep(600 * time.Millisecond) {
				if r = a.tool("slow_task_result", map[string]any{"task": id}); strings.Contains(string(r.body), `"slept":3000`) {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("%s", r.body)
				}
			}
			if text := logs.String(); strings.Count(text, "audit=retrieved task="+id+" tool=slow_sleep principal=a") != 1 {
				t.Errorf("%s: %s", revision, text)
			}
			for _, tool := range []string{"slow_task_status", "slow_task_result", "slow_task_cancel", "slow_task_answer"} {
				once := func(p *peer) *response { return p.tool(tool, map[string]any{"task": tool, "question": "q"}) }
				floodUntil(t, func() *response { return once(b) }, func(r *response) bool { return r.Error != nil }).limited(http.StatusOK, "polls", 2)
				if r = once(a); r.Error != nil {
					t.Errorf("%s: a pays for b: %s", tool, r.body)
				}
				b.tool(tool, map[string]any{"task": "other than " + tool, "question": "q"}).ok()
			}
		}
	})
}
