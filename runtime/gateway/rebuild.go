package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// With a session key, any replica serves a session (2025-11-25 and earlier). The client has a
// token as its session ID. A replica that gets a token for the first time opens the session again:
// it sends the SDK behind it the initialize of the token, as the client has sent it elsewhere, and
// keeps the ID that the SDK gives its session. So the SDK and the user's code see an initialize
// on each replica that serves the session, whatever SDK it is.
//
// A session lives on while any replica may be asked for it. A replica may end it at any time
// without harm: when it is idle, when there are too many, when the replica stops. Only a DELETE
// ends it for its client. The store remembers that, and no replica opens the session again. A replica
// that has the session open asks the store once a minute while the session is used.

const (
	notificationInitialized = "notifications/initialized"
	// firstSDKID is the JSON-RPC ID of the initialize that opens a session again. It is the only
	// request before it is answered.
	firstSDKID = `"mcptask"`
	// lookForEnd is how often a replica checks whether a DELETE at another one has ended a session.
	lookForEnd = time.Minute
)

// portable is the part of a session that other replicas can open.
type portable struct {
	sessionToken
	// rebuilt says that another process has opened the session first.
	rebuilt bool
	// initialized says that the SDK has seen the client's notifications/initialized, or that this
	// process has sent it in the client's place, because another replica has got it.
	initialized atomic.Bool
	// looked is when this process last knew that no DELETE has ended the session, in nanoseconds since 1970.
	looked atomic.Int64
}

// newPortable returns the portable of a session that is open here from now on.
func newPortable(t *sessionToken, rebuilt bool) *portable {
	p := &portable{sessionToken: *t, rebuilt: rebuilt}
	p.looked.Store(time.Now().UnixNano())
	return p
}

// rebuilds has the sessions that are being opened again.
type rebuilds struct {
	mu      sync.Mutex
	running map[string]*rebuild // by ID
}

// rebuild is one attempt to open a session again. Its fields are set when done is closed.
type rebuild struct {
	done    chan struct{}
	session *session
	status  int
	refusal *mcptask.Error
}

// openSession returns the principal's session with an ID. It opens a session again that another
// replica has opened. It returns a status and an error if it refuses the session.
func (g *Gateway) openSession(r *http.Request, principal, id string) (*session, int, *mcptask.Error) {
	if s := g.sessions.get(id); s != nil {
		if s.principal != principal || g.config.Admits != nil && !g.config.Admits(r, s.sdkSession) {
			return nil, http.StatusForbidden, foreignSessionError()
		}
		if g.hasEndedElsewhere(r.Context(), s) {
			g.sessions.endSession(s)
			s.expire()
			return nil, http.StatusNotFound, noSessionError()
		}
		return s, 0, nil
	}
	t, owns := g.keys.verify(id, principal, g.server.Now())
	switch {
	case t == nil:
		return nil, http.StatusNotFound, noSessionError()
	case !owns:
		return nil, http.StatusForbidden, foreignSessionError()
	case g.server.Closing().Err() != nil || lifetimesOf(g.server).sessions.Err() != nil:
		return nil, http.StatusServiceUnavailable, mcptask.Errorf(mcptask.CodeInternalError, "this server is shutting down: send the request again, to another one")
	}
	if status, refusal := g.checkEnded(r.Context(), principal, t.Name); refusal != nil {
		return nil, status, refusal
	}
	return g.rebuildOnce(r, principal, id, t)
}

// checkEnded returns a status and an error if the principal has ended a session, or if the store fails.
func (g *Gateway) checkEnded(ctx context.Context, principal, name string) (int, *mcptask.Error) {
	ended, err := g.server.HasEnded(ctx, taskserver.Caller{Principal: principal, Session: name})
	switch {
	case err != nil:
		g.server.Notice(slog.LevelError, "session not opened: the store failed", "error", err)
		return http.StatusServiceUnavailable, mcptask.Errorf(mcptask.CodeInternalError, "the store failed: send the request again")
	case ended:
		return http.StatusNotFound, noSessionError()
	}
	return 0, nil
}

