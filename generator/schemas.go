package generator

import (
	"errors"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/schemafile"
)

// readRevisions returns the revisions to generate for, oldest first: those that the flags name and
// those of their schema files, relative to dir. notes describes what the schema files have and the
// runtime does not support.
func readRevisions(dir string, flags commandline.Flags) (revisions []string, notes []string, err error) {
	wanted := slices.Clone(flags.Revisions)
	schemas, err := schemafile.Read(dir, flags.Schemas)
	if err != nil {
		return nil, nil, err
	}
	var failed []string
	for _, s := range schemas {
		wanted = append(wanted, s.Revision)
		report := strings.TrimSuffix(s.Report(), "\n")
		switch {
		case !s.Fits():
			failed = append(failed, report)
		case report != "":
			notes = append(notes, report)
		}
	}
	if len(failed) > 0 {
		return nil, nil, errors.New(strings.Join(failed, "\n"))
	}
	revisions, err = findRevisions(wanted)
	return revisions, notes, err
}
