package gateway

import (
	"encoding/json"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
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
	// serveSessions and serveRequests report whether the server's options name a revision with sessions, and one
	// without. If not, the gateway refuses all requests of that kind.
	serveSessions, serveRequests bool
}

// newSpeech selects the revisions for a gateway from those that a server supports. If only is not
// "", it selects that revision alone.
func newSpeech(revisions []string, only string) speech {
	isModern := func(revision string) bool { return revision == mcptask.Revision20260728 }
	requests := slices.ContainsFunc(revisions, isModern)
	sessions := slices.ContainsFunc(revisions, func(revision string) bool { return !isModern(revision) })
	if only != "" {
		revisions = slices.DeleteFunc(slices.Clone(revisions), func(revision string) bool { return revision != only })
	}
	s := speech{names: revisions, legacy: protocol.Server20251125{}, modern: protocol.Server20260728{}, serveSessions: sessions, serveRequests: requests}
	for _, d := range slices.Concat(protocol.Servers(), unofficial.Servers()) {
		if !slices.Contains(revisions, d.Revision()) {
			continue
		}
		switch d := d.(type) {
		case signalled:
			s.signalled = append(s.signalled, d)
		case protocol.Teller:
			if !s.inSessions { // the release candidate is spoken if the release is not
				s.legacy, s.inSessions = d, true
			}
		default:
			s.modern, s.inRequests = d, true
		}
	}
	return s
}

// supported returns the protocol versions that a client may choose. Sessions of earlier versions, which have no tasks,
// go with those of 2025-11-25.
func (s *speech) supported() (versions []string) {
	if s.serveRequests {
		versions = append(versions, mcptask.Revision20260728)
	}
	if s.serveSessions {
		versions = append(versions, mcptask.Revision20251125)
	}
	return versions
}

// unsupportedError refuses a protocol version, and names those that the client may choose (E-72). Clients that can
// speak one of these go on in it.
func (s *speech) unsupportedError(version string) *mcptask.Error {
	err := mcptask.Errorf(spec.CodeUnsupportedProtocolVersion, "the protocol version %q is not supported", wire.ShortenName(version))
	err.Data, _ = json.Marshal(map[string]any{"supported": s.supported(), "requested": wire.ShortenName(version)}) // strings always marshal
	return err
}

// checkServed refuses a request of a revision that the server's options leave out.
func (s *speech) checkServed(x exchange) *mcptask.Error {
	m := x.message()
	switch version := x.version(); {
	case x.modern() && !s.serveRequests:
		return s.unsupportedError(version)
	case x.modern() || s.serveSessions:
		return nil
	case m.Method == "initialize":
		version, _ = m.Params.Text("protocolVersion")
		return s.unsupportedError(version)
	case version != "":
		return s.unsupportedError(version)
	}
	return s.checkMeta(m.meta, s.modern.Revision())
}

// listServed leaves the versions that the server's options do not name out of the result of server/discover.
func (s *speech) listServed(discovered json.RawMessage) (json.RawMessage, error) {
	if s.serveSessions {
		return discovered, nil
	}
	versions, err := json.Marshal(s.supported())
	if err != nil {
		return nil, err
	}
	return wire.NewObject(discovered).Edited(wire.Set(versions, "supportedVersions"))
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

// findRevision returns the revision of a session's request. It returns nil if that revision has no tasks.
func (g *Gateway) findRevision(s *session, caller taskserver.Caller, m *message) (own protocol.Teller) {
	if s != nil && g.hasTasks(s.revision) {
		own = g.legacy
	}
	return g.unofficial.findRevision(own, s, caller, m)
}

// declareTasks adds the task capability of a revision to the result of an initialize or tools/list. version is the
// session's protocol version.
func (g *Gateway) declareTasks(caller taskserver.Caller, version, method string, result json.RawMessage) (json.RawMessage, error) {
	if !g.hasTasks(version) {
		return g.unofficial.declareTasks(caller, method, result)
	}
	return g.legacy.Decorate(g.server, caller, method, result)
}