// hasEndedElsewhere reports whether a DELETE at another replica has ended a session that is open here.
func (g *Gateway) hasEndedElsewhere(ctx context.Context, s *session) bool {
	if s.portable == nil {
		return false
	}
	now, looked := time.Now(), s.portable.looked.Load()
	if now.Sub(time.Unix(0, looked)) < lookForEnd || !s.portable.looked.CompareAndSwap(looked, now.UnixNano()) {
		return false
	}
	ended, err := g.server.HasEnded(ctx, taskserver.Caller{Principal: s.principal, Session: s.portable.Name})
	return ended && err == nil // while the store fails, the session goes on
}

func noSessionError() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "there is no such session: initialize a new one")
}

// rebuildOnce opens a session again, or waits for another request that does so.
func (g *Gateway) rebuildOnce(r *http.Request, principal, id string, t *sessionToken) (*session, int, *mcptask.Error) {
	b := &g.rebuilds
	b.mu.Lock()
	one := b.running[id]
	if one != nil {
		b.mu.Unlock()
		select {
		case <-one.done:
			return one.session, one.status, one.refusal
		case <-r.Context().Done():
			return nil, http.StatusServiceUnavailable, mcptask.Errorf(mcptask.CodeInternalError, "the client has left")
		}
	}
	if s := g.sessions.get(id); s != nil { // the other request has just been faster
		b.mu.Unlock()
		return s, 0, nil
	}
	one = &rebuild{done: make(chan struct{}), status: http.StatusInternalServerError, refusal: mcptask.Errorf(mcptask.CodeInternalError, "internal error")}
	if b.running == nil {
		b.running = map[string]*rebuild{}
	}
	b.running[id] = one
	b.mu.Unlock()
	defer func() { // also if the user's code panics
		b.mu.Lock()
		delete(b.running, id)
		b.mu.Unlock()
		close(one.done)
	}()
	one.session, one.status, one.refusal = g.rebuildSession(r, principal, id, t)
	return one.session, one.status, one.refusal
}

// rebuildSession opens a session again.
func (g *Gateway) rebuildSession(r *http.Request, principal, id string, t *sessionToken) (*session, int, *mcptask.Error) {
	caller := g.locate(r, taskserver.Caller{Principal: principal, Session: t.Name, Revision: g.sessionRevision(t.Revision), Method: "initialize"})
	done, refusal := g.makeRoom(r.Context(), caller)
	if refusal != nil {
		return nil, http.StatusServiceUnavailable, refusal
	}
	defer done()
	var s *session
	flow := &Flow{Caller: caller, Decorate: func(result json.RawMessage) (json.RawMessage, error) { return result, nil }}
	flow.Connected = func(inner, version string, wait func() error) {
		opened := &session{id: id, inner: inner, principal: principal, sdkSession: flow.Session, portable: newPortable(t, true)}
		opened.setNegotiated(g, version, t.Capabilities, t.Client)
		g.trackSession(r, opened, wait)
		s = opened
	}
	g.replay(r, t.encodeInitialize(g.config.Direct), "", flow)
	status, refusal := g.checkEnded(r.Context(), principal, t.Name)                // meanwhile
	if s != nil && (refusal != nil || s.inner == "" || s.revision != t.Revision) { // or this server no longer speaks the revision
		g.sessions.endSession(s)
		s.expire()
		s = nil
	}
	if refusal != nil {
		return nil, status, refusal
	}
	if s == nil {
		g.server.Notice(slog.LevelWarn, "session of another replica not opened again", "principal", principal, "revision", t.Revision)
		return nil, http.StatusNotFound, noSessionError()
	}
	g.ensureInitialized(r, s)
	g.server.AuditSession(caller)
	return s, 0, nil
}

