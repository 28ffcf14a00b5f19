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
	return c.HasStream() && c.response.deliver(message)
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

// callAnswer is the answer to a call.
type callAnswer struct {
	result json.RawMessage
	err    *mcptask.Error
}

// runCall runs a call and answers it. A client that disconnects ends a call of no session. In a session the call goes on
// without it, until the client cancels the call or the session ends.
func (x *httpExchange) runCall(flow *Flow, run Runner) {
	ctx, disconnected, done := x.r.Context(), (<-chan struct{})(nil), func() {}
	if x.session != nil {
		var err *mcptask.Error
		if ctx, done, err = x.beginCall(); err != nil {
			refuse(x.w, http.StatusBadRequest, x.m.ID, err)
			return
		}
		disconnected = x.r.Context().Done()
	}
	answer := callAnswer{err: errNoAnswer}
	answered := make(chan callAnswer, 1)
	guard.Start(x.g.server.Logger(), "middleware of a call", func() {
		answer.result, answer.err = run(ctx)
	}, func(bool) {
		done()
		answered <- answer
	})
	select {
	case answer := <-answered:
		x.writeAnswer(flow, answer)
	case <-disconnected:
	}
}

// beginCall begins a call of a session. It returns the call's context, which outlives the request. It refuses a call
// whose ID another call has that is under way. Call done when the call has returned.
func (x *httpExchange) beginCall() (ctx context.Context, done func(), refusal *mcptask.Error) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(x.r.Context()))
	forget := x.g.sessions.addCall(x.session, x.m.ID, cancel)
	if forget == nil {
		cancel()
		return nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the ID %.100s is that of another call under way: use each ID once", x.m.ID)
	}
	stop := context.AfterFunc(x.session.ended, cancel)
	return ctx, func() { forget(); stop(); cancel() }, nil
}

// writeAnswer writes the answer to a call, in a stream unless the configuration says JSON. In revisions without sessions
// some errors have a status of their own, and no stream.
func (x *httpExchange) writeAnswer(flow *Flow, answer callAnswer) {
	status := http.StatusOK
	var data []byte
	if answer.err != nil {
		data = wire.EncodeReply(x.m.ID, nil, answer.err)
		if flow.Stateless {
			status = modernStatus(answer.err)
		}
	} else {
		data = wire.EncodeResult(x.m.ID, answer.result)
	}
	h := x.w.Header()
	h.Set("Cache-Control", "no-cache, no-transform")
	h.Set("Content-Type", "application/json")
	if !x.g.config.JSON {
		h.Set("Connection", "keep-alive")
		if status == http.StatusOK {
			h.Set("Content-Type", "text/event-stream")
			data = wire.AppendEvent(nil, data)
		}
	}
	if status != http.StatusOK {
		x.w.WriteHeader(status)
	}
	_, _ = x.w.Write(data) // fails if the client has disconnected
}
