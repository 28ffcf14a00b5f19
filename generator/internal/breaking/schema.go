package breaking

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// fault is a reason why a value of one schema may not fit another. Its kind is the end of a rule's name.
type fault struct {
	kind    string
	path    []string // of properties; "[]" stands for the items of a list, "*" for other members
	problem string
}

// Limits of a comparison. A schema that needs more is compared by its text.
const (
	maxSteps = 20_000
	maxLevel = 200
)

// comparison checks that each value that one schema accepts is accepted by another. For a result, the schemas are
// exchanged: the old one has to accept each new value.
type comparison struct {
	from, to *jsontree.Node // the whole schemas
	reversed bool           // from is the new schema
	ignores  bool           // an unknown member is as good as refused
	sameDefs bool           // both have the same definitions
	open     map[[2]*jsontree.Node]bool
	merged   map[*jsontree.Node]*jsontree.Node
	steps    int
}

// compareInputs returns the faults of arguments or answers that fit the old schema.
func compareInputs(old, now *jsontree.Node, ignores bool) []fault {
	return (&comparison{from: orAny(old), to: orAny(now), ignores: ignores}).run()
}

// compareResults returns the faults of new results for a reader that knows the old schema.
func compareResults(old, now *jsontree.Node) []fault {
	return (&comparison{from: orAny(now), to: orAny(old), reversed: true}).run()
}

func (c *comparison) run() []fault {
	c.open, c.merged = map[[2]*jsontree.Node]bool{}, map[*jsontree.Node]*jsontree.Node{}
	defs := func(n *jsontree.Node) string {
		return canonical(n.Get("$defs"), true) + canonical(n.Get("definitions"), true)
	}
	c.sameDefs = defs(c.from) == defs(c.to) && staysInDefs(defs(c.from))
	return c.fit(c.from, c.to, nil)
}

var anyValue = &jsontree.Node{Kind: jsontree.Boolean, Value: true}

// orAny returns the schema, or one that accepts everything if there is none.
func orAny(n *jsontree.Node) *jsontree.Node {
	if n == nil {
		return anyValue
	}
	return n
}

// annotations are the keywords that no value can break.
var annotations = []string{
	"title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "$comment", "$schema", "$id",
	"contentEncoding", "contentMediaType", "contentSchema",
}

// keywords whose value is a schema for each name, and those whose value is no schema.
var (
	schemaMaps = []string{"properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies"}
	plainData  = []string{"enum", "const", "required", "type", "dependentRequired"}
)

// canonical returns a schema without annotations as a text that is the same for equal schemas.
func canonical(n *jsontree.Node, isMap bool) string {
	switch {
	case n == nil:
		return ""
	case n.Kind == jsontree.Array:
		var items []string
		for _, item := range n.Items {
			items = append(items, canonical(item, false))
		}
		return "[" + strings.Join(items, ",") + "]"
	case n.Kind != jsontree.Object:
		return n.Compact()
	}
	var parts []string
	for _, m := range n.Members {
		var value string
		switch {
		case !isMap && slices.Contains(annotations, m.Name):
			continue
		case !isMap && (m.Name == "required" || m.Name == "enum" || m.Name == "type"):
			value = canonicalSet(m.Value)
		case !isMap && slices.Contains(plainData, m.Name):
			value = m.Value.Compact()
		default:
			value = canonical(m.Value, !isMap && slices.Contains(schemaMaps, m.Name))
		}
		parts = append(parts, strconv.Quote(m.Name)+":"+value)
	}
	slices.Sort(parts)
	return "{" + strings.Join(parts, ",") + "}"
}

func canonicalSet(n *jsontree.Node) string {
	items := compactItems(n)
	slices.Sort(items)
	return strings.Join(slices.Compact(items), ",")
}

// compactItems returns the items of an array, or a single value, as texts.
func compactItems(n *jsontree.Node) (texts []string) {
	switch {
	case n == nil:
	case n.Kind == jsontree.Array:
		for _, item := range n.Items {
			texts = append(texts, item.Compact())
		}
	default:
		texts = append(texts, n.Compact())
	}
	return texts
}

