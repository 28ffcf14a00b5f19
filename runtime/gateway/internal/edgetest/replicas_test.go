package edgetest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// sessionKey is the key of the replicas.
var sessionKey = bytes.Repeat([]byte("k"), taskstore.MinSessionKey)

// replicas are servers that share a store and a session key.
type replicas struct {
	t        *testing.T
	urls     []string
	tasks    []*taskserver.Server
	gateways []*gateway.Gateway
	logs     *wiretest.SafeBuffer
	// begun counts the initialize requests that the SDKs have seen, and finished the notifications that
	// follow them.
	begun, finished atomic.Int64
	// called is the replica that has got the last tools/call.
	called atomic.Int64
}

// serveReplicas starts n servers. change changes the setup of each.
func serveReplicas(t *testing.T, n int, change func(i int, s *wiretest.Setup)) *replicas {
	t.Helper()
	all := &replicas{t: t, gateways: make([]*gateway.Gateway, n), logs: &wiretest.SafeBuffer{}}
	store := taskstore.NewMemory()
	t.Cleanup(func() { _ = store.Close() })
	for i := range n {
		s := wiretest.Setup{Bearer: true, Gateway: &all.gateways[i], Tools: []mcptask.Tools{wiretest.AskTools()}, Options: taskserver.Options{
			Store: store, SessionKey: sessionKey, Logger: slog.New(slog.NewTextHandler(all.logs, nil)),
		}, Middleware: func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				switch method {
				case "initialize":
					all.begun.Add(1)
				case "notifications/initialized":
					all.finished.Add(1)
				case "tools/call":
					all.called.Store(int64(i))
				}
				return next(ctx, method, req)
			}
		}}
		if change != nil {
			change(i, &s)
		}
		url, tasks := wiretest.ServeWith(t, s)
		all.urls, all.tasks = append(all.urls, url), append(all.tasks, tasks)
	}
	return all
}

// peer returns a client whose session is opened at the first replica.
func (all *replicas) peer(token, capabilities string) *wiretest.Peer {
	all.t.Helper()
	return wiretest.NewPeerWith(all.t, all.urls[0], wiretest.LegacyRevision, token, capabilities)
}

// at returns the same client, in the same session, as it sends its requests to a replica.
func (all *replicas) at(p *wiretest.Peer, i int) *wiretest.Peer {
	all.t.Helper()
	q := wiretest.NewUnopenedPeer(all.t, all.urls[i], p.Revision, p.Token, p.Caps)
	q.Session, q.Statuses = p.Session, p.Statuses
	q.IDs.Store(p.IDs.Load() + 1000*int64(i))
	return q
}

// serveTwoReplicas starts two servers, and returns alice's client as it sends its requests to each of them.
func serveTwoReplicas(t *testing.T, change func(i int, s *wiretest.Setup)) (all *replicas, a, b *wiretest.Peer) {
	t.Helper()
	all = serveReplicas(t, 2, change)
	a = all.peer("alice", wiretest.AllCapabilities)
	return all, a, all.at(a, 1)
}

// TestSessionOnEveryReplica checks that each replica serves each request of a session, whichever
// has opened it. The SDK behind each sees the session begin once.
func TestSessionOnEveryReplica(t *testing.T) {
	for name, change := range map[string]func(int, *wiretest.Setup){
		"":             nil,
		"JSON replies": func(_ int, s *wiretest.Setup) { s.HTTP = wiretest.HTTPOptions(true) },
		"an event store": func(_ int, s *wiretest.Setup) {
			s.HTTP = &mcp.StreamableHTTPOptions{EventStore: mcp.NewMemoryEventStore(nil)}
		},
		"no Inspector":    func(_ int, s *wiretest.Setup) { s.Options.Store = plainStore{s.Options.Store} },
		"unofficial ones": func(_ int, s *wiretest.Setup) { s.Options.Revisions = wiretest.WithProposal().Revisions },
	} {
		t.Run(name, func(t *testing.T) { checkEveryReplica(t, change) })
	}
}

// plainStore is a store that is no Inspector.
type plainStore struct{ taskstore.Store }

