package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// speech is the revisions that a gateway speaks.
type speech struct {
	// names are the revisions themselves, for messages.
	names []string
	// legacy is spoken in sessions that negotiate its protocol, and tells how calls
	// are answered in any session; modern, in requests that need none.
	legacy dialect.Teller
	modern dialect.Server
	// inSessions and without say that tasks are spoken in legacy and in modern.
	inSessions, without bool
	// signalled are spoken in the sessions of any protocol, by the requests that
	// show it.
	signalled []dialect.Signalled
}

// speechOf chooses among the revisions that a server speaks; only is the one of
// a gateway that speaks no other, "" where it speaks all.
func speechOf(revisions []string, only string) speech {
	if only != "" {
		revisions = slices.DeleteFunc(slices.Clone(revisions), func(revision string) bool { return revision != only })
	}
	s := speech{names: revisions, legacy: dialect.Server20251125{}, modern: dialect.Server20260728{}}
	for _, d := range dialect.Servers() {
		if !slices.Contains(revisions, d.Revision()) {
			continue
		}
		switch d := d.(type) {
		case dialect.Signalled:
			s.signalled = append(s.signalled, d)
		case dialect.Teller:
			if !s.inSessions || d.Revision() == d.Protocol() { // one that says its own name goes first
				s.legacy, s.inSessions = d, true
			}
		default:
			s.modern, s.without = d, true
		}
	}
	return s
}

// tasksIn says whether sessions of a protocol version have tasks.
func (s *speech) tasksIn(protocol string) bool {
	return s.inSessions && protocol == s.legacy.Protocol()
}

// revision is what a session's requests are spoken in, where they show no other.
func (s *speech) revision(protocol string) string {
	if s.tasksIn(protocol) {
		return s.legacy.Revision()
	}
	return protocol
}

// spoken is the revision of a session's request: the one that it shows, else
// the session's own; nil is one without tasks.
func (g *Gateway) spoken(s *session, caller mcptask.Caller, m *message) dialect.Teller {
	if s == nil {
		return nil
	}
	var own dialect.Teller
	if g.tasksIn(s.revision) {
		own = g.legacy
	}
	if own != nil && m.Method == "tools/call" && m.Params.Has("task") { // which says it, whatever else is there
		g.sessions.shows(s, nil)
		return own
	}
	named := func(external string) bool { return dialect.Names(g.server, caller, external) }
	for _, d := range g.signalled {
		if d.Signals(m.Method, m.Params, named) {
			g.sessions.shows(s, d)
			return d
		}
	}
	if g.signalled != nil && strings.HasPrefix(m.Method, "tasks/") && !namesTask(m.Params) { // a list, which shows nothing
		if shown := g.sessions.shown(s); shown != nil {
			return shown
		}
	}
	if own == nil && strings.HasPrefix(m.Method, "tasks/") {
		for _, d := range g.signalled {
			if d.Method(m.Method) != nil {
				return d
			}
		}
	}
	return own
}

// plainly is the revision that tells how calls are answered in a session that has
// none with tasks: one in which no tool has to be called as a task, where the
// server speaks it.
func (s *speech) plainly() dialect.Teller {
	for _, d := range s.signalled {
		if _, ok := d.(dialect.Announcer); ok {
			return d
		}
	}
	return s.legacy
}

// namesTask says whether params name a task in any revision.
func namesTask(params *wire.Object) bool { return params.Has("taskId") || params.Has("id") }

// declare adds to the result of an initialize or tools/list of a session what its
// revision says of tasks, or else what the first signalled one does that says
// anything.
func (g *Gateway) declare(caller mcptask.Caller, protocol, method string, result json.RawMessage) (json.RawMessage, error) {
	if g.tasksIn(protocol) {
		return g.legacy.Decorate(g.server, caller, method, result)
	}
	for _, d := range g.signalled {
		decorated, err := d.Decorate(g.server, caller, method, result)
		if err != nil || string(decorated) != string(result) {
			return decorated, err
		}
	}
	return result, nil
}
