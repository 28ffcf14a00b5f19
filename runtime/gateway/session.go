package gateway

import (
	"bytes"
	"cmp"
	"container/list"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// Headers of the session-based revisions.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "MCP-Protocol-Version"
)

// session is what the gateway knows of a session of 2025-11-25 or before.
type session struct {
	id        string
	principal string
	revision  string // the protocol version that was negotiated
	canAsk    []string
	// capabilities are the client's; requestor says which questions it takes as
	// tasks in the session's own revision.
	capabilities json.RawMessage
	requestor    dialect.Requestor
	// shown is the unofficial revision that a request has shown last, under the
	// table's lock; nil is none.
	shown dialect.Signalled
	// ended ends when the session does, and with it the session's streams.
	ended context.Context
	end   context.CancelFunc

	// Under the table's lock: requests under way, the timer that ends the session
	// when there has been none for a while, and its place among those that have
	// none. expire ends it.
	active int
	idle   *time.Timer
	place  *list.Element
	expire func()
	// worked says that a request other than initialize and ping has come. It needs no lock.
	worked atomic.Bool
	// waiting has the end of every request of ours that waits, by its ID.
	waiting map[string]context.CancelFunc

	// mailbox has what the session is sent of its own accord; opened makes it.
	mailbox *push.Mailbox
	opened  sync.Once
}

// negotiated notes what initialize has settled.
func (s *session) negotiated(g *Gateway, protocol string, capabilities json.RawMessage) {
	s.revision, s.canAsk, s.requestor = protocol, g.legacy.CanAsk(capabilities), dialect.Requestor20251125{}
	s.capabilities = bytes.Clone(capabilities)
	if g.tasksIn(protocol) {
		s.requestor = g.legacy.Requestor(capabilities)
	}
}

// caller is who sends a request in the session.
func (s *session) caller(g *Gateway, method string) mcptask.Caller {
	return mcptask.Caller{Principal: s.principal, Session: s.id, Revision: g.revision(s.revision), Method: method, CanAsk: s.canAsk}
}

// sessions is the table of open sessions.
type sessions struct {
	timeout time.Duration
	// busy reports whether a session has tasks that have not ended; nil means that none
	// has. It may be called while the table is locked.
	busy    func(*session) bool
	mu      sync.Mutex
	open    map[string]*session
	opening int               // sessions that are being opened
	owners  map[string]*owner // by principal; none has nothing
}

// owner is a principal's sessions; all anonymous callers are one.
type owner struct {
	open, opening int
	idle          list.List // of *session, the one that has been for longest first
}

// owner is made where there is none. t.mu is held.
func (t *sessions) owner(principal string) *owner {
	o := t.owners[principal]
	if o == nil {
		if t.owners == nil {
			t.owners = map[string]*owner{}
		}
		o = &owner{}
		t.owners[principal] = o
	}
	return o
}

// room makes room for one more of a principal's sessions until done is called: by
// then it is open. If the principal has the most that it may have, one that it can
// spare is taken out, for the caller to expire; if the server has as many in all, one
// of the principal that has the most of those that can spare one. Without any there
// is no room: done is nil, and full the scope that has none. So a flood of sessions
// ends its own, none that is in use, and none whose tasks run.
func (t *sessions) room(principal string, most, inAll int) (done func(), spared *session, full mcptask.Scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.owner(principal)
	if o.open+o.opening >= most {
		if spared = t.spare(o); spared == nil {
			t.settle(principal)
			return nil, nil, mcptask.ScopeAccount
		}
	} else if len(t.open)+t.opening >= inAll {
		if spared = t.spareOfMost(); spared == nil {
			t.settle(principal)
			return nil, nil, mcptask.ScopeServer
		}
	}
	if spared != nil {
		t.remove(spared)
		o = t.owner(principal)
	}
	o.opening++
	t.opening++
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.opening--
		t.opening--
		t.settle(principal)
	}, spared, ""
}

// spare returns the session that its owner misses least, nil if it can spare none. Of
// the sessions that are idle and have no tasks that run, that is the one that has been
// idle for longest; one that has never asked for anything comes first. t.mu is held.
func (t *sessions) spare(o *owner) (spared *session) {
	for e := o.idle.Front(); e != nil; e = e.Next() {
		s := e.Value.(*session)
		switch {
		case s.worked.Load() && spared != nil, t.busy != nil && t.busy(s):
		case !s.worked.Load():
			return s
		default:
			spared = s
		}
	}
	return spared
}

// spareOfMost is the spare session of the owner who has the most. t.mu is held.
func (t *sessions) spareOfMost() (spared *session) {
	owners := slices.SortedFunc(maps.Values(t.owners), func(a, b *owner) int { return cmp.Compare(b.open, a.open) })
	for _, o := range owners {
		if spared = t.spare(o); spared != nil {
			break
		}
	}
	return spared
}

// work notes that a session is used for more than to be there.
func (*sessions) work(s *session) {
	s.worked.Store(true)
}

// settle drops an owner of nothing. t.mu is held.
func (t *sessions) settle(principal string) {
	if o := t.owners[principal]; o.open == 0 && o.opening == 0 {
		delete(t.owners, principal)
	}
}

