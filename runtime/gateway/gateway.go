// Package gateway stands in front of an MCP server, over HTTP ([Gateway]) or over a pair of pipes
// ([Gateway.Pipe]), and owns the task traffic. It answers tasks/* itself. It opens a [Flow] for
// every call of a task tool, and for every request whose result it decorates. It sends questions and status changes to
// the clients that own the tasks. It forwards everything else unchanged.
//
// The gateway checks the caller, the origin, the session and the rate of every request, so nothing
// behind it checks them again. It depends on no SDK. Use it through gosdk or mcpgo, or write an
// adapter of another SDK:
//
//   - It registers [Tools] in the SDK.
//   - For each request it takes the flow by the token in [FlowHeader], or in _meta on a pipe, with [TakeFlow].
//   - The handler of each tool calls [Flow.Run]. It answers with the reply's outcome: a result, an error, or an error that
//     the call was cancelled. If there is no outcome, Flow.Encode returns the answer.
//   - For an initialize it sets Flow.Session and calls Flow.Connected. Then it applies Flow.Decorate to the result, as to
//     that of any other request.
package gateway

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// FlowHeader carries a flow's token to the adapter behind the gateway. The gateway removes the
// header from incoming requests.
const FlowHeader = "Mcptask-Flow"

// Config describes what a gateway stands in front of.
type Config struct {
	// Server provides the task tools.
	Server *taskserver.Backend
	// Stateful serves the revisions with sessions (2025-11-25 and earlier).
	Stateful http.Handler
	// Stateless serves the revisions without sessions (2026-07-28 and later).
	Stateless http.Handler
	// Sessionless serves messages of the revisions with sessions that name no known session. It is for an SDK whose user
	// has turned sessions off. If it is nil, Stateful serves them.
	Sessionless http.Handler
	// Principal identifies the caller if the server's options have no Principal. If both are nil,
	// every caller is anonymous.
	Principal func(context.Context) (string, error)
	// Expires returns when the credentials of a request expire, or the zero time if they do not. The
	// request's stream, subscription or wait for a task then ends. A nil Expires means that none expire.
	Expires func(context.Context) time.Time
	// CrossOrigin admits pages beside those of the server's AllowedOrigins. It is for programs whose own
	// handler answers preflights. A nil CrossOrigin admits none.
	CrossOrigin *http.CrossOriginProtection
	// AnyHost switches off the check that a server on a loopback address is called by a loopback
	// name, or by one of the server's AllowedHosts. The check prevents DNS rebinding.
	AnyHost bool
	// JSON says that the SDK answers with JSON if it can. The response to a call then begins with its
	// answer. Otherwise it begins within a second, as a stream that is kept alive.
	JSON bool
	// Resumes says that clients can resume the streams of calls by Last-Event-ID.
	Resumes bool
	// Direct answers calls of the server's tools in the gateway. It is for an SDK whose types
	// cannot carry a task. The SDK's middleware does not see these calls.
	Direct bool
	// FindBinder returns the Binder of a call if its tool was adopted from the SDK's server behind the gateway; see
	// [Adopt]. It returns nil for a tool that was not adopted. It returns false if the tool was adopted from other
	// servers only: then the SDK answers the call. meta is the member _meta of the call's params, or nil. FindBinder is
	// for Direct. If it is nil, the SDK or the tool chooses the handler.
	FindBinder func(tool string, caller taskserver.Caller, meta json.RawMessage) (Binder, bool)
	// FindRunner returns a runner for a call of one of the server's tools that comes in by HTTP. It
	// returns nil if Stateful or Stateless has to serve the call. If FindRunner is nil, they serve
	// all calls.
	FindRunner func(*Call) Runner
	// Admits reports whether the SDK takes a request in a session, which is [Flow.Session], because the
	// gateway answers some requests before the SDK sees them. A nil Admits takes all.
	Admits func(r *http.Request, session any) bool
	// MaxBody limits a request's body in bytes. If it is 0, the server's option applies.
	MaxBody int64
	// Revision is the revision of sessions whose requests do not show another one. If it is "",
	// that is the first of the server's revisions that sessions negotiate. If it is set, sessions
	// speak this revision only: a revision that looks like another needs a path of its own.
	Revision string
	// SessionTimeout ends a session that has had no request and no open stream for this long. 0
	// means never. The handlers behind the gateway must not end idle sessions themselves, because
	// they do not see the task traffic.
	SessionTimeout time.Duration
}

