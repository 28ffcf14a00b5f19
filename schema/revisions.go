package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Standing says what a revision is worth to a peer.
type Standing string

// The standings of a revision.
const (
	// Released revisions are part of MCP; peers may agree on one. What names no
	// revision means these.
	Released Standing = "released"
	// ReleaseCandidate is what was published ahead of a release, and differs from
	// it. No peer negotiates it.
	ReleaseCandidate Standing = "release-candidate"
	// Proposal is what was proposed and never released.
	Proposal Standing = "proposal"
	// Unofficial is what no MCP document says.
	Unofficial Standing = "unofficial"
)

var standings = []Standing{Released, ReleaseCandidate, Proposal, Unofficial}

// knownRevision is what is to be known of a revision without reading its schema.
type knownRevision struct {
	name     string
	date     string
	standing Standing
}

// all is every revision, the oldest first.
var allRevisions = sync.OnceValues(func() ([]knownRevision, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var list []knownRevision
	for _, entry := range entries {
		data, err := files.ReadFile(path.Join(entry.Name(), "surface.json"))
		if err != nil {
			return nil, err
		}
		var file surfaceFile
		if err := decodeStrict(data, &file); err != nil {
			return nil, fmt.Errorf("schema/%s/surface.json: %w", entry.Name(), err)
		}
		list = append(list, knownRevision{entry.Name(), file.Date, file.Standing})
	}
	slices.SortFunc(list, func(a, b knownRevision) int { return strings.Compare(a.date+a.name, b.date+b.name) })
	return list, nil
})

// Revisions lists all known revisions, the oldest first, also those that are
// off unless they are named.
func Revisions() []string { return listRevisions(func(Standing) bool { return true }) }

// ReleasedRevisions lists the revisions that count where none is named, the
// oldest first.
func ReleasedRevisions() []string { return listRevisions(func(s Standing) bool { return s == Released }) }

func listRevisions(wanted func(Standing) bool) []string {
	list, err := allRevisions()
	if err != nil {
		return nil // an embedded file, which the tests read
	}
	var names []string
	for _, k := range list {
		if wanted(k.standing) {
			names = append(names, k.name)
		}
	}
	return names
}
