package toolschema

import (
	"go/types"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// enumValues returns the values that enum and const allow, except null. limited is false if the
// schema has neither keyword.
func (s *schema) enumValues() (values []*jsontree.Node, limited bool) {
	for _, part := range s.parts {
		for _, keyword := range []string{"enum", "const"} {
			n := part.Get(keyword)
			if n == nil {
				continue
			}
			here := []*jsontree.Node{n}
			if keyword == "enum" {
				here = n.Items
			}
			if !limited {
				values, limited = slices.Clone(here), true
				continue
			}
			there := map[string]bool{}
			for _, h := range here {
				there[h.Compact()] = true
			}
			values = slices.DeleteFunc(values, func(v *jsontree.Node) bool { return !there[v.Compact()] })
		}
	}
	seen := map[string]bool{}
	var kinds []string
	if s.hasType() {
		kinds = s.validKinds()
	}
	values = slices.DeleteFunc(values, func(v *jsontree.Node) bool {
		line := v.Compact()
		drop := v.Is(nil) || seen[line] || kinds != nil && !slices.ContainsFunc(kinds, func(k string) bool { return hasKind(v, k) })
		seen[line] = true
		return drop
	})
	return values, limited
}

// kindOf returns the kind of a value, or "" for null.
func kindOf(n *jsontree.Node) string {
	if n.Kind == jsontree.Number && !strings.ContainsAny(n.Compact(), ".eE") {
		return "integer"
	}
	_, kind, _ := strings.Cut(n.Kind.String(), " ")
	return kind
}

// hasKind reports whether a value has a kind.
func hasKind(n *jsontree.Node, kind string) bool {
	return kindOf(n) == kind || kind == "number" && n.Kind == jsontree.Number
}

// enumForm returns the form of an enum. docs holds the meanings of some values.
func (g *goTypes) enumForm(values []*jsontree.Node, docs map[*jsontree.Node]string, s *schema, from origin) form {
	all := func(kind string) bool {
		return !slices.ContainsFunc(values, func(v *jsontree.Node) bool { return !hasKind(v, kind) })
	}
	switch {
	case all("string"):
		return g.declareConstants(values, docs, s, from)
	case all("boolean"):
		return form{typ: types.Typ[types.Bool], zero: true}
	case all("integer"):
		typ := numberType(s, "integer")
		for _, v := range values {
			if _, err := strconv.ParseInt(v.Compact(), 10, 64); err != nil && typ == types.Typ[types.Int64] {
				typ = jsonNumber
			}
		}
		return form{typ: typ, zero: true}
	case all("number"):
		return form{typ: types.Typ[types.Float64], zero: true}
	}
	return rawForm("its values are of several types")
}

// declareConstants declares a string type with constants.
func (g *goTypes) declareConstants(values []*jsontree.Node, docs map[*jsontree.Node]string, s *schema, from origin) form {
	d := g.declare(s, from)
	d.Type, d.values, d.docs = types.Typ[types.String], values, docs
	zero := slices.ContainsFunc(values, func(v *jsontree.Node) bool { return v.Is("") })
	return form{typ: d.named, zero: zero}
}

// unionForm returns the form of a schema with alternatives.
func (g *goTypes) unionForm(s *schema, kinds []string, from origin) form {
	if found := s.alternativeKinds(); slices.Equal(found, []string{"object"}) || kinds != nil && slices.Equal(kinds, []string{"object"}) {
		return g.singleKindForm(s, "object", from)
	} else if found == nil && kinds == nil {
		return form{typ: anyType, nilable: true, null: true, zero: true}
	}
	if len(s.unions) > 1 {
		return rawForm("several unions limit it at once")
	}
	base := &schema{parts: slices.DeleteFunc(slices.Clone(s.parts), func(p *jsontree.Node) bool { return hasOnlyAnnotations(p, "anyOf", "oneOf") })}
	var found []string
	var values, items []*jsontree.Node
	docs, known := map[*jsontree.Node]string{}, map[string]bool{}
	enums := true
	formats := map[string]bool{}
	for _, alternative := range s.unions[0] {
		whole := intersect(alternative, base)
		here, limited := whole.enumValues()
		enums = enums && limited && len(alternative.unions) == 0
		for _, v := range here {
			if line := v.Compact(); !known[line] {
				known[line] = true
				values = append(values, v)
				if len(here) == 1 {
					docs[v] = strings.TrimSpace(alternative.text("title") + "\n\n" + alternative.text("description"))
				}
			}
		}
		found = addMissing(found, whole.allKinds()...)
		formats[whole.text("format")] = true
		for _, part := range alternative.parts {
			if n := part.Get("items"); n != nil && n.Kind == jsontree.Object {
				items = append(items, n)
			}
		}
	}
	slices.Sort(found)
	switch {
	case enums:
		return g.enumForm(values, docs, s, from)
	case slices.Equal(found, []string{"string"}) && len(formats) == 1 && formats["date-time"]:
		return form{typ: timeTime}
	case slices.Equal(found, []string{"array"}) && len(items) == len(s.unions[0]):
		var either []*schema
		for _, n := range items {
			if item := g.resolve(n); !slices.ContainsFunc(either, item.equalTo) {
				either = append(either, item)
			}
		}
		return g.listForm(g.unionOf(either), from)
	case slices.Equal(found, []string{"array"}):
		return containerForm(types.NewSlice(rawMessage), "items", rawForm("they have several types"))
	case slices.Equal(found, []string{"integer", "number"}):
		return form{typ: types.Typ[types.Float64], zero: true}
	case len(found) == 1 && found[0] == "integer":
		return form{typ: types.Typ[types.Int64], zero: true}
	case len(found) == 1:
		return g.singleKindForm(&schema{parts: base.parts}, found[0], from)
	}
	return rawForm("it is " + describeKinds(found))
}

// dropLoose returns the schema of an argument without a loose alternative: a string of any form
// beside a boolean, a list or an object, or any value beside a typed one. Servers accept these for
// callers that do not keep to types. A number beside a string stays: IDs are either. also describes
// the alternative that was dropped, or is "" if none was.
func (g *goTypes) dropLoose(s *schema, kinds []string) (typed *schema, also string) {
	if !g.isInput || s.never || s.gathered {
		return nil, ""
	}
	if _, limited := s.enumValues(); limited {
		return nil, ""
	}
	if i := slices.Index(kinds, "string"); len(kinds) == 2 && i >= 0 && len(s.unions) == 0 && !s.limitsStrings() && !isEither(kinds[1-i]) {
		typed := *s
		typed.parts = append(slices.Clip(typed.parts), typePart(kinds[1-i]))
		return &typed, kindNames["string"]
	}
	if len(s.unions) != 1 {
		return nil, ""
	}
	base := &schema{parts: s.parts}
	isUntyped := func(a *schema) bool { return !a.never && intersect(a, base).allKinds() == nil }
	isLoose, also := isUntyped, "any other value"
	if !slices.ContainsFunc(s.unions[0], isUntyped) {
		isLoose, also = func(a *schema) bool {
			return slices.Equal(intersect(a, base).allKinds(), []string{"string"}) && !a.limitsStrings()
		}, kindNames["string"]
	}
	rest := slices.DeleteFunc(slices.Clone(s.unions[0]), isLoose)
	if len(rest) == 0 || len(rest) == len(s.unions[0]) {
		return nil, ""
	}
	if also == kindNames["string"] && slices.ContainsFunc(rest, func(a *schema) bool { return slices.ContainsFunc(intersect(a, base).allKinds(), isEither) }) {
		return nil, ""
	}
	typed = &schema{parts: slices.DeleteFunc(slices.Clone(s.parts), func(p *jsontree.Node) bool { return p.Get("anyOf") != nil || p.Get("oneOf") != nil })}
	typed = intersect(g.unionOf(rest), typed)
	typed.null = s.null
	return typed, also
}

// isEither reports whether strings beside values of a kind have a meaning of their own.
func isEither(kind string) bool { return kind == "string" || kind == "number" || kind == "integer" }

// limitsStrings reports whether a schema limits the strings that are valid.
func (s *schema) limitsStrings() bool {
	_, limited := s.enumValues()
	return limited || len(s.unions) > 0 || slices.ContainsFunc([]string{"format", "pattern", "minLength", "maxLength", "contentEncoding"}, func(keyword string) bool {
		return s.firstValue(keyword) != nil
	})
}

// alternativeKinds returns the kinds of all alternatives, sorted. It returns nil if one accepts any
// kind.
func (s *schema) alternativeKinds() []string {
	var found []string
	for _, alternative := range slices.Concat(s.unions...) {
		kinds := alternative.allKinds()
		if kinds == nil {
			return nil
		}
		found = addMissing(found, kinds...)
	}
	slices.Sort(found)
	return found
}

// allKinds returns the kinds of a schema, including its unions. nil means any kind.
func (s *schema) allKinds() []string {
	if values, limited := s.enumValues(); limited {
		kinds := []string{}
		for _, v := range values {
			kinds = addMissing(kinds, kindOf(v))
		}
		return kinds
	}
	if s.hasType() || len(s.unions) == 0 {
		return s.validKinds()
	}
	return s.alternativeKinds()
}

// addMissing adds the words that a list does not have yet.
func addMissing(list []string, words ...string) []string {
	for _, word := range words {
		if !slices.Contains(list, word) {
			list = append(list, word)
		}
	}
	return list
}

func (s *schema) hasType() bool { return s.firstValue("type") != nil }
