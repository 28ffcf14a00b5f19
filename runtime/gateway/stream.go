package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// keepAlive is how often a waiting stream shows that it is alive.
const keepAlive = 15 * time.Second

// answer runs work and writes its answer: as JSON, unless the method blocks and
// the client takes a stream (C-34, C-37), which carries the task's questions.
func (g *Gateway) answer(ctx context.Context, w http.ResponseWriter, m *message, c *channel, work func() (json.RawMessage, error)) {
	if c == nil {
		result, err := work()
		data := g.outcome(ctx, m, result, err)
		write(w, http.StatusOK, data)
		return
	}
	done := make(chan []byte, 1)
	go func() {
		defer guard.Recover(g.server.Logger(), "a request that waits")
		data := encodeReply(m.ID, nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error"))
		defer func() {
			if p := recover(); p != nil { // net/http recovers only its own goroutine
				g.server.Notice(slog.LevelError, "task method panicked", "method", m.Method, "panic", p)
			}
			done <- data
		}()
		result, err := work()
		data = g.outcome(ctx, m, result, err)
	}()
	s := newStream(w)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case data := <-done: // the work ends with ctx, so this never outlasts the client
			for _, m := range c.take() { // what is taken back, before the end
				s.message(m.data)
			}
			s.message(data)
			return
		case <-c.wake:
			for _, m := range c.take() {
				s.message(m.data)
			}
		case <-tick.C:
			s.comment("waiting")
		}
	}
}

// outcome is the response to a task method.
func (g *Gateway) outcome(ctx context.Context, m *message, result json.RawMessage, err error) []byte {
	switch {
	case err == nil:
		return encodeResult(m.ID, result)
	case ctx.Err() != nil: // the client no longer waits, or its session or the server ends
		return encodeReply(m.ID, nil, mcptask.Errorf(mcptask.CodeInternalError, "the request was ended before its answer was there"))
	}
	return encodeReply(m.ID, nil, wireError(err))
}

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

// message sends one JSON-RPC message; JSON has no line breaks of its own.
func (s *stream) message(data []byte) {
	fmt.Fprintf(s.w, "event: message\ndata: %s\n\n", data)
	_ = s.flush() // a client that has left
}

func (s *stream) comment(text string) {
	fmt.Fprintf(s.w, ": %s\n\n", text)
	_ = s.flush()
}
