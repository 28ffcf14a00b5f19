package gateway

import (
	"encoding/json"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// unofficial is the sessionSpeech of a gateway that speaks revisions which were never released and
// which no protocol version names. They are spoken in the sessions of any protocol, by the requests
// that show it; all others are spoken as ever.
type unofficial struct{ negotiated }

// spoken implements sessionSpeech.
func (u unofficial) spoken(s *session, caller mcptask.Caller, m *message) dialect.Teller {
	if s == nil {
		return nil
	}
	g := u.g
	own := u.negotiated.spoken(s, caller, m)
	if own != nil && m.Method == "tools/call" && m.Params.Has("task") { // which says it, whatever else is there
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
	if !m.Params.Has("taskId") && !m.Params.Has("id") { // a list, which shows nothing
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

// setShown notes the revision that a request has shown; nil is the session's own.
func (t *sessions) setShown(s *session, d dialect.Signalled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.shown = d
}

// lastShown returns what setShown has noted last.
func (t *sessions) lastShown(s *session) dialect.Signalled {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.shown
}

// plain implements sessionSpeech: a revision in which no tool has to be called as a task
// goes first.
func (u unofficial) plain() dialect.Teller {
	for _, d := range u.g.signalled {
		if _, ok := d.(dialect.Announcer); ok {
			return d
		}
	}
	return u.negotiated.plain()
}

// declare implements sessionSpeech. In a session without tasks of its own it adds what the first
// revision does that adds anything.
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

// pushes implements sessionSpeech: a request of any session may show such a revision.
func (unofficial) pushes(string) bool { return true }

// prepare implements sessionSpeech: it makes a flow answer its call when the task has ended, if the
// revision says so.
func (u unofficial) prepare(flow *Flow, s *session, d dialect.Teller, m *message) {
	if _, announces := d.(dialect.Announcer); !announces || flow.Call.Mode != mcptask.ModeTask || s == nil {
		return
	}
	a := &awaited{g: u.g, session: s, d: d, caller: flow.Caller, tool: flow.Tool, request: m.ID}
	flow.Held, flow.carrier, flow.Handle = true, a, a.handle
}
