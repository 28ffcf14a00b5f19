package pushtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// echoTools have a tool that asks twice. It accepts only the answers to its own questions, and counts them.
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

// manyTasks runs the tasks of several clients, which ask twice each. The clients disconnect at
// random and change sessions. Every question must get its own answer once, and nothing may be left
// behind.
type manyTasks struct {
	clients, each int
	capabilities  string
	// newClient returns what a client does with a message. A client drops the stream if it returns
	// false. A steady client drops none.
	newClient func(steady bool) func(p *wiretest.Peer, m wiretest.WireMessage) bool
}

func (c manyTasks) run(t *testing.T) {
	var answered atomic.Int32
	address, tasks := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{echoTools(&answered)}})
	warm := wiretest.NewPeer(t, address, wiretest.LegacyRevision, "warm")
	warm.Call("tools/list", nil).OK()
	wiretest.ClosePeer(t, warm)
	check := wiretest.Goroutines(t)
	began := time.Now()
	wiretest.RunTogether(c.clients, func(i int) {
		p := wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, fmt.Sprint("user", i), c.capabilities)
		defer func() { wiretest.ClosePeer(t, p) }()
		steady := i == 0 // keeps its stream and its session
		handle := c.newClient(steady)
		open := map[string]bool{}
		for range c.each {
			open[p.Create("echo", nil)] = true
		}
		for stop := time.Now().Add(5 * time.Minute); len(open) > 0 && time.Now().Before(stop); {
			stream := p.OpenGet
			if !steady && rand.N(3) == 0 {
				for one := range open {
					stream = func() *wiretest.Feed { return p.Result(one) }
					break
				}
			}
			f := stream()
			timer := time.NewTimer(time.Duration(rand.N(250)) * time.Millisecond)
			if steady {
				timer.Reset(time.Second)
			}
			for reading := true; reading; {
				select {
				case m, ok := <-f.Messages:
					reading = ok && handle(p, m)
				case <-timer.C:
					reading = false
				}
			}
			f.Stop()
			if !steady && rand.N(8) == 0 { // the client starts again
				wiretest.ClosePeer(t, p)
				p = wiretest.NewAskedPeer(t, address, wiretest.LegacyRevision, p.Token, c.capabilities)
			}
			for id := range open { // a new session now knows them
				r := p.Task("tasks/get", id).OK()
				if s := r.Text("status"); s == "completed" {
					delete(open, id)
				} else if s != "working" && s != "input_required" {
					t.Errorf("%s: %s", id, r.Body)
					delete(open, id)
				}
			}
		}
		if len(open) > 0 {
			t.Errorf("client %d: %d tasks are not done", i, len(open))
		}
	})
	if got := answered.Load(); int(got) != 2*c.clients*c.each {
		t.Errorf("%d answers", got)
	}
	t.Logf("%d questions in %v", answered.Load(), time.Since(began))
	http.DefaultClient.CloseIdleConnections()
	check()
	if err := tasks.Close(); err != nil {
		t.Error(err)
	}
}

// TestManyQuestions checks clients that leave questions unanswered and answer twice. A client that
// keeps its stream gets every question once.
func TestManyQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		manyTasks{clients: 16, each: 15, capabilities: wiretest.AllCapabilities, newClient: func(steady bool) func(*wiretest.Peer, wiretest.WireMessage) bool {
			seen := map[string]bool{}
			return func(p *wiretest.Peer, m wiretest.WireMessage) bool {
				if m.Method == "" {
					return true // a result
				}
				if steady && seen[string(m.ID)] {
					t.Errorf("%s came twice to a client that keeps its stream", m.ID)
				}
				seen[string(m.ID)] = true
				if !steady && rand.N(5) == 0 {
					return false // unanswered
				}
				p.Respond(m.ID, wiretest.AcceptNote(m.Params.Message))
				if rand.N(4) == 0 {
					p.Respond(m.ID, wiretest.AcceptNote("again"))
				}
				return true
			}
		}}.run(t)
	})
}

// TestManyRemoteQuestions checks clients that keep questions as tasks, lose messages, and repeat
// replies.
func TestManyRemoteQuestions(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var created atomic.Int32
		capabilities := wiretest.TaskCapabilities(wiretest.AllTaskCapabilities)
		manyTasks{clients: 8, each: 10, capabilities: capabilities, newClient: func(bool) func(*wiretest.Peer, wiretest.WireMessage) bool {
			answers := map[string]string{} // by the client's task
			completed := map[string]bool{}
			return func(p *wiretest.Peer, m wiretest.WireMessage) bool {
				chance := rand.N(10)
				if m.Method != "" && chance < 2 {
					return false // the message is lost
				}
				task := m.Params.TaskID
				notYet := chance < 6 && !completed[task]
				var response string
				switch m.Method {
				case "elicitation/create":
					if response = wiretest.AcceptNote(m.Params.Message); chance != 3 {
						task = fmt.Sprint("remote", created.Add(1))
						answers[task] = response
						response = wiretest.RemoteTaskCreated(task)
					}
				case "tasks/result":
					if answers[task] == "" {
						t.Errorf("no task of this client: %s", m.Text)
					}
					if response = wiretest.WithRelatedTask(task, answers[task]); notYet {
						response = `"error":{"code":-32603,"message":"not yet"}`
					}
				case "tasks/get":
					status := "working"
					if !notYet {
						status, completed[task] = "completed", true
					}
					response = `"result":` + wiretest.RemoteTask(task, status)
				case "tasks/cancel":
					response = `"result":` + wiretest.RemoteTask(task, "cancelled")
				default:
					return true
				}
				p.Respond(m.ID, response)
				if chance == 2 {
					p.Respond(m.ID, response)
				}
				return true
			}
		}}.run(t)
	})
}

// TestSlowReader checks that a client which never reads its stream blocks no other client, and that
// its queue holds only open messages.
func TestSlowReader(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		big := strings.Repeat("x", 6<<20) // more than the buffers hold
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
		p := askedPeer(t, address)
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
		time.Sleep(50 * time.Millisecond) // the stream is open, and its client will never read it
		loud := p.Create("shout", wiretest.AskArguments("a", "b", "c", "d", "e"))
		p.Task("tasks/get", loud).OK() // its questions may come now
		other := askedPeer(t, address)
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
			options := taskserver.Options{Store: taskstore.NewMemory()}
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
			wantText(q, id, "1,2,3")
		})
	}
	// Two processes at once: the handler runs in one, and the client is asked by the other.
	options := taskserver.Options{Store: taskstore.NewMemory()}
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
	wantResult(f, "one,two")
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
			p := askedPeer(t, address)
			f := p.Send("tools/call", params)
			f.NextQuestion("")
			f.Stop()
			wiretest.ClosePeer(t, p)
		}
		p := askedPeer(t, address)
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
		last := askedPeer(t, address)
		last.Task("tasks/cancel", id).OK()
		wiretest.ClosePeer(t, last)
		wiretest.ClosePeer(t, warm)
		http.DefaultClient.CloseIdleConnections()
		check()
	})
}
