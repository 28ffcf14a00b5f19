package gateway

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// keepAlive is the interval between signs of life on a waiting stream.
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
	s.sendComment("open")
	return s
}

// sendMessage sends one JSON-RPC message.
func (s *stream) sendMessage(data []byte) {
	_, _ = s.w.Write(wire.AppendEvent(nil, data))
	_ = s.flush() // fails if the client has disconnected
}

func (s *stream) sendComment(text string) {
	fmt.Fprintf(s.w, ": %s\n\n", text)
	_ = s.flush()
}

// sharedStream is a stream with several writers.
type sharedStream struct {
	mu     sync.Mutex
	stream *stream
}

func (s *sharedStream) sendMessage(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream.sendMessage(data)
}

func (s *sharedStream) sendMessages(all [][]byte) {
	for _, data := range all {
		s.sendMessage(data)
	}
}

// keepAlive writes a comment at intervals until the returned function is called.
func (s *sharedStream) keepAlive() (stop func()) {
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
				s.stream.sendComment("waiting")
				s.mu.Unlock()
			case <-done:
				return
			}
		}
	})
	return func() { close(done); running.Wait() }
}
