package toolschema

import (
	"go/types"
	"slices"
	"unicode/utf8"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// property is a property of an object, combined from all parts and alternatives of its schema.
type property struct {
	name     string
	schema   *schema
	required bool
	at       *jsontree.Node // the schema's node, if one node holds all of it
	// mixed is set if only some alternatives require the property.
	mixed bool
}

// propertyList lists the properties of an object in the order of their first mention.
type propertyList []*property

// find returns the property of a name. It adds it if it is not there yet.
func (l *propertyList) find(name string) *property {
	for _, p := range *l {
		if p.name == name {
			return p
		}
	}
	p := &property{name: name, schema: &schema{}}
	*l = append(*l, p)
	return p
}

// gatherProperties lists the properties of an object: those of its parts, then those of its
// alternatives. A property of alternatives is required if all of them require it.
func (r *resolver) gatherProperties(s *schema) []*property {
	var all propertyList
	for _, part := range s.parts {
		if properties := part.Get("properties"); properties != nil {
			for _, m := range properties.Members {
				p := all.find(m.Name)
				if inner := r.resolve(m.Value); p.schema.isUnconstrained() {
					p.schema, p.at = inner, m.Value
				} else {
					p.schema, p.at = intersect(p.schema, inner), nil
				}
			}
		}
	}
	for _, name := range s.requiredNames() {
		all.find(name).required = true
	}
	for _, union := range s.unions {
		for _, p := range r.gatherUnionProperties(union) {
			known := all.find(p.name)
			known.schema, known.at = intersect(known.schema, p.schema), nil
			known.mixed = !known.required && (known.mixed || p.mixed)
			known.required = known.required || p.required
		}
	}
	return slices.DeleteFunc(all, func(p *property) bool { return p.schema.never && !p.required })
}

// requiredNames lists the properties that the parts of a schema require.
func (s *schema) requiredNames() (names []string) {
	for _, part := range s.parts {
		if required := part.Get("required"); required != nil {
			for _, item := range required.Items {
				if name, ok := item.Text(); ok {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

// gatherUnionProperties lists the properties of alternatives.
func (r *resolver) gatherUnionProperties(union []*schema) []*property {
	var all propertyList
	schemas := map[string][]*schema{}
	seen := map[string]int{} // the number of alternatives that require it
	for _, alternative := range union {
		for _, p := range r.gatherProperties(alternative) {
			known := all.find(p.name)
			known.mixed = known.mixed || p.mixed || p.required
			if p.required {
				seen[p.name]++
			}
			if !slices.ContainsFunc(schemas[p.name], func(s *schema) bool { return s.equalTo(p.schema) }) {
				schemas[p.name] = append(schemas[p.name], p.schema)
			}
		}
	}
	for _, p := range all {
		p.required = seen[p.name] == len(union)
		p.mixed = p.mixed && !p.required
		p.schema = r.unionOf(schemas[p.name])
		p.schema.gathered = p.schema.gathered || len(schemas[p.name]) > 1
	}
	return all
}

// unionOf returns the schema of values that satisfy one of the alternatives.
func (r *resolver) unionOf(alternatives []*schema) *schema {
	if len(alternatives) == 1 {
		return alternatives[0]
	}
	if slices.ContainsFunc(alternatives, (*schema).isUnconstrained) {
		return &schema{}
	}
	s := &schema{unions: [][]*schema{alternatives}}
	r.simplifyUnions(s)
	return s
}

func (s *schema) equalTo(other *schema) bool {
	if s.def != nil || other.def != nil {
		return s.def == other.def
	}
	return s.canonicalText() == other.canonicalText()
}

// remainder tells which additional properties an object may have.
type remainder int

const (
	restNone      remainder = iota // unspecified
	restForbidden                  // none
	restSome                       // properties with a schema
)

// additionalProperties tells which additional properties an object may have. elem is nil if they
// can be anything.
func (r *resolver) additionalProperties(s *schema, properties []*property) (rest remainder, elem *schema) {
	var elems []*schema
	for _, part := range s.parts {
		switch n := part.Get("additionalProperties"); {
		case n == nil:
		case n.Is(false):
			rest = max(rest, restForbidden)
		default:
			elems = append(elems, r.resolve(n))
		}
		if patterns := part.Get("patternProperties"); patterns != nil {
			for _, m := range patterns.Members {
				elems = append(elems, r.resolve(m.Value))
			}
		}
	}
	for _, union := range s.unions {
		for _, alternative := range union {
			if some, _ := r.additionalProperties(alternative, nil); some == restSome {
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
	case len(elems) == 1 && !elems[0].isUnconstrained():
		return restSome, elems[0]
	}
	return restSome, nil
}

// fitsTag reports whether a struct tag can hold the name of a property.
func fitsTag(name string) bool {
	return words.FitsTag(name) && name != "-" && utf8.RuneCountInString(name) <= tagLimit
}

// fillStruct gives the struct of an object its fields.
func (g *goTypes) fillStruct(d *declaration, properties []*property) {
	rest, elem := g.additionalProperties(d.schema, properties)
	var unfit []string
	for _, p := range properties {
		if !fitsTag(p.name) {
			unfit = append(unfit, words.QuoteJSON(p.name))
			continue
		}
		inner := p.schema
		if p.at != nil {
			inner = inner.locatedAt(p.at)
		}
		f := g.convertSchema(inner, origin{property: p.name, parent: d, described: true})
		if g.isInput && p.mixed && f.null {
			// nil cannot stand for both. Decoding does not need the difference.
			f = rawForm("one alternative may need null and another may need it omitted")
		}
		field := &model.Field{JSON: p.name, Optional: !p.required}
		field.Type = fieldType(f, p)
		field.Doc = g.fieldDoc(p, f)
		d.Fields = append(d.Fields, field)
		if p.required && f.list && !f.null {
			d.Filled = append(d.Filled, field)
		}
	}
	own := takenNames{"MarshalJSON": true, "UnmarshalJSON": true}
	for _, field := range sortedBy(d.Fields, func(f *model.Field) string { return namingOrder(f.JSON) }) {
		field.Name = own.takeUnique(exportedName(field.JSON, nameLimit))
	}
	if rest == restSome {
		value := form{typ: anyType, nilable: true}
		if elem != nil {
			value = g.convertSchema(elem, origin{parent: d, parts: []string{"a value"}, what: "the additional properties"})
		}
		name := own.takeUnique("AdditionalProperties")
		d.Fields = append(d.Fields, &model.Field{
			Name: name, Rest: true, Doc: restDoc(name, unfit, value), Type: types.NewMap(types.Typ[types.String], elementType(value)),
		})
	}
}

// fieldType returns the type of a field. It is a pointer if nil stands for absence or null and the
// type has no nil. It also is one if absence would look like a zero value that is not the default.
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

// defaultsToZero reports whether absence means the zero value.
func defaultsToZero(s *schema) bool {
	n := s.firstValue("default")
	return n != nil && (n.Is(false) || n.Is("") || s.numberValue("default", 1) == 0)
}
