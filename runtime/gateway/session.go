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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/limit"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// These headers belong to the revisions with sessions.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "MCP-Protocol-Version"
)

// session is an open session of 2025-11-25 or earlier.
type session struct {
	id        string
	principal string
	address   string // that of an anonymous caller, or ""
	revision  string // the protocol version that was negotiated
	canAsk    []string
	client    taskserver.ClientInfo
	// capabilities are the client's. requestor decides which questions the client may keep as
	// tasks, in the session's own revision.
	capabilities json.RawMessage
	requestor    protocol.Requestor
	// sdkSession is the adapter's own data about the session.
	sdkSession any
	// inner is the SDK's ID of the session if it is not id. portable is set if other replicas can
	// open the session too.
	inner    string
	portable *portable
	// ended ends with the session, and ends the session's streams.
	ended context.Context
	end   context.CancelFunc

	// The table's lock guards these fields. active counts open requests. idle is the timer that
	// ends the session after a time without requests. place is the session's place among the idle
	// ones. expire ends the session.
	active int
	idle   *time.Timer
	place  *list.Element
	expire func()
	// used is set by the first request other than initialize and ping. It needs no lock.
	used atomic.Bool
	// streams counts the open GETs of the session.
	streams atomic.Int32
	// waiting cancels the requests under way that the gateway answers or runs, by ID.
	waiting map[string]context.CancelFunc
	// expected receives the responses to requests of calls, by ID.
	expected map[string]func(response *message)

	// mailbox holds the messages that the server sends in the session. opened creates it once.
	mailbox *push.Mailbox
	opened  sync.Once
}

// setNegotiated stores the result of initialize. client is the clientInfo of its params.
func (s *session) setNegotiated(g *Gateway, version string, capabilities, client json.RawMessage) {
	s.revision, s.canAsk, s.requestor = version, g.legacy.CanAsk(wire.NewObject(capabilities)), protocol.Requestor20251125{}
	s.capabilities, s.client = bytes.Clone(capabilities), readClient(client)
	if g.hasTasks(version) {
		s.requestor = g.legacy.Requestor(capabilities)
	}
}

// name returns the session's name in a [taskserver.Caller]: the same on every replica, and no key to
// the session if its ID is one.
func (s *session) name() string {
	if s.portable != nil {
		return s.portable.Name
	}
	return s.id
}

// sdkID returns the SDK's ID of the session.
func (s *session) sdkID() string { return cmp.Or(s.inner, s.id) }

// beginInitialized reports whether the SDK has yet to see the client's notifications/initialized.
func (s *session) beginInitialized() bool {
	return s.portable == nil || s.portable.initialized.CompareAndSwap(false, true)
}

// newCaller returns the caller of a request in the session.
func (s *session) newCaller(g *Gateway, method string) taskserver.Caller {
	return taskserver.Caller{Principal: s.principal, Session: s.name(), Revision: g.sessionRevision(s.revision), Method: method, Client: s.client, CanAsk: s.canAsk}
}

// sessions is the table of open sessions.
type sessions struct {
	timeout time.Duration
	mu      sync.Mutex
	open    map[string]*session
	inner   map[string]bool   // the SDK's IDs of sessions whose clients have another one
	opening int               // counts sessions that are being opened
	owners  map[string]*owner // by principal; an owner without sessions is removed
	// addresses counts the sessions of anonymous callers by address, with those that are being opened.
	addresses map[string]int
}

// countAddress adds n to the sessions of an address. t.mu is held.
func (t *sessions) countAddress(address string, n int) {
	if address == "" {
		return
	}
	if t.addresses == nil {
		t.addresses = map[string]int{}
	}
	if t.addresses[address] += n; t.addresses[address] == 0 {
		delete(t.addresses, address)
	}
}

// owner counts a principal's sessions. All anonymous callers share one owner.
type owner struct {
	open, opening int
	idle          list.List // of *session; the longest idle session is first
}

// ownerOf returns the owner for a principal. It creates the owner if needed. t.mu is held.
func (t *sessions) ownerOf(principal string) *owner {
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

// makeRoom reserves room for one more session of a principal until done is called; the session is
// then open. address is that of an anonymous caller, or "". If the address has reached its share,
// makeRoom removes one of its spare sessions. If the principal has reached its limit, makeRoom removes
// one of the principal's spare sessions. If the server has reached its limit, makeRoom removes a spare
// session of the principal that has the most sessions. The caller must expire the removed session,
// spared. full says which limit is reached, or "".
// If there is no spare session, done is nil. So a flood of sessions ends its own sessions. Sessions
// in use stay open.
func (t *sessions) makeRoom(principal, address string, most, inAll int) (done func(), spared *session, full taskstore.Scope) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.ownerOf(principal)
	switch {
	case address != "" && t.addresses[address] >= limit.ShareOfAddress(most):
		spared, full = t.findSpare(o, address), taskstore.ScopeAddress
	case o.open+o.opening >= most:
		spared, full = t.findSpare(o, ""), taskstore.ScopeAccount
	case len(t.open)+t.opening >= inAll:
		spared, full = t.findSpareOfLargest(), taskstore.ScopeServer
	}
	switch {
	case full != "" && spared == nil:
		t.removeUnusedOwner(principal)
		return nil, nil, full
	case spared != nil:
		t.remove(spared)
		o = t.ownerOf(principal)
	}
	o.opening++
	t.opening++
	t.countAddress(address, 1)
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		o.opening--
		t.opening--
		t.countAddress(address, -1)
		t.removeUnusedOwner(principal)
	}, spared, full
}

