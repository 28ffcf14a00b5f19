package toolschema

import (
	"encoding/json"
	"go/token"
	"go/types"
	"math/big"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// form is the Go representation of a schema.
type form struct {
	typ types.Type
	// null means that null is valid. nilable means that typ has a nil for it.
	null, nilable bool
	// zero means that the zero value of typ may be valid, so it differs from absence.
	zero bool
	// list means that typ is a slice or map. Its nil is invalid unless null is valid.
	list bool
	// isStruct means that typ is a struct. recursive means that this struct is still being
	// declared.
	isStruct, recursive bool
	// open names the open part of the type. why is the reason why there is no better type.
	open, why string
	// also names the values that the server accepts beside those of the type, such as "a string".
	also string
}

// Types of other packages. The generator only needs their names.
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

// goTypes converts schemas to Go types and declares them.
type goTypes struct {
	*toolList
	*resolver

	pkg      *types.Package
	taken    takenNames
	isInput  bool   // the types are for input, which a client sends
	prefix   string // the name of the input or output
	of       map[*jsontree.Node]form
	open     map[*jsontree.Node]bool
	declared []*declaration
	byType   map[*types.Named]*declaration
}

// resolveRoot starts with a new root schema.
func (g *goTypes) resolveRoot(root *jsontree.Node, id string) *schema {
	g.resolver = &resolver{toolList: g.toolList, root: root, busy: map[*jsontree.Node]bool{}, reported: map[*jsontree.Node]bool{}}
	g.prefix, g.open = id, map[*jsontree.Node]bool{}
	return g.resolve(root)
}

// inputType returns the type of a tool's arguments, or nil if it takes none.
func (g *goTypes) inputType(root *jsontree.Node, id, what string) types.Type {
	g.isInput = true
	s := g.resolveRoot(root, id)
	if kinds := s.validKinds(); len(kinds) > 0 && !slices.Contains(kinds, "object") {
		g.reportOnce(root, "the arguments of a tool must be an object, not "+describeKinds(kinds), "")
		return nil
	}
	properties := g.gatherProperties(s)
	rest, _ := g.additionalProperties(s, properties)
	if len(properties) == 0 && rest != restSome {
		return nil
	}
	g.open[root] = true
	d := g.declare(s, origin{root: id, what: what})
	g.of[root] = form{typ: d.named, isStruct: true}
	g.fillStruct(d, properties)
	return d.named
}

// outputType returns the type of a tool's structured content.
func (g *goTypes) outputType(root *jsontree.Node, id, what string) types.Type {
	g.isInput = false
	from := origin{root: id, what: what}
	s := g.resolveRoot(root, id)
	f := g.convertSchema(s, from)
	switch typ := f.typ.(type) {
	case *types.Named:
		return typ
	case *types.Alias:
		return typ
	}
	// The runtime treats a plain string as the text of a result, so declare a new type.
	d := g.declare(s, from)
	d.Type = elementType(f)
	return d.named
}

// convertSchema returns the form of a schema and declares the types it needs.
func (g *goTypes) convertSchema(s *schema, from origin) form {
	if s.def == nil {
		return g.newForm(s, from)
	}
	f, known := g.of[s.def]
	switch {
	case known && g.open[s.def]:
		f.recursive = true
		if f.typ == nil {
			f = rawForm("it contains itself")
		}
	case !known:
		if s.def != g.root && s.defName != "" {
			from = origin{def: s.defName, prefix: g.prefix}
		}
		g.of[s.def], g.open[s.def] = form{}, true
		own := g.resolve(s.def)
		own.def = s.def
		f = g.newForm(own, from)
		g.of[s.def], g.open[s.def] = f, false
	}
	f.null = f.null || s.null
	return f
}

func rawForm(why string) form {
	return form{typ: rawMessage, nilable: true, zero: true, open: "type is", why: why}
}

// newForm returns the form of a schema without a known one.
func (g *goTypes) newForm(s *schema, from origin) (f form) {
	defer func() { f.null = f.null || s.null }()
	if s.never {
		return rawForm("no value satisfies its schema")
	}
	if ref := s.foreignReference(); ref != "" {
		return rawForm("its schema is in another document, " + ref)
	}
	values, limited := s.enumValues()
	kinds := s.validKinds()
	if typed, also := g.dropLoose(s, kinds); also != "" {
		f := g.newForm(typed, from)
		f.also = also
		return f
	}
	none := limited && len(values) == 0 || !limited && len(s.unions) == 0 && kinds != nil && len(kinds) == 0
	switch {
	case none && s.null:
		return form{typ: anyType, nilable: true, null: true}
	case none:
		return rawForm("no value satisfies its schema")
	case limited:
		return g.enumForm(values, nil, s, from)
	case len(s.unions) > 0:
		return g.unionForm(s, kinds, from)
	case kinds == nil:
		return form{typ: anyType, nilable: true, null: true, zero: true}
	case len(kinds) > 1:
		return rawForm("it is " + describeKinds(kinds))
	}
	return g.singleKindForm(s, kinds[0], from)
}

// singleKindForm returns the form of a schema whose values have one kind.
func (g *goTypes) singleKindForm(s *schema, kind string, from origin) form {
	switch kind {
	case "boolean":
		return form{typ: types.Typ[types.Bool], zero: true}
	case "string":
		if s.text("format") == "date-time" {
			return form{typ: timeTime}
		}
		return form{typ: types.Typ[types.String], zero: s.numberValue("minLength", 0) < 1}
	case "integer", "number":
		return form{typ: numberType(s, kind), zero: s.zeroInRange()}
	case "array":
		return g.arrayForm(s, from)
	}
	properties := g.gatherProperties(s)
	rest, elem := g.additionalProperties(s, properties)
	if len(properties) > 0 || rest == restForbidden {
		d := g.declare(s, from)
		f := form{typ: d.named, isStruct: true}
		if s.def != nil {
			g.of[s.def] = f
		}
		g.fillStruct(d, properties)
		return f
	}
	value := form{typ: anyType, nilable: true}
	if elem != nil {
		value = g.convertSchema(elem, from.below("a value"))
	}
	return containerForm(types.NewMap(types.Typ[types.String], elementType(value)), "values", value)
}

// arrayForm returns the form of an array.
func (g *goTypes) arrayForm(s *schema, from origin) form {
	items := &schema{}
	for _, part := range s.parts {
		if tuple := part.Get("prefixItems"); tuple != nil || part.Get("items") != nil && part.Get("items").Kind == jsontree.Array {
			return containerForm(types.NewSlice(rawMessage), "items", rawForm("each item has its own schema"))
		}
		if n := part.Get("items"); n != nil {
			items = intersect(items, g.resolve(n).locatedAt(n))
		}
	}
	return g.listForm(items, from)
}

// listForm returns the form of an array whose items share a schema.
func (g *goTypes) listForm(items *schema, from origin) form {
	item := form{typ: anyType, nilable: true}
	if !items.isUnconstrained() {
		item = g.convertSchema(items, from.below("an item"))
	}
	return containerForm(types.NewSlice(elementType(item)), "items", item)
}

// containerForm returns the form of a list or map with elements of another form.
func containerForm(typ types.Type, parts string, inner form) form {
	f := form{typ: typ, nilable: true, zero: true, list: true}
	if inner.why != "" {
		f.open, f.why = parts+" are", inner.why
	}
	if inner.also != "" {
		f.also = inner.also + " for one of the " + parts
	}
	return f
}

// elementType returns the type of an item or value.
func elementType(f form) types.Type {
	if f.null && !f.nilable {
		return types.NewPointer(f.typ)
	}
	return f.typ
}

// numberType returns int64 for an integer and float64 for a number, unless the schema needs another
// type.
func numberType(s *schema, kind string) types.Type {
	format := s.text("format")
	switch {
	case format == "int32" || format == "uint32" || format == "uint64" || format == "int64":
		return types.Universe.Lookup(format).Type()
	case kind == "number":
		return types.Typ[types.Float64]
	}
	low, high := s.integerBound("minimum"), s.integerBound("maximum")
	switch {
	case (low == nil || low.IsInt64()) && (high == nil || high.IsInt64()):
		return types.Typ[types.Int64]
	case low != nil && low.Sign() >= 0 && (high == nil || high.IsUint64()):
		return types.Typ[types.Uint64]
	}
	return jsonNumber
}

// number returns the value of a keyword, or "" if it is not a number.
func (s *schema) number(keyword string) json.Number {
	if n := s.firstValue(keyword); n != nil {
		number, _ := n.Value.(json.Number)
		return number
	}
	return ""
}

// integerBound returns a bound of an integer, or nil.
func (s *schema) integerBound(keyword string) *big.Int {
	if f, ok := new(big.Float).SetString(s.number(keyword).String()); ok && f.MantExp(nil) < 1<<12 {
		i, _ := f.Int(nil)
		return i
	}
	return nil
}

// numberValue returns the value of a keyword, or missing.
func (s *schema) numberValue(keyword string, missing float64) float64 {
	if f, err := s.number(keyword).Float64(); err == nil {
		return f
	}
	return missing
}

// zeroInRange reports whether 0 may be valid.
func (s *schema) zeroInRange() bool {
	return s.numberValue("minimum", 0) <= 0 && s.numberValue("maximum", 0) >= 0 &&
		s.numberValue("exclusiveMinimum", -1) < 0 && s.numberValue("exclusiveMaximum", 1) > 0
}

// validKinds returns the kinds of the valid values except null. nil means any kind.
func (s *schema) validKinds() []string {
	var kinds []string
	typed := false
	for _, part := range s.parts {
		n := part.Get("type")
		if n == nil {
			continue
		}
		items := n.Items
		if n.Kind != jsontree.Array {
			items = []*jsontree.Node{n}
		}
		here := []string{}
		for _, item := range items {
			if text, _ := item.Text(); slices.Contains(typeNames, text) && text != "null" {
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
		kinds = commonKinds(kinds, here)
	}
	if typed {
		return kinds
	}
	return s.guessKinds()
}

// commonKinds returns the kinds in both lists. It treats integers as numbers.
func commonKinds(a, b []string) []string {
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

// guessKinds guesses the kind of a schema without a type from its other keywords.
func (s *schema) guessKinds() []string {
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
			if s.firstValue(keyword) != nil {
				return []string{group.kind}
			}
		}
	}
	return nil
}

// kindNames describes a value of each kind.
var kindNames = map[string]string{
	"boolean": "a boolean", "object": "an object", "array": "an array", "number": "a number", "string": "a string", "integer": "an integer",
}

func describeKinds(kinds []string) string {
	said := make([]string, len(kinds))
	for i, kind := range kinds {
		said[i] = kindNames[kind]
	}
	if n := len(said); n > 2 {
		said = []string{strings.Join(said[:n-1], ", "), said[n-1]}
	}
	return strings.Join(said, " or ")
}
