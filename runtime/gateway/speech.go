package gateway

import (
	"encoding/json"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
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
	// signalled are the unofficial revisions, which no protocol version names.
	signalled []dialect.Signalled
}

// sessionSpeech tells in which revision the requests of sessions are spoken.
type sessionSpeech interface {
	// spoken returns the revision of a session's request, nil if it is one without tasks.
	spoken(s *session, caller mcptask.Caller, m *message) dialect.Teller
	// plain returns the revision that tells how calls are answered in a session without tasks.
	plain() dialect.Teller
	// declare adds what a revision says of tasks to the result of an initialize or
	// tools/list in a session of a protocol version.
	declare(caller mcptask.Caller, protocol, method string, result json.RawMessage) (json.RawMessage, error)
	// pushes reports whether sessions of a protocol version hear of tasks on their streams.
	pushes(protocol string) bool
	// prepare changes the flow of a call that is spoken in a revision.
	prepare(flow *Flow, s *session, d dialect.Teller, m *message)
}

// speechOf chooses among the revisions that a server speaks; only is the one of
// a gateway that speaks no other, "" if it speaks all.
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

// revision returns what the requests of a session are spoken in, unless they show another.
func (s *speech) revision(protocol string) string {
	if s.tasksIn(protocol) {
		return s.legacy.Revision()
	}
	return protocol
}

// negotiated is the sessionSpeech of the official revisions: a session speaks what it has
// negotiated.
type negotiated struct{ g *Gateway }

func (n negotiated) spoken(s *session, _ mcptask.Caller, _ *message) dialect.Teller {
	if s == nil || !n.g.tasksIn(s.revision) {
		return nil
	}
	return n.g.legacy
}

func (n negotiated) plain() dialect.Teller { return n.g.legacy }

func (n negotiated) declare(caller mcptask.Caller, protocol, method string, result json.RawMessage) (json.RawMessage, error) {
	if !n.g.tasksIn(protocol) {
		return result, nil
	}
	return n.g.legacy.Decorate(n.g.server, caller, method, result)
}

func (n negotiated) pushes(protocol string) bool { return n.g.tasksIn(protocol) }

func (negotiated) prepare(*Flow, *session, dialect.Teller, *message) {}