// same reports whether two schemas are equal but for annotations.
func (c *comparison) same(a, b *jsontree.Node) bool {
	x := canonical(a, false)
	return x == canonical(b, false) && (c.sameDefs && staysInDefs(x) || !strings.Contains(x, `ef":`) || a == c.from && b == c.to)
}

// staysInDefs reports whether all references of a canonical schema lead to definitions.
func staysInDefs(text string) bool {
	return strings.Count(text, `ef":`) == strings.Count(text, `"$ref":"#/$defs/`)+strings.Count(text, `"$ref":"#/definitions/`)
}

// fit returns the faults of the values of a for the schema b.
func (c *comparison) fit(a, b *jsontree.Node, path []string) []fault {
	c.steps++
	if !c.resolves(a, c.from) || !c.resolves(b, c.to) {
		if c.same(a, b) {
			return nil
		}
		return []fault{{"form", path, "refers to a schema that is not in it, and cannot be compared"}}
	}
	a = c.merge(a, c.from)
	parts := c.conjuncts(b, c.to, 0)
	if len(parts) == 1 {
		b = parts[0]
	}
	pair := [2]*jsontree.Node{a, b}
	switch {
	case c.open[pair]:
		return nil // a recursive type fits if all else does
	case a.Is(false) || b.Is(true) || b.Kind != jsontree.Object && !b.Is(false) || c.same(a, b):
		return nil
	case c.steps > maxSteps || len(path) > maxLevel || len(c.open) > maxLevel:
		return []fault{{"form", path, "is too deep to compare"}}
	case b.Is(false):
		return []fault{{"form", path, c.word("is refused now", "is new")}}
	}
	c.open[pair] = true
	defer delete(c.open, pair)
	if branches := branchesOf(a); branches != nil {
		var faults []fault
		for _, branch := range branches {
			for _, f := range c.fit(c.join(without(a, "anyOf", "oneOf"), branch), b, path) {
				if !slices.ContainsFunc(faults, func(o fault) bool { return o.kind == f.kind && slices.Equal(o.path, f.path) }) {
					faults = append(faults, f)
				}
			}
		}
		return faults
	}
	var faults []fault
	for _, part := range parts {
		faults = append(faults, c.fitPlain(a, part, path)...)
		if branches := branchesOf(part); branches != nil {
			faults = append(faults, c.fitBranches(a, branches, path)...)
		}
	}
	return faults
}

// branchesOf returns the alternatives of a schema, or nil.
func branchesOf(n *jsontree.Node) []*jsontree.Node {
	for _, name := range []string{"anyOf", "oneOf"} {
		if list := n.Get(name); list != nil && len(list.Items) > 0 {
			return list.Items
		}
	}
	return nil
}

// fitBranches checks that each value of a fits one of the branches. Values of different types may fit different ones.
func (c *comparison) fitBranches(a *jsontree.Node, branches []*jsontree.Node, path []string) []fault {
	var candidates [][]fault
	for _, branch := range branches {
		faults := c.fit(a, branch, path)
		if len(faults) == 0 {
			return nil
		}
		if overlap(typesOf(a), typesOf(c.merge(branch, c.to))) {
			candidates = append(candidates, faults)
		}
	}
	if types := typesOf(a); len(types) > 1 && len(types) < len(allTypes) {
		var faults []fault
		for _, t := range types {
			one := without(a, "type")
			one.Set("type", jsontree.NewString(t))
			faults = append(faults, c.fitBranches(one, branches, path)...)
		}
		return faults
	}
	switch len(candidates) {
	case 0:
		return []fault{{"type", path, fmt.Sprintf(c.word("no longer takes %s", "may be %s now"), describeTypes(typesOf(a)))}}
	case 1:
		return candidates[0]
	}
	return []fault{{"form", path, "has alternatives that have changed in a way that cannot be compared"}}
}

// merge returns a schema as one object: with what it refers to in its root, and with allOf.
func (c *comparison) merge(n, root *jsontree.Node) *jsontree.Node {
	if m := c.merged[n]; m != nil {
		return m
	}
	parts := c.conjuncts(n, root, 0)
	out := parts[0]
	for _, part := range parts[1:] {
		out = c.join(out, part)
	}
	c.merged[n] = out
	return out
}

