package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
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
		if task, key, ok := m.question(); ok {
			g.answered(w, r, principal, m, task, key)
			return
		}
		// A notification or a response: nothing of ours to answer.
		if modernVersion(version) {
			g.config.Stateless.ServeHTTP(w, r)
			return
		}
		g.legacyPass(w, r, principal, m)
	default:
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
	g.config.Stateful.ServeHTTP(w, r)
}

// answered takes the response to a question of ours.
func (g *Gateway) answered(w http.ResponseWriter, r *http.Request, principal string, m *message, task, key string) {
	s, status, refusal := g.session(r, principal)
	if refusal != nil {
		refuse(w, status, nil, refusal)
		return
	}
	caller := mcptask.Caller{Principal: principal, Revision: s.revision, CanAsk: s.canAsk}
	if err := g.server.Respond(r.Context(), caller, task, key, m.Result, m.Error); err != nil {
		g.server.Logger().Info("response to a question not taken", "task", task, "key", key, "error", err)
	}
	w.WriteHeader(http.StatusAccepted) // a response gets no answer
}

// legacyPass passes a message of a session on, if the session is the caller's.
// A cancelled request may be one that waits here for a task; the task itself
// goes on (C-74).
func (g *Gateway) legacyPass(w http.ResponseWriter, r *http.Request, principal string, m *message) {
	s := g.sessions.get(r.Header.Get(sessionHeader))
	switch {
	case s == nil:
	case s.principal != principal:
		refuse(w, http.StatusForbidden, nil, foreignSession())
		return
	case m.Method == "notifications/cancelled":
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
	tasks := s != nil && s.revision == g.legacy.Revision()
	caller := mcptask.Caller{Principal: principal}
	if s != nil {
		caller.Revision, caller.CanAsk = s.revision, s.canAsk
	}
	switch {
	case strings.HasPrefix(m.Method, "tasks/"):
		g.legacyTask(w, r, s, caller, m)
	case m.Method == "tools/call":
		g.legacyCall(w, r, s, caller, m, tasks)
	case m.Method == "tools/list":
		g.pass(w, r, g.config.Stateful, g.listed(g.legacy, caller, tasks, false))
	default:
		g.config.Stateful.ServeHTTP(w, r)
	}
}

// initialize opens a session once the SDK has negotiated it.
func (g *Gateway) initialize(w http.ResponseWriter, r *http.Request, principal string, m *message) {
	caller := mcptask.Caller{Principal: principal}
	flow := g.decorated(g.legacy, caller, m.Method)
	canAsk := g.legacy.CanAsk(clientCapabilities(m.Params))
	flow.Connected = func(id, revision string, wait func() error) {
		if id != "" {
			g.openSession(r, &session{id: id, principal: principal, revision: revision, canAsk: canAsk}, wait)
		}
	}
	g.pass(w, r, g.config.Stateful, flow)
}

// legacyTask answers a task method of 2025-11-25.
func (g *Gateway) legacyTask(w http.ResponseWriter, r *http.Request, s *session, caller mcptask.Caller, m *message) {
	method := g.legacy.Method(m.Method)
	if method == nil || s.revision != g.legacy.Revision() {
		refuse(w, http.StatusOK, m.ID, mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", m.Method, s.revision))
		return
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer g.sessions.wait(s, m.ID, cancel)()
	for _, end := range []context.Context{s.ended, g.server.Closing()} {
		defer context.AfterFunc(end, cancel)()
	}
	var c *channel
	if record, ok := g.shown(ctx, caller, s, m); ok && g.legacy.Blocks(m.Method) && !record.Done() && acceptsStream(r) {
		c = g.questions.connect(s, record.ID)
		defer g.questions.disconnect(c)
	}
	g.answer(ctx, w, m, c, func() (json.RawMessage, error) {
		result, err := method(ctx, g.server, caller, m.Params)
		if c != nil { // what the end takes back comes before it
			g.questions.refresh([]string{c.task})
		}
		return result, err
	})
}

// shown finds the task that a request names, and notes that the session knows
// it.
func (g *Gateway) shown(ctx context.Context, caller mcptask.Caller, s *session, m *message) (mcptask.Record, bool) {
	var params struct {
		TaskID string `json:"taskId"`
	}
	if json.Unmarshal(m.Params, &params) != nil || params.TaskID == "" {
		return mcptask.Record{}, false
	}
	record, err := g.server.Get(ctx, caller, params.TaskID)
	if err != nil {
		return record, false
	}
	g.questions.know(s, record)
	g.questions.settle(s, record.ID)
	return record, true
}

// legacyCall passes a tools/call to the SDK, with its flow where the tool is ours.
func (g *Gateway) legacyCall(w http.ResponseWriter, r *http.Request, s *session, caller mcptask.Caller, m *message, tasks bool) {
	flow, refusal := g.legacyFlow(s, caller, m, tasks)
	switch {
	case refusal != nil:
		refuse(w, http.StatusOK, m.ID, refusal)
	case flow == nil:
		g.config.Stateful.ServeHTTP(w, r)
	default:
		g.pass(w, r, g.config.Stateful, flow)
	}
}

// postModern serves a request of 2026-07-28.
func (g *Gateway) postModern(w http.ResponseWriter, r *http.Request, principal string, m *message, meta meta) {
	caller := mcptask.Caller{Principal: principal, Revision: g.modern.Revision(), CanAsk: g.modern.CanAsk(meta.Capabilities)}
	switch {
	case strings.HasPrefix(m.Method, "tasks/"):
		g.modernTask(w, r, caller, m, meta)
	case m.Method == "tools/call":
		g.modernCall(w, r, caller, m, meta)
	case m.Method == "tools/list":
		g.pass(w, r, g.config.Stateless, g.listed(g.modern, caller, true, g.modern.Check(meta.Capabilities) == nil))
	case m.Method == "server/discover":
		g.pass(w, r, g.config.Stateless, g.decorated(g.modern, caller, m.Method))
	default:
		g.config.Stateless.ServeHTTP(w, r)
	}
}

// modernTask answers a task method of 2026-07-28, in the order that T-39
// prescribes: method, request metadata, capability, headers, task.
func (g *Gateway) modernTask(w http.ResponseWriter, r *http.Request, caller mcptask.Caller, m *message, meta meta) {
	method := g.modern.Method(m.Method)
	if method == nil {
		refuseModern(w, m.ID, mcptask.Errorf(mcptask.CodeMethodNotFound, "the method %s does not exist in %s", m.Method, g.modern.Revision()))
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
	result, err := method(r.Context(), g.server, caller, m.Params)
	if err != nil {
		refuseModern(w, m.ID, wireError(err))
		return
	}
	respond(w, http.StatusOK, m.ID, result, nil)
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
	if g.config.Direct {
		g.direct(w, r, next, flow)
		return
	}
	token, closeFlow := OpenFlow(g.server, flow)
	defer closeFlow()
	r.Header.Set(FlowHeader, token)
	next.ServeHTTP(w, r)
}
