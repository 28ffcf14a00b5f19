package gateway

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// keepAlive is how often a waiting stream shows that it is alive.
const keepAlive = 15 * time.Second

// stream writes server-sent events.
type stream struct {
	w     http.ResponseWriter
	flush func() error
}

func newStream(w http.ResponseWriter) *stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("X-Accel-Buffering", "no")
	w.WriteHeader(http.StatusOK)
	s := &stream{w: w, flush: http.NewResponseController(w).Flush}
	s.comment("open")
	return s
}

// message sends one JSON-RPC message.
func (s *stream) message(data []byte) {
	_, _ = s.w.Write(wire.AppendEvent(nil, data))
	_ = s.flush() // a client that has left
}

func (s *stream) comment(text string) {
	fmt.Fprintf(s.w, ": %s\n\n", text)
	_ = s.flush()
}

// shared is a stream that many write to.
type shared struct {
	mu     sync.Mutex
	stream *stream
}

func (s *shared) message(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream.message(data)
}

func (s *shared) messages(all [][]byte) {
	for _, data := range all {
		s.message(data)
	}
}

// keepAlive shows that the stream is alive until the returned function is called.
func (s *shared) keepAlive() (stop func()) {
	done := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		defer guard.Recover(nil, "a stream that is kept alive")
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				s.mu.Lock()
				s.stream.comment("waiting")
				s.mu.Unlock()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); running.Wait() }
}