// encodeInitialize returns the request that opens the session again. taskless leaves out what the
// client says of its tasks, because the SDK's types may not fit it.
func (t *sessionToken) encodeInitialize(taskless bool) []byte {
	capabilities, client := t.Capabilities, t.Client
	if capabilities == nil {
		capabilities = json.RawMessage("{}")
	}
	if taskless {
		if without, err := wire.NewObject(capabilities).Edited(wire.Delete("tasks")); err == nil {
			capabilities = without
		}
	}
	params := map[string]any{"protocolVersion": t.Revision, "capabilities": capabilities}
	if client != nil {
		params["clientInfo"] = client
	}
	body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(firstSDKID), "method": "initialize", "params": params}) // a token's JSON marshals
	return body
}

// ensureInitialized sends the SDK the notification that ends the initialization, unless it has
// seen it. The client may have sent it to another replica.
func (g *Gateway) ensureInitialized(r *http.Request, s *session) {
	if s.portable != nil && s.portable.initialized.CompareAndSwap(false, true) {
		g.replay(r, []byte(`{"jsonrpc":"2.0","method":"`+notificationInitialized+`"}`), s.inner, nil)
	}
}

// replay sends the SDK a message of a client that has sent it to another replica. r is the request
// that makes it necessary. inner is the SDK's ID of the session, or "".
func (g *Gateway) replay(r *http.Request, body []byte, inner string, flow *Flow) {
	request := r.Clone(context.WithoutCancel(r.Context())) // the session outlives the request
	request.Method, request.Body, request.ContentLength, request.TransferEncoding = http.MethodPost, io.NopCloser(bytes.NewReader(body)), int64(len(body)), nil
	for _, name := range []string{sessionHeader, versionHeader, "Last-Event-Id", "Content-Length", "Content-Encoding"} {
		request.Header.Del(name)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "application/json, text/event-stream")
	if inner != "" {
		request.Header.Set(sessionHeader, inner)
	}
	if flow != nil && !g.config.Direct {
		token, closeFlow := OpenFlow(g.server, flow)
		defer closeFlow()
		request.Header.Set(FlowHeader, token)
	}
	buffered := newBufferedResponse()
	g.sdk.ServeHTTP(buffered, request)
	if result, ok := buffered.result(); ok && flow != nil && g.config.Direct {
		buffered.connect(flow, result)
	}
}

// translated is the SDK's handler of sessions behind a gateway with a session key. It gives the SDK
// its own ID of each session.
type translated struct{ g *Gateway }

// ServeHTTP implements http.Handler.
func (h translated) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		h.g.sdk.ServeHTTP(w, r)
		return
	}
	s := h.g.sessions.get(id)
	switch {
	case s != nil:
		r = r.Clone(r.Context())
		r.Header.Set(sessionHeader, s.sdkID())
	case h.g.isSigned(id), h.g.sessions.hasInner(id): // the SDK's own IDs are not for clients
		refuse(w, http.StatusNotFound, nil, noSessionError())
		return
	}
	h.g.sdk.ServeHTTP(w, r)
}

// initializeSigned forwards an initialize, and signs the ID of the session that it opens. It holds
// the SDK's answer back, because the SDK may begin it before the session is negotiated.
func (x *httpExchange) initializeSigned(flow *Flow, edits ...wire.Edit) {
	var opened *session
	flow.Connected = func(inner, version string, wait func() error) {
		givesIDs := inner != ""
		if x.g.sessionIDs.Store(&givesIDs); !givesIDs {
			return
		}
		params := x.m.Params
		s := &session{id: inner, inner: inner, principal: x.principal, sdkSession: flow.Session}
		id, token := x.g.keys.sign(x.principal, sessionToken{
			Began: x.g.server.Now().Unix(), Revision: version, Capabilities: params.Get("capabilities"), Client: params.Get("clientInfo"),
		})
		if token != nil {
			s.id, s.portable = id, newPortable(token, false)
		} else {
			x.g.server.Notice(slog.LevelWarn, "session stays on this replica: what its client says of itself is too long for the session's ID",
				"principal", x.principal, "max", longestToken)
		}
		s.setNegotiated(x.g, version, params.Get("capabilities"), params.Get("clientInfo"))
		x.g.trackSession(x.r, s, wait)
		opened = s
	}
	w, buffered := x.w, newBufferedResponse()
	x.w = buffered
	x.forward(flow, edits...)
	x.w = w
	if opened != nil {
		buffered.header.Set(sessionHeader, opened.id)
	}
	buffered.copyTo(w)
}

