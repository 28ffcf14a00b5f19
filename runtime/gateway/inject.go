package gateway

import (
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// injector lets the gateway write its own events into the standalone stream that the SDK serves.
// The SDK writes one event at a time. A lock around every write keeps events whole.
type injector struct {
	w http.ResponseWriter
	// begin is called once, when the response is known to be a stream.
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
	i.noteStream(code)
}

// Write implements http.ResponseWriter.
func (i *injector) Write(data []byte) (int, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.noteStream(http.StatusOK)
	return i.w.Write(data)
}

// Flush implements http.Flusher.
func (i *injector) Flush() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.noteStream(http.StatusOK)
	_ = http.NewResponseController(i.w).Flush() // fails if the client has disconnected
}

func (i *injector) noteStream(code int) {
	if !i.begun && code == http.StatusOK && strings.HasPrefix(i.w.Header().Get("Content-Type"), "text/event-stream") {
		i.begun = true
		i.begin()
	}
}

// inject writes whole events between the SDK's events.
func (i *injector) inject(messages [][]byte) {
	i.mu.Lock()
	defer i.mu.Unlock()
	s := stream{w: i.w, flush: http.NewResponseController(i.w).Flush}
	for _, m := range messages {
		s.sendMessage(m)
	}
}

// serveStandalone forwards a session's GET stream and adds the questions of its tasks.
func (g *Gateway) serveStandalone(w http.ResponseWriter, r *http.Request, s *session) {
	if s == nil || !g.canPush(s.revision) {
		g.forwardStream(g.config.Stateful, w, r)
		return
	}
	var c *push.Stream
	ctx, stop := context.WithCancel(r.Context())
	var writer sync.WaitGroup
	in := &injector{w: w}
	in.begin = func() {
		c = g.mailbox(s).ConnectBeside(ctx) // reads tasks while the stream is already open
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
	// The response is invalid once the handler has returned.
	defer func() {
		stop()
		writer.Wait()
		if c != nil {
			c.Close()
		}
	}()
	g.forwardStream(g.config.Stateful, in, r)
}