// findSpare returns the session that its owner misses least, or nil. It chooses among the idle
// sessions. If address is not "", it chooses only among those of the address. It
// prefers a session that has never sent a request, then the longest idle one. t.mu is held.
func (t *sessions) findSpare(o *owner, address string) (spared *session) {
	for e := o.idle.Front(); e != nil; e = e.Next() {
		s := e.Value.(*session)
		switch {
		case address != "" && s.address != address:
		case s.used.Load() && spared != nil:
		case !s.used.Load():
			return s
		default:
			spared = s
		}
	}
	return spared
}

// findSpareOfLargest returns a spare session of the owner with the most sessions. t.mu is held.
func (t *sessions) findSpareOfLargest() (spared *session) {
	owners := slices.SortedFunc(maps.Values(t.owners), func(a, b *owner) int { return cmp.Compare(b.open, a.open) })
	for _, o := range owners {
		if spared = t.findSpare(o, ""); spared != nil {
			break
		}
	}
	return spared
}

// removeUnusedOwner removes an owner without sessions. t.mu is held.
func (t *sessions) removeUnusedOwner(principal string) {
	if o := t.owners[principal]; o.open == 0 && o.opening == 0 {
		delete(t.owners, principal)
	}
}

// remove removes a session from the table. t.mu is held.
func (t *sessions) remove(s *session) {
	delete(t.open, s.id)
	delete(t.inner, s.inner)
	t.countAddress(s.address, -1)
	if s.idle != nil {
		s.idle.Stop()
	}
	o := t.owners[s.principal]
	if o.open--; s.place != nil {
		o.idle.Remove(s.place)
		s.place = nil
	}
	t.removeUnusedOwner(s.principal)
}

func (t *sessions) get(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// hasInner reports whether the SDK, but not the client, knows an open session by an ID.
func (t *sessions) hasInner(id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.inner[id]
}

// add opens a session. expire is called when the session has been idle for too long, after it is
// removed.
func (t *sessions) add(s *session, expire func()) {
	s.ended, s.end = context.WithCancel(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	if former := t.open[s.id]; former != nil { // the SDK, or its user, chooses the IDs
		t.remove(former)
		former.end()
	}
	t.open[s.id], s.expire = s, expire
	if s.inner != "" && s.inner != s.id {
		if t.inner == nil {
			t.inner = map[string]bool{}
		}
		t.inner[s.inner] = true
	}
	o := t.ownerOf(s.principal)
	o.open++
	t.countAddress(s.address, 1)
	s.place = o.idle.PushBack(s)
	if timeout := t.timeoutOf(s); timeout > 0 {
		s.idle = time.AfterFunc(timeout, guard.Func(nil, "the end of an idle session", func() {
			if t.removeIdle(s) {
				expire()
			}
		}))
	}
}

// portableTimeout ends a session that other replicas can open after this time without requests and
// streams, if there is no other timeout. Its client does not notice, and a client that has ended
// its session at another replica leaves none here.
const portableTimeout = time.Hour

// timeoutOf returns how long a session may be idle, or 0 if it may be for ever.
func (t *sessions) timeoutOf(s *session) time.Duration {
	if t.timeout == 0 && s.portable != nil {
		return portableTimeout
	}
	return t.timeout
}

// removeIdle removes a session that has been idle for too long. It returns false if the session is
// in use again.
func (t *sessions) removeIdle(s *session) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.active > 0 || t.open[s.id] != s {
		return false
	}
	t.remove(s)
	return true
}

// beginUse keeps a session from being idle until done is called.
func (t *sessions) beginUse(id string) (done func()) {
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
			s.idle.Reset(t.timeoutOf(s))
		}
	}
}

// addWaiting notes a request that the client may cancel, until done is called. It ignores an ID that is in use.
func (t *sessions) addWaiting(s *session, request json.RawMessage, cancel context.CancelFunc) (done func()) {
	if done = t.addCall(s, request, cancel); done == nil {
		return func() {}
	}
	return done
}

