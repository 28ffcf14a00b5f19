package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// injector lets the gateway write events of its own into the standalone stream
// that the SDK serves. The SDK writes an event at a time: with one lock around
// its writes no event is ever cut.
type injector struct {
	w http.ResponseWriter
	// begin is called once, when the response turns out to be a stream.
	begin func()

	mu    sync.Mutex
	begun bool
}

// Header implements http.ResponseWriter.
func (i *injector) Header() http.Header { return i.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (i *injector) WriteHeader(code int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.w.WriteHeader(code)
	i.start(code)
}

// Write implements http.ResponseWriter.
func (i *injector) Write(data []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.start(http.StatusOK)
	return i.w.Write(data)
}

// Flush implements http.Flusher.
func (i *injector) Flush() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.start(http.StatusOK)
	_ = http.NewResponseController(i.w).Flush() // a client that has left
}

func (i *injector) start(code int) {
	if !i.begun && code == http.StatusOK && strings.HasPrefix(i.w.Header().Get("Content-Type"), "text/event-stream") {
		i.begun = true
		i.begin()
	}
}

// inject writes whole events between the SDK's.
func (i *injector) inject(messages [][]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := stream{w: i.w, flush: http.NewResponseController(i.w).Flush}
	for _, m := range messages {
		s.message(m)
	}
}

// standalone passes a session's GET stream on, with the questions of its tasks.
func (g *Gateway) standalone(w http.ResponseWriter, r *http.Request, s *session) {
	if s == nil || !g.pushes(s.revision) {
		g.passOpen(g.config.Stateful, w, r)
		return
	}
	var c *push.Stream
	ctx, stop := context.WithCancel(r.Context())
	var writer sync.WaitGroup
	in := &injector{w: w}
	in.begin = func() {
		c = g.mailbox(s).ConnectBeside(ctx) // the stream flows meanwhile
		writer.Go(func() {
			defer guard.Recover(g.server.Logger(), "writing to a session's stream")
			for {
				select {
				case <-c.Wake():
					in.inject(c.Take())
				case <-ctx.Done():
					return
				}
			}
		})
	}
	// Nothing may be written once the handler has returned.
	defer func() {
		stop()
		writer.Wait()
		if c != nil {
			c.Close()
		}
	}()
	g.passOpen(g.config.Stateful, in, r)
}