// Gateway is an http.Handler. It is safe for concurrent use.
type Gateway struct {
	config    Config
	server    *taskserver.Backend
	principal func(context.Context) (string, error)
	maxBody   int64
	sessions  sessions
	// sessionIDs reports whether the SDK gives its sessions IDs. It is nil until a session is initialized.
	sessionIDs atomic.Pointer[bool]
	// info is the name and version of the SDK's server. It is nil until a result needs them.
	info      atomic.Pointer[json.RawMessage]
	counts    *counts
	memory    *memory
	hub       *push.Hub
	addresses *addressKey
	// keys sign the IDs of sessions, so that any replica serves them. nil means that a session
	// lives in one process. sdk is Config.Stateful; with keys, Config.Stateful is translated.
	keys     sessionKeys
	sdk      http.Handler
	rebuilds rebuilds
	speech
	unofficial *unofficialRevisions // nil unless the server's options name one
}

// New returns a gateway for a configuration.
func New(config Config) *Gateway {
	g := &Gateway{
		config:    config,
		server:    config.Server,
		principal: config.Principal,
		maxBody:   config.Server.Options().MaxBody,
		counts:    countsOf(config.Server),
		memory:    memoryFor(config.Server),
		sessions:  sessions{timeout: config.SessionTimeout, open: map[string]*session{}},
		speech:    newSpeech(config.Server.Options().Revisions, config.Revision),
		keys:      newSessionKeys(config.Server.Options()),
		sdk:       config.Stateful,
		addresses: addressKeyOf(config.Server),
	}
	if g.keys != nil {
		g.config.Stateful = translated{g}
	}
	if g.signalled != nil {
		g.unofficial = &unofficialRevisions{g: g, revisions: g.signalled}
	}
	g.hub = push.New(config.Server, g.legacy)
	if config.MaxBody > 0 {
		g.maxBody = config.MaxBody
	}
	if own := config.Server.Options().Principal; own != nil {
		g.principal = guardPrincipal(config.Server, own)
	}
	if g.principal == nil {
		g.principal = func(context.Context) (string, error) { return "", nil }
	}
	if g.config.CrossOrigin == nil {
		g.config.CrossOrigin = http.NewCrossOriginProtection()
	}
	return g
}

// ServeHTTP implements http.Handler.
func (g *Gateway) ServeHTTP(response http.ResponseWriter, r *http.Request) {
	if answerOrigin(g.server, response, r) {
		return
	}
	w := boundResponse(response)
	defer w.setDeadline(0) // net/http may write once the handler has returned
	r.Header.Del(FlowHeader)
	principal, ok := g.admitRequest(w, r)
	w.ctx, w.share.g, w.share.remote, w.share.caller.Principal = r.Context(), g, r, principal
	defer w.share.release()
	switch {
	case !ok:
	case r.Method == http.MethodPost:
		if x := g.readPost(w, r, principal); x != nil {
			defer x.leave()
			if x.admitCall() {
				g.route(x)
			}
		}
	case isModernVersion(r.Header.Get(versionHeader)) && !g.serveRequests:
		refuse(w, http.StatusBadRequest, nil, g.unsupportedError(r.Header.Get(versionHeader)))
	case isModernVersion(r.Header.Get(versionHeader)):
		g.config.Stateless.ServeHTTP(w, r) // it refuses the method
	case !g.serveSessions:
		w.Header().Set("Allow", http.MethodPost)
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.Method != http.MethodGet && r.Method != http.MethodDelete:
		g.config.Stateful.ServeHTTP(w, r) // it refuses the method
	default:
		g.forwardSessionRequest(w, r, principal)
	}
}

// admitRequest identifies the caller of a request. It returns false if it has refused the request.
func (g *Gateway) admitRequest(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	status := http.StatusForbidden
	var refusal *mcptask.Error
	if !g.admitsHost(r) {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest,
			"the Host header %.100q is not allowed for a server on a loopback address: name the host in taskserver.Options.AllowedHosts", r.Host)
	} else if !hasAllowedOrigin(g.server, r) && g.config.CrossOrigin.Check(asUnsafeRequest(r)) != nil {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest,
			"cross-origin request refused: name the origin of the page, %.100q, in taskserver.Options.AllowedOrigins", r.Header.Get("Origin"))
	} else if refusal = checkRepeated(r.Header); refusal != nil {
		status = http.StatusBadRequest
	} else {
		var err error
		if principal, err = g.identify(r.Context()); err != nil {
			g.server.Notice(slog.LevelWarn, "request without a principal refused", "error", err)
			refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the caller could not be identified")
		}
	}
	if refusal != nil {
		refuse(w, status, nil, refusal)
	}
	return principal, refusal == nil
}

