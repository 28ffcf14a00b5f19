package generator

import (
	"errors"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/schemafile"
)

// revisions returns the revisions to generate for, oldest first: those that the configuration names
// and those of its schema files. notes describes what the schema files have and the runtime does
// not support.
func (cfg Config) revisions(dir string) (revisions []string, notes []string, err error) {
	wanted := slices.Clone(cfg.Revisions)
	schemas, err := schemafile.Read(dir, cfg.Schemas)
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
	revisions, err = Revisions(wanted)
	return revisions, notes, err
}
