package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const (
	// promptly is how long an answer may take before it goes out as a stream:
	// proxies end silent requests.
	promptly = 500 * time.Millisecond
	// keepAlive is how often a waiting stream shows that it is alive.
	keepAlive = 15 * time.Second
)

// answer runs work and writes its answer: as JSON where it comes promptly or
// the client takes nothing else, as an event stream where it has to wait. Only
// tasks/result waits (C-37), so nothing else becomes a stream (C-34).
func (g *Gateway) answer(ctx context.Context, w http.ResponseWriter, r *http.Request, m *message, work func() (json.RawMessage, error)) {
	type outcome struct {
		result json.RawMessage
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		o := outcome{err: mcptask.Errorf(mcptask.CodeInternalError, "internal error")}
		defer func() {
			if p := recover(); p != nil { // net/http recovers only its own goroutine
				g.server.Logger().Error("task method panicked", "method", m.Method, "panic", p)
			}
			done <- o
		}()
		o.result, o.err = work()
	}()
	// The work ends with ctx, so waiting for it never outlasts the client.
	write := func(o outcome, send func([]byte)) {
		switch {
		case o.err == nil:
			send(encodeReply(m.ID, o.result, nil))
		case ctx.Err() != nil: // the client no longer waits, or its session or the server ends
			send(encodeReply(m.ID, nil, mcptask.Errorf(mcptask.CodeInternalError, "the request was ended before its answer was there")))
		default:
			send(encodeReply(m.ID, nil, wireError(o.err)))
		}
	}
	sendJSON := func(data []byte) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		_, _ = w.Write(data) // a client that has left
	}
	if m.Method != "tasks/result" || !acceptsStream(r) {
		write(<-done, sendJSON)
		return
	}
	timer := time.NewTimer(promptly)
	defer timer.Stop()
	select {
	case o := <-done:
		write(o, sendJSON)
		return
	case <-timer.C:
	}
	s := newStream(w)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case o := <-done:
			write(o, s.message)
			return
		case <-tick.C:
			s.comment("waiting")
		}
	}
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
