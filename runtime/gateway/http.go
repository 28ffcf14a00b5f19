package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// readPost reads the message of a POST. It returns nil if it has already answered the request.
func (g *Gateway) readPost(w *boundedResponse, r *http.Request, principal string) *httpExchange {
	if !g.admitMedia(w, r) {
		return nil
	}
	body, ok := g.readBody(w, r)
	if !ok {
		return nil
	}
	m, refusal := parseMessage(body)
	if refusal != nil && g.forwardBatch(w, r, principal, body) {
		return nil
	}
	if refusal != nil {
		refuse(w, http.StatusBadRequest, m.ID, refusal)
		return nil
	}
	m = g.renameCall(m, r.Header)
	w.id = m.ID
	return &httpExchange{g: g, w: w, r: r, m: m, principal: principal, share: &w.share}
}

// httpExchange implements exchange for one POST.
type httpExchange struct {
	g         *Gateway
	w         http.ResponseWriter
	r         *http.Request
	m         *message
	principal string
	share     *share

	session *session
	endUse  func() // ends the use of the session; nil if there is no session

	// out is the stream that carries the gateway's answer. It is nil if the answer is JSON.
	out *sharedResponse
}

func (x *httpExchange) context() context.Context { return x.r.Context() }
func (x *httpExchange) message() *message        { return x.m }

func (x *httpExchange) modern() bool {
	return isModernVersion(x.r.Header.Get(versionHeader)) || x.m.IsRequest() && x.m.meta.Version != nil
}

func (x *httpExchange) version() string {
	if x.m.meta.Version != nil {
		return *x.m.meta.Version
	}
	return x.r.Header.Get(versionHeader)
}

func (x *httpExchange) caller() taskserver.Caller {
	return x.g.locate(x.r, taskserver.Caller{Principal: x.principal, Method: x.m.Method})
}

// enter implements exchange. It reports a missing session before any other error. An initialize opens
// a new session, whatever session it names, because some clients send the ID of their former one. If the gateway does not
// know the session of a message that is not about tasks, the SDK decides whether to serve it.
func (x *httpExchange) enter() (*session, taskserver.Caller, bool) {
	id := x.r.Header.Get(sessionHeader)
	if x.m.Method == "initialize" {
		x.r.Header.Del(sessionHeader)
		return nil, x.caller(), true
	}
	ours := x.g.isOurs(x.m)
	if id == "" && (!ours || x.needsNoSession()) {
		return nil, x.caller(), true
	}
	s, endUse, status, refusal := x.g.useSession(x.r, x.principal)
	switch {
	case !ours && status == http.StatusNotFound && !x.g.isSigned(id):
		return nil, x.caller(), true
	case ours && refusal == nil:
		status, refusal = http.StatusBadRequest, checkSessionVersion(x.r, s)
	}
	if refusal != nil {
		endUse()
		refuse(x.w, status, x.replyID(), refusal)
		return nil, taskserver.Caller{}, false
	}
	x.session, x.endUse = s, endUse
	if x.m.Method != notificationInitialized {
		x.g.ensureInitialized(x.r, s)
	}
	if x.m.IsRequest() && x.m.Method != "ping" {
		s.used.Store(true)
	}
	return s, x.g.locate(x.r, s.newCaller(x.g, x.m.Method)), true
}

// needsNoSession reports whether the message may come without the ID of a session. The official SDK has an option to
// give its sessions no IDs, and then serves each request alone. Until an initialize has shown whether the option is set,
// the SDK gets the request.
func (x *httpExchange) needsNoSession() bool {
	if x.m.Method != "tools/call" {
		return false
	}
	givesIDs := x.g.sessionIDs.Load()
	return givesIDs == nil && !x.g.config.Direct || givesIDs != nil && !*givesIDs
}

// isOurs reports whether a message is about tasks: it calls a tool of the server's, or answers a question of a task, or has
// a method of tasks.
func (g *Gateway) isOurs(m *message) bool {
	if _, answers := m.answeredRequest(); answers || m.isTaskNotification() || strings.HasPrefix(m.Method, "tasks/") {
		return true
	}
	tool, _ := g.findTool(m)
	return m.Method == "tools/call" && tool != nil
}

// forwardBatch forwards a batch of 2025-03-26, the one revision that has batches, in a session. It returns false if
// another revision gets the batch, or if a message of it is not for the SDK alone.
func (g *Gateway) forwardBatch(w http.ResponseWriter, r *http.Request, principal string, body []byte) bool {
	var batch []json.RawMessage
	s := g.sessions.get(r.Header.Get(sessionHeader))
	if s == nil || s.revision != revisionWithBatches || json.Unmarshal(body, &batch) != nil {
		return false
	}
	for _, each := range batch {
		m, refusal := parseMessage(each)
		if refusal != nil || m.meta.Version != nil || m.Method == "initialize" || g.isOurs(m) || findCallCheck(r) != nil && m.Method == "tools/call" {
			return false
		}
	}
	_, endUse, _, refusal := g.useSession(r, principal)
	if refusal != nil {
		return false
	}
	defer endUse()
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	g.config.Stateful.ServeHTTP(w, r)
	return true
}

