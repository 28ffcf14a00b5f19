package generator

import (
	"errors"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/schemafile"
)

// revisions are those to generate for, the oldest first: the ones that the configuration names and those
// of its schema files; notes is what these have that the runtime does without.
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