// deleteSession ends a session for its client. A session that is not open here need not be opened for that. If the
// client has ended so many sessions that the store remembers no more, deleteSession refuses the DELETE.
func (g *Gateway) deleteSession(w http.ResponseWriter, r *http.Request, principal string) {
	id := r.Header.Get(sessionHeader)
	if g.sessions.get(id) == nil {
		g.deleteClosedSession(w, r, principal, id)
		return
	}
	s, status, refusal := g.findSession(r, principal)
	if refusal == nil {
		status, refusal = http.StatusBadRequest, checkSessionVersion(r, s)
	}
	switch {
	case refusal != nil:
		refuse(w, status, nil, refusal)
		return
	case s.portable != nil && !g.noteEnded(w, r, principal, &s.portable.sessionToken):
		return
	}
	g.sessions.endSession(s) // before the SDK, which waits for the session's calls
	r = r.Clone(r.Context())
	r.Header.Set(sessionHeader, s.sdkID())
	g.sdk.ServeHTTP(w, r)
}

// deleteClosedSession ends a session that is not open here.
func (g *Gateway) deleteClosedSession(w http.ResponseWriter, r *http.Request, principal, id string) {
	t, owns := g.keys.verify(id, principal, g.server.Now())
	status, refusal := http.StatusNotFound, noSessionError()
	switch {
	case t == nil:
	case !owns:
		status, refusal = http.StatusForbidden, foreignSessionError()
	default:
		status, refusal = g.checkEnded(r.Context(), principal, t.Name)
	}
	switch {
	case t == nil && !g.isSigned(id):
		g.sessionless().ServeHTTP(w, r)
		return
	case refusal != nil:
		refuse(w, status, nil, refusal)
		return
	}
	if !g.noteEnded(w, r, principal, t) {
		return
	}
	if s := g.sessions.get(id); s != nil { // another request has just opened it
		g.sessions.endSession(s)
		s.expire()
	}
	w.WriteHeader(http.StatusNoContent)
}

// noteEnded remembers that a session has ended. It returns false if it has refused the request.
func (g *Gateway) noteEnded(w http.ResponseWriter, r *http.Request, principal string, t *sessionToken) bool {
	noted, err := g.server.EndSession(r.Context(), taskserver.Caller{Principal: principal, Session: t.Name}, t.began())
	switch {
	case err != nil:
		g.server.Notice(slog.LevelError, "session not ended: the store failed", "error", err)
		refuse(w, http.StatusServiceUnavailable, nil, mcptask.Errorf(mcptask.CodeInternalError, "the store failed: send the request again"))
	case !noted:
		w.Header().Set("Allow", "GET, POST")
		refuse(w, http.StatusMethodNotAllowed, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "this caller has ended too many sessions: this one ends when it is idle"))
	}
	return noted && err == nil
}

// openStreamOf returns the session of a GET, or the status and the error that refuse it.
func (g *Gateway) openStreamOf(r *http.Request, principal string) (*session, int, *mcptask.Error) {
	s, status, refusal := g.openSession(r, principal, r.Header.Get(sessionHeader))
	if refusal != nil {
		return nil, status, refusal
	}
	g.ensureInitialized(r, s)
	if s.portable != nil && s.portable.rebuilt && strings.HasPrefix(r.Header.Get("Last-Event-Id"), ownEvents) {
		// The client resumes its own stream, whose events another replica has numbered. It gets a
		// new stream. A stream of a call cannot be had here, and the SDK says so.
		r.Header.Del("Last-Event-Id")
	}
	return s, 0, nil
}