// remove takes a session out. t.mu is held.
func (t *sessions) remove(s *session) {
	delete(t.open, s.id)
	if s.idle != nil {
		s.idle.Stop()
	}
	o := t.owners[s.principal]
	if o.open--; s.place != nil {
		o.idle.Remove(s.place)
		s.place = nil
	}
	t.settle(s.principal)
}

func (t *sessions) get(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// add opens a session; expire is called when it has been idle for too long, and
// has been taken out.
func (t *sessions) add(s *session, expire func()) {
	s.ended, s.end = context.WithCancel(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	if former := t.open[s.id]; former != nil { // IDs are the SDK's, or its user's
		t.remove(former)
		former.end()
	}
	t.open[s.id], s.expire = s, expire
	o := t.owner(s.principal)
	o.open++
	s.place = o.idle.PushBack(s)
	if t.timeout > 0 {
		s.idle = time.AfterFunc(t.timeout, func() {
			defer guard.Recover(nil, "the end of an idle session")
			if t.left(s) {
				expire()
			}
		})
	}
}

// left takes out a session that has been idle for too long; false is one that is
// in use again.
func (t *sessions) left(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.active > 0 || t.open[s.id] != s {
		return false
	}
	t.remove(s)
	return true
}

// use keeps a session from being idle until the returned function is called.
func (t *sessions) use(id string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[id]
	if s == nil {
		return func() {}
	}
	idle := &t.owners[s.principal].idle
	if s.active++; s.place != nil {
		idle.Remove(s.place)
		s.place = nil
	}
	if s.idle != nil {
		s.idle.Stop()
	}
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.active--; s.active > 0 || t.open[id] != s {
			return
		}
		s.place = idle.PushBack(s)
		if s.idle != nil {
			s.idle.Reset(t.timeout)
		}
	}
}

// wait notes that a request waits and may be cancelled, until the returned
// function is called.
func (t *sessions) wait(s *session, request json.RawMessage, cancel context.CancelFunc) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := wire.IDKey(request)
	if s.waiting[key] != nil {
		return func() {} // an ID in use twice is the client's fault: the first one keeps it
	}
	if s.waiting == nil {
		s.waiting = map[string]context.CancelFunc{}
	}
	s.waiting[key] = cancel
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(s.waiting, key)
	}
}

// cancel ends a waiting request, if there is one with that ID.
func (t *sessions) cancel(s *session, request json.RawMessage) {
	t.mu.Lock()
	cancel := s.waiting[wire.IDKey(request)]
	t.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (t *sessions) end(id string) {
	t.mu.Lock()
	s := t.open[id]
	if s != nil {
		t.remove(s)
	}
	t.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// openSession starts to follow a session that the SDK has made for a request.
func (g *Gateway) openSession(r *http.Request, s *session, wait func() error) {
	// The SDK ends a session for its user only: keep who asked for it, and not the
	// request, with its body.
	ctx, host := context.WithoutCancel(r.Context()), r.Host
	expire := func() {
		s.end() // the SDK waits for the session's calls
		end, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/", nil)
		if err != nil {
			return
		}
		end.Host = host
		end.Header.Set(sessionHeader, s.id)
		end.Header.Set(versionHeader, s.revision)
		g.config.Stateful.ServeHTTP(discard{http.Header{}}, end)
	}
	g.sessions.add(s, expire)
	release := context.AfterFunc(lifetimesOf(g.server).sessions, func() {
		defer guard.Recover(g.server.Logger(), "ending a session")
		g.sessions.end(s.id)
		expire()
	})
	context.AfterFunc(s.ended, func() {
		defer guard.Recover(g.server.Logger(), "the end of a session")
		release()
		g.mailbox(s).Close()
	})
	if wait != nil { // else only a DELETE or the idle time ends it
		go func() {
			defer guard.Recover(g.server.Logger(), "the end of a session")
			_ = wait() // why it ended does not matter here
			g.sessions.end(s.id)
		}()
	}
}

// discard is a response that nobody reads.
type discard struct{ header http.Header }

// Header implements http.ResponseWriter.
func (d discard) Header() http.Header { return d.header }

// Write implements http.ResponseWriter.
func (d discard) Write(data []byte) (int, error) { return len(data), nil }

// WriteHeader implements http.ResponseWriter.
func (d discard) WriteHeader(int) {}

// session finds the session of a request, or the refusal that the transport
// prescribes: 400 without the header or with another protocol version, 404 for
// an unknown one.
func (g *Gateway) session(r *http.Request, principal string) (*session, int, *mcptask.Error) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return nil, http.StatusBadRequest, mcptask.Errorf(mcptask.CodeInvalidRequest, "the %s header is missing", sessionHeader)
	}
	s := g.sessions.get(id)
	if s == nil {
		return nil, http.StatusNotFound, mcptask.Errorf(mcptask.CodeInvalidRequest, "there is no such session: initialize a new one")
	}
	if s.principal != principal {
		return nil, http.StatusForbidden, foreignSession()
	}
	if version := r.Header.Get(versionHeader); version != "" && version != s.revision {
		return nil, http.StatusBadRequest, mcptask.Errorf(mcptask.CodeInvalidRequest, "the %s header is %q, the session speaks %s", versionHeader, wire.Brief(version), s.revision)
	}
	return s, 0, nil
}

func foreignSession() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "the session belongs to somebody else: initialize one of your own, or send the credentials that it was initialized with")
}
