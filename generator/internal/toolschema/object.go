package toolschema

import (
	"go/types"
	"slices"
	"strings"
	"unicode"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// property is a property of an object, whichever parts and alternatives of its schema speak of it.
type property struct {
	name     string
	schema   *schema
	required bool
	at       *node // where the schema stands, if all of it is there
	// mixed says that it depends on an alternative whether the property is required.
	mixed bool
}

// gather lists the properties of an object: those of its parts, then those of the alternatives, a
// property of which is required where it is in each of them.
func (r *resolver) gather(s *schema) []*property {
	var all []*property
	find := func(name string) *property {
		for _, p := range all {
			if p.name == name {
				return p
			}
		}
		p := &property{name: name, schema: &schema{}}
		all = append(all, p)
		return p
	}
	for _, part := range s.parts {
		if properties := part.get("properties"); properties != nil {
			for _, m := range properties.members {
				p := find(m.name)
				if inner := r.resolve(m.value); p.schema.unbound() {
					p.schema, p.at = inner, m.value
				} else {
					p.schema, p.at = and(p.schema, inner), nil
				}
			}
		}
	}
	for _, part := range s.parts {
		if required := part.get("required"); required != nil {
			for _, item := range required.items {
				if name, ok := item.text(); ok {
					find(name).required = true
				}
			}
		}
	}
	for _, union := range s.unions {
		for _, p := range r.gatherUnion(union) {
			known := find(p.name)
			known.schema, known.at = and(known.schema, p.schema), nil
			known.mixed = !known.required && (known.mixed || p.mixed)
			known.required = known.required || p.required
		}
	}
	return slices.DeleteFunc(all, func(p *property) bool { return p.schema.never && !p.required })
}

// gatherUnion lists the properties of alternatives.
func (r *resolver) gatherUnion(union []*schema) []*property {
	var all []*property
	index := map[string]*property{}
	schemas := map[string][]*schema{}
	seen := map[string]int{} // in how many alternatives it is required
	for _, alternative := range union {
		for _, p := range r.gather(alternative) {
			known := index[p.name]
			if known == nil {
				known = &property{name: p.name}
				index[p.name] = known
				all = append(all, known)
			}
			known.mixed = known.mixed || p.mixed || p.required
			if p.required {
				seen[p.name]++
			}
			if !slices.ContainsFunc(schemas[p.name], func(s *schema) bool { return s.same(p.schema) }) {
				schemas[p.name] = append(schemas[p.name], p.schema)
			}
		}
	}
	for _, p := range all {
		p.required = seen[p.name] == len(union)
		p.mixed = p.mixed && !p.required
		p.schema = r.eitherOf(schemas[p.name])
	}
	return all
}

// eitherOf is the schema of what satisfies one of several.
func (r *resolver) eitherOf(alternatives []*schema) *schema {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	if slices.ContainsFunc(alternatives, (*schema).unbound) {
		return &schema{}
	}
	s := &schema{unions: [][]*schema{alternatives}}
	r.simplify(s)
	return s
}

func (s *schema) same(other *schema) bool {
	if s.def != nil || other.def != nil {
		return s.def == other.def
	}
	return s.canonical() == other.canonical()
}

// remainder is what an object may have beside its properties.
type remainder int

const (
	restNone      remainder = iota // its schema does not say
	restForbidden                  // nothing
	restSome                       // properties of a schema
)

// rest tells what an object may have beside its properties; elem is nil where that is anything.
func (r *resolver) rest(s *schema, properties []*property) (rest remainder, elem *schema) {
	var elems []*schema
	for _, part := range s.parts {
		switch n := part.get("additionalProperties"); {
		case n == nil:
		case n.is(false):
			rest = max(rest, restForbidden)
		default:
			elems = append(elems, r.resolve(n))
		}
		if patterns := part.get("patternProperties"); patterns != nil {
			for _, m := range patterns.members {
				elems = append(elems, r.resolve(m.value))
			}
		}
	}
	for _, union := range s.unions {
		for _, alternative := range union {
			if some, _ := r.rest(alternative, nil); some == restSome {
				elems = append(elems, &schema{}, &schema{})
			}
		}
	}
	if slices.ContainsFunc(properties, func(p *property) bool { return !fitsTag(p.name) }) {
		elems = append(elems, &schema{}, &schema{})
	}
	switch {
	case len(elems) == 0:
		return rest, nil
	case len(elems) == 1 && !elems[0].unbound():
		return restSome, elems[0]
	}
	return restSome, nil
}

// fitsTag tells whether encoding/json can find a property by a tag, on a line that is not too long.
func fitsTag(name string) bool {
	return name != "" && name != "-" && len([]rune(name)) <= tagLimit && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&()*+-./:;<=>?@[]^_{|}~ ", r) && !unicode.IsLetter(r) && !unicode.IsDigit(r)
	})
}

