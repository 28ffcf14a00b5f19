package gateway

import (
	"encoding/json"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// unofficial implements sessionSpeech for a gateway that also supports the unreleased revisions. No
// protocol version names them, so a session of any protocol may use them, and the form of a request
// shows which one it uses. All other requests are handled as by negotiated.
type unofficial struct{ negotiated }

// spoken implements sessionSpeech.
func (u unofficial) spoken(s *session, caller mcptask.Caller, m *message) dialect.Teller {
	if s == nil {
		return nil
	}
	g := u.g
	own := u.negotiated.spoken(s, caller, m)
	if own != nil && m.Method == "tools/call" && m.Params.Has("task") { // the member task decides, whatever else is there
		g.sessions.setShown(s, nil)
		return own
	}
	named := func(external string) bool { return dialect.Names(g.server, caller, external) }
	for _, d := range u.g.signalled {
		if d.Signals(m.Method, m.Params, named) {
			g.sessions.setShown(s, d)
			return d
		}
	}
	if !strings.HasPrefix(m.Method, "tasks/") {
		return own
	}
	if !m.Params.Has("taskId") && !m.Params.Has("id") { // a list does not show its revision
		if shown := g.sessions.lastShown(s); shown != nil {
			return shown
		}
	}
	if own == nil {
		for _, d := range u.g.signalled {
			if d.Method(m.Method) != nil {
				return d
			}
		}
	}
	return own
}

// setShown notes the revision that a request has shown. nil means the session's own revision.
func (t *sessions) setShown(s *session, d dialect.Signalled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.shown = d
}

// lastShown returns the revision that setShown noted last.
func (t *sessions) lastShown(s *session) dialect.Signalled {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.shown
}

// plain implements sessionSpeech. It prefers a revision in which no tool must be called as a task.
func (u unofficial) plain() dialect.Teller {
	for _, d := range u.g.signalled {
		if _, ok := d.(dialect.Announcer); ok {
			return d
		}
	}
	return u.negotiated.plain()
}

// declare implements sessionSpeech. In a session without tasks of its own, it uses the first
// revision that changes the result.
func (u unofficial) declare(caller mcptask.Caller, protocol, method string, result json.RawMessage) (json.RawMessage, error) {
	if u.g.tasksIn(protocol) {
		return u.negotiated.declare(caller, protocol, method, result)
	}
	for _, d := range u.g.signalled {
		decorated, err := d.Decorate(u.g.server, caller, method, result)
		if err != nil || string(decorated) != string(result) {
			return decorated, err
		}
	}
	return result, nil
}

// pushes implements sessionSpeech. It returns true because a request of any session may show an
// unreleased revision.
func (unofficial) pushes(string) bool { return true }

// prepare implements sessionSpeech. If the revision says so, the flow answers its call when the
// task has ended.
func (u unofficial) prepare(flow *Flow, s *session, d dialect.Teller, m *message) {
	if _, announces := d.(dialect.Announcer); !announces || flow.Call.Mode != mcptask.ModeTask || s == nil {
		return
	}
	a := &awaited{g: u.g, session: s, d: d, caller: flow.Caller, tool: flow.Tool, request: m.ID}
	flow.Held, flow.carrier, flow.Handle = true, a, a.handle
}
