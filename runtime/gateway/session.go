package gateway

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
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
	revision  string
	canAsk    []string
	// ended ends when the session does, and with it the session's streams.
	ended context.Context
	end   context.CancelFunc

	// Under the table's lock: requests under way, and the timer that ends the
	// session when there has been none for a while.
	active int
	idle   *time.Timer
	// waiting has the end of every request of ours that waits, by its ID.
	waiting map[string]context.CancelFunc
}

// sessions is the table of open sessions.
type sessions struct {
	timeout time.Duration
	mu      sync.Mutex
	open    map[string]*session
}

func (t *sessions) get(id string) *session {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.open[id]
}

// add opens a session; expire is called when it has been idle for too long.
func (t *sessions) add(s *session, expire func()) {
	s.ended, s.end = context.WithCancel(context.Background())
	t.mu.Lock()
	defer t.mu.Unlock()
	t.open[s.id] = s
	if t.timeout > 0 {
		s.idle = time.AfterFunc(t.timeout, expire)
	}
}

// use keeps a session from being idle until the returned function is called.
func (t *sessions) use(id string) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := t.open[id]
	if s == nil || s.idle == nil {
		return func() {}
	}
	s.active++
	s.idle.Stop()
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if s.active--; s.active == 0 && t.open[id] == s {
			s.idle.Reset(t.timeout)
		}
	}
}

// wait notes that a request waits and may be cancelled, until the returned
// function is called.
func (t *sessions) wait(s *session, request json.RawMessage, cancel context.CancelFunc) (done func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := string(request)
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
	cancel := s.waiting[string(request)]
	t.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

func (t *sessions) end(id string) {
	t.mu.Lock()
	s := t.open[id]
	delete(t.open, id)
	if s != nil && s.idle != nil {
		s.idle.Stop()
	}
	t.mu.Unlock()
	if s != nil {
		s.end()
	}
}

// open starts to follow a session that the SDK has made for a request.
func (g *Gateway) openSession(r *http.Request, s *session, wait func() error) {
	// The SDK ends a session for its user only: keep who asked for it.
	ctx := context.WithoutCancel(r.Context())
	g.sessions.add(s, func() {
		s.end() // the SDK waits for the session's calls
		end, err := http.NewRequestWithContext(ctx, http.MethodDelete, "/", nil)
		if err != nil {
			return
		}
		end.Host = r.Host
		end.Header.Set(sessionHeader, s.id)
		end.Header.Set(versionHeader, s.revision)
		g.config.Stateful.ServeHTTP(discard{http.Header{}}, end)
		g.sessions.end(s.id)
	})
	context.AfterFunc(s.ended, func() { g.questions.end(s) })
	if wait != nil { // else only a DELETE or the idle time ends it
		go func() {
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
		return nil, http.StatusBadRequest, mcptask.Errorf(mcptask.CodeInvalidRequest, "the %s header is %q, the session speaks %s", versionHeader, version, s.revision)
	}
	return s, 0, nil
}

func foreignSession() *mcptask.Error {
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "the session belongs to somebody else")
}

// clientCapabilities reads params.capabilities of an initialize.
func clientCapabilities(params json.RawMessage) json.RawMessage {
	var p struct {
		Capabilities json.RawMessage `json:"capabilities"`
	}
	_ = json.Unmarshal(params, &p) // the SDK refuses what is malformed
	return p.Capabilities
}
