package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// An SDK spends most of a call's time in its transport, which decodes and encodes each message several times. So an adapter
// may run a call in the SDK's middleware and handlers without that transport. The gateway then takes its place: it sends the
// server's messages, hands over the client's responses, refuses a repeated ID, and ends the call.

// Call is a call of one of the server's tools that came in by HTTP.
type Call struct {
	Flow *Flow
	// Request is the request of the call. Its body has been read.
	Request *http.Request
	// Meta is the member _meta of the params, and Arguments is arguments. Each is nil if the params have no such member.
	Meta, Arguments json.RawMessage
	// Session is the value of [Flow.Session] at the initialize of the call's session. It is nil in revisions without
	// sessions.
	Session any

	x        *httpExchange
	response *sharedResponse
}

// Runner runs a call in an SDK. It returns the result as encoding/json made it, or an [mcptask.Error] that answers the call.
// In a session it may run after the client has disconnected.
type Runner = func(context.Context) (json.RawMessage, error)

// HasStream reports whether the gateway answers calls with a stream, which can carry messages before the answer.
func (c *Call) HasStream() bool { return !c.x.g.config.JSON }

// Send sends a notification or a request to the client, before the answer. It returns false if the response to the call
// is over or is not a stream. It is safe for concurrent use.
func (c *Call) Send(message []byte) bool {
	return c.HasStream() && c.response.send(message) && !c.response.isOver()
}

// Expect calls answer with the client's response to a request that [Call.Send] sends. It calls answer once at most, in the
// goroutine of the client's request. id is the ID of the sent request. It must be unique in the session. Call forget when
// the response is no longer needed. Only a call in a session can expect a response.
func (c *Call) Expect(id string, answer func(response []byte)) (forget func()) {
	return c.x.g.sessions.expect(c.x.session, id, func(m *message) { answer(m.Bytes()) })
}

// findRunner returns the runner of a call. It returns nil if the SDK's handler has to serve the call: the handler refuses
// malformed requests and serves rare ones. A runner gets the name, the _meta and the arguments of a call, and no other
// params.
func (x *httpExchange) findRunner(flow *Flow, response *sharedResponse) Runner {
	params := x.m.Params
	switch {
	case x.g.config.FindRunner == nil, flow.waiting != nil, flow.withheld != nil:
		return nil
	case !flow.Stateless && (x.session == nil || params.Has("inputResponses") || params.Has("requestState")):
		return nil // the SDK reads these params in a session
	case len(x.m.Bytes()) > maxNesting && wire.Depth(x.m.Bytes()) > maxNesting:
		return nil // the SDK refuses it
	}
	call := &Call{Flow: flow, Request: x.r, Meta: params.Get("_meta"), Arguments: params.Get("arguments"), x: x, response: response}
	if x.session != nil {
		call.Session = x.session.sdkSession
	}
	return x.g.config.FindRunner(call)
}

// runCall runs a call and answers it, in the request's own goroutine, whose stack has grown already. Without a session, the
// call's context ends when the client disconnects. In a session the call outlives its client: it goes on until the client
// cancels it or the session ends.
func (x *httpExchange) runCall(run Runner) {
	ctx := x.r.Context()
	if x.session != nil {
		registered, done, refusal := x.registerCall()
		if refusal != nil {
			refuse(x.w, http.StatusBadRequest, x.m.ID, refusal)
			return
		}
		defer done()
		ctx = registered
	}
	result, err := x.g.runWork(ctx, x.m, work{run: run})
	if err != nil {
		x.writeAnswer(nil, wireError(err))
		return
	}
	x.writeAnswer(result, nil)
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
	status := http.StatusOK
	if failed != nil && x.modern() {
		status = modernStatus(failed)
	}
	data := wire.EncodeReply(x.m.ID, nil, failed)
	if failed == nil {
		data = wire.EncodeResult(x.m.ID, result)
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