// revisionWithBatches is the protocol version whose clients may send several messages in one body.
const revisionWithBatches = "2025-03-26"

// leave ends the use of the session.
func (x *httpExchange) leave() {
	if x.endUse != nil {
		x.endUse()
	}
}

// replyID returns the ID of the reply. It returns nil if the message is not a request.
func (x *httpExchange) replyID() json.RawMessage {
	if x.m.IsRequest() {
		return x.m.ID
	}
	return nil
}

func (x *httpExchange) checkVersion(revision string) *mcptask.Error {
	return x.g.speech.checkVersion(x.r.Header, x.m.meta, revision)
}

func (x *httpExchange) checkNames(named bool) *mcptask.Error {
	return checkNames(x.r.Header, x.m, named)
}

func (x *httpExchange) isPipe() bool { return false }

// trace implements exchange. The message counts more than the headers, which may be those of a proxy.
func (x *httpExchange) trace() string {
	if trace := x.m.readTrace(); trace != "" {
		return trace
	}
	return readTraceHeaders(x.r.Header)
}

func (x *httpExchange) accept() { x.w.WriteHeader(http.StatusAccepted) }

func (x *httpExchange) refuse(kind refusalKind, err *mcptask.Error) {
	status := http.StatusOK
	switch {
	case kind == refusedSize:
		status = http.StatusRequestEntityTooLarge
	case kind == refusedRate: // one second is enough for the next request
		x.w.Header().Set("Retry-After", "1")
		status = http.StatusTooManyRequests
	case kind == refusedMemory:
		refuseMemory(x.w, x.replyID(), err)
		return
	case kind == refusedStore:
		status = http.StatusServiceUnavailable
	case kind == refusedVersion:
		status = http.StatusBadRequest
	case x.modern():
		status = modernStatus(err)
	}
	refuse(x.w, status, x.replyID(), err)
}

func (x *httpExchange) answer(work work) {
	if work.waits {
		defer x.endWithCaller()()
	}
	ctx, cancel := context.WithCancel(x.r.Context())
	defer cancel()
	if x.session != nil {
		defer x.g.sessions.addWaiting(x.session, x.m.ID, cancel)()
		defer context.AfterFunc(x.session.ended, cancel)()
	}
	if x.session != nil || work.waits {
		defer context.AfterFunc(x.g.server.Closing(), cancel)()
	}
	if work.written != nil {
		defer work.written()
	}
	defer func() {
		if x.out != nil {
			x.out.end()
		}
	}()
	result, err := x.g.runWork(x.share.withRoom(ctx), x.m, work)
	if err == nil {
		if refusal := x.share.takeResult(ctx, len(result)); refusal != nil {
			result, err = nil, refusal
		}
	}
	switch {
	case x.out != nil:
		x.out.send(encodeAnswer(ctx, x.m, result, err))
	case err == nil:
		write(x.w, http.StatusOK, wire.EncodeResult(x.m.ID, result))
	default:
		kind, failed := refusedRequest, answerError(ctx, err)
		switch failed.Limit() {
		case "polls":
			kind = refusedRate
		case "memory":
			kind = refusedMemory
		}
		x.refuse(kind, failed)
	}
}

func (x *httpExchange) send(message []byte) {
	x.openStream()
	x.out.send(message)
}

// openStream begins the stream that the answer ends, unless it has begun, and keeps it alive.
func (x *httpExchange) openStream() {
	if x.out == nil {
		x.out = newSharedResponse(x.w)
	}
	x.out.open()
}

// carryQuestions implements exchange. If the client does not accept a stream, it gets the questions
// on its session's own stream (C-34, C-37).
func (x *httpExchange) carryQuestions(d protocol.Teller, task string) (stop func()) {
	if !acceptsStream(x.r) {
		return func() {}
	}
	c := x.g.mailbox(x.session).Connect(d, task)
	x.openStream()
	return x.g.sendQuestions(x.context(), c, task, x.out.sendAll)
}

func (x *httpExchange) openCall() (send func([][]byte), isOpen bool) {
	response := x.respondToCall()
	return response.sendAll, !x.g.config.JSON && response.streams
}

func (x *httpExchange) flush() { _ = http.NewResponseController(x.w).Flush() } // fails if the client has disconnected

