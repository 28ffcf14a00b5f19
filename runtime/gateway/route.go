package gateway

import (
	"context"
	"encoding/json"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// exchange is one message and the way back to its sender. HTTP and pipes each implement it. They
// read, write and close. route chooses the handler of a message.
type exchange interface {
	// context ends when the sender disconnects.
	context() context.Context
	message() *message
	// modern reports whether the message is in 2026-07-28, and so belongs to no session.
	modern() bool
	// version returns the protocol version that the message names outside of an initialize, or "".
	version() string
	// caller returns the sender of a message that belongs to no session.
	caller() taskserver.Caller
	// enter returns the message's session and its caller. It returns false if it has refused the
	// message. It returns no session for an initialize, and if the SDK may serve the message without one.
	enter() (s *session, caller taskserver.Caller, ok bool)
	// initialize forwards the request that opens a session.
	initialize(flow *Flow)
	// checkVersion compares the revision in the transport with the one in the message (E-72, E-73).
	// checkNames compares the method and, if named is true, the task (E-69 to E-72).
	checkVersion(revision string) *mcptask.Error
	checkNames(named bool) *mcptask.Error
	// trace returns the trace that the message belongs to, in the form of a Record. It returns "" if the
	// message names none, or a malformed one.
	trace() string
	// isPipe reports whether the message has come on a pipe.
	isPipe() bool

	// accept confirms a message that has no answer.
	accept()
	// refuse answers with an error. It ignores a message that has no answer.
	refuse(kind refusalKind, err *mcptask.Error)
	// answer answers with the result of work. On a pipe it does not wait for the work.
	answer(work work)
	// send sends a message before the answer. It is safe for concurrent use.
	send(message []byte)
	// carryQuestions sends a task's questions before the answer until stop is called. It does
	// nothing if the answer has no stream of its own.
	carryQuestions(d protocol.Teller, task string) (stop func())
	// openCall returns a function that sends messages before the answer to a call. isOpen is false if the answer has no
	// stream.
	openCall() (send func([][]byte), isOpen bool)
	// discover sends the SDK a server/discover of the gateway's own, and returns its result. It returns nil if the SDK
	// does not answer with one.
	discover(ctx context.Context, request []byte) (result json.RawMessage)
	// flush sends buffered bytes.
	flush()
	// cancel ends a request of the sender's that the gateway answers. It returns false if the SDK
	// also needs the cancellation.
	cancel(request json.RawMessage) bool

	// forward passes the message to the SDK, which answers it. flow may be nil.
	forward(flow *Flow, edits ...wire.Edit)
	// forwardOpen forwards a request that stays open. It calls done when the request ends.
	forwardOpen(done func())
}

// refusalKind is the reason for a refusal, for transports that report the reasons differently.
type refusalKind int

const (
	refusedRequest refusalKind = iota
	refusedSize                // the message is too big
	refusedRate                // the message comes too soon
	refusedStore               // the store failed
	refusedMemory              // too many other messages are under way
	refusedVersion             // the server does not serve the revision
)

// work produces the answer to a request.
type work struct {
	// waits says that the work waits for a task to end.
	waits bool
	run   func(context.Context) (json.RawMessage, error)
	// written is called after the answer is written, or when there will be no answer. It may be
	// nil.
	written func()
}

// route chooses the handler of a message. This is the main road of the gateway.
func (g *Gateway) route(x exchange) {
	m := x.message()
	if request, ok := m.answeredRequest(); ok {
		g.deliverAnswer(x, request)
		return
	}
	if m.Method == "" { // a response for the SDK, whose requests bound how many it decodes
		g.routeNotification(x)
		return
	}
	if kind, err := g.checkSize(m); err != nil {
		x.refuse(kind, err)
		return
	}
	if !m.IsRequest() {
		g.routeNotification(x)
		return
	}
	if err := g.checkServed(x); err != nil {
		x.refuse(refusedVersion, err)
		return
	}
	if x.modern() {
		g.routeModern(x)
		return
	}
	g.routeSession(x)
}

// deliverAnswer delivers the response to a request of the server's.
func (g *Gateway) deliverAnswer(x exchange, request push.RequestID) {
	s, caller, ok := x.enter()
	if !ok {
		return
	}
	caller.Method = "response"
	if !g.takeAnswer(x.context(), s, caller, request, x.message()) { // on a pipe the question is sent again
		x.refuse(refusedStore, mcptask.Errorf(mcptask.CodeInternalError, "the answer could not be stored: send it again later"))
		return
	}
	x.accept()
}

// routeNotification chooses the handler of a notification or of a response. A response goes to the call
// that expects it, or to the SDK. A cancellation may end a request that waits here for a task. The task
// itself continues (C-74).
func (g *Gateway) routeNotification(x exchange) {
	m := x.message()
	if x.modern() { // without a session there is no request to cancel
		switch {
		case !g.serveRequests:
			x.refuse(refusedVersion, g.unsupportedError(x.version()))
		case m.isTaskNotification():
			x.accept()
		default:
			x.forward(nil)
		}
		return
	}
	s, _, ok := x.enter()
	switch {
	case !ok:
	case s != nil && m.Method == "" && g.deliverResponse(s, m):
		x.accept()
	case s != nil && m.isTaskNotification(), s != nil && m.Method == notificationInitialized && !s.beginInitialized():
		x.accept()
	case s != nil && m.Method == notificationCancelled && x.cancel(m.Params.Get("requestId")):
		x.accept()
	default:
		x.forward(nil)
	}
}

// deliverResponse gives a response to the call that expects it. It returns false if no call does.
func (g *Gateway) deliverResponse(s *session, m *message) bool {
	id, _ := wire.Text(m.ID)
	answer := g.sessions.takeExpected(s, id)
	if answer != nil {
		answer(m)
	}
	return answer != nil
}

// routeSession chooses the handler of a request of 2025-11-25 or earlier.
func (g *Gateway) routeSession(x exchange) {
	m := x.message()
	aboutTask := strings.HasPrefix(m.Method, "tasks/")
	s, caller, ok := x.enter()
	switch {
	case !ok:
	case m.Method == "initialize":
		x.initialize(g.newInitializeFlow(caller))
	case m.isTaskNotification():
		x.refuse(refusedRequest, notificationError(m))
	case m.isNewerMethod():
		x.refuse(refusedRequest, mcptask.Errorf(mcptask.CodeMethodNotFound,
			"the method %s belongs to a later revision: name that revision in the request's _meta", wire.ShortenName(m.Method)))
	case aboutTask:
		g.answerSessionTask(x, s, caller)
	case m.Method == "tools/call":
		g.callInSession(x, s, caller)
	case m.Method == "tools/list":
		x.forward(g.newSessionListFlow(s, caller))
	default:
		x.forward(nil)
	}
}

// routeModern chooses the handler of a request of 2026-07-28.
func (g *Gateway) routeModern(x exchange) {
	m := x.message()
	caller := x.caller()
	caller.Revision, caller.CanAsk = g.modern.Revision(), g.modern.CanAsk(m.meta.Capabilities)
	switch {
	case m.isTaskNotification():
		x.refuse(refusedRequest, notificationError(m))
	case strings.HasPrefix(m.Method, "tasks/"):
		g.answerModernTask(x, caller)
	case m.Method == "tools/call":
		g.callModern(x, caller)
	case m.Method == "tools/list":
		caller.Client = readClient(m.meta.Client)
		x.forward(g.newListFlow(caller, g.declaresTasks(m.Params)))
	case m.Method == protocol.Listen && g.inRequests && protocol.Server20260728{}.NamesTasks(m.Params):
		g.answerListen(x, caller)
	case m.Method == protocol.Listen: // the SDK serves it alone, but it counts as a connection
		done, err := g.countWaiting(x.context(), caller)
		if err != nil {
			x.refuse(refusedRequest, err)
			return
		}
		x.forwardOpen(done)
	case m.Method == spec.Discover:
		x.forward(g.newDiscoverFlow(caller))
	default:
		x.forward(nil)
	}
}
