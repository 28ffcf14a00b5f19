package gateway

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestQuestionFollowsSlowReply checks that over HTTP a new task's questions stay off the session's
// stream until the reply is written and has had time to arrive, however long the SDK takes for it.
func TestQuestionFollowsSlowReply(t *testing.T) {
	for name, leaves := range map[string]bool{"a client that waits": false, "a client that leaves": true} {
		bubble.Run(t, name, func(t *testing.T) {
			server := askingServer(t)
			made := make(chan struct{})
			stateful := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				flow := TakeFlow(server.Backend(), r.Header.Get(FlowHeader))
				call := func() {
					defer close(made)
					reply, err := flow.Run(t.Context(), server.Backend(), "ask", nil, nil)
					if err == nil {
						_, err = flow.Encode(reply)
					}
					if err != nil {
						t.Error(err)
					}
				}
				if leaves { // and the SDK goes on
					time.AfterFunc(time.Minute, call)
					return
				}
				call()
				time.Sleep(time.Minute) // a user's middleware
				w.WriteHeader(http.StatusOK)
			})
			g := New(Config{Server: server.Backend(), Stateful: stateful})
			s := openSession(t, g, mcptask.Revision20251125, `{"elicitation":{}}`)
			c := g.mailbox(s).Connect(nil, "")
			for range 3 { // its timers are no more than its tasks
				g.mailbox(s).SettleAfter("NOSUCHTASK", settleDelay)
			}
			serve(g, newRequest(t.Context(), http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ask","task":{}}}`, sessionHeader, "s"))
			<-made
			time.Sleep(settleDelay - time.Millisecond)
			if early := c.Take(); len(early) > 0 {
				t.Fatalf("it may overtake the reply: %s", early[0])
			}
			time.Sleep(2 * time.Millisecond)
			if late := string(bytes.Join(c.Take(), nil)); !strings.Contains(late, "elicitation/create") {
				t.Errorf("the question has not come: %s", late)
			}
		})
	}
}

// slowStore delays each read, and counts how many run at once.
type slowStore struct {
	taskstore.Store
	takes time.Duration

	mu                   sync.Mutex
	reading, most, reads int
}

// Get implements taskstore.Store.
func (s *slowStore) Get(ctx context.Context, id string) (taskstore.Record, error) {
	s.mu.Lock()
	s.reading++
	s.reads++
	s.most = max(s.most, s.reading)
	s.mu.Unlock()
	time.Sleep(s.takes)
	s.mu.Lock()
	s.reading--
	s.mu.Unlock()
	return s.Store.Get(ctx, id)
}

// watched is a response that keeps what is written.
type watched struct {
	header http.Header
	mu     sync.Mutex
	text   strings.Builder
}

// Header implements http.ResponseWriter.
func (w *watched) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(int) {}

// Write implements http.ResponseWriter.
func (w *watched) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

// Flush implements http.Flusher.
func (w *watched) Flush() {}

// TestStreamFlowsBeforeItsTasksAreRead checks that a session's stream flows at once, however slowly
// the store reads the session's tasks. All their questions come, and the gateway reads a few tasks at
// a time.
func TestStreamFlowsBeforeItsTasksAreRead(t *testing.T) {
	const count = 100
	bubble.Test(t, func(t *testing.T) {
		store := &slowStore{Store: taskstore.NewMemory(), takes: 30 * time.Millisecond}
		const said = "event: message\ndata: {\"from\":\"the SDK\"}\n\n"
		g := New(Config{Server: newServer(t, taskserver.Options{Store: store}).Backend(), Stateful: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(said))
			<-r.Context().Done()
		})})
		s := &session{id: "s", principal: "a", revision: mcptask.Revision20251125, canAsk: []string{"elicitation/create"}, requestor: protocol.Requestor20251125{}}
		g.sessions.add(s, func() {})
		for i := range count {
			r, err := store.Create(t.Context(), taskstore.Record{
				ID: fmt.Sprint("task", i), Principal: "a", Phase: taskstore.PhaseRunning, ExpiresAt: time.Now().Add(time.Hour), Claim: taskstore.Claim{Worker: "w"},
				Inputs: []taskstore.Input{{Request: mcptask.Request{Key: "q", Method: "elicitation/create", Params: []byte(`{"message":"?"}`), Schema: []byte(`{"type":"object","properties":{}}`)}, State: taskstore.InputOutstanding}},
			}, taskstore.Quota{})
			if err != nil {
				t.Fatal(err)
			}
			g.mailbox(s).Know(g.legacy, r)
		}
		synctest.Wait()
		store.reads, store.most = 0, 0
		ctx, leave := context.WithCancel(t.Context())
		w := &watched{header: http.Header{}}
		var serving sync.WaitGroup
		serving.Go(func() {
			g.serveStream(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody), s, false)
		})
		text := func() string {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.text.String()
		}
		synctest.Wait() // no time has passed
		if text() != said {
			t.Errorf("the stream waits for the store: %q", text())
		}
		time.Sleep(count * store.takes) // as long as one after another
		if came := strings.Count(text(), "elicitation/create"); came != count {
			t.Errorf("%d of %d questions", came, count)
		}
		store.mu.Lock()
		if store.reads != count || store.most > 8 {
			t.Errorf("%d reads, %d at once", store.reads, store.most)
		}
		store.mu.Unlock()
		leave()
		serving.Wait()
		g.sessions.end("s")
	})
}
