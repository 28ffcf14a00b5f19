package pushtest

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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// echoTools have a tool that asks twice, and takes only its own questions' answers,
// which it counts.
func echoTools(answered *atomic.Int32) mcptask.Tools {
	echo := mcptask.InputSpec{Name: "Echo", Message: "?", Schema: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "echo", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			for _, step := range []string{"one", "two"} {
				nonce := task.ID() + step
				answer, err := mcptask.Ask[wiretest.NoteInput](ctx, task, echo, step, nonce)
				if err != nil || answer.Note != nonce {
					return "", fmt.Errorf("%s was answered with %q, %w", nonce, answer.Note, err)
				}
				answered.Add(1)
			}
			return "both", nil
		})
	return mcptask.Tools{Service: "Echo", Impl: struct{}{}, Tools: []mcptask.Tool{tool}}
}

// TestManyQuestions runs a thousand tasks, fewer under the race detector, that ask twice each.
// Their clients drop streams at random, answer twice, and change sessions. Every question gets its
// own answer, and nothing is left behind.
func TestManyQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const clients = 20
		const each = 12
		var answered atomic.Int32
		address, tasks := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{echoTools(&answered)}})
		warm := wiretest.NewPeer(t, address, wiretest.LegacyRevision, "warm")
		warm.Call("tools/list", nil).OK()
		wiretest.ClosePeer(t, warm)
		check := wiretest.Goroutines(t)

		began := time.Now()
		var redelivered, drops atomic.Int32
		var all sync.WaitGroup
		for i := range clients {
			all.Go(func() {
				steady := i == 0 // one client keeps its stream: it gets every question once
				p := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, fmt.Sprint("user", i), wiretest.AllCapabilities)
				defer func() { wiretest.ClosePeer(t, p) }()
				open := map[string]bool{} // whether the second answer was given
				seen := map[string]int{}
				take := func(f *wiretest.Feed, patience time.Duration) {
					timer := time.NewTimer(patience)
					defer timer.Stop()
					for {
						select {
						case m, ok := <-f.Messages:
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
							p.Respond(m.ID, fmt.Sprintf(`"result":{"action":"accept","content":{"note":%q}}`, m.Params.Message))
							if rand.N(4) == 0 {
								p.Respond(m.ID, wiretest.AcceptNote("again"))
							}
						case <-timer.C:
							return
						}
					}
				}
				for range each {
					open[p.Create("echo", nil)] = false
				}
				for stop := time.Now().Add(5 * time.Minute); len(open) > 0 && time.Now().Before(stop); {
					var f *wiretest.Feed
					var one string
					for one = range open {
						break
					}
					if !steady && rand.N(3) == 0 {
						f = p.Result(one)
					} else {
						f = p.OpenGet()
					}
					patience := time.Duration(rand.N(150)) * time.Millisecond
					if steady {
						patience = time.Second
					}
					take(f, patience)
					f.Stop()
					if !steady && rand.N(8) == 0 { // goes over to a new session
						wiretest.ClosePeer(t, p)
						p = wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, p.Token, wiretest.AllCapabilities)
						for id := range open { // now it knows them
							p.Task("tasks/get", id).OK()
						}
					}
					for id, last := range open {
						if !last {
							continue
						}
						if r := p.Task("tasks/get", id); r.Text("status") == "completed" {
							delete(open, id)
						} else if s := r.Text("status"); s != "working" && s != "input_required" {
							t.Errorf("%s: %s", id, r.Body)
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

// TestSlowReader checks that a client which never reads its stream blocks no other client, and that
// its queue holds only open messages.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 6<<20) // more than the buffers take
		tool := mcptask.NewTool(mcptask.ToolSpec{Name: "shout", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(ctx context.Context, task *mcptask.Task, in wiretest.AskInput) (string, error) {
				message := big
				for range len(in.Steps) {
					asking, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
					_, _ = mcptask.Ask[wiretest.NoteInput](asking, task, wiretest.NoteSpec, "loud", message)
					cancel()
					message = "quiet"
				}
				return "done", ctx.Err()
			})
		address, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{wiretest.AskTools(), {Service: "Shout", Impl: struct{}{}, Tools: []mcptask.Tool{tool}}}})
		p := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		where, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		deaf, err := memnet.Dial(t.Context(), "tcp", where.Host)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = deaf.Close() }()
		if _, err := fmt.Fprintf(deaf, "GET / HTTP/1.1\r\nHost: %s\r\nAccept: text/event-stream\r\nAuthorization: Bearer a\r\nMcp-Session-Id: %s\r\nMCP-Protocol-Version: %s\r\n\r\n",
			where.Host, p.Session, wiretest.LegacyRevision); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond) // the stream is there, and will never be read
		loud := p.Create("shout", wiretest.AskArguments("a", "b", "c", "d", "e"))
		p.Task("tasks/get", loud).OK() // its questions may come now
		other := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		f := other.OpenGet()
		began := time.Now()
		id := other.Create("ask", wiretest.AskArguments("one"))
		other.Task("tasks/get", id).OK()
		other.Respond(f.NextQuestion(id).ID, wiretest.AcceptNote("quick"))
		if got := other.TaskText(id); got != "quick" || time.Since(began) > wiretest.Patience {
			t.Errorf("%s after %v", got, time.Since(began))
		}
		p.Until(loud, "completed")
		wiretest.ClosePeer(t, p) // not even the end of its session waits for it
	})
}

