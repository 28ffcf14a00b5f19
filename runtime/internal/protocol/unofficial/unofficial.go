// Package unofficial has the revisions that were never released: the proposal SEP-1686, the
// release candidate of 2025-11-25, and the tasks of the Task Patterns guide. They are spoken only
// if options name them. They use the helpers of package protocol, as the released revisions do.
package unofficial

import (
	"encoding/json"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// object is a JSON object whose unknown members stay as they are.
type object = map[string]json.RawMessage

// Servers lists the revisions that a server can speak, oldest first.
func Servers() []protocol.Server {
	return []protocol.Server{ServerSEP1686{}, Server20251125RC{}, ServerTaskPatterns{}}
}

// Clients lists the revisions that a client can speak.
func Clients() []protocol.Client {
	return []protocol.Client{Client20251125RC{}, ClientTaskPatterns{}, ClientSEP1686{}}
}

// readMembers reads the members of an object as they are spelled. It returns nil if data is not an
// object.
func readMembers(data json.RawMessage) object {
	var members object
	_ = json.Unmarshal(data, &members) // nothing else has members
	return members
}
