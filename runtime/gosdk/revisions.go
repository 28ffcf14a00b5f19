package gosdk

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
)

// findClient finds the client's side of a revision by its name. It returns nil for "", which names
// none.
func findClient(revision string) (protocol.Client, error) {
	if revision == "" {
		return nil, nil
	}
	var known []string
	for _, d := range slices.Concat(protocol.Clients(), unofficial.Clients()) {
		if d.Revision() == revision {
			return d, nil
		}
		known = append(known, d.Revision())
	}
	return nil, fmt.Errorf("gosdk: the revision %q is not supported: leave it empty or use %s", revision, strings.Join(known, ", "))
}

// findReceiver returns the server's side of the revision that a connection names. It returns that of
// 2025-11-25 if the connection names none, or one in which servers ask for no tasks.
func findReceiver(named protocol.Client) protocol.Receiver {
	for _, d := range slices.Concat(protocol.Servers(), unofficial.Servers()) {
		if r, ok := d.(protocol.Receiver); ok && named != nil && r.Revision() == named.Revision() {
			return r
		}
	}
	return protocol.Server20251125{}
}
