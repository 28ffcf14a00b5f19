package schemafile

import (
	"bytes"
	"encoding/json"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Schema is a revision described by one or two files.
type Schema struct {
	Files []string
	// Revision is the known revision that equals the schema or is nearest to it.
	Revision string
	// Findings are the differences from that revision, errors first. It is empty if there are none.
	Findings []Finding
}

// Fits reports whether code generated for Revision conforms to the schema, except for new optional
// features.
func (s *Schema) Fits() bool { return s.worstLevel() < Failure }

func (s *Schema) worstLevel() Level {
	worst := Fine
	for _, f := range s.Findings {
		worst = max(worst, f.Level())
	}
	return worst
}

// identify compares the files of a revision with all known revisions. The nearest one has the least
// important differences. Among equals, the newest one wins.
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
		findings, err := compareWith(surface, set)
		if err != nil {
			return nil, err
		}
		distance := 0
		for _, f := range findings {
			distance += map[Level]int{Note: 1, Failure: 4}[f.Level()]
		}
		if best == nil || distance <= least {
			best, least = &Schema{Revision: revision, Findings: findings}, distance
		}
	}
	for _, f := range set {
		best.Files = append(best.Files, f.name)
	}
	return best, nil
}

func compareWith(surface *schema.Surface, set []*file) ([]Finding, error) {
	document := combineFiles(surface, set)
	document, renamed, err := followRenames(surface, document)
	if err != nil {
		return nil, err
	}
	differences := append(schema.Compare(surface, document), findHiddenMethods(surface, document)...)
	findings := classify(surface, differences)
	for was, is := range renamed {
		findings = append(findings, Finding{Kind: DefinitionRenamed, Place: was, Was: was, Is: is, definition: was})
	}
	for i := range findings {
		f := &findings[i]
		if is := renamed[f.definition]; is != "" {
			f.definition = is
		}
		f.Pos = locateFinding(set, *f)
	}
	slices.SortFunc(findings, compareFindings)
	return findings, nil
}

// combineFiles combines the files of a revision. If only the extension's file is given, it takes
// the core from the known revision.
func combineFiles(surface *schema.Surface, set []*file) *schema.Document {
	documents := make([]*schema.Document, len(set))
	core := false
	for i, f := range set {
		documents[i] = f.document
		core = core || f.isCore()
	}
	document := schema.Combine(documents...)
	if core {
		return document
	}
	for _, definition := range surface.Definitions {
		if !hasDefinition(document, definition.Name) && !isTaskDefinition(definition.Name) {
			document.Definitions = append(document.Definitions, definition)
		}
	}
	return document
}

func hasDefinition(document *schema.Document, name string) bool {
	return slices.ContainsFunc(document.Definitions, func(d schema.Definition) bool { return d.Name == name })
}

// followRenames restores the old names of definitions that were renamed without other changes. It
// returns the new names by old name.
func followRenames(surface *schema.Surface, document *schema.Document) (*schema.Document, map[string]string, error) {
	renamed := map[string]string{}
	ours := &schema.Document{Definitions: surface.Definitions}
	for {
		was, is := renamedDefinition(surface, ours, document)
		if was == "" {
			return document, renamed, nil
		}
		renamed[was] = is
		var err error
		if document, err = renameDefinition(document, is, was); err != nil {
			return nil, nil, err
		}
	}
}

// renamedDefinition finds a removed definition and a new one with the same content. Among several
// new ones, it picks the most similar name.
func renamedDefinition(surface *schema.Surface, ours, document *schema.Document) (was, is string) {
	var extra []string
	for _, d := range document.Definitions {
		if _, known := surface.Definition(d.Name); !known && isTaskDefinition(d.Name) {
			extra = append(extra, d.Name)
		}
	}
	if len(extra) == 0 {
		return "", ""
	}
	for _, d := range surface.Definitions {
		parts, listed := surface.Compared[d.Name]
		isOwn := listed && len(parts) == 0
		if isOwn || !isTaskDefinition(d.Name) || hasDefinition(document, d.Name) {
			continue
		}
		want, _ := schema.Fingerprint(surface, ours, d.Name)
		for _, name := range extra {
			got, _ := schema.Fingerprint(surface, document, name)
			if got == want && (is == "" || similarity(d.Name, name) > similarity(d.Name, is)) {
				was, is = d.Name, name
			}
		}
		if was != "" {
			return was, is
		}
	}
	return "", ""
}

func renameDefinition(document *schema.Document, from, to string) (*schema.Document, error) {
	definitions := map[string]json.RawMessage{}
	for _, d := range document.Definitions {
		if d.Name == from {
			d.Name = to
		}
		definitions[d.Name] = d.Schema
	}
	text, err := json.Marshal(map[string]any{"$defs": definitions})
	if err != nil {
		return nil, err
	}
	for _, prefix := range []string{`"#/$defs/`, `"#/definitions/`} {
		text = bytes.ReplaceAll(text, []byte(prefix+from+`"`), []byte(prefix+to+`"`))
	}
	return schema.Parse(text)
}

// similarity returns the total length of the common prefix and suffix of two names.
func similarity(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	a, b = a[n:], b[n:]
	for len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
		n++
	}
	return n
}

// findHiddenMethods finds messages about tasks whose definitions do not have Task in their name.
// schema.Compare only finds new definitions by that word.
func findHiddenMethods(surface *schema.Surface, document *schema.Document) []schema.Difference {
	var found []schema.Difference
	for _, d := range document.Definitions {
		if _, known := surface.Definition(d.Name); known || isTaskDefinition(d.Name) {
			continue
		}
		method := strings.TrimPrefix(methodOf(string(d.Schema)), "notifications/")
		if !strings.HasPrefix(method, "tasks") {
			continue
		}
		found = append(found, schema.Difference{
			Path: d.Name, Definition: d.Name, Aspect: schema.AspectDefinition, Kind: schema.Added, Official: string(d.Schema),
		})
	}
	return found
}

// locateFinding returns the position of a finding: the innermost property of its place in the
// files, or else its definition, or else only the file.
func locateFinding(set []*file, f Finding) token.Position {
	var properties []string
	if f.Kind == MemberRenamed {
		properties = append(properties, f.Is)
	}
	inner := strings.TrimRight(f.Place, "[]{}")
	for i := len(inner) - 1; i >= 0; i-- { // names may contain dots, so try the shortest one first
		if inner[i] == '.' {
			properties = append(properties, inner[i+1:])
		}
	}
	for _, property := range append(properties, "") {
		at := place{f.definition, property}
		for i := range set {
			// If both files have the definition, the later one counts.
			if pos, ok := set[len(set)-1-i].places[at]; ok {
				return pos
			}
		}
	}
	return token.Position{Filename: set[len(set)-1].name}
}