func (x *httpExchange) cancel(request json.RawMessage) bool {
	x.g.sessions.cancelWaiting(x.session, request)
	return false
}

// next returns the SDK's handler for the message.
func (x *httpExchange) next() http.Handler {
	switch {
	case x.modern():
		return x.g.config.Stateless
	case x.session == nil && x.m.Method != "initialize":
		return x.g.sessionless()
	}
	return x.g.config.Stateful
}

// setBody applies the edits to the message and makes it the body that the SDK reads.
func (x *httpExchange) setBody(edits ...wire.Edit) error {
	body, err := x.m.Edited(edits...)
	if err == nil {
		x.r.Body, x.r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	}
	return err
}

// endWithCaller ends the request with the credentials of its caller until stop is called.
func (x *httpExchange) endWithCaller() (stop func()) {
	ctx, stop := x.g.endWithCaller(x.r.Context(), x.principal)
	x.r = x.r.WithContext(ctx)
	return stop
}

func (x *httpExchange) forward(flow *Flow, edits ...wire.Edit) {
	if flow != nil {
		flow.share = x.share
	}
	if flow != nil && flow.waiting != nil {
		defer x.endWithCaller()()
	}
	if flow != nil && flow.Tool != "" {
		own := *x.r // net/http reads its request when the response begins, perhaps in another goroutine
		own.Header = x.r.Header.Clone()
		x.r = &own
		defer flow.announced.noteWritten()
		response := x.respondToCall()
		defer response.end()
		if !x.g.config.JSON {
			response.startKeepAlive()
		}
		if run := x.findRunner(flow, response); run != nil {
			x.runCall(run)
			return
		}
	}
	if err := x.setBody(edits...); err != nil {
		x.refuse(refusedRequest, wireError(err))
		return
	}
	if flow != nil {
		if x.g.config.Direct {
			x.direct(flow)
			return
		}
		token, closeFlow := OpenFlow(x.g.server, flow)
		defer x.closeFlow(closeFlow)
		x.r.Header.Set(FlowHeader, token)
	}
	x.next().ServeHTTP(x.w, x.r)
}

// takenWithin is how long the SDK has to take the flow of a call whose client has left. The SDK takes it at once, unless
// the machine is very busy.
const takenWithin = 10 * time.Second

// closeFlow closes the flow of a request that is over. If the client has left, it waits for takenWithin: the SDK may be
// about to take the flow. Then the call goes on, and the client may come back for the result.
func (x *httpExchange) closeFlow(closeFlow func()) {
	if x.r.Context().Err() == nil {
		closeFlow()
		return
	}
	time.AfterFunc(takenWithin, guard.Func(x.g.server.Logger(), "the end of a flow", closeFlow))
}

func (x *httpExchange) forwardOpen(done func()) {
	defer done()
	defer x.endWithCaller()()
	if err := x.setBody(); err != nil {
		x.refuse(refusedRequest, wireError(err))
		return
	}
	x.g.forwardStream(x.next(), x.w, x.r)
}

// initialize implements exchange. It makes room for a session. The session opens when the SDK has
// negotiated it.
func (x *httpExchange) initialize(flow *Flow) {
	g := x.g
	done, refusal := g.makeRoom(x.context(), flow.Caller)
	if refusal != nil {
		x.refuse(refusedRequest, refusal)
		return
	}
	defer done()
	capabilities := x.m.Params.Object("capabilities")
	flow.Connected = func(id, version string, wait func() error) {
		givesIDs := id != ""
		if g.sessionIDs.Store(&givesIDs); givesIDs {
			s := &session{id: id, principal: x.principal, sdkSession: flow.Session}
			s.setNegotiated(g, version, capabilities.Raw(), x.m.Params.Get("clientInfo"))
			g.trackSession(x.r, s, wait)
		}
	}
	var edits []wire.Edit
	if g.config.Direct && capabilities.Has("tasks") { // the SDK's types may not fit this revision's form
		edits = append(edits, wire.Delete("params", "capabilities", "tasks"))
	}
	if g.keys != nil {
		x.initializeSigned(flow, edits...)
		return
	}
	x.forward(flow, edits...)
}

// refuse writes an error response.
func refuse(w http.ResponseWriter, status int, id json.RawMessage, err *mcptask.Error) {
	write(w, status, wire.EncodeReply(id, nil, err))
}

func write(w http.ResponseWriter, status int, data []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = w.Write(data) // fails if the client has disconnected
}

func acceptsStream(r *http.Request) bool {
	for _, accept := range r.Header.Values("Accept") {
		for _, media := range []string{"text/event-stream", "text/*", "*/*"} {
			if strings.Contains(accept, media) {
				return true
			}
		}
	}
	return false
}
