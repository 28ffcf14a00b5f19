package toolschema

import (
	"encoding/json"
	"go/token"
	"go/types"
	"math/big"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// form is what a schema is in Go.
type form struct {
	typ types.Type
	// null says that null is valid, nilable that typ has a nil for it.
	null, nilable bool
	// zero says that the zero value of typ may be valid, and so differs from absence.
	zero bool
	// list says that typ is a slice or a map, whose nil is not valid where null is not.
	list bool
	// isStruct says that typ is a struct, and recursive that it is one that is being made.
	isStruct, recursive bool
	// open says which part of the type is open, and why says why there is no better one.
	open, why string
}

// The types of other packages, by name: the generator knows no more of them.
var (
	resultPointer = types.NewPointer(foreignType("github.com/mcptaskgen/mcptaskgen/runtime", "mcptask", "Result"))
	rawMessage    = foreignType("encoding/json", "json", "RawMessage")
	jsonNumber    = foreignType("encoding/json", "json", "Number")
	timeTime      = foreignType("time", "time", "Time")
	anyType       = types.Universe.Lookup("any").Type()
)

func foreignType(path, pkg, name string) types.Type {
	return types.NewNamed(types.NewTypeName(token.NoPos, types.NewPackage(path, pkg), name, nil), types.NewStruct(nil, nil), nil)
}

// goTypes makes Go types of schemas and declares them.
type goTypes struct {
	*listing
	*resolver

	pkg      *types.Package
	taken    names
	sent     bool   // the types are of what a client sends
	prefix   string // of the names of the types that the root's $defs get
	of       map[*node]form
	open     map[*node]bool
	declared []*model.DeclaredType
}

// start begins with a schema that has nothing around it.
func (g *goTypes) start(root *node, id string) *schema {
	g.resolver = &resolver{listing: g.listing, root: root, busy: map[*node]bool{}, reported: map[*node]bool{}}
	g.prefix, g.open = id, map[*node]bool{}
	return g.resolve(root)
}

// input makes the type of a tool's arguments, nil where it takes none.
func (g *goTypes) input(root *node, id, what string) types.Type {
	g.sent = true
	s := g.start(root, id)
	if kinds := s.kinds(); len(kinds) > 0 && !slices.Contains(kinds, "object") {
		g.once(root, "the arguments of a tool are an object, not "+either(kinds), "")
		return nil
	}
	properties := g.gather(s)
	rest, _ := g.rest(s, properties)
	if len(properties) == 0 && rest == restNone {
		return nil
	}
	g.open[root] = true
	named := g.name(id)
	g.of[root] = form{typ: named, isStruct: true}
	g.structure(s, label{id: id, what: what, reserved: true}, properties)
	return named
}

// output makes the type of a tool's structured content.
func (g *goTypes) output(root *node, id, what string) types.Type {
	g.sent = false
	l := label{id: id, what: what, reserved: true}
	s := g.start(root, id)
	f := g.convert(s, l)
	switch typ := f.typ.(type) {
	case *types.Named:
		return typ
	case *types.Alias:
		return typ
	}
	// The runtime takes a plain string for the text of a result.
	g.declared = append(g.declared, &model.DeclaredType{Name: id, Doc: typeDoc(l, s), Type: element(f)})
	return g.name(id)
}

func (g *goTypes) name(id string) *types.Named {
	return types.NewNamed(types.NewTypeName(token.NoPos, g.pkg, id, nil), types.NewStruct(nil, nil), nil)
}

// convert makes the type of a schema, and declares what it needs: after the label, or after the schema
// itself where that has a name.
func (g *goTypes) convert(s *schema, l label) form {
	if s.def == nil {
		return g.shape(s, l)
	}
	f, known := g.of[s.def]
	switch {
	case known && g.open[s.def]:
		f.recursive = true
		if f.typ == nil {
			f = raw("it contains itself")
		}
	case !known:
		if s.def != g.root && s.defName != "" {
			l = label{id: joinName(g.prefix, s.defName, defLimit), what: "the schema " + quote(s.defName)}
		}
		g.of[s.def], g.open[s.def] = form{}, true
		own := g.resolve(s.def)
		own.def = s.def
		f = g.shape(own, l)
		g.of[s.def], g.open[s.def] = f, false
	}
	f.null = f.null || s.null
	return f
}

// label is what a type is called if it needs a name, and what it is.
type label struct {
	id, what string
	reserved bool // the identifier is taken for it
	told     bool // its description stands elsewhere
}

// below is the label of the items or values of a type.
func (l label) below(name, what string) label {
	return label{id: joinName(l.id, name, typeLimit), what: what + " of " + l.what}
}

// take takes the identifier of a type that is declared.
func (g *goTypes) take(l label) string {
	if l.reserved {
		return l.id
	}
	return g.taken.unique(l.id)
}

// joinName makes a name below another: its property, item or value. Where that gets too long, it
// keeps its ends.
func joinName(prefix, name string, limit int) string {
	name = camel(name, limit-4)
	if runes, left := []rune(prefix), limit-len([]rune(name)); len(runes) > left {
		prefix = string(runes[:left])
	}
	return prefix + name
}

func raw(why string) form {
	return form{typ: rawMessage, nilable: true, zero: true, open: "type is", why: why}
}

// shape makes the type of a schema that has none yet.
func (g *goTypes) shape(s *schema, l label) form {
	f := g.untold(s, l)
	f.null = f.null || s.null
	return f
}

// untold is shape without null.
func (g *goTypes) untold(s *schema, l label) form {
	if s.never {
		return raw("no value satisfies its schema")
	}
	if ref := s.foreign(); ref != "" {
		return raw("its schema stands elsewhere, at " + ref)
	}
	values, limited := s.values()
	kinds := s.kinds()
	switch {
	case limited && len(values) == 0 && s.null:
		return form{typ: anyType, nilable: true, null: true}
	case limited && len(values) == 0:
		return raw("no value satisfies its schema")
	case limited:
		return g.enum(values, nil, s, l)
	case len(s.unions) > 0:
		return g.union(s, kinds, l)
	case kinds == nil:
		return form{typ: anyType, nilable: true, null: true, zero: true}
	case len(kinds) == 0 && s.null:
		return form{typ: anyType, nilable: true, null: true}
	case len(kinds) == 0:
		return raw("no value satisfies its schema")
	case len(kinds) > 1:
		return raw("it is " + either(kinds))
	}
	return g.single(s, kinds[0], l)
}

// single makes the type of a schema of one kind.
func (g *goTypes) single(s *schema, kind string, l label) form {
	switch kind {
	case "boolean":
		return form{typ: types.Typ[types.Bool], zero: true}
	case "string":
		if s.text("format") == "date-time" {
			return form{typ: timeTime}
		}
		return form{typ: types.Typ[types.String], zero: s.number("minLength", 0) < 1}
	case "integer", "number":
		return form{typ: numberType(s, kind), zero: s.zeroInRange()}
	case "array":
		return g.array(s, l)
	}
	properties := g.gather(s)
	rest, elem := g.rest(s, properties)
	if len(properties) > 0 || rest == restForbidden {
		l.id, l.reserved = g.take(l), true
		named := g.name(l.id)
		f := form{typ: named, isStruct: true}
		if s.def != nil {
			g.of[s.def] = f
		}
		g.structure(s, l, properties)
		return f
	}
	value := form{typ: anyType, nilable: true}
	if elem != nil {
		value = g.convert(elem, l.below("value", "a value"))
	}
	return around(types.NewMap(types.Typ[types.String], element(value)), "values", value)
}

// array makes the type of an array.
func (g *goTypes) array(s *schema, l label) form {
	items := &schema{}
	for _, part := range s.parts {
		if tuple := part.get("prefixItems"); tuple != nil || part.get("items") != nil && part.get("items").kind == array {
			return around(types.NewSlice(rawMessage), "items", raw("each has a schema of its own"))
		}
		if n := part.get("items"); n != nil {
			items = and(items, g.resolve(n).at(n))
		}
	}
	return g.listOf(items, l)
}

// listOf makes the type of an array with items of one schema.
func (g *goTypes) listOf(items *schema, l label) form {
	item := form{typ: anyType, nilable: true}
	if !items.unbound() {
		item = g.convert(items, l.below("item", "an item"))
	}
	return around(types.NewSlice(element(item)), "items", item)
}

// around is the form of a list or a map of another.
func around(typ types.Type, parts string, inner form) form {
	f := form{typ: typ, nilable: true, zero: true, list: true}
	if inner.why != "" {
		f.open, f.why = parts+" are", inner.why
	}
	return f
}

// element is the type of an item or a value.
func element(f form) types.Type {
	if f.null && !f.nilable {
		return types.NewPointer(f.typ)
	}
	return f.typ
}

// numberType is the type of a number: int64 unless its schema needs another.
func numberType(s *schema, kind string) types.Type {
	format := s.text("format")
	switch {
	case format == "int32" || format == "uint32" || format == "uint64" || format == "int64":
		return types.Universe.Lookup(format).Type()
	case kind == "number":
		return types.Typ[types.Float64]
	}
	low, high := s.limit("minimum"), s.limit("maximum")
	switch {
	case (low == nil || low.IsInt64()) && (high == nil || high.IsInt64()):
		return types.Typ[types.Int64]
	case low != nil && low.Sign() >= 0 && (high == nil || high.IsUint64()):
		return types.Typ[types.Uint64]
	}
	return jsonNumber
}

// limit is a bound of an integer, nil where there is none.
func (s *schema) limit(keyword string) *big.Int {
	n := s.first(keyword)
	if n == nil {
		return nil
	}
	number, _ := n.value.(json.Number)
	if f, ok := new(big.Float).SetString(number.String()); ok && f.MantExp(nil) < 1<<12 {
		i, _ := f.Int(nil)
		return i
	}
	return nil
}

// number is the value of a keyword, or what it is where it is missing.
func (s *schema) number(keyword string, missing float64) float64 {
	n := s.first(keyword)
	if n == nil {
		return missing
	}
	if number, ok := n.value.(json.Number); ok {
		if f, err := number.Float64(); err == nil {
			return f
		}
	}
	return missing
}

// zeroInRange tells whether 0 may be valid.
func (s *schema) zeroInRange() bool {
	return s.number("minimum", 0) <= 0 && s.number("maximum", 0) >= 0 &&
		s.number("exclusiveMinimum", -1) < 0 && s.number("exclusiveMaximum", 1) > 0
}

// kinds are the types of the values that are valid, without null; nil is any.
func (s *schema) kinds() []string {
	var kinds []string
	typed := false
	for _, part := range s.parts {
		n := part.get("type")
		if n == nil {
			continue
		}
		items := n.items
		if n.kind != array {
			items = []*node{n}
		}
		var here []string
		for _, item := range items {
			if text, _ := item.text(); slices.Contains(typeNames, text) && text != "null" {
				here = append(here, text)
			}
		}
		if slices.Contains(here, "number") {
			here = slices.DeleteFunc(here, func(k string) bool { return k == "integer" })
		}
		if !typed {
			kinds, typed = here, true
			continue
		}
		kinds = common(kinds, here)
	}
	if typed {
		if kinds == nil {
			kinds = []string{}
		}
		return kinds
	}
	return s.guess()
}

// common are the kinds of both lists; an integer is a number.
func common(a, b []string) []string {
	both := []string{}
	for _, kind := range a {
		switch {
		case slices.Contains(b, kind):
			both = append(both, kind)
		case kind == "number" && slices.Contains(b, "integer"), kind == "integer" && slices.Contains(b, "number"):
			both = append(both, "integer")
		}
	}
	return both
}

// guess tells the kind of a schema without type by what it says, as its author meant it.
func (s *schema) guess() []string {
	for _, group := range []struct {
		kind     string
		keywords []string
	}{
		{"object", []string{"properties", "additionalProperties", "patternProperties", "required", "propertyNames"}},
		{"array", []string{"items", "prefixItems", "minItems", "maxItems", "uniqueItems"}},
		{"string", []string{"pattern", "minLength", "maxLength", "format"}},
		{"number", []string{"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}},
	} {
		for _, keyword := range group.keywords {
			if s.first(keyword) != nil {
				return []string{group.kind}
			}
		}
	}
	return nil
}

// articles say what a kind is.
var articles = map[string]string{
	"boolean": "a boolean", "object": "an object", "array": "an array", "number": "a number", "string": "a string", "integer": "an integer",
}

func either(kinds []string) string {
	said := make([]string, len(kinds))
	for i, kind := range kinds {
		said[i] = articles[kind]
	}
	if n := len(said); n > 2 {
		said = []string{strings.Join(said[:n-1], ", "), said[n-1]}
	}
	return strings.Join(said, " or ")
}
