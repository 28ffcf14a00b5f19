package gosdk_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// echoTools have a tool that asks twice, and takes only its own questions' answers,
// which it counts.
func echoTools(answered *atomic.Int32) mcptask.Tools {
	echo := mcptask.InputSpec{Name: "Echo", Message: "?", Schema: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "echo", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			for _, step := range []string{"one", "two"} {
				nonce := task.ID() + step
				answer, err := mcptask.Ask[noteInput](ctx, task, echo, step, nonce)
				if err != nil || answer.Note != nonce {
					return "", fmt.Errorf("%s was answered with %q, %w", nonce, answer.Note, err)
				}
				answered.Add(1)
			}
			return "both", nil
		})
	return mcptask.Tools{Service: "Echo", Impl: struct{}{}, Tools: []mcptask.Tool{tool}}
}

// TestManyQuestions: a thousand tasks, fewer under the race detector, ask twice
// each while their clients drop streams at random, answer twice, and go over to
// other sessions. Every question gets its own answer, and nothing is left behind.
func TestManyQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const clients = 20
		const each = 12
		var answered atomic.Int32
		address, tasks := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{echoTools(&answered)}})
		warm := newPeer(t, address, legacyRevision, "warm")
		warm.call("tools/list", nil).ok()
		end(t, warm)
		check := goroutines(t)

		began := time.Now()
		var redelivered, drops atomic.Int32
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				steady := i == 0 // one client keeps its stream: it gets every question once
				p := newAsked(t, address, legacyRevision, fmt.Sprint("user", i), canAll)
				defer func() { end(t, p) }()
				open := map[string]bool{} // whether the second answer was given
				seen := map[string]int{}
				take := func(f *feed, patience time.Duration) {
					timer := time.NewTimer(patience)
					defer timer.Stop()
					for {
						select {
						case m, ok := <-f.messages:
							if !ok {
								return
							}
							if m.Method == "" {
								continue // a result
							}
							id := string(m.ID)
							if seen[id]++; seen[id] == 2 {
								redelivered.Add(1)
							}
							if steady && seen[id] > 1 {
								t.Errorf("%s came twice on one stream", id)
							}
							if !steady && rand.N(5) == 0 {
								drops.Add(1)
								return // dropped unanswered
							}
							if one, ok := strings.CutSuffix(m.Params.Message, "two"); ok {
								open[one] = true
							}
							p.respond(m.ID, fmt.Sprintf(`"result":{"action":"accept","content":{"note":%q}}`, m.Params.Message))
							if rand.N(4) == 0 {
								p.respond(m.ID, note("again"))
							}
						case <-timer.C:
							return
						}
					}
				}
				for range each {
					open[p.create("echo", nil)] = false
				}
				for stop := time.Now().Add(5 * time.Minute); len(open) > 0 && time.Now().Before(stop); {
					var f *feed
					var one string
					for one = range open {
						break
					}
					if !steady && rand.N(3) == 0 {
						f = p.result(one)
					} else {
						f = p.get()
					}
					patience := time.Duration(rand.N(150)) * time.Millisecond
					if steady {
						patience = time.Second
					}
					take(f, patience)
					f.stop()
					if !steady && rand.N(8) == 0 { // goes over to a new session
						end(t, p)
						p = newAsked(t, address, legacyRevision, p.token, canAll)
						for id := range open { // now it knows them
							p.task("tasks/get", id).ok()
						}
					}
					for id, last := range open {
						if !last {
							continue
						}
						if r := p.task("tasks/get", id); r.text("status") == "completed" {
							delete(open, id)
						} else if s := r.text("status"); s != "working" && s != "input_required" {
							t.Errorf("%s: %s", id, r.body)
							delete(open, id)
						}
					}
				}
				if len(open) > 0 {
					t.Errorf("client %d: %d tasks are not done", i, len(open))
				}
			})
		}
		all.Wait()
		if got := answered.Load(); int(got) != 2*clients*each {
			t.Errorf("%d answers", got)
		}
		t.Logf("%d questions in %v, %d streams dropped, %d questions redelivered", answered.Load(), time.Since(began), drops.Load(), redelivered.Load())
		http.DefaultClient.CloseIdleConnections()
		check()
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestSlowReader: a client that never reads its stream blocks nobody, and its
// outbox holds no more than what is open.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 6<<20) // more than the buffers take
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "shout", InputSchema: openObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(ctx context.Context, task *mcptask.Task, in askInput) (string, error) {
				message := big
				for range len(in.Steps) {
					asking, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					_, _ = mcptask.Ask[noteInput](asking, task, noteSpec, "loud", message)
					cancel()
					message = "quiet"
				}
				return "done", ctx.Err()
			})
		address, _ := serveWith(t, setup{bearer: true, tools: []mcptask.Tools{askTools(), {Service: "Shout", Impl: struct{}{}, Tools: []mcptask.Tool{tool}}}})
		p := newAsked(t, address, legacyRevision, "a", canAll)
		where, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		deaf, err := wiretest.Dial(t.Context(), "tcp", where.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = deaf.Close() }()
		if _, err := fmt.Fprintf(deaf, "GET / HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nAuthorization: Bearer a\r\nMcp-Session-Id: %s\r\nMCP-Protocol-Version: %s\r\n\r\n",
			where.Host, p.session, legacyRevision); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the stream is there, and will never be read
		loud := p.create("shout", ask("a", "b", "c", "d", "e"))
		p.task("tasks/get", loud).ok() // its questions may come now
		other := newAsked(t, address, legacyRevision, "a", canAll)
		f := other.get()
		began := time.Now()
		id := other.create("ask", ask("one"))
		other.task("tasks/get", id).ok()
		other.respond(f.question(id).ID, note("quick"))
		if got := other.outcome(id); got != "quick" || time.Since(began) > patience {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		p.until(loud, "completed")
		end(t, p) // not even the end of its session waits for it
	})
}

