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
func (cfg Config) revisions(dir string) (revisions []string, notes string, err error) {
	wanted := slices.Clone(cfg.Revisions)
	schemas, err := schemafile.Read(dir, cfg.Schemas)
	if err != nil {
		return nil, "", err
	}
	var reports, failed []string
	for _, s := range schemas {
		wanted = append(wanted, s.Revision)
		reports = append(reports, s.Report())
		if !s.Fits() {
			failed = append(failed, strings.TrimSuffix(s.Report(), "\n"))
		}
	}
	if len(failed) > 0 {
		return nil, "", errors.New(strings.Join(failed, "\n"))
	}
	revisions, err = Revisions(wanted)
	return revisions, strings.Join(reports, ""), err
}
