package generator

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/emit"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/schemafile"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// protocolFor returns the statuses and capabilities for a generated file. It reads them once for all files with the
// same revisions.
func (g *generation) protocolFor(c Command) (emit.Protocol, error) {
	flags := c.Relative(c.Dir, g.dir)
	key := fmt.Sprintf("%q %q", flags.Revisions, flags.Schemas)
	if protocol, ok := g.protocols[key]; ok {
		return protocol, nil
	}
	revisions, notes, err := readRevisions(g.dir, flags)
	if err != nil {
		return emit.Protocol{}, err
	}
	g.notes = append(g.notes, notes...)
	g.protocols[key], err = readProtocol(revisions)
	return g.protocols[key], err
}

// readProtocol reads the statuses and capabilities of revisions. A status that no released revision has is left out,
// because the runtime never shows it.
func readProtocol(revisions []string) (emit.Protocol, error) {
	var protocol emit.Protocol
	surfaces, shown := map[string]*schema.Surface{}, map[string]bool{}
	for _, revision := range append(schema.ReleasedRevisions(), revisions...) {
		if surfaces[revision] != nil {
			continue
		}
		surface, err := schema.Load(revision)
		if err != nil {
			return protocol, err
		}
		surfaces[revision] = surface
		for _, s := range surface.Statuses {
			shown[s.Name] = shown[s.Name] || surface.Standing == schema.Released
		}
	}
	for _, revision := range revisions {
		surface := surfaces[revision]
		if len(surface.ServerCapabilities) > 0 {
			protocol.Capabilities = append(protocol.Capabilities, emit.Capability{Revision: revision, JSON: string(surface.ServerCapabilities)})
		}
		for _, s := range surface.Statuses {
			if shown[s.Name] && !slices.Contains(protocol.Statuses, s.Name) {
				protocol.Statuses = append(protocol.Statuses, s.Name)
			}
		}
	}
	return protocol, nil
}

// readRevisions returns the revisions to generate for, oldest first. They are those that the flags
// name and those of the flags' schema files, relative to dir. notes describes the parts of the
// schema files that the runtime does not support.
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

// findRevisions returns the wanted protocol revisions, oldest first. It returns all released revisions
// if wanted is empty.
func findRevisions(wanted []string) ([]string, error) {
	known := schema.Revisions()
	if len(wanted) == 0 {
		return schema.ReleasedRevisions(), nil
	}
	for _, revision := range wanted {
		if slices.Contains(known, revision) {
			continue
		}
		hint := "known revisions are " + strings.Join(known, ", ")
		if near := diag.Nearest(revision, known); near != "" {
			hint = fmt.Sprintf("did you mean %s? %s", near, hint)
		}
		return nil, fmt.Errorf("%q is not a protocol revision with tasks; %s", revision, hint)
	}
	return slices.DeleteFunc(known, func(revision string) bool { return !slices.Contains(wanted, revision) }), nil
}

// DiffSchemas lists the differences between two schemas. Each is the name of a known revision, or the
// path of a published schema file, relative to dir. If a revision has two files, a comma separates them.
// An empty dir is the process's own.
func DiffSchemas(dir, from, to string) ([]schema.Difference, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	return schemafile.Diff(dir, from, to)
}