func checkEveryReplica(t *testing.T, change func(int, *wiretest.Setup)) {
	t.Helper()
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 3, change)
		a := all.peer("alice", `{"elicitation":{},"sampling":{}}`)
		b, c := all.at(a, 1), all.at(a, 2)
		if !strings.HasPrefix(a.Session, "mcptask1.") || strings.Contains(a.Session, "alice") {
			t.Errorf("the session ID is %q", a.Session)
		}
		id := b.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		asks := a.Create("ask", wiretest.AskArguments("one"))
		a.Until(asks, "input_required")
		stream := b.OpenGet() // its replica does not know the task
		c.Respond(stream.NextQuestion(asks).ID, wiretest.AcceptNote("yes"))
		if text := b.TaskText(asks); text != "yes" {
			t.Errorf("%q", text)
		}
		for _, p := range []*wiretest.Peer{a, b, c} {
			p.Until(id, "working")
			if r := p.Call("tools/call", map[string]any{"name": "sdk_tool", "arguments": map[string]any{}}).OK(); wiretest.ToolText(r.Result) != "from the SDK" {
				t.Errorf("%s", r.Body)
			}
			p.Call("tools/list", nil).OK()
			p.Call("ping", nil).OK()
		}
		waits := a.Result(id)
		c.Task("tasks/cancel", id).OK()
		if m := waits.Next(); m.Error == nil && m.Result == nil {
			t.Errorf("not answered: %s", m.Text)
		}
		b.Until(id, "cancelled")
		if begun, finished := all.begun.Load(), all.finished.Load(); begun != 3 || finished != 3 {
			t.Errorf("the SDKs have seen initialize %d times, and initialized %d times", begun, finished)
		}
		if n := strings.Count(all.logs.WaitFor(t, "session rebuilt", 1), "audit=session principal=alice"); n == 0 || strings.Contains(all.logs.String(), a.Session) {
			t.Errorf("the audit trail:\n%s", all.logs)
		}
	})
}

// TestQuestionOnAnyReplica checks that a task's question goes out on the session's stream, whichever
// replica has it, and that any replica takes the answer.
func TestQuestionOnAnyReplica(t *testing.T) {
	for _, token := range []string{"alice", ""} {
		t.Run("token "+token, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				all := serveReplicas(t, 3, func(_ int, s *wiretest.Setup) { s.Bearer = token != "" })
				a := all.peer(token, wiretest.AllCapabilities)
				b, c := all.at(a, 1), all.at(a, 2)
				b.Statuses = true
				early := a.Create("ask", wiretest.AskArguments("one"))
				a.Until(early, "input_required")
				stream := b.OpenGet() // it has to look for the tasks that are there
				answers := map[string]string{early: "early"}
				late := c.Create("ask", wiretest.AskArguments("one")) // and for those that come
				answers[late] = "late"
				seen := map[string]bool{}
				for len(answers) > 0 {
					m := stream.Next()
					if m.Method == "notifications/tasks/status" {
						seen[m.Params.TaskID] = true
						continue
					}
					task := m.Params.Meta.Related.TaskID
					if answers[task] == "" {
						t.Fatalf("unexpected: %s", m.Text)
					}
					a.Respond(m.ID, wiretest.AcceptNote(answers[task]))
					if text := c.TaskText(task); text != answers[task] {
						t.Errorf("%s ended with %q", task, text)
					}
					delete(answers, task)
				}
				for len(seen) < 2 { // the end of each is news for the stream
					if m := stream.Next(); m.Method == "notifications/tasks/status" {
						seen[m.Params.TaskID] = true
					} else {
						t.Fatalf("unexpected: %s", m.Text)
					}
				}
			})
		})
	}
}