// A step keeps its answer when another process goes on with the task.
func TestQuestionSurvives(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{legacyRevision, modernRevision} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			options := mcptask.Options{Store: mcptask.NewMemoryStore()}
			first, tasks := serveWith(t, setup{options: options, bearer: true, tools: []mcptask.Tools{askTools()}})
			p := newAsked(t, first, revision, "a", canAll)
			give := func(p *peer, id, step, text string) (key string) {
				t.Helper()
				if revision == legacyRevision {
					p.task("tasks/get", id).ok()
					f := p.get()
					defer f.stop()
					q := f.question(id)
					if text != "" {
						p.respond(q.ID, note(text))
					}
					return string(q.ID)
				}
				requests := func() map[string]any {
					m, _ := p.until(id, "input_required", "completed").get("inputRequests").(map[string]any)
					return m
				}
				for end := time.Now().Add(patience); requests()[step] == nil; {
					if time.Now().After(end) {
						t.Fatalf("%s is not asked", step)
					}
				}
				if text != "" {
					p.call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{
						step: map[string]any{"action": "accept", "content": map[string]any{"note": text}}}}).ok()
				}
				return step
			}
			id := p.create("ask", ask("one", "two", "three"))
			give(p, id, "one", "1")
			before := give(p, id, "two", "")
			if err := tasks.Close(); err != nil {
				t.Fatal(err)
			}
			second, _ := serveWith(t, setup{options: options, bearer: true, tools: []mcptask.Tools{askTools()}})
			q := newAsked(t, second, revision, "a", canAll)
			if after := give(q, id, "two", "2"); after != before {
				t.Errorf("%s, then %s", before, after)
			}
			give(q, id, "three", "3")
			if got := q.outcome(id); got != "1,2,3" {
				t.Error(got)
			}
		})
	}
	// Two processes at once: the handler is in one, the client asks the other.
	options := mcptask.Options{Store: mcptask.NewMemoryStore()}
	tools := []mcptask.Tools{askTools()}
	here, _ := serveWith(t, setup{options: options, bearer: true, tools: tools})
	there, _ := serveWith(t, setup{options: options, bearer: true, tools: tools})
	p, q := newAsked(t, here, legacyRevision, "a", canAll), newAsked(t, there, legacyRevision, "a", canAll)
	id := p.create("ask", ask("one", "two"))
	f := q.result(id)
	for _, step := range []string{"one", "two"} {
		m := f.question(id)
		if m.Params.Message != step+"?" {
			t.Errorf("%s", m.text)
		}
		q.respond(m.ID, note(step))
	}
	if last := f.next(); toolText(last.Result) != "one,two" {
		t.Errorf("%s", last.text)
	}
}

// TestQuestionAbandoned: clients that leave while they are asked leave nothing
// behind once their session is over.
func TestQuestionAbandoned(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		address := serveAsk(t, setup{bearer: true})
		warm := newPeer(t, address, legacyRevision, "warm")
		warm.call("tools/list", nil).ok()
		end(t, warm)
		check := goroutines(t)
		for _, params := range []map[string]any{
			{"name": "ask", "arguments": ask("one")},
			{"name": "sample", "arguments": map[string]any{}},
			{"name": "ask_first", "arguments": map[string]any{"name": "n"}},
			{"name": "ask_first", "arguments": map[string]any{"name": "n"}, "task": map[string]any{}},
		} {
			p := newAsked(t, address, legacyRevision, "a", canAll)
			f := p.send("tools/call", params)
			f.question("")
			f.stop()
			end(t, p)
		}
		p := newAsked(t, address, legacyRevision, "a", canAll)
		if tasks := p.call("tasks/list", nil).ok().get("tasks").([]any); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		id := p.create("ask", ask("one"))
		get := p.get()
		get.question(id)
		result := p.result(id)
		end(t, p)
		for range get.messages {
		}
		for range result.messages {
		}
		last := newAsked(t, address, legacyRevision, "a", canAll)
		last.task("tasks/cancel", id).ok()
		end(t, last)
		end(t, warm)
		http.DefaultClient.CloseIdleConnections()
		check()
	})
}
