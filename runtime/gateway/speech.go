package gateway

import (
	"encoding/json"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/fallback"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// speech selects the revisions that a gateway supports.
type speech struct {
	// names are the names of the revisions, for messages.
	names []string
	// legacy is the revision of sessions that negotiate its protocol. It also decides how calls are
	// answered in other sessions. modern is the revision of requests without a session.
	legacy protocol.Teller
	modern protocol.Server
	// inSessions and inRequests report whether legacy and modern support tasks.
	inSessions, inRequests bool
	// signalled are the unofficial revisions. No protocol version names them.
	signalled []signalled
}

// sessionSpeech decides which revision the requests of a session use.
type sessionSpeech interface {
	// findRevision returns the revision of a session's request. It returns nil if that revision has
	// no tasks.
	findRevision(s *session, caller mcptask.Caller, m *message) protocol.Teller
	// tasklessRevision returns the revision that decides how calls are answered in a session
	// without tasks.
	tasklessRevision() protocol.Teller
	// declareTasks adds the task capability of a revision to the result of an initialize or
	// tools/list. version is the session's protocol version.
	declareTasks(caller mcptask.Caller, version, method string, result json.RawMessage) (json.RawMessage, error)
	// canPush reports whether sessions of a protocol version receive messages about tasks on their
	// streams.
	canPush(version string) bool
	// negotiate decides how a call is answered in a revision.
	negotiate(d protocol.Teller, caller mcptask.Caller, tool mcptask.ToolSpec, params protocol.Params) (mcptask.CallRequest, error)
	// prepareFlow adapts the flow of a call, and the way of its answer, to the call's revision.
	prepareFlow(x exchange, flow *Flow, s *session, d protocol.Teller)
}

// newSpeech selects the revisions for a gateway from those that a server supports. If only is not
// "", it selects that revision alone.
func newSpeech(revisions []string, only string) speech {
	if only != "" {
		revisions = slices.DeleteFunc(slices.Clone(revisions), func(revision string) bool { return revision != only })
	}
	s := speech{names: revisions, legacy: protocol.Server20251125{}, modern: protocol.Server20260728{}}
	for _, d := range protocol.Servers() {
		if !slices.Contains(revisions, d.Revision()) {
			continue
		}
		if teller, ok := d.(protocol.Teller); ok {
			s.legacy, s.inSessions = teller, true
		} else {
			s.modern, s.inRequests = d, true
		}
	}
	s.addUnofficial(revisions)
	return s
}

// hasTasks reports whether sessions of a protocol version have tasks.
func (s *speech) hasTasks(version string) bool {
	return s.inSessions && version == s.legacy.Protocol()
}

// sessionRevision returns the revision of a session's requests, unless a request shows another one.
func (s *speech) sessionRevision(version string) string {
	if s.hasTasks(version) {
		return s.legacy.Revision()
	}
	return version
}

// officialSpeech implements sessionSpeech for the official revisions: a session uses the revision
// that it has negotiated.
type officialSpeech struct{ g *Gateway }

func (n officialSpeech) findRevision(s *session, _ mcptask.Caller, _ *message) protocol.Teller {
	if s == nil || !n.g.hasTasks(s.revision) {
		return nil
	}
	return n.g.legacy
}

func (n officialSpeech) tasklessRevision() protocol.Teller { return n.g.legacy }

func (n officialSpeech) declareTasks(caller mcptask.Caller, version, method string, result json.RawMessage) (json.RawMessage, error) {
	if !n.g.hasTasks(version) {
		return result, nil
	}
	return n.g.legacy.Decorate(n.g.server, caller, method, result)
}

func (n officialSpeech) canPush(version string) bool { return n.g.hasTasks(version) }

func (n officialSpeech) negotiate(d protocol.Teller, _ mcptask.Caller, tool mcptask.ToolSpec, params protocol.Params) (mcptask.CallRequest, error) {
	return d.Negotiate(tool, fallback.Concerns(n.g.server, tool.Name), params)
}

func (officialSpeech) prepareFlow(exchange, *Flow, *session, protocol.Teller) {}
