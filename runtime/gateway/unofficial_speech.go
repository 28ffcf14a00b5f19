package gateway

import (
	"encoding/json"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// unofficialSpeech implements sessionSpeech for a gateway that also supports the unreleased
// revisions. No protocol version names them, so a session of any protocol may use them, and the
// form of a request shows which one it uses. All other requests are handled as by officialSpeech.
type unofficialSpeech struct{ officialSpeech }

// findRevision implements sessionSpeech.
func (u unofficialSpeech) findRevision(s *session, caller mcptask.Caller, m *message) protocol.Teller {
	if s == nil {
		return nil
	}
	g := u.g
	own := u.officialSpeech.findRevision(s, caller, m)
	if own != nil && m.Method == "tools/call" && m.Params.Has("task") { // the member task decides, whatever else is there
		g.sessions.setShown(s, nil)
		return own
	}
	named := func(external string) bool { return protocol.Names(g.server, caller, external) }
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

// tasklessRevision implements sessionSpeech. It prefers a revision in which no tool must be called
// as a task.
func (u unofficialSpeech) tasklessRevision() protocol.Teller {
	for _, d := range u.g.signalled {
		if _, ok := d.(protocol.Announcer); ok {
			return d
		}
	}
	return u.officialSpeech.tasklessRevision()
}

// declareTasks implements sessionSpeech. In a session without tasks of its own, it uses the first
// revision that changes the result.
func (u unofficialSpeech) declareTasks(caller mcptask.Caller, version, method string, result json.RawMessage) (json.RawMessage, error) {
	if u.g.hasTasks(version) {
		return u.officialSpeech.declareTasks(caller, version, method, result)
	}
	for _, d := range u.g.signalled {
		decorated, err := d.Decorate(u.g.server, caller, method, result)
		if err != nil || string(decorated) != string(result) {
			return decorated, err
		}
	}
	return result, nil
}

// canPush implements sessionSpeech. It returns true because a request of any session may show an
// unreleased revision.
func (unofficialSpeech) canPush(string) bool { return true }

// prepareFlow implements sessionSpeech. If the revision says so, the flow answers its call when the
// task has ended.
func (u unofficialSpeech) prepareFlow(flow *Flow, s *session, d protocol.Teller, m *message) {
	if _, announces := d.(protocol.Announcer); !announces || flow.Call.Mode != mcptask.ModeTask || s == nil {
		return
	}
	a := &awaitedCall{g: u.g, session: s, d: d, caller: flow.Caller, tool: flow.Tool, request: m.ID}
	flow.Held, flow.carrier, flow.Handle = true, a, a.handle
}

// setShown notes the revision that a request has shown. nil means the session's own revision.
func (t *sessions) setShown(s *session, d protocol.Signalled) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.shownRevision = d
}

// lastShown returns the revision that setShown noted last.
func (t *sessions) lastShown(s *session) protocol.Signalled {
	t.mu.Lock()
	defer t.mu.Unlock()
	return s.shownRevision
}