// TestPlainCallAsksOnAnyReplica checks that a plain call asks on its own stream, and that any replica
// takes the answer, with and without fallback tools. A tool that never runs as a task asks at the replica that has
// opened the session.
func TestPlainCallAsksOnAnyReplica(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, a, b := serveTwoReplicas(t, func(_ int, s *wiretest.Setup) { s.Fallback = true })
		production := map[string]any{"service": "api", "environment": "production"}
		call := b.Send("tools/call", map[string]any{"name": "deploy_service", "arguments": production})
		q := call.Next()
		if q.Method != "elicitation/create" {
			t.Fatalf("no question: %s", q.Text)
		}
		a.Respond(q.ID, `"result":{"action":"accept","content":{"approve":true}}`)
		if m := call.Next(); !strings.Contains(string(m.Result), "1.2.3") {
			t.Errorf("%s", m.Text)
		}
		call = b.Send("tools/call", map[string]any{"name": "ask", "arguments": wiretest.AskArguments("one")})
		a.Respond(call.Next().ID, wiretest.AcceptNote("yes"))
		if m := call.Next(); wiretest.ToolText(m.Result) != "yes" {
			t.Errorf("%s", m.Text)
		}
		only := map[string]any{"name": "never_a_task", "arguments": map[string]any{}}
		call = a.Send("tools/call", only)
		a.Respond(call.Next().ID, wiretest.AcceptNote("yes"))
		if m := call.Next(); wiretest.ToolText(m.Result) != "yes" {
			t.Errorf("%s", m.Text)
		}
		if text := wiretest.ToolText(b.Call("tools/call", only).OK().Result); text != "cannot ask" {
			t.Errorf("%q", text)
		}
	})
}

// TestCallAsksFirstOnAnyReplica checks that a tool which asks before it starts leaves that to its task.
func TestCallAsksFirstOnAnyReplica(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, a, b := serveTwoReplicas(t, func(_ int, s *wiretest.Setup) {
			s.Tools = append(s.Tools, questions.AskerTools(wiretest.FirstAsker{}))
		})
		id := a.Create("ask_first", map[string]any{"name": "n"})
		f := b.Result(id)
		for range 2 {
			q := f.NextQuestion(id)
			answer := wiretest.SureYes
			if strings.Contains(string(q.Params.Schema), `"one"`) {
				answer = wiretest.WhichA
			}
			a.Respond(q.ID, `"result":`+answer)
		}
		if m := f.Next(); strings.Contains(m.Text, `"isError":true`) || m.Result == nil {
			t.Errorf("%s", m.Text)
		}
	})
}

// TestCancelledQuestionOnAnotherReplica checks that a question is taken back on the stream that
// carries it, when its task is cancelled at another replica.
func TestCancelledQuestionOnAnotherReplica(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 3, nil)
		a := all.peer("alice", wiretest.AllCapabilities)
		stream := all.at(a, 1).OpenGet()
		id := a.Create("ask", wiretest.AskArguments("one"))
		q := stream.NextQuestion(id)
		all.at(a, 2).Task("tasks/cancel", id).OK()
		stream.NextCancellation(q)
	})
}

// TestQuestionsOfOtherSessions checks that a session gets the questions of its own tasks only, although
// its principal has other sessions.
func TestQuestionsOfOtherSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, nil)
		one, two := all.peer("alice", wiretest.AllCapabilities), all.peer("alice", wiretest.AllCapabilities)
		of1, of2 := all.at(one, 1).OpenGet(), all.at(two, 1).OpenGet()
		id := one.Create("ask", wiretest.AskArguments("one"))
		q := of1.NextQuestion(id)
		of2.WantSilence()
		one.Respond(q.ID, wiretest.AcceptNote("mine"))
		if text := two.TaskText(id); text != "mine" {
			t.Errorf("%q", text)
		}
	})
}

// TestReplicaStops checks that a replica which stops ends no session: its clients go on at another one,
// and get what they wait for there.
func TestReplicaStops(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all, a, b := serveTwoReplicas(t, nil)
		stream := a.OpenGet()
		id := b.Create("ask", wiretest.AskArguments("one"))
		stream.NextQuestion(id)
		if err := gosdk.Shutdown(t.Context(), nil, all.tasks[0]); err != nil {
			t.Error(err)
		}
		for range stream.Messages { // until it ends
		}
		if r := a.Task("tasks/get", id); r.Status == http.StatusNotFound {
			t.Errorf("the client is told to begin anew: %s", r.Body)
		}
		stream = b.OpenGet()
		b.Respond(stream.NextQuestion(id).ID, wiretest.AcceptNote("on"))
		if text := b.TaskText(id); text != "on" {
			t.Errorf("%q", text)
		}
	})
}