// conjuncts returns the schemas that a value has to fit all: n itself, what it refers to, and the members of allOf.
func (c *comparison) conjuncts(n, root *jsontree.Node, level int) []*jsontree.Node {
	ref, all := n.Get("$ref"), n.Get("allOf")
	if n.Kind != jsontree.Object || ref == nil && all == nil || level > maxLevel {
		return []*jsontree.Node{n}
	}
	var parts []*jsontree.Node
	if base := without(n, append([]string{"$ref", "allOf", "$defs", "definitions"}, annotations...)...); len(base.Members) > 0 {
		parts = append(parts, base)
	}
	if target := resolve(root, ref); target != nil {
		parts = append(parts, c.conjuncts(target, root, level+1)...)
	}
	if all != nil {
		for _, item := range all.Items {
			if c.steps++; c.steps > maxSteps {
				break
			}
			parts = append(parts, c.conjuncts(item, root, level+1)...)
		}
	}
	if len(parts) == 0 {
		return []*jsontree.Node{anyValue}
	}
	return parts
}

// resolves reports whether what a schema refers to is in its root.
func (c *comparison) resolves(n, root *jsontree.Node) bool {
	ref := n.Get("$ref")
	return n.Get("$dynamicRef") == nil && (ref == nil || resolve(root, ref) != nil)
}

// resolve returns the schema that a reference points to, or nil.
func resolve(root, ref *jsontree.Node) *jsontree.Node {
	text, ok := ref.Text()
	pointer, local := strings.CutPrefix(text, "#")
	if !ok || !local {
		return nil
	}
	n := root
	for i, step := range strings.Split(pointer, "/") {
		if i == 0 {
			if step != "" {
				return nil // the name of an anchor
			}
			continue
		}
		if n = n.Step(strings.NewReplacer("~1", "/", "~0", "~", "%25", "%").Replace(step)); n == nil {
			return nil
		}
	}
	return n
}

// without returns a copy of an object that lacks some members.
func without(n *jsontree.Node, names ...string) *jsontree.Node {
	out := jsontree.NewObject()
	for _, m := range n.Members {
		if !slices.Contains(names, m.Name) {
			out.Members = append(out.Members, m)
		}
	}
	return out
}

// join returns a schema whose values include all that fit both a and b. Of two keywords that it cannot combine it keeps
// that of a.
func (c *comparison) join(a, b *jsontree.Node) *jsontree.Node {
	switch {
	case a.Is(false) || b.Is(true) || b.Kind != jsontree.Object && b.Kind != jsontree.Boolean:
		return a
	case a.Kind != jsontree.Object || b.Is(false) || len(a.Members) == 0:
		return b
	}
	out := without(a)
	for _, m := range b.Members {
		before := out.Get(m.Name)
		switch {
		case before == nil:
			out.Set(m.Name, m.Value)
		case m.Name == "properties" && before.Kind == jsontree.Object:
			both := without(before)
			for _, p := range m.Value.Members {
				if was := both.Get(p.Name); was != nil {
					both.Set(p.Name, jsontree.NewObject(jsontree.Member{Name: "allOf", Value: jsontree.NewArray(was, p.Value)}))
				} else {
					both.Set(p.Name, p.Value)
				}
			}
			out.Set(m.Name, both)
		case m.Name == "required":
			out.Set(m.Name, jsontree.NewArray(slices.Concat(before.Items, m.Value.Items)...))
		case m.Name == "type":
			types := slices.DeleteFunc(typesOf(a), func(t string) bool { return !acceptsType(typesOf(b), t) })
			list := jsontree.NewArray()
			for _, t := range types {
				list.Items = append(list.Items, jsontree.NewString(t))
			}
			out.Set("type", list)
		case m.Name == "additionalProperties" && m.Value.Is(false):
			out.Set(m.Name, m.Value)
		case m.Name == "enum" || m.Name == "const":
			out.Set(m.Name, m.Value) // that of a branch is the narrower one
		}
	}
	return out
}

// allTypes are the types of JSON Schema. An integer is a number too.
var allTypes = []string{"null", "boolean", "object", "array", "number", "string"}

