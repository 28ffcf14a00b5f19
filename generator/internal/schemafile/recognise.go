package schemafile

import (
	"bytes"
	"encoding/json"
	"go/token"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Schema is one revision, as a file or two say it.
type Schema struct {
	Files []string
	// Revision is the known revision that the schema is, or is nearest to.
	Revision string
	// Findings are what differs from that revision, the errors first; none where the schema is it.
	Findings []Finding
}

// Fits tells whether code that is generated for Revision does what the schema says, but for what is new
// in it and may be left out.
func (s *Schema) Fits() bool { return s.worstLevel() < Failure }

func (s *Schema) worstLevel() Level {
	worst := Fine
	for _, f := range s.Findings {
		worst = max(worst, f.Level())
	}
	return worst
}

// identify compares the files of a revision with all that are known. The nearest is the one with the
// least that matters, of several the newest.
func identify(set []*file) (*Schema, error) {
	var best *Schema
	least := 0
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			return nil, err
		}
		if len(surface.Provenance.Sources) == 0 {
			continue // no file can be of it
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

// compareWith lists what differs from a revision.
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

// combineFiles puts the files of a revision together. What the core says comes from the known revision where
// there is the file of the extension alone.
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
		if has := slices.ContainsFunc(document.Definitions, func(d schema.Definition) bool { return d.Name == definition.Name }); !has && !isTaskDefinition(definition.Name) {
			document.Definitions = append(document.Definitions, definition)
		}
	}
	return document
}

// followRenames gives definitions that have another name now, and the same content, their old one. It
// returns the new names by the old ones.
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

// renamedDefinition finds a definition that is gone and a new one of the same content; of several new
// ones, the one with the most similar name.
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
		if ownOnly := listed && len(parts) == 0; ownOnly || !isTaskDefinition(d.Name) || slices.ContainsFunc(document.Definitions, func(o schema.Definition) bool { return o.Name == d.Name }) {
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

// renameDefinition gives a definition of a document another name, where it stands and where others refer to it.
func renameDefinition(document *schema.Document, from, to string) (*schema.Document, error) {
	var text bytes.Buffer
	text.WriteString(`{"$defs":{`)
	for i, d := range document.Definitions {
		if i > 0 {
			text.WriteByte(',')
		}
		if d.Name == from {
			d.Name = to
		}
		name, err := json.Marshal(d.Name)
		if err != nil {
			return nil, err
		}
		text.Write(name)
		text.WriteByte(':')
		text.Write(d.Schema)
	}
	text.WriteString(`}}`)
	content := text.String()
	for _, prefix := range []string{`"#/$defs/`, `"#/definitions/`} {
		content = strings.ReplaceAll(content, prefix+from+`"`, prefix+to+`"`)
	}
	return schema.Parse([]byte(content))
}

// similarity is how long the beginning and the end are that two names share.
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

// findHiddenMethods are messages of tasks whose definitions do not have the word in their names, by which
// schema.Compare finds new ones.
func findHiddenMethods(surface *schema.Surface, document *schema.Document) []schema.Difference {
	var found []schema.Difference
	for _, d := range document.Definitions {
		method := methodOf(string(d.Schema))
		if _, known := surface.Definition(d.Name); known || isTaskDefinition(d.Name) || !strings.HasPrefix(strings.TrimPrefix(method, "notifications/"), "tasks") {
			continue
		}
		found = append(found, schema.Difference{
			Path: d.Name, Definition: d.Name, Aspect: schema.AspectDefinition, Kind: schema.Added, Official: string(d.Schema),
		})
	}
	return found
}

// locateFinding finds where a finding stands in the files: a property of its place, the innermost that is there,
// or its definition; the file alone where that is nowhere in it.
func locateFinding(set []*file, f Finding) token.Position {
	var properties []string
	if f.Kind == MemberRenamed {
		properties = append(properties, f.Is)
	}
	inner := strings.TrimRight(f.Place, "[]{}")
	for i := len(inner) - 1; i >= 0; i-- { // a name may have dots in it: the shortest comes first
		if inner[i] == '.' {
			properties = append(properties, inner[i+1:])
		}
	}
	for _, property := range append(properties, "") {
		at := place{f.definition, property}
		for i := range set {
			// Of two files with the same definition, the later counts.
			if pos, ok := set[len(set)-1-i].places[at]; ok {
				return pos
			}
		}
	}
	return token.Position{Filename: set[len(set)-1].name}
}