// TestForeignToken checks that a session ID is of use to nobody but its principal, and only as it was
// signed.
func TestForeignToken(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 3, func(i int, s *wiretest.Setup) {
			if i == 2 {
				s.Options.SessionKey = bytes.Repeat([]byte("x"), taskstore.MinSessionKey)
			}
		})
		a := all.peer("alice", `{}`)
		id := a.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		const notFound, forbidden = http.StatusNotFound, http.StatusForbidden
		all.at(a, 2).Task("tasks/get", id).Want(notFound, wiretest.InvalidRequest) // another key
		mallory := all.at(a, 1)
		mallory.Token = "mallory"
		for _, test := range []struct {
			session string
			status  int
		}{
			{a.Session, forbidden}, {a.Session[:len(a.Session)-1], notFound}, {a.Session + "A", notFound},
			{strings.Replace(a.Session, "mcptask1.", "mcptask1.A", 1), notFound},
			{strings.Replace(a.Session, "mcptask1.", "mcptask2.", 1), notFound},
			{"mcptask1.", notFound}, {"mcptask1..", notFound}, {"mcptask1." + strings.Repeat("A", 5000), notFound},
		} {
			mallory.Session = test.session
			mallory.Task("tasks/get", id).Want(test.status, wiretest.InvalidRequest)
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				if status := mallory.Status(method, ""); status != test.status {
					t.Errorf("%s with %.60q: %d, want %d", method, test.session, status, test.status)
				}
			}
			if r := mallory.Post(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`); r.Status != test.status {
				t.Errorf("a notification with %.60q: %d, want %d", test.session, r.Status, test.status)
			}
		}
		b := all.at(a, 1)
		b.Until(id, "working")
		b.Task("tasks/get", id, wiretest.WithHeader("Mcp-Protocol-Version", "2025-06-18")).Want(http.StatusBadRequest, wiretest.InvalidRequest)
		if n := all.gateways[1].Counts().Sessions; n != 1 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestFormerKey checks that a server takes the sessions of the keys beside its own.
func TestFormerKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, func(i int, s *wiretest.Setup) {
			if i == 1 {
				s.Options.SessionKey, s.Options.OtherSessionKeys = bytes.Repeat([]byte("x"), 40), [][]byte{sessionKey}
			}
		})
		a := all.peer("alice", `{}`)
		all.at(a, 1).Call("tools/list", nil).OK()
	})
}

// TestDeletedSession checks that a DELETE ends a session at the replica that gets it, also if that
// has not served the session, and elsewhere when the session is idle.
func TestDeletedSession(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, nil)
		for _, at := range []int{0, 1} {
			a := all.peer("alice", `{}`)
			p := all.at(a, at)
			if status := p.Status(http.MethodDelete, ""); status != http.StatusNoContent {
				t.Errorf("DELETE: %d", status)
			}
			if r := p.Call("tools/list", nil); r.Status != http.StatusNotFound {
				t.Errorf("after DELETE: %d", r.Status)
			}
			if status := p.Status(http.MethodDelete, ""); status != http.StatusNotFound {
				t.Errorf("second DELETE: %d", status)
			}
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		for i, g := range all.gateways {
			if n := g.Counts().Sessions; n > 0 {
				t.Errorf("replica %d keeps %d sessions", i, n)
			}
		}
	})
}

// TestDeletedWhileOpening checks that a replica serves no session whose DELETE it gets while it opens
// the session again.
func TestDeletedWhileOpening(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var opens atomic.Bool
		all := serveReplicas(t, 2, func(i int, s *wiretest.Setup) {
			next := s.Middleware
			s.Middleware = func(h mcp.MethodHandler) mcp.MethodHandler {
				h = next(h)
				return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
					if i == 1 && method == "initialize" {
						opens.Store(true)
						time.Sleep(time.Second)
					}
					return h(ctx, method, req)
				}
			}
		})
		p := all.at(all.peer("alice", `{}`), 1)
		var request sync.WaitGroup
		request.Go(func() { p.Call("tools/list", nil).Want(http.StatusNotFound, wiretest.InvalidRequest) })
		time.Sleep(500 * time.Millisecond)
		if status := p.Status(http.MethodDelete, ""); status != http.StatusNoContent || !opens.Load() {
			t.Errorf("DELETE: %d", status)
		}
		request.Wait()
		if r := p.Call("tools/list", nil); r.Status != http.StatusNotFound {
			t.Errorf("after DELETE: %d", r.Status)
		}
		if n := all.gateways[1].Counts().Sessions; n != 0 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestIdleSessionGoesOn checks that a session which was idle for long goes on.
func TestIdleSessionGoesOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 1, nil)
		a := all.peer("alice", `{}`)
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if n := all.gateways[0].Counts().Sessions; n > 0 {
			t.Errorf("%d sessions", n)
		}
		a.Call("tools/list", nil).OK()
	})
}

// TestRebuiltOnce checks that requests which arrive together open a session again once.
func TestRebuiltOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, nil)
		b := all.at(all.peer("alice", `{}`), 1)
		var requests sync.WaitGroup
		for range 20 {
			requests.Go(func() { b.Call("tools/list", nil).OK() })
		}
		requests.Wait()
		if begun := all.begun.Load(); begun != 2 {
			t.Errorf("the SDKs have seen initialize %d times", begun)
		}
		if n := all.gateways[1].Counts().Sessions; n != 1 {
			t.Errorf("%d sessions", n)
		}
	})
}

// TestRebuiltSessionsAreLimited checks that a session which a replica opens again counts as any.
func TestRebuiltSessionsAreLimited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, func(i int, s *wiretest.Setup) {
			s.Options.Limits = wiretest.NoPollLimits
			if i == 1 {
				s.Options.Limits.Sessions = 2
			}
		})
		var peers []*wiretest.Peer
		for range 3 {
			a := all.peer("alice", `{}`)
			p := all.at(a, 1)
			p.Call("tools/list", nil).OK()
			peers = append(peers, p)
		}
		if n := all.gateways[1].Counts().Sessions; n != 2 {
			t.Errorf("%d sessions", n)
		}
		peers[0].Call("tools/list", nil).OK() // its session makes room for itself
		for _, p := range peers[:2] {
			p.OpenGet() // now it keeps its session
		}
		peers[2].Call("tools/list", nil).Want(http.StatusServiceUnavailable, wiretest.InternalError)
	})
}

// TestTalkativeClient checks that a client whose description of itself is too long for a session ID
// still gets a session that other replicas serve, or at least one on its own replica.
func TestTalkativeClient(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, nil)
		for name, test := range map[string]struct {
			capabilities, client string
			portable             bool
		}{
			"icons":        {`{}`, `{"name":"n","version":"1","icons":[{"src":"` + strings.Repeat("x", 5000) + `"}]}`, true},
			"capabilities": {`{"experimental":{"x":{"y":"` + strings.Repeat("x", 5000) + `"}}}`, `{"name":"n","version":"1"}`, false},
		} {
			p := wiretest.NewUnopenedPeer(t, all.urls[0], wiretest.LegacyRevision, "alice", `{}`)
			r := p.Post(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":` + test.capabilities + `,"clientInfo":` + test.client + `}}`)
			p.Session = r.Header.Get("Mcp-Session-Id")
			p.Call("tools/list", nil).OK()
			want := http.StatusNotFound
			if test.portable {
				want = http.StatusOK
			}
			if r := all.at(p, 1).Call("tools/list", nil); r.Status != want || len(p.Session) > 4096 {
				t.Errorf("%s: %d for an ID of %d bytes", name, r.Status, len(p.Session))
			}
		}
		all.logs.WaitFor(t, "session stays on this replica", 1)
	})
}