// TestQuestionSurvives checks that a step keeps its answer when another process continues the task.
func TestQuestionSurvives(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			options := mcptask.Options{Store: mcptask.NewMemoryStore()}
			first, tasks := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: []mcptask.Tools{wiretest.AskTools()}})
			p := wiretest.NewAskedPeer(t, first, revision, "a", wiretest.AllCapabilities)
			give := func(p *wiretest.Peer, id, step, text string) (key string) {
				t.Helper()
				if revision == wiretest.LegacyRevision {
					p.Task("tasks/get", id).OK()
					f := p.OpenGet()
					defer f.Stop()
					q := f.NextQuestion(id)
					if text != "" {
						p.Respond(q.ID, wiretest.AcceptNote(text))
					}
					return string(q.ID)
				}
				requests := func() map[string]any {
					m, _ := p.Until(id, "input_required", "completed").Get("inputRequests").(map[string]any)
					return m
				}
				for end := time.Now().Add(wiretest.Patience); requests()[step] == nil; {
					if time.Now().After(end) {
						t.Fatalf("%s is not asked", step)
					}
				}
				if text != "" {
					p.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{
						step: map[string]any{"action": "accept", "content": map[string]any{"note": text}}}}).OK()
				}
				return step
			}
			id := p.Create("ask", wiretest.AskArguments("one", "two", "three"))
			give(p, id, "one", "1")
			before := give(p, id, "two", "")
			if err := tasks.Close(); err != nil {
				t.Fatal(err)
			}
			second, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: []mcptask.Tools{wiretest.AskTools()}})
			q := wiretest.NewAskedPeer(t, second, revision, "a", wiretest.AllCapabilities)
			if after := give(q, id, "two", "2"); after != before {
				t.Errorf("%s, then %s", before, after)
			}
			give(q, id, "three", "3")
			if got := q.TaskText(id); got != "1,2,3" {
				t.Error(got)
			}
		})
	}
	// Two processes at once: the handler is in one, the client asks the other.
	options := mcptask.Options{Store: mcptask.NewMemoryStore()}
	tools := []mcptask.Tools{wiretest.AskTools()}
	here, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: tools})
	there, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Bearer: true, Tools: tools})
	p, q := wiretest.NewAskedPeer(t, here, wiretest.LegacyRevision, "a", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, there, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
	id := p.Create("ask", wiretest.AskArguments("one", "two"))
	f := q.Result(id)
	for _, step := range []string{"one", "two"} {
		m := f.NextQuestion(id)
		if m.Params.Message != step+"?" {
			t.Errorf("%s", m.Text)
		}
		q.Respond(m.ID, wiretest.AcceptNote(step))
	}
	if last := f.Next(); wiretest.ToolText(last.Result) != "one,two" {
		t.Errorf("%s", last.Text)
	}
}

// TestQuestionAbandoned checks that clients which disconnect during a question leave nothing behind
// when their session is over.
func TestQuestionAbandoned(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		address := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		warm := wiretest.NewPeer(t, address, wiretest.LegacyRevision, "warm")
		warm.Call("tools/list", nil).OK()
		wiretest.ClosePeer(t, warm)
		check := wiretest.Goroutines(t)
		for _, params := range []map[string]any{
			{"name": "ask", "arguments": wiretest.AskArguments("one")},
			{"name": "sample", "arguments": map[string]any{}},
			{"name": "ask_first", "arguments": map[string]any{"name": "n"}},
			{"name": "ask_first", "arguments": map[string]any{"name": "n"}, "task": map[string]any{}},
		} {
			p := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
			f := p.Send("tools/call", params)
			f.NextQuestion("")
			f.Stop()
			wiretest.ClosePeer(t, p)
		}
		p := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		if tasks := p.Call("tasks/list", nil).OK().Get("tasks").([]any); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		id := p.Create("ask", wiretest.AskArguments("one"))
		get := p.OpenGet()
		get.NextQuestion(id)
		result := p.Result(id)
		wiretest.ClosePeer(t, p)
		for range get.Messages {
		}
		for range result.Messages {
		}
		last := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, "a", wiretest.AllCapabilities)
		last.Task("tasks/cancel", id).OK()
		wiretest.ClosePeer(t, last)
		wiretest.ClosePeer(t, warm)
		http.DefaultClient.CloseIdleConnections()
		check()
	})
}