// typesOf returns the types that the values of a schema may have.
func typesOf(n *jsontree.Node) []string {
	var types []string
	if t := n.Get("type"); t != nil {
		for _, item := range append([]*jsontree.Node{t}, t.Items...) {
			if s, ok := item.Text(); ok {
				types = append(types, s)
			}
		}
		return types
	}
	if values, ok := valuesOf(n); ok {
		for _, v := range values {
			if t := typeOf(v); !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
		return types
	}
	return slices.Clone(allTypes)
}

func typeOf(n *jsontree.Node) string {
	if number, ok := n.Value.(json.Number); ok && !strings.ContainsAny(number.String(), ".eE") {
		return "integer"
	}
	return [...]string{"null", "boolean", "number", "string", "array", "object"}[n.Kind]
}

func acceptsType(types []string, t string) bool {
	return slices.Contains(types, t) || t == "integer" && slices.Contains(types, "number")
}

func overlap(a, b []string) bool {
	return slices.ContainsFunc(a, func(t string) bool { return acceptsType(b, t) }) || slices.ContainsFunc(b, func(t string) bool { return acceptsType(a, t) })
}

func describeTypes(types []string) string {
	if len(types) == len(allTypes) {
		return "any value"
	}
	return strings.Join(types, " or ")
}

// valuesOf returns the only values of a schema, if it lists them.
func valuesOf(n *jsontree.Node) ([]*jsontree.Node, bool) {
	if v := n.Get("const"); v != nil {
		return []*jsontree.Node{v}, true
	}
	list := n.Get("enum")
	if list == nil || list.Kind != jsontree.Array {
		return nil, false
	}
	types, values := n.Get("type"), []*jsontree.Node{}
	for _, v := range list.Items {
		if types == nil || acceptsType(typesOf(n), typeOf(v)) {
			values = append(values, v)
		}
	}
	return values, true
}

// word returns the words for a value that goes to the server, or that comes from it.
func (c *comparison) word(input, result string) string {
	if c.reversed {
		return result
	}
	return input
}

// fitPlain compares the keywords of two schemas, without their alternatives.
func (c *comparison) fitPlain(a, b *jsontree.Node, path []string) []fault {
	if b.Kind != jsontree.Object {
		return c.fit(a, b, path)
	}
	have, want := typesOf(a), typesOf(b)
	var lost []string
	for _, t := range have {
		if !acceptsType(want, t) {
			lost = append(lost, t)
		}
	}
	if b.Get("type") != nil && len(lost) > 0 {
		if len(lost) < len(have) && len(have) < len(allTypes) {
			return []fault{{"type", path, fmt.Sprintf(c.word("no longer takes %s", "may be %s now"), strings.Join(lost, " or "))}}
		}
		old, now := have, want
		if c.reversed {
			old, now = want, have
		}
		return []fault{{"type", path, fmt.Sprintf("was %s and is %s now", describeTypes(old), describeTypes(now))}}
	}
	if values, ok := valuesOf(a); ok {
		return c.fitValues(values, b, path)
	}
	var faults []fault
	if values, ok := valuesOf(b); ok {
		all, countable := allValues(have)
		if !countable {
			return []fault{{"values", path, fmt.Sprintf(c.word("takes only %s now", "is not one of %s any more"), describeValues(values))}}
		}
		if faults := c.fitValues(all, b, path); len(faults) > 0 {
			return faults
		}
	}
	for _, t := range have {
		switch t {
		case "number", "integer":
			faults = append(faults, c.fitNumbers(a, b, path)...)
		case "string":
			faults = append(faults, c.fitBounds(a, b, path, "minLength", "maxLength")...)
		case "array":
			faults = append(faults, c.fitItems(a, b, path)...)
		case "object":
			faults = append(faults, c.fitMembers(a, b, path)...)
		}
	}
	return append(faults, c.fitOpaque(a, b, path)...)
}

// allValues returns all values of some types, if each of the types has one or two.
func allValues(types []string) (values []*jsontree.Node, countable bool) {
	for _, t := range types {
		switch t {
		case "boolean":
			values = append(values, &jsontree.Node{Kind: jsontree.Boolean, Value: true}, &jsontree.Node{Kind: jsontree.Boolean, Value: false})
		case "null":
			values = append(values, &jsontree.Node{Kind: jsontree.Null})
		default:
			return nil, false
		}
	}
	return values, true
}

// fitValues checks listed values one by one.
func (c *comparison) fitValues(values []*jsontree.Node, b *jsontree.Node, path []string) []fault {
	var lost []*jsontree.Node
	if list, ok := valuesOf(b); ok {
		for _, v := range values {
			if !slices.ContainsFunc(list, func(l *jsontree.Node) bool { return l.Compact() == v.Compact() }) {
				lost = append(lost, v)
			}
		}
	} else if len(without(b, append([]string{"type", "anyOf", "oneOf"}, annotations...)...).Members) > 0 {
		whole := without(b, "anyOf", "oneOf", "$defs", "definitions")
		for _, defs := range []string{"$defs", "definitions"} {
			if d := c.to.Get(defs); d != nil {
				whole.Set(defs, d)
			}
		}
		schema, err := whole.CompileSchema()
		if err != nil {
			return []fault{{"form", path, "cannot be compared"}}
		}
		for _, v := range values {
			if schema.Refuse(v) != "" {
				lost = append(lost, v)
			}
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return []fault{{"values", path, fmt.Sprintf(c.word("no longer takes %s", "may be %s now"), describeValues(lost))}}
}

func describeValues(values []*jsontree.Node) string {
	return listFirst(compactItems(jsontree.NewArray(values...)))
}

// listFirst lists texts with commas. Of many it counts those after the first five.
func listFirst(texts []string) string {
	if more := len(texts) - 5; more > 0 {
		texts = append(slices.Clone(texts[:5]), fmt.Sprintf("%d others", more))
	}
	return strings.Join(texts, ", ")
}

// fitNumbers compares the bounds of numbers.
func (c *comparison) fitNumbers(a, b *jsontree.Node, path []string) []fault {
	faults := c.fitBounds(a, b, path, "minimum", "maximum")
	faults = append(faults, c.fitBounds(a, b, path, "exclusiveMinimum", "exclusiveMaximum")...)
	if now := b.Get("multipleOf"); now != nil && !isMultiple(a.Get("multipleOf"), now) {
		faults = append(faults, c.bound(path, "multipleOf", a.Get("multipleOf"), now)...)
	}
	return faults
}

// isMultiple reports whether each multiple of was is a multiple of now.
func isMultiple(was, now *jsontree.Node) bool {
	if was != nil && was.Compact() == now.Compact() {
		return true
	}
	if number(was) == nil || number(now) == nil || number(now).Sign() == 0 {
		return false
	}
	x, okX := new(big.Rat).SetString(was.Compact())
	y, okY := new(big.Rat).SetString(now.Compact())
	return okX && okY && x.Quo(x, y).IsInt()
}

// fitBounds compares a lower and an upper bound.
func (c *comparison) fitBounds(a, b *jsontree.Node, path []string, least, most string) []fault {
	var faults []fault
	for name, sign := range map[string]int{least: 1, most: -1} {
		now := number(b.Get(name))
		if now == nil {
			continue
		}
		was := number(a.Get(name))
		// An exclusive bound keeps the inclusive one too, and an inclusive bound beyond an exclusive one.
		switch other := number(a.Get(otherBound(name))); {
		case other == nil:
		case was == nil && strings.HasPrefix(name, "exclusive"):
			if other.Cmp(now)*sign > 0 {
				continue
			}
		case was == nil || other.Cmp(was)*sign > 0:
			was = other
		}
		if was == nil && sign > 0 && now.Sign() <= 0 && (name == "minLength" || name == "minItems" || name == "minProperties") {
			continue
		}
		if (was == nil || now.Cmp(was)*sign > 0) && !integersFit(a, name, now, sign) {
			faults = append(faults, c.bound(path, name, a.Get(name), b.Get(name))...)
		}
	}
	slices.SortFunc(faults, func(x, y fault) int { return strings.Compare(x.problem, y.problem) })
	return faults
}

// integersFit reports whether a schema takes only integers, and none beyond a bound of another schema.
func integersFit(a *jsontree.Node, name string, now *big.Float, sign int) bool {
	other := otherBound(name)
	if other == "" || acceptsNumbers(a) {
		return false
	}
	// With the sign, each bound is a lower one.
	signed := func(f *big.Float) *big.Float { return new(big.Float).Mul(f, big.NewFloat(float64(sign))) }
	now = signed(now)
	for _, own := range []string{name, other} {
		bound := number(a.Get(own))
		if bound == nil {
			continue
		}
		bound = signed(bound)
		whole, _ := bound.Int(nil) // towards zero
		least := new(big.Float).SetPrec(400).SetInt(whole)
		if order := least.Cmp(bound); order < 0 || order == 0 && strings.HasPrefix(own, "exclusive") {
			least.Add(least, big.NewFloat(1))
		}
		if order := least.Cmp(now); order > 0 || order == 0 && !strings.HasPrefix(name, "exclusive") {
			return true
		}
	}
	return false
}

// acceptsNumbers reports whether a schema takes numbers that are no integers.
func acceptsNumbers(n *jsontree.Node) bool { return slices.Contains(typesOf(n), "number") }

func otherBound(name string) string {
	switch name {
	case "minimum":
		return "exclusiveMinimum"
	case "maximum":
		return "exclusiveMaximum"
	case "exclusiveMinimum":
		return "minimum"
	case "exclusiveMaximum":
		return "maximum"
	}
	return ""
}

// bound returns a fault about a bound. Readers of results do not rely on bounds.
func (c *comparison) bound(path []string, name string, was, now *jsontree.Node) []fault {
	if c.reversed {
		return nil
	}
	if was == nil {
		return []fault{{"bounds", path, fmt.Sprintf("has %s=%s now", name, now.Compact())}}
	}
	return []fault{{"bounds", path, fmt.Sprintf("had %s=%s and has %s now", name, was.Compact(), now.Compact())}}
}

// number returns a bound, or nil if n is no number of a size that bounds have.
func number(n *jsontree.Node) *big.Float {
	if n == nil {
		return nil
	}
	text, ok := n.Value.(json.Number)
	if !ok || len(text) > 100 {
		return nil
	}
	if f, err := text.Float64(); err != nil || f != 0 && (f > 1e100 || f < -1e100) {
		return nil
	}
	value, _, err := big.ParseFloat(text.String(), 10, 400, big.ToNearestEven)
	if err != nil {
		return nil
	}
	return value
}

// fitItems compares the keywords of arrays.
func (c *comparison) fitItems(a, b *jsontree.Node, path []string) []fault {
	faults := c.fitBounds(a, b, path, "minItems", "maxItems")
	if b.Get("uniqueItems").Is(true) && !a.Get("uniqueItems").Is(true) {
		faults = append(faults, c.bound(path, "uniqueItems", nil, anyValue)...)
	}
	inside := append(slices.Clip(path), "[]")
	item := func(n *jsontree.Node, i int) *jsontree.Node {
		if list := n.Get("prefixItems"); list != nil && i < len(list.Items) {
			return list.Items[i]
		}
		if list := n.Get("items"); list != nil && list.Kind == jsontree.Array {
			return anyValue // fitOpaque compares the list
		}
		return orAny(n.Get("items"))
	}
	count := 0
	for _, n := range []*jsontree.Node{a, b} {
		if list := n.Get("prefixItems"); list != nil {
			count = max(count, len(list.Items))
		}
	}
	for i := range count {
		faults = append(faults, c.fit(item(a, i), item(b, i), inside)...)
	}
	if most := number(a.Get("maxItems")); most != nil && most.Cmp(big.NewFloat(float64(count))) <= 0 {
		return faults
	}
	return append(faults, c.fit(item(a, count), item(b, count), inside)...)
}

// fitMembers compares the keywords of objects.
func (c *comparison) fitMembers(a, b *jsontree.Node, path []string) []fault {
	faults := c.fitBounds(a, b, path, "minProperties", "maxProperties")
	at := func(name string) []string { return append(slices.Clip(path), name) }
	properties := func(n *jsontree.Node) []jsontree.Member {
		if p := n.Get("properties"); p != nil {
			return p.Members
		}
		return nil
	}
	required := compactItems(a.Get("required"))
	gone := map[string]bool{}
	if c.reversed {
		for _, p := range properties(b) {
			if a.Get("properties").Get(p.Name) == nil {
				gone[p.Name] = true
				faults = append(faults, fault{"gone", at(p.Name), "is gone"})
			}
		}
	}
	if list := b.Get("required"); list != nil {
		for _, item := range list.Items {
			name, ok := item.Text()
			if !ok || slices.Contains(required, item.Compact()) || gone[name] {
				continue
			}
			problem := "is new and required"
			if a.Get("properties").Get(name) != nil {
				problem = c.word("is required now", "may be missing now")
			}
			faults = append(faults, fault{c.word("required", "optional"), at(name), problem})
		}
	}
	more := orAny(b.Get("additionalProperties"))
	hasPatterns := b.Get("patternProperties") != nil
	for _, p := range properties(a) {
		now := b.Get("properties").Get(p.Name)
		switch {
		case now != nil:
			faults = append(faults, c.fit(p.Value, now, at(p.Name))...)
		case p.Value.Is(false) || hasPatterns:
		case more.Is(false) && c.reversed:
			faults = append(faults, fault{"form", at(p.Name), "is new, and the old schema has no other members"})
		case more.Is(false):
			faults = append(faults, fault{"gone", at(p.Name), "is refused now"})
		case c.ignores && b.Get("additionalProperties") == nil || c.ignores && more.Is(true):
			faults = append(faults, fault{"gone", at(p.Name), "is ignored now"})
		default:
			faults = append(faults, c.fit(p.Value, more, at(p.Name))...)
		}
	}
	rest := orAny(a.Get("additionalProperties"))
	switch {
	case rest.Is(false):
	case more.Is(false):
		take := "no longer takes other members"
		if len(path) == 0 { // the arguments
			take = "no longer take other members"
		}
		faults = append(faults, fault{"form", path, c.word(take, "may have other members now")})
	default:
		faults = append(faults, c.fit(rest, more, at("*"))...)
		for _, p := range properties(b) {
			if rest.Kind == jsontree.Object && a.Get("properties").Get(p.Name) == nil && !gone[p.Name] {
				faults = append(faults, c.fit(rest, p.Value, at(p.Name))...)
			}
		}
	}
	return faults
}

// opaque are the keywords that are not compared. A value that fits them is known to fit the same ones only.
var opaque = map[string]string{
	"pattern": "string", "format": "",
	"contains": "array", "minContains": "array", "maxContains": "array", "unevaluatedItems": "array",
	"items": "array", "additionalItems": "array", // items only if it is a list of schemas
	"patternProperties": "object", "propertyNames": "object", "dependentRequired": "object", "dependentSchemas": "object", "unevaluatedProperties": "object", "dependencies": "object",
	"not": "", "if": "", "then": "", "else": "",
}

// fitOpaque returns a fault if b has a keyword that is not compared, and a does not have the same.
func (c *comparison) fitOpaque(a, b *jsontree.Node, path []string) []fault {
	var faults []fault
	types := typesOf(a)
	same := func(name string, was, now *jsontree.Node) bool {
		return c.same(jsontree.NewObject(jsontree.Member{Name: name, Value: was}), jsontree.NewObject(jsontree.Member{Name: name, Value: now}))
	}
	for _, name := range slices.Sorted(maps.Keys(opaque)) {
		now, was, of := b.Get(name), a.Get(name), opaque[name]
		switch {
		case now == nil || was != nil && same(name, was, now) || of != "" && !slices.Contains(types, of):
		case name == "items" && now.Kind != jsontree.Array:
		case name == "format" && c.reversed:
			faults = append(faults, fault{"type", path, fmt.Sprintf("had the format %s and has %s now", now.Compact(), describeKeyword(was))})
		case c.reversed && name == "pattern":
		case was == nil:
			faults = append(faults, fault{"form", path, fmt.Sprintf(c.word("has %s=%s now", "had %s=%s before"), name, now.Compact())})
		default:
			faults = append(faults, fault{"form", path, "has another " + name + ": " + now.Compact()})
		}
	}
	return faults
}

func describeKeyword(n *jsontree.Node) string {
	if n == nil {
		return "none"
	}
	return n.Compact()
}