// inTurn sends each request to the next replica that is alive, as a proxy without sticky routing does.
type inTurn struct {
	urls []string
	next http.RoundTripper

	mu    sync.Mutex
	turn  int
	dead  map[int]bool
	taken map[int]int // counts the requests of each
}

// RoundTrip implements http.RoundTripper.
func (p *inTurn) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	for p.turn++; p.dead[p.turn%len(p.urls)]; p.turn++ {
	}
	i := p.turn % len(p.urls)
	p.taken[i]++
	p.mu.Unlock()
	to, err := url.Parse(p.urls[i])
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Host, r.Host = to.Host, to.Host
	return p.next.RoundTrip(r)
}

// kill sends no more requests to a replica.
func (p *inTurn) kill(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead[i] = true
}

// TestClientOverReplicas checks that a client whose requests go to three replicas in turn notices
// nothing, also when one of them goes away while it waits.
func TestClientOverReplicas(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 3, func(_ int, s *wiretest.Setup) { s.Bearer = false })
		proxy := &inTurn{urls: all.urls, next: memnet.NewTransport(), dead: map[int]bool{}, taken: map[int]int{}}
		asked := make(chan struct{}, 10)
		answered := make(chan struct{})
		conn, err := gosdk.Connect(t.Context(), all.urls[0], gosdk.ClientOptions{
			Revision: wiretest.LegacyRevision, HTTPClient: &http.Client{Transport: proxy},
			Answer: pipeline.AnswerApproval(func(ctx context.Context, _ mcptask.Question) (pipeline.Approval, error) {
				asked <- struct{}{}
				select {
				case <-answered:
				case <-ctx.Done():
				}
				return pipeline.Approval{Approve: true}, ctx.Err()
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		client := pipeline.NewCIClient(conn)
		for range 3 {
			if report, err := client.RunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: "main"}); err != nil || !report.Passed {
				t.Fatalf("%+v %v", report, err)
			}
		}
		call, err := client.StartDeployService(t.Context(), pipeline.DeployInput{Service: "api", Environment: "production"})
		if err != nil {
			t.Fatal(err)
		}
		<-asked
		idle := (int(all.called.Load()) + 1) % len(all.urls) // it does not run the handler, which must not run twice
		proxy.kill(idle)
		if err := gosdk.Shutdown(t.Context(), nil, all.tasks[idle]); err != nil {
			t.Error(err)
		}
		close(answered)
		if report, err := call.Wait(t.Context()); err != nil || report.Version != "1.2.3" {
			t.Errorf("%+v %v", report, err)
		}
		endless, err := client.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: "endless"})
		if err != nil {
			t.Fatal(err)
		}
		if err := endless.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := endless.Wait(t.Context()); !errors.Is(err, mcptask.ErrCancelled) {
			t.Errorf("%v", err)
		}
		for i := range all.urls {
			if proxy.taken[i] == 0 {
				t.Errorf("replica %d has got no request", i)
			}
		}
	})
}