// forwardSessionRequest forwards a GET or DELETE of a session. The SDK decides what to do if the gateway does not know the
// session.
func (g *Gateway) forwardSessionRequest(w http.ResponseWriter, r *http.Request, principal string) {
	id := r.Header.Get(sessionHeader)
	switch {
	case r.Method != http.MethodDelete:
		g.forwardGet(w, r, principal)
	case id == "":
		g.sessionless().ServeHTTP(w, r)
	default:
		g.deleteSession(w, r, principal)
	}
}

// sessionless returns the SDK's handler for the revisions with sessions if the gateway does not know the session.
func (g *Gateway) sessionless() http.Handler {
	if g.config.Sessionless != nil {
		return g.config.Sessionless
	}
	return g.config.Stateful
}

// forwardGet forwards a GET, which opens the session's own stream or resumes one. A session may have several streams:
// all but the first count as requests that wait.
func (g *Gateway) forwardGet(w http.ResponseWriter, r *http.Request, principal string) {
	s, status, refusal := g.openStreamOf(r, principal)
	isUnknown := status == http.StatusNotFound && !g.isSigned(r.Header.Get(sessionHeader))
	if refusal != nil && !isUnknown {
		refuse(w, status, nil, refusal)
		return
	}
	ctx, stop := g.endWithCaller(r.Context(), principal)
	defer stop()
	r = r.WithContext(ctx)
	if isUnknown { // the SDK may open a stream for it
		done, refusal := g.countWaiting(ctx, g.locate(r, taskserver.Caller{Principal: principal, Method: "GET"}))
		if refusal != nil {
			refuse(w, http.StatusTooManyRequests, nil, refusal)
			return
		}
		defer done()
		g.forwardStream(g.sessionless(), w, r)
		return
	}
	defer g.sessions.beginUse(s.id)()
	defer s.streams.Add(-1)
	if s.streams.Add(1) > 1 {
		done, refusal := g.countWaiting(ctx, g.locate(r, s.newCaller(g, "GET")))
		if refusal != nil {
			refuse(w, http.StatusTooManyRequests, nil, refusal)
			return
		}
		defer done()
	}
	last := r.Header.Get("Last-Event-Id")
	g.serveStream(w, r, s, last != "" && !strings.HasPrefix(last, ownEvents))
}

// asUnsafeRequest returns a copy of a request for the check of its origin. That check trusts
// methods that should change nothing, such as GET. Here a GET opens a stream, so the copy is a
// POST.
func asUnsafeRequest(r *http.Request) *http.Request {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		r = r.WithContext(r.Context()) // copies the request
		r.Method = http.MethodPost
	}
	return r
}

// isModernVersion reports whether a protocol version has no sessions. Versions are dates, so they
// compare as text.
func isModernVersion(version string) bool { return version >= mcptask.Revision20260728 }

// admitsHost reports whether a request may name its host. A request that reaches a loopback address may not name a foreign
// host. If the SDK checks that too, as a Direct one does, its own option counts as well.
func (g *Gateway) admitsHost(r *http.Request) bool {
	host := hostOf(r.Host)
	isCalled := func(name string) bool { return strings.EqualFold(name, host) }
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if g.config.AnyHost || !ok || local == nil || !isLoopback(hostOf(local.String())) || isLoopback(host) ||
		slices.ContainsFunc(g.server.Options().AllowedHosts, isCalled) {
		return true
	}
	if !g.config.Direct {
		return false
	}
	probe, checked := r.Clone(r.Context()), newBufferedResponse()
	probe.Method, probe.Header, probe.Body, probe.ContentLength = http.MethodHead, http.Header{}, http.NoBody, 0
	g.sdk.ServeHTTP(checked, probe)
	return checked.code != http.StatusForbidden
}

// hostOf returns an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return strings.Trim(address, "[]")
	}
	return host
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
