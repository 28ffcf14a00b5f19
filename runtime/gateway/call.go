package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// An SDK spends most of the time of a call on its transport: it decodes and encodes each message several times. So the
// adapter of an SDK may run a call itself, in the SDK's middleware and handlers, and the gateway is the transport of that
// call: it carries the messages of both directions, refuses a repeated ID, and ends the call.

// Call is a call of one of the server's tools that came in by HTTP.
type Call struct {
	Flow *Flow
	// Request is the request of the call. Its body has been read.
	Request *http.Request
	// Meta is the call's params._meta, nil if it has none. Arguments are its params.arguments.
	Meta, Arguments json.RawMessage
	// Session is what the adapter set as [Flow.Session] when the call's session was opened. It is nil in
	// revisions without sessions.
	Session any

	x        *httpExchange
	response *callResponse
}

// Runner runs a call in an SDK. It returns the result, or the error that answers the call.
type Runner func(context.Context) (json.RawMessage, *mcptask.Error)

// HasStream reports whether messages can go to the client before the answer.
func (c *Call) HasStream() bool { return !c.x.g.config.JSON }

// Send sends a notification or a request to the client, before the answer. It returns false if the response to the call
// is over or is not a stream. It is safe for concurrent use.
func (c *Call) Send(message []byte) bool {
	return c.HasStream() && c.response.send(message) && !c.response.isOver()
}

// Expect has answer called with the client's response to a request that [Call.Send] sends. id is the request's ID, which
// must be unique in the session. Call forget when no response is expected any more.
func (c *Call) Expect(id string, answer func(response []byte)) (forget func()) {
	return c.x.g.sessions.expect(c.x.session, id, answer)
}

// findRunner returns what runs a call in the SDK. It returns nil if the call has to go through the SDK's handler, which
// refuses what is malformed and serves what is rare.
func (x *httpExchange) findRunner(flow *Flow, response *callResponse) Runner {
	params := x.m.Params
	switch {
	case x.g.config.FindRunner == nil, flow.Held, flow.withheld != nil:
		return nil
	case !flow.Stateless && (x.session == nil || params.Has("inputResponses") || params.Has("requestState")):
		return nil
	case len(x.m.Bytes()) > maxNesting && wire.Depth(x.m.Bytes()) > maxNesting:
		return nil
	}
	call := &Call{Flow: flow, Request: x.r, Meta: params.Get("_meta"), Arguments: params.Get("arguments"), x: x, response: response}
	if x.session != nil {
		call.Session = x.session.sdk
	}
	return x.g.config.FindRunner(call)
}

// runCall runs a call and answers it. Without a session, the call's context ends when the client disconnects, and runCall
// waits for the call. In a session the call outlives its client: runCall returns, and the call goes on until the client
// cancels it or the session ends.
func (x *httpExchange) runCall(run Runner) {
	ctx, done := x.r.Context(), func() {}
	var disconnected <-chan struct{} // nil without a session
	if x.session != nil {
		var refusal *mcptask.Error
		if ctx, done, refusal = x.registerCall(); refusal != nil {
			refuse(x.w, http.StatusBadRequest, x.m.ID, refusal)
			return
		}
		disconnected = x.r.Context().Done()
	}
	var result json.RawMessage
	failed := errNoAnswer // the answer if the middleware panics or ends its goroutine
	returned := make(chan struct{})
	guard.Start(x.g.server.Logger(), "middleware of a call", func() { result, failed = run(ctx) }, func() {
		done()
		close(returned)
	})
	select {
	case <-returned:
		x.writeAnswer(result, failed)
	case <-disconnected:
	}
}

// registerCall registers a call of a session, so that the client can cancel it. The context outlives the request. Call
// done when the call has returned. registerCall refuses an ID that another request of the session still uses.
func (x *httpExchange) registerCall() (ctx context.Context, done func(), refusal *mcptask.Error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	forget := x.g.sessions.addCall(x.session, x.m.ID, cancel)
	if forget == nil {
		cancel()
		return nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "another request of this session uses the ID %.100s: use an ID once", x.m.ID)
	}
	stop := context.AfterFunc(x.session.ended, cancel)
	return ctx, func() { forget(); stop(); cancel() }, nil
}

// writeAnswer writes the answer to a call: as an event of a stream, or as JSON if the configuration asks for JSON or the
// error has an HTTP status of its own, as some errors of 2026-07-28 do.
func (x *httpExchange) writeAnswer(result json.RawMessage, failed *mcptask.Error) {
	data, status := []byte(nil), http.StatusOK
	if failed == nil {
		data = wire.EncodeResult(x.m.ID, result)
	} else {
		data = wire.EncodeReply(x.m.ID, nil, failed)
		if x.modern() {
			status = modernStatus(failed)
		}
	}
	h := x.w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	if !x.g.config.JSON {
		h.Set("Connection", "keep-alive")
	}
	if x.g.config.JSON || status != http.StatusOK {
		h.Set("Content-Type", "application/json")
	} else {
		h.Set("Content-Type", "text/event-stream")
		data = wire.AppendEvent(nil, data)
	}
	x.w.WriteHeader(status)
	_, _ = x.w.Write(data) // fails if the client has disconnected
}
