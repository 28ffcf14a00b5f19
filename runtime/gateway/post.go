package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// post serves one message.
func (g *Gateway) post(w http.ResponseWriter, r *http.Request, principal string) {
	if media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || media != "application/json" {
		refuse(w, http.StatusUnsupportedMediaType, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the Content-Type must be application/json"))
		return
	}
	body, ok := g.readBody(w, r)
	if !ok {
		return
	}
	m, batch, parseErr := parse(body)
	if parseErr != nil {
		var id json.RawMessage
		if m != nil {
			id = m.ID
		}
		refuse(w, http.StatusBadRequest, id, parseErr)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	version := r.Header.Get(versionHeader)
	switch {
	case batch:
		g.batch(w, r, principal)
	case !m.request():
		if ref, ok := m.answers(); ok {
			g.answered(w, r, principal, m, ref)
			return
		}
		// A notification or a response: nothing of ours to answer.
		if modernVersion(version) {
			if m.reserved() {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			g.config.Stateless.ServeHTTP(w, r)
			return
		}
		g.legacyPass(w, r, principal, m)
	default:
		if err := checkLasting(m, body); err != nil {
			status := http.StatusRequestEntityTooLarge
			if err.Code == mcptask.CodeInvalidParams {
				status = http.StatusOK
			}
			refuse(w, status, m.ID, err)
			return
		}
		if meta := m.meta(); modernVersion(version) || meta.Version != nil {
			g.postModern(w, r, principal, m, meta)
			return
		}
		g.postLegacy(w, r, principal, m)
	}
}

// batch is for sessions of 2025-03-26 only: later revisions have none, and a
// batch would hide task traffic from the gateway.
func (g *Gateway) batch(w http.ResponseWriter, r *http.Request, principal string) {
	const lastWithBatches = "2025-03-26"
	s := g.sessions.get(r.Header.Get(sessionHeader))
	if s == nil || s.revision != lastWithBatches || s.principal != principal {
		refuse(w, http.StatusBadRequest, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "this revision of the protocol has no batches: send one message a request"))
		return
	}
	body, err := io.ReadAll(r.Body) // in memory already
	if err != nil {
		refuse(w, http.StatusBadRequest, nil, wireError(err))
		return
	}
	if refusal := checkBatch(body); refusal != nil {
		refuse(w, http.StatusBadRequest, nil, refusal)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	defer g.sessions.use(s.id)()
	g.config.Stateful.ServeHTTP(w, r)
}

// mostBatched bounds the messages of a batch: the SDK serves all of them at once.
const mostBatched = 100

// checkBatch refuses a batch that hides what the gateway answers or counts: a subscription, which
// stays open, or the answer to one of its questions.
func checkBatch(body []byte) *mcptask.Error {
	var all []json.RawMessage
	if json.Unmarshal(body, &all) != nil {
		return mcptask.Errorf(mcptask.CodeParseError, "the batch is not JSON")
	}
	if len(all) > mostBatched {
		return mcptask.Errorf(mcptask.CodeInvalidRequest, "the batch has %d messages, at most %d are allowed", len(all), mostBatched)
	}
	for _, each := range all {
		m, batch, refusal := parse(each)
		switch {
		case refusal != nil:
			return refusal
		case batch:
			return mcptask.Errorf(mcptask.CodeInvalidRequest, "a batch must not be part of another")
		case m.newer() || m.reserved():
			return mcptask.Errorf(mcptask.CodeInvalidRequest, "the method %s must not be part of a batch: send the message alone", brief(m.Method))
		}
		if _, ours := m.answers(); ours {
			return mcptask.Errorf(mcptask.CodeInvalidRequest, "the answer to a question must not be part of a batch: send it alone")
		}
	}
	return nil
}

// answered takes the response to a request of ours.
func (g *Gateway) answered(w http.ResponseWriter, r *http.Request, principal string, m *message, ref requestRef) {
	s, status, refusal := g.session(r, principal)
	if refusal != nil {
		refuse(w, status, nil, refusal)
		return
	}
	defer g.sessions.use(s.id)()
	if !g.take(r.Context(), s, s.caller(g, "response"), ref, m) {
		refuse(w, http.StatusServiceUnavailable, nil, mcptask.Errorf(mcptask.CodeInternalError, "the answer could not be stored: send it again later"))
		return
	}
	w.WriteHeader(http.StatusAccepted) // a response gets no answer
}

// legacyPass passes a message of a session on, if the session is the caller's.
// A cancelled request may be one that waits here for a task; the task itself
// goes on (C-74).
func (g *Gateway) legacyPass(w http.ResponseWriter, r *http.Request, principal string, m *message) {
	id := r.Header.Get(sessionHeader)
	s := g.sessions.get(id)
	if s != nil && s.principal != principal {
		refuse(w, http.StatusForbidden, nil, foreignSession())
		return
	}
	defer g.sessions.use(id)()
	switch {
	case s == nil:
	case m.reserved():
		w.WriteHeader(http.StatusAccepted)
		return
	case m.Method == notificationCancelled:
		var params struct {
			RequestID json.RawMessage `json:"requestId"`
		}
		if json.Unmarshal(m.Params, &params) == nil {
			g.sessions.cancel(s, params.RequestID)
		}
	}
	g.config.Stateful.ServeHTTP(w, r)
}

// postLegacy serves a request of 2025-11-25 or before.
func (g *Gateway) postLegacy(w http.ResponseWriter, r *http.Request, principal string, m *message) {
	id := r.Header.Get(sessionHeader)
	s, status, refusal := g.session(r, principal)
	// Without a session ID only tasks/* are refused here. With one, before
	// anything else is said: a client whose session is gone has to learn that, and
	// nobody may initialize somebody else's session anew.
	if refusal != nil && (id != "" || strings.HasPrefix(m.Method, "tasks/")) {
		refuse(w, status, m.ID, refusal)
		return
	}
	if m.Method == "initialize" {
		g.initialize(w, r, principal, m)
		return
	}
	defer g.sessions.use(id)()
	caller := mcptask.Caller{Principal: principal, Method: m.Method}
	if s != nil {
		caller = s.caller(g, m.Method)
		if m.Method != "ping" {
			g.sessions.work(s)
		}
	}
	switch {
	case m.reserved():
		refuse(w, http.StatusOK, m.ID, noMethod(m))
	case m.newer():
		refuse(w, http.StatusOK, m.ID, notYet(m))
	case strings.HasPrefix(m.Method, "tasks/"):
		g.legacyTask(w, r, s, caller, m)
	case m.Method == "tools/call":
		g.legacyCall(w, r, s, caller, m)
	case m.Method == "tools/list":
		g.pass(w, r, g.config.Stateful, g.sessionList(s, caller))
	default:
		g.config.Stateful.ServeHTTP(w, r)
	}
}

// initialize opens a session once the SDK has negotiated it.
func (g *Gateway) initialize(w http.ResponseWriter, r *http.Request, principal string, m *message) {
	caller := mcptask.Caller{Principal: principal, Method: m.Method}
	limits := g.server.Options().Limits
	most, scope := limits.Sessions, mcptask.ScopeAccount
	if principal == "" {
		most, scope = limits.Anonymous.Sessions, mcptask.ScopeAnonymous
	}
	done, spared, full := g.sessions.room(principal, most, limits.Server.Sessions)
	if full == mcptask.ScopeServer {
		most, scope = limits.Server.Sessions, full
	}
	if done == nil || spared != nil {
		err := g.server.LimitedIn(scope, caller, "sessions", most) // it is for the audit trail, too
		if done == nil {
			refuse(w, http.StatusOK, m.ID, err)
			return
		}
		go func() {
			defer guard.Recover(g.server.Logger(), "the end of a session")
			spared.expire() // the SDK waits for what is left of its calls
		}()
	}
	defer done()
	if g.config.Direct {
		dropTasks(r, m)
	}
	flow := g.initialized(caller)
	capabilities := clientCapabilities(m.Params)
	flow.Connected = func(id, protocol string, wait func() error) {
		if id != "" {
			s := &session{id: id, principal: principal}
			s.negotiated(g, protocol, capabilities)
			g.openSession(r, s, wait)
		}
	}
	g.pass(w, r, g.config.Stateful, flow)
}

// dropTasks takes what a client declares of tasks out of its initialize: the gateway
// has read it, and an SDK whose types have one revision's form refuses another's.
func dropTasks(r *http.Request, m *message) {
	var params struct {
		Capabilities json.RawMessage `json:"capabilities"`
	}
	if json.Unmarshal(m.Params, &params) != nil || !has(params.Capabilities, "tasks") {
		return
	}
	body, _ := io.ReadAll(r.Body) // in memory already, and parsed
	if edited, err := setMember(body, []string{"params", "capabilities"}, without(params.Capabilities, "tasks")); err == nil {
		body = edited
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
}

// legacyTask answers a task method of 2025-11-25.
func (g *Gateway) legacyTask(w http.ResponseWriter, r *http.Request, s *session, caller mcptask.Caller, m *message) {
	d, method := g.taskMethod(s, &caller, m)
	if method == nil {
		refuse(w, http.StatusOK, m.ID, mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", brief(m.Method), caller.Revision))
		return
	}
	if err := g.admit(caller, m); err != nil {
		refuseRate(w, m.ID, err)
		return
	}
	done := func() {}
	if d.Blocks(m.Method) {
		var err *mcptask.Error
		if done, err = g.block(caller); err != nil {
			refuse(w, http.StatusOK, m.ID, err)
			return
		}
		done = sync.OnceFunc(done)
		defer done()
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer g.sessions.wait(s, m.ID, cancel)()
	for _, end := range []context.Context{s.ended, g.server.Closing()} {
		defer context.AfterFunc(end, cancel)()
	}
	var c *channel
	record, err := g.shown(ctx, caller, s, d, m)
	named := record.ID != ""
	switch {
	case err != nil:
		write(w, http.StatusOK, g.outcome(ctx, m, nil, err))
		return
	case named && !d.Blocks(m.Method):
		method = shows(method, d, m, record)
		defer g.named(w, s, record)
	case named && !record.Done() && acceptsStream(r):
		c = g.questions.connectIn(d, s, record.ID)
		defer g.questions.disconnect(c)
	}
	g.answer(ctx, w, m, c, func() (json.RawMessage, error) {
		defer done() // before the reply: who has it may ask again
		result, err := method(ctx, g.server, caller, m.Params)
		if c != nil { // what the end takes back comes before it
			g.questions.refresh([]string{c.task})
		}
		return result, err
	})
}

// taskMethod finds the handler of a session's task method, nil where there is
// none, and notes the revision that the request is spoken in.
func (g *Gateway) taskMethod(s *session, caller *mcptask.Caller, m *message) (dialect.Teller, dialect.Method) {
	d := g.spoken(s, *caller, m)
	if d == nil {
		return nil, nil
	}
	caller.Revision = d.Revision()
	return d, d.Method(m.Method)
}

// shown finds the task that a request names, and notes that the session knows
// it. If the request does not wait for the task, the caller has to settle it. There is
// no record, and no error, if the request names no task or there is no such task: the
// method says so. A request that waits for a task waits for the store too.
func (g *Gateway) shown(ctx context.Context, caller mcptask.Caller, s *session, d dialect.Teller, m *message) (record mcptask.Record, err error) {
	id := d.TaskID(g.server, caller, m.Params)
	if id == "" {
		return record, nil
	}
	if d.Blocks(m.Method) {
		record, err = g.server.Changed(ctx, caller, id, 0)
	} else {
		record, err = g.server.Get(ctx, caller, id)
	}
	switch {
	case dialect.Gone(err):
		g.questions.lose(s, id)
		return mcptask.Record{}, nil
	case err != nil:
		return mcptask.Record{}, err
	}
	if d.Blocks(m.Method) { // its reply is far
		g.questions.know(s, d, record)
		g.questions.settle(s, record.ID, nil)
	} else {
		g.questions.asks(s, d, record)
	}
	return record, nil
}

// shows is the method that answers a request for a task that has been read: a poll
// does not read it again.
func shows(method dialect.Method, d dialect.Teller, m *message, r mcptask.Record) dialect.Method {
	if m.Method != "tasks/get" {
		return method
	}
	return func(ctx context.Context, s *mcptask.Server, caller mcptask.Caller, params json.RawMessage) (json.RawMessage, error) {
		return d.Show(ctx, s, caller, params, r)
	}
}

// legacyCall passes a tools/call to the SDK, with its flow where the tool is ours.
func (g *Gateway) legacyCall(w http.ResponseWriter, r *http.Request, s *session, caller mcptask.Caller, m *message) {
	flow, refusal := g.legacyFlow(s, caller, m)
	switch {
	case refusal != nil:
		refuse(w, http.StatusOK, m.ID, refusal)
	case flow == nil:
		g.config.Stateful.ServeHTTP(w, r)
	case flow.awaited != nil:
		g.passAwaited(w, r, flow)
	default:
		g.pass(w, r, g.config.Stateful, flow)
	}
}

// postModern serves a request of 2026-07-28.
func (g *Gateway) postModern(w http.ResponseWriter, r *http.Request, principal string, m *message, meta meta) {
	caller := mcptask.Caller{Principal: principal, Revision: g.modern.Revision(), Method: m.Method, CanAsk: g.modern.CanAsk(meta.Capabilities)}
	switch {
	case m.reserved():
		refuseModern(w, m.ID, noMethod(m))
	case strings.HasPrefix(m.Method, "tasks/"):
		g.modernTask(w, r, caller, m, meta)
	case m.Method == "tools/call":
		g.modernCall(w, r, caller, m, meta)
	case m.Method == "tools/list":
		g.pass(w, r, g.config.Stateless, g.listed(caller, g.declares(meta)))
	case m.Method == dialect.Listen && g.without && dialect.Server20260728{}.NamesTasks(m.Params):
		g.modernListen(w, r, caller, m, meta)
	case m.Method == dialect.Listen: // the SDK's alone, and a connection all the same
		done, err := g.block(caller)
		if err != nil {
			refuseModern(w, m.ID, err)
			return
		}
		defer done()
		g.passOpen(g.config.Stateless, w, r)
	case m.Method == "server/discover":
		g.pass(w, r, g.config.Stateless, g.discovered(caller))
	default:
		g.config.Stateless.ServeHTTP(w, r)
	}
}

// modernTask answers a task method of 2026-07-28, in the order that T-39
// prescribes: method, request metadata, capability, headers, task.
func (g *Gateway) modernTask(w http.ResponseWriter, r *http.Request, caller mcptask.Caller, m *message, meta meta) {
	method := g.modern.Method(m.Method)
	if method == nil || !g.without {
		refuseModern(w, m.ID, unknownMethod(m, g.modern.Revision()))
		return
	}
	if err := checkVersion(r.Header, meta, g.modern.Revision()); err != nil {
		refuseModern(w, m.ID, err)
		return
	}
	if err := g.modern.Check(meta.Capabilities); err != nil {
		refuseModern(w, m.ID, wireError(err))
		return
	}
	if err := checkNames(r.Header, m, meta); err != nil {
		refuseModern(w, m.ID, err)
		return
	}
	if err := g.admit(caller, m); err != nil {
		refuseRate(w, m.ID, err)
		return
	}
	result, err := method(r.Context(), g.server, caller, m.Params)
	if err != nil {
		refuseModern(w, m.ID, wireError(err))
		return
	}
	write(w, http.StatusOK, encodeResult(m.ID, result))
}

// modernCall passes a tools/call to the SDK, with its flow where the tool is ours.
func (g *Gateway) modernCall(w http.ResponseWriter, r *http.Request, caller mcptask.Caller, m *message, meta meta) {
	if tool, _ := g.tool(m); tool == nil {
		g.config.Stateless.ServeHTTP(w, r)
		return
	}
	if err := checkVersion(r.Header, meta, g.modern.Revision()); err != nil {
		refuseModern(w, m.ID, err)
		return
	}
	body, err := io.ReadAll(r.Body) // in memory already
	if err != nil {
		refuseModern(w, m.ID, wireError(err))
		return
	}
	flow, body, refusal := g.modernFlow(caller, m, body)
	if refusal != nil {
		refuseModern(w, m.ID, refusal)
		return
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	g.pass(w, r, g.config.Stateless, flow)
}

// pass hands a request on together with its flow.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, next http.Handler, flow *Flow) {
	defer flow.announced.wrote()
	if g.config.Direct {
		g.direct(w, r, next, flow)
		return
	}
	token, closeFlow := OpenFlow(g.server, flow)
	defer closeFlow()
	r.Header.Set(FlowHeader, token)
	next.ServeHTTP(w, r)
}
