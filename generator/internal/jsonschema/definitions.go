package jsonschema

import (
	"cmp"
	"fmt"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

// definition is the schema of a type that others refer to: a struct, or a type that contains itself.
type definition struct {
	key    string // the same for identical types
	t      types.Type
	schema *schema
	uses   []*definition // once per reference in schema
	name   string        // under $defs; empty if the schema is inlined where it is used
	size   int           // the result of countSchemas; 0 if it is not known yet
	ready  bool          // its references are resolved
}

// maxInlined bounds the schemas within one. If inlining makes more, types that are used twice stand under $defs.
const maxInlined = 4000

// assemble inlines every definition, except those that use themselves, which go under $defs. A root that uses itself is
// there too, because some libraries do not read a reference to the root. If inlining would make the schema too large, the
// definitions that are used twice go under $defs too.
func (g *graph) assemble(root *definition) *schema {
	var shared []*definition
	for _, d := range g.queue {
		if d.reaches(d, map[*definition]bool{}) {
			d.size = 1
			shared = append(shared, d)
		}
	}
	if root.countSchemas() > maxInlined {
		shared = g.usedTwice(shared)
	}
	nameDefinitions(shared)
	for _, d := range append(slices.Clone(shared), root) {
		g.resolve(d)
	}
	whole := *root.schema
	whole.Description = "" // the tool's own description is better
	if len(shared) > 0 {
		whole.Definitions = map[string]*schema{}
	}
	for _, d := range shared {
		whole.Definitions[d.name] = d.schema
		g.order = append(g.order, d.name)
	}
	return &whole
}

// resolve resolves the references in a definition, once.
func (g *graph) resolve(d *definition) {
	if !d.ready {
		d.ready = true
		g.expand(d.schema)
	}
}

// usedTwice returns the definitions that are used twice, or are among others.
func (g *graph) usedTwice(others []*definition) []*definition {
	count := map[*definition]int{}
	for _, d := range g.queue {
		for _, used := range d.uses {
			count[used]++
		}
	}
	return slices.DeleteFunc(slices.Clone(g.queue), func(d *definition) bool { return count[d] < 2 && !slices.Contains(others, d) })
}

// countSchemas returns the number of schemas that a definition has when it is inlined.
func (d *definition) countSchemas() int {
	if d.size > 0 {
		return d.size
	}
	size := 1
	if d.schema.Properties != nil {
		size += d.schema.Properties.Len()
	}
	for _, used := range d.uses {
		size = min(size+used.countSchemas(), maxInlined+1)
	}
	d.size = size
	return size
}

// reaches reports whether a definition refers to another, directly or through others.
func (d *definition) reaches(to *definition, seen map[*definition]bool) bool {
	return slices.ContainsFunc(d.uses, func(used *definition) bool {
		known := seen[used]
		seen[used] = true
		return used == to || !known && used.reaches(to, seen)
	})
}

// nameDefinitions names the definitions package.Type. It uses the whole import path if two packages
// have the same name.
func nameDefinitions(shared []*definition) {
	count := map[string]int{}
	for _, d := range shared {
		d.name = definitionName(d.t, (*types.Package).Name)
		count[d.name]++
	}
	taken := map[string]bool{}
	for _, d := range shared {
		name := d.name
		if count[name] > 1 {
			name = definitionName(d.t, func(p *types.Package) string { return strings.ReplaceAll(p.Path(), "/", ".") })
		}
		d.name = name
		for i := 2; taken[d.name]; i++ {
			d.name = name + "_" + strconv.Itoa(i) // signs were dropped, so Page[*int] and Page[[]int] have the same name
		}
		taken[d.name] = true
	}
}

// definitionName returns a type's name without characters that a reference must escape.
func definitionName(t types.Type, qualifier types.Qualifier) string {
	var name strings.Builder
	for _, r := range types.TypeString(t, qualifier) {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '.', r == '_', r == '-':
			name.WriteRune(r)
		case r < unicode.MaxASCII:
			name.WriteByte('_')
		default:
			fmt.Fprintf(&name, "u%04x", r)
		}
	}
	return strings.Trim(name.String(), "_")
}

// expand resolves the references in a schema and lets the nullable schemas in it admit null.
func (g *graph) expand(s *schema) {
	if d := g.references[s]; d != nil {
		if d.name != "" {
			s.Ref = "#/$defs/" + d.name
		} else {
			g.resolve(d)
			inline(s, d.schema)
		}
	} else {
		for _, inner := range children(s) {
			g.expand(inner)
		}
	}
	if g.nullable[s] {
		admitNull(s)
	}
}

// inline puts the schema of a definition in the place of a reference, whose title and text go first.
func inline(s, target *schema) {
	own := *s
	*s = *target
	s.Title, s.Description = cmp.Or(own.Title, s.Title), cmp.Or(own.Description, s.Description)
}

// children lists the schemas inside a schema that typeOf has built.
func children(s *schema) []*schema {
	list := slices.Collect(maps.Values(s.PatternProperties))
	if s.Properties != nil {
		for pair := s.Properties.Oldest(); pair != nil; pair = pair.Next() {
			list = append(list, pair.Value)
		}
	}
	return slices.DeleteFunc(append(list, s.Items, s.AdditionalProperties), func(s *schema) bool { return s == nil })
}

// admitNull adds null to the values of a schema.
func admitNull(s *schema) {
	switch {
	case isEmpty(s): // any value is valid already
	case s.Type != "":
		setExtra(s, "type", []any{s.Type, "null"})
		s.Type = ""
		if s.Enum != nil {
			s.Enum = append(s.Enum, nil)
		}
	default:
		inner := *s
		inner.Title, inner.Description, inner.Default = "", "", nil
		*s = schema{Title: s.Title, Description: s.Description, Default: s.Default}
		if !isEmpty(&inner) {
			s.AnyOf = []*schema{&inner, {Type: "null"}}
		}
	}
}

func setExtra(s *schema, key string, value any) {
	if s.Extras == nil {
		s.Extras = map[string]any{}
	}
	s.Extras[key] = value
}
