package gateway

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// sdkResponse is a response that the SDK writes, and into which the gateway writes messages of its
// own if it is a stream. The SDK writes one event at a time. A lock around every write keeps events
// whole.
type sdkResponse struct {
	w http.ResponseWriter
	// open is called once, when the response turns out to be a stream. The lock is held.
	open func()
	// take handles the data of one of the SDK's events. It returns false if the client gets the
	// event as it is. A nil take passes all events on unread.
	take func(event []byte, write func([]byte)) bool

	out   sharedStream // its lock guards every write and the fields below
	begun bool
	isSSE bool
	over  bool
	part  []byte // the beginning of an incomplete event
}

func newSDKResponse(w http.ResponseWriter) *sdkResponse {
	r := &sdkResponse{w: w}
	r.out.stream = &stream{w: w, flush: http.NewResponseController(w).Flush}
	return r
}

// Header implements http.ResponseWriter.
func (r *sdkResponse) Header() http.Header { return r.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (r *sdkResponse) WriteHeader(code int) {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	r.begin(code)
}

// begin notes whether the SDK answers with a stream. r.out.mu is held.
func (r *sdkResponse) begin(code int) {
	if r.begun || r.over {
		return
	}
	if code < http.StatusOK { // an informational response comes before the response itself
		r.w.WriteHeader(code)
		return
	}
	r.begun = true
	r.isSSE = code == http.StatusOK && strings.HasPrefix(r.w.Header().Get("Content-Type"), "text/event-stream")
	if r.isSSE {
		r.open()
	}
	r.w.WriteHeader(code)
}

// Write implements http.ResponseWriter. If there is a take, Write collects whole events for it.
func (r *sdkResponse) Write(data []byte) (int, error) {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if r.over {
		return len(data), nil // the response is over
	}
	r.begin(http.StatusOK)
	if !r.isSSE || r.take == nil {
		return r.w.Write(data)
	}
	r.part = append(r.part, data...)
	for {
		event, rest, ok := wire.CutEvent(r.part)
		if !ok {
			return len(data), nil
		}
		if !r.take(event.Data(), r.out.stream.sendMessage) {
			_, _ = r.w.Write(r.part[:len(r.part)-len(rest)]) // fails if the client has disconnected
			_ = r.out.stream.flush()
		}
		r.part = bytes.Clone(rest)
	}
}

// Flush implements http.Flusher.
func (r *sdkResponse) Flush() {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	if !r.over {
		r.begin(http.StatusOK)
		_ = r.out.stream.flush() // fails if the client has disconnected
	}
}

// end closes the response for the SDK. begun reports whether the SDK has written anything, and
// refused whether that is not a stream.
func (r *sdkResponse) end() (begun, refused bool) {
	r.out.mu.Lock()
	defer r.out.mu.Unlock()
	r.over = true
	return r.begun, r.begun && !r.isSSE
}

// serveStandalone forwards a session's GET stream and adds the questions of its tasks.
func (g *Gateway) serveStandalone(w http.ResponseWriter, r *http.Request, s *session) {
	if !g.canPush(s.revision) {
		g.forwardStream(g.config.Stateful, w, r)
		return
	}
	var c *push.Stream
	ctx, stop := context.WithCancel(r.Context())
	var writer sync.WaitGroup
	in := newSDKResponse(w)
	in.open = func() {
		c = g.mailbox(s).ConnectBeside(ctx) // reads tasks while the stream is already open
		writer.Go(func() {
			defer guard.Recover(g.server.Logger(), "writing to a session's stream")
			sendQueued(c, in.out.sendMessages, ctx.Done())
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

// sendQueued sends the messages of a push stream until done is closed.
func sendQueued(c *push.Stream, send func([][]byte), done <-chan struct{}) {
	for {
		select {
		case <-c.Wake():
			send(c.Take())
		case <-done:
			return
		}
	}
}
