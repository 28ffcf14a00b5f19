package gateway

import (
	"encoding/json"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
)

// signalled is a revision that no protocol version names. Each request shows by its form that it
// uses the revision.
type signalled interface {
	protocol.Teller
	// Signals reports whether a request uses the revision.
	Signals(s *mcptask.Server, caller mcptask.Caller, method string, params protocol.Params) bool
}

// addUnofficial adds those of the revisions that were never released. One that has a protocol
// version is used in sessions if no released revision is.
func (s *speech) addUnofficial(revisions []string) {
	for _, d := range unofficial.Servers() {
		if !slices.Contains(revisions, d.Revision()) {
			continue
		}
		switch d := d.(type) {
		case signalled:
			s.signalled = append(s.signalled, d)
		case protocol.Teller:
			if !s.inSessions {
				s.legacy, s.inSessions = d, true
			}
		}
	}
}

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
		s.shownRevision.Store(nil)
		return own
	}
	for _, d := range u.g.signalled {
		if d.Signals(g.server, caller, m.Method, m.Params) {
			s.shownRevision.Store(&d)
			return d
		}
	}
	if !strings.HasPrefix(m.Method, "tasks/") {
		return own
	}
	if !m.Params.Has("taskId") && !m.Params.Has("id") { // a list does not show its revision
		if shown := s.shownRevision.Load(); shown != nil {
			return *shown
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
		if _, ok := d.(announcer); ok {
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

// negotiate implements sessionSpeech. If a task's ID is the idempotency key too, it binds the key to
// the caller, because anonymous callers share one set of keys.
func (u unofficialSpeech) negotiate(d protocol.Teller, caller mcptask.Caller, tool mcptask.ToolSpec, params protocol.Params) (mcptask.CallRequest, error) {
	call, err := u.officialSpeech.negotiate(d, caller, tool, params)
	if err == nil && call.ExternalID != "" && call.IdempotencyKey == call.ExternalID {
		call.IdempotencyKey = caller.Named(call.ExternalID)
	}
	return call, err
}

// prepareFlow implements sessionSpeech. If the revision says so, the flow answers its call when the
// task has ended.
func (u unofficialSpeech) prepareFlow(x exchange, flow *Flow, s *session, d protocol.Teller) {
	a, announces := d.(announcer)
	if !announces || flow.Call.Mode != mcptask.ModeTask || s == nil {
		return
	}
	call := &awaitedCall{g: u.g, session: s, d: a, caller: flow.Caller, tool: flow.Tool, request: x.message().ID}
	flow.Held, flow.Handle = true, call.handle
	switch x := x.(type) {
	case *httpExchange:
		call.way = x.respondToCall()
	case *pipeExchange:
		call.way = pipeWay{x.p.out.put}
	}
}