// TestResumedStreamOnAnotherReplica checks that a client which resumes its session's stream at another
// replica gets a new stream, and one that resumes the stream of a call is refused without an end of its
// session.
func TestResumedStreamOnAnotherReplica(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, a, b := serveTwoReplicas(t, nil)
		if status := b.Status(http.MethodGet, "", wiretest.WithHeader("Last-Event-ID", "ABC_1")); status != http.StatusBadRequest {
			t.Errorf("the stream of a call: %d", status)
		}
		stream := b.Open(http.MethodGet, "", wiretest.WithHeader("Last-Event-ID", "_7"))
		id := a.Create("ask", wiretest.AskArguments("one"))
		stream.NextQuestion(id)
	})
}

// slowClock is a store whose clock is behind, and which is no Inspector.
type slowClock struct{ taskstore.Store }

// Beat implements taskstore.Store.
func (s slowClock) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	beat, err := s.Store.Beat(ctx, worker, lease, held)
	beat.Now = beat.Now.Add(-2 * mcptask.DefaultTTL)
	return beat, err
}

// Expire implements taskstore.Store. By this store's clock nothing expires during the test.
func (slowClock) Expire(context.Context, int) ([]taskstore.Record, error) { return nil, nil }

// TestSessionOnSlowStore checks that a session finds its earlier and its later tasks at another
// replica, although the store's clock is so far behind those of the replicas that the tasks have
// expired by these.
func TestSessionOnSlowStore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 2, func(_ int, s *wiretest.Setup) { s.Options.Store = slowClock{s.Options.Store} })
		synctest.Wait() // for the store's time
		a := all.peer("alice", wiretest.AllCapabilities)
		id := a.Create("ask", wiretest.AskArguments("one"))
		a.Until(id, "input_required")
		own := all.at(a, 1).OpenGet()
		own.NextQuestion(id)
		own.NextQuestion(a.Create("ask", wiretest.AskArguments("two")))
	})
}
