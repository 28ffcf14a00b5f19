package schema

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
)

// Standing is the official status of a revision.
type Standing string

// The standings of a revision.
const (
	// Released revisions are part of MCP, and peers may agree on one. They are the default.
	Released Standing = "released"
	// ReleaseCandidate revisions were published before a release and differ from it. Peers do not
	// negotiate them.
	ReleaseCandidate Standing = "release-candidate"
	// Proposal revisions were proposed and never released.
	Proposal Standing = "proposal"
	// Unofficial revisions are not in any MCP document.
	Unofficial Standing = "unofficial"
)

var standings = []Standing{Released, ReleaseCandidate, Proposal, Unofficial}

// allRevisions returns the surface.json of every revision, oldest first.
var allRevisions = sync.OnceValues(func() ([]Surface, error) {
	entries, err := files.ReadDir(".")
	if err != nil {
		return nil, err
	}
	var list []Surface
	for _, entry := range entries {
		data, err := files.ReadFile(path.Join(entry.Name(), "surface.json"))
		if err != nil {
			return nil, err
		}
		var file Surface
		if err := decodeStrict(data, &file); err != nil {
			return nil, fmt.Errorf("schema/%s/surface.json: %w", entry.Name(), err)
		}
		file.Revision = entry.Name()
		list = append(list, file)
	}
	slices.SortFunc(list, func(a, b Surface) int { return strings.Compare(a.Date+a.Revision, b.Date+b.Revision) })
	return list, nil
})

// Revisions lists all known revisions, oldest first, including those that must be enabled by name.
func Revisions() []string { return listRevisions(func(Standing) bool { return true }) }

// ReleasedRevisions lists the released revisions, oldest first. They are the default.
func ReleasedRevisions() []string {
	return listRevisions(func(s Standing) bool { return s == Released })
}

func listRevisions(wanted func(Standing) bool) []string {
	list, err := allRevisions()
	if err != nil {
		return nil // an embedded file; a test reads it
	}
	var names []string
	for _, s := range list {
		if wanted(s.Standing) {
			names = append(names, s.Revision)
		}
	}
	return names
}
