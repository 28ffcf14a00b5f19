package gateway

import (
	"context"
	"encoding/json"
	"net/http"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// BypassCall is a call of a task tool that the gateway can answer without the SDK: it makes a
// task, or is answered at once, and nothing has to be sent to its client before the answer.
type BypassCall struct {
	// Request is the request that the call came in. Its body has been read.
	Request *http.Request
	Tool    string
	// Stateless says that the call belongs to no session.
	Stateless bool
	// Behind is what the adapter set as [Flow.Behind] when the call's session was opened.
	Behind any
	// Meta is the call's params._meta. It is an object, or nil if the call has none.
	Meta json.RawMessage
}

// AnswerWriter writes the answer to a call, as the SDK would. result is what encoding/json made,
// and nil if the answer is an error.
type AnswerWriter func(w http.ResponseWriter, id, result json.RawMessage, err *mcptask.Error)

// bypass answers a call without the SDK. It returns false, and has done nothing, if the SDK has to
// answer it.
func (x *httpExchange) bypass(flow *Flow) bool {
	if x.g.config.Bypass == nil || !x.mayBypass(flow) {
		return false
	}
	call := BypassCall{Request: x.r, Tool: flow.Tool, Stateless: flow.Stateless, Meta: x.m.Params.Get("_meta")}
	if x.session != nil {
		call.Behind = x.session.behind
	}
	write := x.g.config.Bypass(call)
	if write == nil {
		return false
	}
	result, err := x.runBypassed(flow)
	if err != nil {
		write(x.w, x.m.ID, nil, wireError(err))
	} else {
		write(x.w, x.m.ID, result, nil)
	}
	return true
}

// runBypassed runs a call for as long as the SDK would. A client that leaves ends a call of no
// session. In a session it has to cancel the call, or end the session.
func (x *httpExchange) runBypassed(flow *Flow) (json.RawMessage, error) {
	ctx := x.r.Context()
	if x.session != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(context.WithoutCancel(ctx))
		defer cancel()
		defer x.g.sessions.addWaiting(x.session, x.m.ID, cancel)()
	}
	return x.g.runWork(ctx, x.m, work{run: func(ctx context.Context) (json.RawMessage, error) {
		return x.directCall(ctx, flow, Callbacks{})
	}})
}

// mayBypass reports whether the SDK adds nothing to a call but its middleware, and would not
// refuse it. What is unusual goes to the SDK.
func (x *httpExchange) mayBypass(flow *Flow) bool {
	params := x.m.Params
	meta := params.Object("_meta")
	switch {
	case flow.Handle != nil || flow.Held || flow.withheld != nil:
		return false
	case meta != nil && (!meta.IsObject() || !validate.Bounded(meta.Raw()) || meta.Has("progressToken")):
		return false // the SDK refuses it, or sends the progress
	case len(x.m.Bytes()) > maxNesting && wire.Depth(x.m.Bytes()) > maxNesting:
		return false
	case flow.Stateless:
		return flow.Call.Mode == mcptask.ModeGrace
	}
	spec, ok := x.g.server.Tool(flow.Tool)
	return ok && x.session != nil && flow.Caller.Revision == mcptask.Revision20251125 && flow.Call.Mode == mcptask.ModeTask &&
		len(spec.Questions) == 0 && // which the SDK asks
		!params.Has("inputResponses") && !params.Has("requestState") // which the SDK reads
}
