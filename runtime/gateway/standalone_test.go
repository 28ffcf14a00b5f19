package gateway

import (
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
)

// slowStore takes its time to read, and knows how many read at once.
type slowStore struct {
	mcptask.Store
	takes time.Duration

	mu                   sync.Mutex
	reading, most, reads int
}

// Get implements mcptask.Store.
func (s *slowStore) Get(ctx context.Context, id string) (mcptask.Record, error) {
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

// watched is a stream that tells when it has been begun, and keeps what is written.
type watched struct {
	header http.Header
	begun  chan struct{}
	mu     sync.Mutex
	text   strings.Builder
}

// Header implements http.ResponseWriter.
func (w *watched) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *watched) WriteHeader(int) { close(w.begun) }

// Write implements http.ResponseWriter.
func (w *watched) Write(data []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.text.Write(data)
}

// Flush implements http.Flusher.
func (w *watched) Flush() {}

// A session's stream flows at once, however slow the store is that has its tasks, and
// all their questions come. It does not read them all at once.
func TestStreamFlowsBeforeItsTasksAreRead(t *testing.T) {
	const count = 100
	bubble.Test(t, func(t *testing.T) {
		store := &slowStore{Store: mcptask.NewMemoryStore(), takes: 30 * time.Millisecond}
		server, err := mcptask.NewServer(mcptask.Options{Store: store})
		if err != nil {
			t.Fatal(err)
		}
		const said = "event: message\ndata: {\"from\":\"the SDK\"}\n\n"
		g := New(Config{Server: server, Stateful: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write([]byte(said))
			<-r.Context().Done()
		})})
		s := &session{id: "s", principal: "a", revision: mcptask.Revision20251125, canAsk: []string{"elicitation/create"}, requestor: protocol.Requestor20251125{}}
		g.sessions.add(s, func() {})
		for i := range count {
			r, err := store.Create(t.Context(), mcptask.Record{
				ID: fmt.Sprint("task", i), Principal: "a", Phase: mcptask.PhaseRunning, ExpiresAt: time.Now().Add(time.Hour), Worker: "w", LeaseUntil: time.Now().Add(time.Hour),
				Inputs: []mcptask.Input{{Key: "q", Method: "elicitation/create", Params: []byte(`{"message":"?"}`), Schema: []byte(`{"type":"object","properties":{}}`), State: mcptask.InputOutstanding}},
			}, mcptask.Quota{})
			if err != nil {
				t.Fatal(err)
			}
			g.mailbox(s).Know(g.legacy, r)
		}
		synctest.Wait()
		store.reads, store.most = 0, 0
		ctx, leave := context.WithCancel(t.Context())
		w := &watched{header: http.Header{}, begun: make(chan struct{})}
		var serving sync.WaitGroup
		serving.Go(func() {
			g.serveStandalone(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "/", http.NoBody), s)
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
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
}
