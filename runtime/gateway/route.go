package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// exchange is one message and the way back to its sender. HTTP and pipes have one
// each. They read, write and close; route decides what becomes of a message.
type exchange interface {
	// context ends when the sender has left.
	context() context.Context
	message() *message
	// modern reports whether the message is of 2026-07-28, and so of no session.
	modern() bool
	// caller returns the sender of a message of no session.
	caller() mcptask.Caller
	// enter finds the message's session and its caller. It returns false if it has refused the
	// message. Only if needed is false it may return no session: the SDK then says what is wrong.
	enter(needed bool) (s *session, caller mcptask.Caller, ok bool)
	// initialize forwards the request that opens a session.
	initialize(flow *Flow)
	// checkVersion compares what transport and message say of the revision (E-72, E-73), and
	// checkNames what they say of the method and, if named is true, of the task (E-69 to E-72).
	checkVersion(revision string) *mcptask.Error
	checkNames(named bool) *mcptask.Error

	// accept says that a message without an answer has arrived.
	accept()
	// refuse answers with an error. It does nothing for a message that has no answer.
	refuse(kind refusalKind, err *mcptask.Error)
	// answer answers with what work returns. On a pipe it does not wait for that.
	answer(work work)
	// send sends a message before the answer. It is safe for concurrent use.
	send(message []byte)
	// carryQuestions sends a task's questions before the answer, if that has a stream of its
	// own, until stop is called.
	carryQuestions(d dialect.Teller, task string) (stop func())
	// flush sends what is written.
	flush()
	// cancel ends a request of the sender's that is answered here. It returns false if the SDK has to
	// hear of the cancellation too.
	cancel(request json.RawMessage) bool

	// forward passes the message on to the SDK, which answers it. flow may be nil.
	forward(flow *Flow, edits ...wire.Edit)
	// forwardOpen forwards a request that stays open. It calls done when the request is over.
	forwardOpen(done func())
	// forwardMerged forwards a subscription, with the SDK's part of it going to m, until that
	// part or ctx is over. It returns true if the SDK has refused the request in a way
	// that m cannot see.
	forwardMerged(ctx context.Context, m *merge) (refused bool)
}

// refusalKind says why a message is refused, for transports that tell the reasons apart.
type refusalKind int

const (
	refusedRequest refusalKind = iota
	refusedSize                // it is too big
	refusedRate                // it comes too soon
	refusedStore               // the store has failed
)

// work makes the answer to a request.
type work struct {
	// waits says that it waits for a task's end.
	waits bool
	run   func(context.Context) (json.RawMessage, error)
	// written is called when the answer is written, or when there will be none; nil is nothing.
	written func()
}

// errAnswered is the error of work whose answer the SDK has written.
var errAnswered = errors.New("the SDK has answered")

// route decides what becomes of a message.
func (g *Gateway) route(x exchange) {
	m := x.message()
	if request, ok := m.answers(); ok {
		g.deliverAnswer(x, request)
		return
	}
	if !m.IsRequest() {
		g.routeNotice(x)
		return
	}
	if kind, err := checkLasting(m); err != nil {
		x.refuse(kind, err)
		return
	}
	if x.modern() {
		g.routeModern(x)
		return
	}
	g.routeSession(x)
}

// deliverAnswer takes the response to a request of ours.
func (g *Gateway) deliverAnswer(x exchange, request push.RequestID) {
	s, caller, ok := x.enter(true)
	if !ok {
		return
	}
	caller.Method = "response"
	if !g.takeAnswer(x.context(), s, caller, request, x.message()) { // on a pipe it is asked for again
		x.refuse(refusedStore, mcptask.Errorf(mcptask.CodeInternalError, "the answer could not be stored: send it again later"))
		return
	}
	x.accept()
}

// routeNotice decides what becomes of a notification, or of a response to the SDK. A cancelled
// request may be one that waits here for a task; the task itself goes on (C-74).
func (g *Gateway) routeNotice(x exchange) {
	m := x.message()
	if x.modern() { // no session, whose requests it could cancel
		if m.reserved() {
			x.accept()
		} else {
			x.forward(nil)
		}
		return
	}
	s, _, ok := x.enter(false)
	switch {
	case !ok:
	case s != nil && m.reserved():
		x.accept()
	case s != nil && m.Method == notificationCancelled && x.cancel(m.Params.Get("requestId")):
		x.accept()
	default:
		x.forward(nil)
	}
}

// routeSession decides what becomes of a request of 2025-11-25 or before.
func (g *Gateway) routeSession(x exchange) {
	m := x.message()
	aboutTask := strings.HasPrefix(m.Method, "tasks/")
	s, caller, ok := x.enter(aboutTask)
	switch {
	case !ok:
	case m.Method == "initialize":
		x.initialize(g.initialized(caller))
	case m.reserved():
		x.refuse(refusedRequest, noMethod(m))
	case m.newer():
		x.refuse(refusedRequest, notYet(m))
	case aboutTask:
		g.answerSessionTask(x, s, caller)
	case m.Method == "tools/call":
		g.callInSession(x, s, caller)
	case m.Method == "tools/list":
		x.forward(g.sessionList(s, caller))
	default:
		x.forward(nil)
	}
}

// routeModern decides what becomes of a request of 2026-07-28.
func (g *Gateway) routeModern(x exchange) {
	m := x.message()
	caller := x.caller()
	caller.Revision, caller.CanAsk = g.modern.Revision(), g.modern.CanAsk(m.meta.Capabilities)
	switch {
	case m.reserved():
		x.refuse(refusedRequest, noMethod(m))
	case strings.HasPrefix(m.Method, "tasks/"):
		g.answerModernTask(x, caller)
	case m.Method == "tools/call":
		g.callModern(x, caller)
	case m.Method == "tools/list":
		x.forward(g.listed(caller, g.declares(m.meta)))
	case m.Method == dialect.Listen && g.without && dialect.Server20260728{}.NamesTasks(m.Params):
		g.listen(x, caller)
	case m.Method == dialect.Listen: // the SDK's alone, and a connection all the same
		done, err := g.block(caller)
		if err != nil {
			x.refuse(refusedRequest, err)
			return
		}
		x.forwardOpen(done)
	case m.Method == "server/discover":
		x.forward(g.discovered(caller))
	default:
		x.forward(nil)
	}
}
