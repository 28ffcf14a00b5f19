package toolschema

import (
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// values are the values that an enum or a const leaves, null aside; limited is false where there is
// neither.
func (s *schema) values() (values []*node, limited bool) {
	for _, part := range s.parts {
		for _, keyword := range []string{"enum", "const"} {
			n := part.get(keyword)
			if n == nil {
				continue
			}
			here := []*node{n}
			if keyword == "enum" {
				here = n.items
			}
			if !limited {
				values, limited = slices.Clone(here), true
				continue
			}
			there := map[string]bool{}
			for _, h := range here {
				there[h.line()] = true
			}
			values = slices.DeleteFunc(values, func(v *node) bool { return !there[v.line()] })
		}
	}
	seen := map[string]bool{}
	kinds := s.kindsOfType()
	values = slices.DeleteFunc(values, func(v *node) bool {
		line := v.line()
		drop := v.is(nil) || seen[line] || kinds != nil && !slices.ContainsFunc(kinds, func(k string) bool { return v.isOf(k) })
		seen[line] = true
		return drop
	})
	return values, limited
}

// isOf tells whether a value is of a kind.
func (n *node) isOf(kind string) bool {
	switch kind {
	case "object":
		return n.kind == object
	case "array":
		return n.kind == array
	case "integer":
		return n.what() == "a number" && !strings.ContainsAny(n.line(), ".eE")
	}
	return n.what() == articles[kind]
}

// enum makes the type of a list of values; docs says what some of them mean.
func (g *goTypes) enum(values []*node, docs map[*node]string, s *schema, l label) form {
	all := func(kind string) bool {
		return !slices.ContainsFunc(values, func(v *node) bool { return !v.isOf(kind) })
	}
	switch {
	case all("string"):
		return g.constants(values, docs, s, l)
	case all("boolean"):
		return form{typ: types.Typ[types.Bool], zero: true}
	case all("integer"):
		typ := numberType(s, "integer")
		for _, v := range values {
			if _, err := strconv.ParseInt(v.line(), 10, 64); err != nil && typ == types.Typ[types.Int64] {
				typ = jsonNumber
			}
		}
		return form{typ: typ, zero: true}
	case all("number"):
		return form{typ: types.Typ[types.Float64], zero: true}
	}
	return raw("its values are of several types")
}

// constants declares the type of a list of strings.
func (g *goTypes) constants(values []*node, docs map[*node]string, s *schema, l label) form {
	id := g.take(l)
	l.id = id
	f := form{typ: g.name(id)}
	d := &model.DeclaredType{Name: id, Doc: typeDoc(l, s), Type: types.Typ[types.String]}
	g.declared = append(g.declared, d)
	consts := map[*node]string{}
	for _, v := range sortedBy(values, func(v *node) string { return preference(v.line()) }) {
		text, _ := v.text()
		consts[v] = g.taken.unique(id + camel(text, max(constLimit-len([]rune(id)), 4)))
		f.zero = f.zero || text == ""
	}
	for _, v := range values {
		text, _ := v.text()
		d.Consts = append(d.Consts, model.Const{Name: consts[v], Doc: constDoc(consts[v], docs[v]), Value: text})
	}
	return f
}

// union makes the type of a schema with alternatives.
func (g *goTypes) union(s *schema, kinds []string, l label) form {
	if found := s.alternatives(); slices.Equal(found, []string{"object"}) || kinds != nil && slices.Equal(kinds, []string{"object"}) {
		return g.single(s, "object", l)
	} else if found == nil && kinds == nil {
		return form{typ: anyType, nilable: true, null: true, zero: true}
	}
	if len(s.unions) > 1 {
		return raw("several unions limit it at once")
	}
	base := &schema{parts: slices.DeleteFunc(slices.Clone(s.parts), func(p *node) bool { return plain(p, "anyOf", "oneOf") })}
	var found []string
	var values, items []*node
	docs, known := map[*node]string{}, map[string]bool{}
	enums := true
	formats := map[string]bool{}
	for _, alternative := range s.unions[0] {
		whole := and(alternative, base)
		here, limited := whole.values()
		enums = enums && limited && len(alternative.unions) == 0
		for _, v := range here {
			if line := v.line(); !known[line] {
				known[line] = true
				values = append(values, v)
				if len(here) == 1 {
					docs[v] = strings.TrimSpace(alternative.text("title") + "\n\n" + alternative.text("description"))
				}
			}
		}
		for _, kind := range whole.kindsOfAll() {
			if !slices.Contains(found, kind) {
				found = append(found, kind)
			}
		}
		formats[whole.text("format")] = true
		for _, part := range alternative.parts {
			if n := part.get("items"); n != nil && n.kind == object {
				items = append(items, n)
			}
		}
	}
	slices.Sort(found)
	switch {
	case enums:
		return g.enum(values, docs, s, l)
	case slices.Equal(found, []string{"string"}) && len(formats) == 1 && formats["date-time"]:
		return form{typ: timeTime}
	case slices.Equal(found, []string{"array"}) && len(items) == len(s.unions[0]):
		var either []*schema
		for _, n := range items {
			if item := g.resolve(n); !slices.ContainsFunc(either, item.same) {
				either = append(either, item)
			}
		}
		return g.listOf(g.eitherOf(either), l)
	case slices.Equal(found, []string{"array"}):
		return around(types.NewSlice(rawMessage), "items", raw("they are of several kinds"))
	case slices.Equal(found, []string{"integer", "number"}):
		return form{typ: types.Typ[types.Float64], zero: true}
	case len(found) == 1 && found[0] == "integer":
		return form{typ: types.Typ[types.Int64], zero: true}
	case len(found) == 1:
		return g.single(&schema{parts: base.parts}, found[0], l)
	}
	return raw("it is " + either(found))
}

// alternatives are the kinds of all alternatives of all unions, sorted; nil where one may be anything.
func (s *schema) alternatives() []string {
	var found []string
	for _, union := range s.unions {
		for _, alternative := range union {
			kinds := alternative.kindsOfAll()
			if kinds == nil {
				return nil
			}
			for _, kind := range kinds {
				if !slices.Contains(found, kind) {
					found = append(found, kind)
				}
			}
		}
	}
	slices.Sort(found)
	return found
}

// kindsOfAll are the kinds of a schema, its unions included; nil is any.
func (s *schema) kindsOfAll() []string {
	if values, limited := s.values(); limited {
		kinds := []string{}
		for _, v := range values {
			for _, kind := range []string{"boolean", "object", "array", "integer", "number", "string"} {
				if v.isOf(kind) {
					if !slices.Contains(kinds, kind) {
						kinds = append(kinds, kind)
					}
					break
				}
			}
		}
		return kinds
	}
	if s.typed() || len(s.unions) == 0 {
		return s.kinds()
	}
	return s.alternatives()
}

func (s *schema) typed() bool { return s.first("type") != nil }

// kindsOfType is what the keyword type leaves; nil where it does not stand there.
func (s *schema) kindsOfType() []string {
	if !s.typed() {
		return nil
	}
	return s.kinds()
}