// structure declares the struct of an object.
func (g *goTypes) structure(s *schema, l label, properties []*property) {
	d := &model.DeclaredType{Name: l.id}
	g.declared = append(g.declared, d)
	rest, elem := g.rest(s, properties)
	var unfit []string
	for _, p := range properties {
		if !fitsTag(p.name) {
			unfit = append(unfit, quote(p.name))
			continue
		}
		room := rowLimit - 11 - len([]rune(p.name)) - min(len([]rune(p.name)), fieldLimit)
		below := label{
			id: joinName(l.id, p.name, max(min(typeLimit, room), 12)), what: "the property " + quote(p.name) + " of " + l.id, told: true,
		}
		inner := p.schema
		if p.at != nil {
			inner = inner.at(p.at)
		}
		f := g.convert(inner, below)
		if g.sent && p.mixed && f.null {
			// nil cannot stand for both, and what is received has no need of the difference.
			f = raw("one alternative may need null, and another that it is left out")
		}
		field := &model.Field{JSON: p.name, Optional: !p.required}
		field.Type = fieldType(f, p)
		field.Doc = g.fieldDoc(p, f)
		d.Fields = append(d.Fields, field)
		if g.sent && p.required && f.list && !f.null {
			d.Filled = append(d.Filled, field)
		}
	}
	own := names{"MarshalJSON": true, "UnmarshalJSON": true}
	for _, field := range sortedBy(d.Fields, func(f *model.Field) string { return preference(f.JSON) }) {
		width := len(types.TypeString(field.Type, (*types.Package).Name))
		room := rowLimit - width - len([]rune(field.JSON))
		field.Name = own.unique(identifier(field.JSON, max(min(fieldLimit, room), 8)))
	}
	if rest == restSome {
		value := form{typ: anyType, nilable: true}
		if elem != nil {
			value = g.convert(elem, label{id: joinName(l.id, "value", typeLimit), what: "a further property of " + l.id})
		}
		d.Rest = element(value)
		name := own.unique("AdditionalProperties")
		d.Fields = append(d.Fields, &model.Field{
			Name: name, Rest: true, Doc: restDoc(name, unfit, value), Type: types.NewMap(types.Typ[types.String], d.Rest),
		})
	}
	d.Doc = typeDoc(l, s)
}

// fieldType is the type of a field: a pointer where nil stands for absence or null and the type has
// none of its own, and where absence would look like a zero value that is not the default.
func fieldType(f form, p *property) types.Type {
	pointer := types.NewPointer(f.typ)
	switch {
	case f.nilable:
		return f.typ
	case f.null, f.recursive:
		return pointer
	case p.required:
		return f.typ
	case f.isStruct:
		return pointer
	case f.zero && (p.mixed || !defaultsToZero(p.schema)):
		return pointer
	}
	return f.typ
}

// defaultsToZero tells whether absence means the zero value.
func defaultsToZero(s *schema) bool {
	n := s.first("default")
	return n != nil && (n.is(false) || n.is("") || s.number("default", 1) == 0)
}
