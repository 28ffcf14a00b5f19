// Package gateway stands in front of an MCP server, over HTTP ([Gateway]) or a
// pair of pipes ([Gateway.Pipe]), and owns the task traffic: it answers tasks/*
// itself, opens a [Flow] for every call of a task tool, sends the questions and
// the news of tasks to whom they concern, and passes everything else on byte for
// byte. Who calls, from which origin, in which session and how often is checked
// here, once. It knows no SDK: use it through gosdk or mcpgo, or write an adapter
// of your own, which takes the flows.
package gateway

import (
	"context"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
)

// FlowHeader carries a flow's token to the adapter behind the gateway. The
// gateway removes it from what comes in.
const FlowHeader = "Mcptask-Flow"

// Config says what a gateway stands in front of.
type Config struct {
	// Server has the task tools.
	Server *mcptask.Server
	// Stateful serves the revisions with sessions (2025-11-25 and before).
	Stateful http.Handler
	// Stateless serves the revisions without (2026-07-28 and later).
	Stateless http.Handler
	// Principal is used where the server's options have none; nil makes every
	// caller anonymous.
	Principal func(context.Context) (string, error)
	// CrossOrigin decides which browser origins may call; nil refuses all
	// cross-origin requests.
	CrossOrigin *http.CrossOriginProtection
	// AnyHost switches off the check that a server on a loopback address is
	// called by a loopback name, which stops DNS rebinding.
	AnyHost bool
	// Direct answers calls of the server's tools in the gateway, for an SDK whose
	// types cannot carry a task. Its middleware does not see these calls.
	Direct bool
	// MaxBody bounds a request's body in bytes; 0 is the server's option.
	MaxBody int64
	// Revision is the one that sessions speak where their requests show no other; ""
	// is the first of the server's that sessions negotiate. One that is given here
	// is the only one: a revision that looks like another has a path of its own.
	Revision string
	// SessionTimeout ends a session that had no request and no open stream for
	// so long; 0 is never. The handlers behind the gateway must not time out
	// sessions themselves: they do not see the task traffic.
	SessionTimeout time.Duration
}

// Gateway is an http.Handler. It is safe for concurrent use.
type Gateway struct {
	config    Config
	server    *mcptask.Server
	principal func(context.Context) (string, error)
	maxBody   int64
	sessions  sessions
	counts    *counts
	hub       *push.Hub
	speech
	sessionSpeech
}

// New makes a gateway.
func New(config Config) *Gateway {
	g := &Gateway{
		config:    config,
		server:    config.Server,
		principal: config.Principal,
		maxBody:   config.Server.Options().MaxBody,
		counts:    countsOf(config.Server),
		sessions:  sessions{timeout: config.SessionTimeout, open: map[string]*session{}},
		speech:    speechOf(config.Server.Options().Revisions, config.Revision),
	}
	g.sessionSpeech = negotiated{g}
	if g.signalled != nil {
		g.sessionSpeech = unofficial{negotiated{g}}
	}
	g.hub = push.New(config.Server, g.legacy)
	g.sessions.busy = func(s *session) bool { return g.mailbox(s).KeepsTasks() }
	if config.MaxBody > 0 {
		g.maxBody = config.MaxBody
	}
	if own := config.Server.Options().Principal; own != nil {
		g.principal = own
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
	w := boundResponse(response)
	defer w.limit(0) // for what net/http writes once the handler has returned
	r.Header.Del(FlowHeader)
	principal, ok := g.admitRequest(w, r)
	switch {
	case !ok:
	case r.Method == http.MethodPost:
		if x := g.readPost(w, r, principal); x != nil {
			defer x.leave()
			g.route(x)
		}
	case modernVersion(r.Header.Get(versionHeader)):
		g.config.Stateless.ServeHTTP(w, r) // which allows POST only, and says so
	default:
		g.sessionRequest(w, r, principal)
	}
}

// admitRequest finds out who sends a request. It returns false if it has refused the request.
func (g *Gateway) admitRequest(w http.ResponseWriter, r *http.Request) (principal string, ok bool) {
	status := http.StatusForbidden
	var refusal *mcptask.Error
	if !g.config.AnyHost && reboundHost(r) {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the Host header is not allowed for a server on a loopback address")
	} else if g.config.CrossOrigin.Check(unsafely(r)) != nil {
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "cross-origin request refused")
	} else if refusal = checkTwice(r.Header); refusal != nil {
		status = http.StatusBadRequest
	} else {
		var err error
		if principal, err = g.principal(r.Context()); err != nil {
			g.server.Notice(slog.LevelWarn, "request without a principal refused", "error", err)
			refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "the caller could not be identified")
		}
	}
	if refusal != nil {
		refuse(w, status, nil, refusal)
	}
	return principal, refusal == nil
}

// sessionRequest passes a GET or DELETE of a session on.
func (g *Gateway) sessionRequest(w http.ResponseWriter, r *http.Request, principal string) {
	id := r.Header.Get(sessionHeader)
	known := g.sessions.get(id)
	if known != nil && known.principal != principal {
		refuse(w, http.StatusForbidden, nil, foreignSession())
		return
	}
	if r.Method != http.MethodDelete {
		defer g.sessions.use(id)()
		g.standalone(w, r, known)
		return
	}
	if known != nil {
		if _, status, refusal := g.session(r, principal); refusal != nil {
			refuse(w, status, nil, refusal)
			return
		}
		g.sessions.end(id) // first: the SDK waits for the session's calls
	}
	g.config.Stateful.ServeHTTP(w, r)
}

// unsafely is a request for the check of its origin, which lets every method
// pass that should change nothing: here a GET opens a stream.
func unsafely(r *http.Request) *http.Request {
	switch r.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		r = r.WithContext(r.Context()) // a copy
		r.Method = http.MethodPost
	}
	return r
}

// modernVersion says whether a protocol version has no sessions. Versions are
// dates, so that they compare as text.
func modernVersion(version string) bool { return version >= mcptask.Revision20260728 }

// reboundHost finds a request to a loopback address under a foreign name.
func reboundHost(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	return ok && local != nil && loopback(local.String()) && !loopback(r.Host)
}

func loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = strings.Trim(address, "[]")
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