// addCall is addWaiting for a call. It returns nil if another request under way has the ID.
func (t *sessions) addCall(s *session, request json.RawMessage, cancel context.CancelFunc) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := wire.IDKey(request)
	if s.waiting[key] != nil {
		return nil
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

// expect has answer called with the response to a request of the server, once, until forget is called.
func (t *sessions) expect(s *session, id string, answer func(response *message)) (forget func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s.expected == nil {
		s.expected = map[string]func(*message){}
	}
	s.expected[id] = answer
	return func() { t.takeExpected(s, id) }
}

// takeExpected returns the function that expects a response, and forgets it. It returns nil if there is none.
func (t *sessions) takeExpected(s *session, id string) (answer func(response *message)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answer = s.expected[id]
	delete(s.expected, id)
	return answer
}

// cancelWaiting cancels the request under way with an ID, if there is one.
func (t *sessions) cancelWaiting(s *session, request json.RawMessage) {
	t.mu.Lock()
	cancel := s.waiting[wire.IDKey(request)]
	t.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// endSession ends a session. A session that has since been opened again with the same ID stays.
func (t *sessions) endSession(s *session) {
	t.mu.Lock()
	if t.open[s.id] == s {
		t.remove(s)
	}
	t.mu.Unlock()
	s.end()
}

// makeRoom makes room for one more session of a caller until done is called.
func (g *Gateway) makeRoom(ctx context.Context, caller taskserver.Caller) (done func(), refusal *mcptask.Error) {
	limits := g.server.Options().Limits
	most, scope := limits.Sessions, taskstore.ScopeAccount
	if caller.Principal == "" {
		most, scope = limits.Anonymous.Sessions, taskstore.ScopeAnonymous
	}
	done, spared, full := g.sessions.makeRoom(caller.Principal, caller.Address, most, limits.Server.Sessions)
	switch full {
	case "":
		return done, nil
	case taskstore.ScopeServer:
		most, scope = limits.Server.Sessions, full
	case taskstore.ScopeAddress:
		most, scope = limit.ShareOfAddress(most), full
	}
	err := g.server.LimitedIn(ctx, scope, caller, "sessions", most) // this also writes the audit trail
	if done == nil {
		return nil, err
	}
	guard.Go(g.server.Logger(), "the end of a session", func() {
		spared.expire() // the SDK waits for the session's remaining calls
	})
	return done, nil
}

// findSession returns the session of a request, or the refusal that the transport prescribes: 400
// without the header, 404 for an unknown session.
func (g *Gateway) findSession(r *http.Request, principal string) (*session, int, *mcptask.Error) {
	id := r.Header.Get(sessionHeader)
	if id == "" {
		return nil, http.StatusBadRequest, missingSessionError()
	}
	return g.openSession(r, principal, id)
}

// checkSessionVersion refuses a request whose header names another revision than that of its session.
func checkSessionVersion(r *http.Request, s *session) *mcptask.Error {
	version := r.Header.Get(versionHeader)
	if version == "" || version == s.revision {
		return nil
	}
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "the %s header is %q, but the session speaks %s", versionHeader, wire.ShortenName(version), s.revision)
}

// useSession returns the session of a request as findSession does, and keeps it from being idle until
// endUse is called. A session that ends in the meantime, to make room for another, is opened again.
func (g *Gateway) useSession(r *http.Request, principal string) (s *session, endUse func(), status int, refusal *mcptask.Error) {
	const attempts = 10
	for range attempts {
		if s, status, refusal = g.findSession(r, principal); refusal != nil {
			return nil, func() {}, status, refusal
		}
		endUse = g.sessions.beginUse(s.id)
		if s.portable == nil || g.sessions.get(s.id) == s {
			return s, endUse, 0, nil
		}
		endUse()
	}
	return nil, func() {}, http.StatusServiceUnavailable, mcptask.Errorf(mcptask.CodeInternalError, "this server has no room for the session: send the request again")
}

func missingSessionError() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "the %s header is missing: initialize a session, and send its ID with each request", sessionHeader)
}

func foreignSessionError() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "the session belongs to another caller: initialize one of your own, or send the credentials that it was initialized with")
}

// trackSession starts to track a session that the SDK has created for a request.
func (g *Gateway) trackSession(r *http.Request, s *session, wait func() error) {
	// The SDK ends a session only for the same user. So keep the user, but not the request with its
	// body.
	ctx, host := context.WithoutCancel(r.Context()), r.Host
	expire := func() {
		s.end() // before the SDK, which waits for the session's calls
		end, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/", nil)
		if err != nil {
			return
		}
		end.Host = host
		end.Header.Set(sessionHeader, s.sdkID())
		end.Header.Set(versionHeader, s.revision)
		g.sdk.ServeHTTP(newBufferedResponse(), end)
	}
	s.address = g.locate(r, taskserver.Caller{Principal: s.principal}).Address
	g.sessions.add(s, expire)
	release := context.AfterFunc(lifetimesOf(g.server).sessions, guard.Func(g.server.Logger(), "ending a session", func() {
		g.sessions.endSession(s)
		expire()
	}))
	context.AfterFunc(s.ended, guard.Func(g.server.Logger(), "the end of a session", func() {
		release()
		g.mailbox(s).Close()
	}))
	if wait != nil { // without it, only a DELETE or the timeout ends the session
		guard.Go(g.server.Logger(), "the end of a session", func() {
			_ = wait() // the reason does not matter here
			g.sessions.endSession(s)
		})
	}
}
