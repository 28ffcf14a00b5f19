package schemafile

import (
	"errors"
	"fmt"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Schema is a revision described by one or two files.
type Schema struct {
	Files []string
	// Revision is the known revision that equals the schema or is nearest to it.
	Revision string
	// Differences are those from that revision, by place. It is empty if there are none.
	Differences []Difference
}

// Difference is a difference from a known revision.
type Difference struct {
	schema.Difference
	Pos token.Position
	// Optional means that the schema adds something that peers do not need: the messages of the known revision are
	// valid, and its readers ignore the addition.
	Optional bool
}

// Fits reports whether code generated for Revision conforms to the schema, except for new optional
// features.
func (s *Schema) Fits() bool {
	return !slices.ContainsFunc(s.Differences, func(d Difference) bool { return !d.Optional })
}

// Report lists the differences from the nearest revision with their places, and ways to go on. It
// returns "" if there are none.
func (s *Schema) Report() string {
	if len(s.Differences) == 0 {
		return ""
	}
	var b strings.Builder
	names := strings.Join(s.Files, " and ")
	if s.Fits() {
		fmt.Fprintf(&b, "%s: this is revision %s with additions; code is generated as for %[2]s\n", names, s.Revision)
	} else {
		fmt.Fprintf(&b, "%s: unknown revision; the nearest known one is %s, and this differs:\n", names, s.Revision)
	}
	for _, d := range s.Differences {
		fmt.Fprintf(&b, "%v: %v\n", d.Pos, d)
	}
	if !s.Fits() {
		fmt.Fprintf(&b, "nothing is generated; you can:\n"+
			"\tuse a newer mcptaskgen, which may know this revision: go get -tool github.com/mcptaskgen/mcptaskgen/cmd/mcptaskgen@latest\n"+
			"\tgenerate code for peers that still speak %s: --revision %[1]s\n"+
			"\tadd the revision to mcptaskgen, as docs/dev/add-a-revision.md says\n", s.Revision)
	}
	return b.String()
}

// identify compares the files of a revision with all known revisions. The nearest one has the fewest
// differences, of which an optional addition counts least. Among equals, the newest one wins.
func identify(set []*file) (*Schema, error) {
	var best *Schema
	least := 0
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			return nil, err
		}
		if len(surface.Provenance.Sources) == 0 {
			continue // has no schema files
		}
		s, distance := &Schema{Revision: revision}, 0
		document := combineFiles(surface, set)
		for _, d := range surface.Compare(document) {
			optional := isOptional(document, d)
			s.Differences = append(s.Differences, Difference{d, locate(set, d.Pointer), optional})
			distance += map[bool]int{true: 1, false: 4}[optional]
		}
		if best == nil || distance <= least {
			best, least = s, distance
		}
	}
	for _, f := range set {
		best.Files = append(best.Files, f.name)
	}
	return best, nil
}

// isOptional reports whether a difference is a new property, which is optional unless another
// difference requires it, or a new definition that is not a request.
func isOptional(document *schema.Document, d schema.Difference) bool {
	steps := strings.Split(d.Pointer, "/")
	if d.Kind != schema.Added || len(steps) > 3 {
		return d.Kind == schema.Added && steps[len(steps)-2] == "properties"
	}
	definition, _ := document.Definition(steps[2])
	return definition.Method() == "" || strings.HasPrefix(definition.Method(), "notifications/")
}

// combineFiles combines the files of a revision. If only the extension's file is given, it takes
// the core from the known revision.
func combineFiles(surface *schema.Surface, set []*file) *schema.Document {
	documents := make([]*schema.Document, len(set))
	for i, f := range set {
		documents[i] = f.document
	}
	document := schema.Combine(documents...)
	if slices.ContainsFunc(set, (*file).isCore) {
		return document
	}
	for _, definition := range surface.Definitions {
		if _, ok := document.Definition(definition.Name); !ok && !definition.IsAboutTasks() {
			document.Definitions = append(document.Definitions, definition)
		}
	}
	return document
}

// locate returns the position of the innermost place on the way of a JSON pointer that the files have,
// or else only the file.
func locate(set []*file, pointer string) token.Position {
	steps := strings.Split(pointer, "/")[2:] // below $defs
	for _, f := range slices.Backward(set) { // if both files have the definition, the later one counts
		node, offset := f.definitions(), -1
		for _, step := range steps {
			step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
			if i := slices.IndexFunc(node.Members, func(m jsontree.Member) bool { return m.Name == step }); i >= 0 {
				offset, node = node.Members[i].Offset, node.Members[i].Value
			} else if node = node.Step(step); node != nil {
				offset = node.Offset
			} else {
				break
			}
		}
		if offset >= 0 {
			return f.tree.Position(offset)
		}
	}
	return token.Position{Filename: set[len(set)-1].name}
}

// Diff lists the differences between two schemas, each of which is the name of a revision, or the names
// of its files, separated by a comma.
func Diff(dir, from, to string) ([]schema.Difference, error) {
	was, wasSet, errFrom := open(dir, from)
	is, isSet, errTo := open(dir, to)
	if err := errors.Join(errFrom, errTo); err != nil {
		return nil, err
	}
	switch {
	case was != nil && is != nil:
		return schema.Compare(&was.Document, &is.Document), nil
	case was != nil:
		return was.Compare(combineFiles(was, isSet)), nil
	case is != nil:
		found := is.Compare(combineFiles(is, wasSet))
		for i, d := range found {
			kind := map[schema.Kind]schema.Kind{schema.Added: schema.Removed, schema.Removed: schema.Added, schema.Changed: schema.Changed}[d.Kind]
			found[i] = schema.Difference{Pointer: d.Pointer, Kind: kind, From: d.To, To: d.From}
		}
		return found, nil
	}
	return schema.Compare(combineFiles(&schema.Surface{}, wasSet), combineFiles(&schema.Surface{}, isSet)), nil
}

// open opens a revision or its files.
func open(dir, name string) (*schema.Surface, []*file, error) {
	if slices.Contains(schema.Revisions(), name) {
		surface, err := schema.Load(name)
		return surface, nil, err
	}
	sets, err := readSets(dir, strings.Split(name, ","))
	if err != nil {
		return nil, nil, fmt.Errorf("%w\n%s is no known revision either: %s", err, name, strings.Join(schema.Revisions(), ", "))
	}
	if len(sets) > 1 {
		return nil, nil, fmt.Errorf("%s are files of several revisions; give those of one", name)
	}
	return nil, sets[0], nil
}
