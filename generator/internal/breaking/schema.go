package breaking

import (
	"cmp"
	"fmt"
	"maps"
	"math/big"
	"slices"
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

// findInputFaults returns the faults of arguments or answers that fit the old schema.
func findInputFaults(old, now *jsontree.Node, ignores bool) []fault {
	return (&comparison{from: orAny(old), to: orAny(now), ignores: ignores}).run()
}

// findResultFaults returns the faults of new results for a reader that knows the old schema.
func findResultFaults(old, now *jsontree.Node) []fault {
	return (&comparison{from: orAny(now), to: orAny(old), reversed: true}).run()
}

func (c *comparison) run() []fault {
	c.open, c.merged = map[[2]*jsontree.Node]bool{}, map[*jsontree.Node]*jsontree.Node{}
	c.sameDefs = true
	for _, name := range definitions {
		from, to := c.from.Get(name), c.to.Get(name)
		c.sameDefs = c.sameDefs && canonical(from, true) == canonical(to, true) && refersOnly(from, true)
	}
	return c.fit(c.from, c.to, nil)
}

// same reports whether two schemas are equal but for annotations, and refer to the same.
func (c *comparison) same(a, b *jsontree.Node) bool {
	return canonical(a, false) == canonical(b, false) && (a == c.from && b == c.to || refersOnly(a, c.sameDefs))
}

// fit returns the faults of the values of a for the schema b.
func (c *comparison) fit(a, b *jsontree.Node, path []string) []fault {
	c.steps++
	if !resolves(a, c.from) || !resolves(b, c.to) {
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
	var faults []fault
	if branches := branchesOf(a); branches != nil {
		for _, branch := range branches {
			for _, f := range c.fit(join(a.Without("anyOf", "oneOf"), branch), b, path) {
				if !slices.ContainsFunc(faults, func(o fault) bool { return o.kind == f.kind && slices.Equal(o.path, f.path) }) {
					faults = append(faults, f)
				}
			}
		}
		return faults
	}
	for _, part := range parts {
		faults = append(faults, c.fitPlain(a, part, path)...)
		if branches := branchesOf(part); branches != nil {
			faults = append(faults, c.fitBranches(a, branches, path)...)
		}
	}
	return faults
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
			one := a.Without("type")
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
		out = join(out, part)
	}
	c.merged[n] = out
	return out
}

// conjuncts returns the schemas that a value has to fit all: n itself, what it refers to, and the members of allOf.
func (c *comparison) conjuncts(n, root *jsontree.Node, level int) []*jsontree.Node {
	ref, hasRef := n.Get("$ref").Text()
	if n.Kind != jsontree.Object || !hasRef && n.Get("allOf") == nil || level > maxLevel {
		return []*jsontree.Node{n}
	}
	var parts []*jsontree.Node
	if base := n.Without(slices.Concat([]string{"$ref", "allOf"}, definitions, annotations)...); len(base.Members) > 0 {
		parts = append(parts, base)
	}
	if target := root.Follow(ref); target != nil {
		parts = append(parts, c.conjuncts(target, root, level+1)...)
	}
	for _, item := range n.ItemsOf("allOf") {
		if c.steps++; c.steps > maxSteps {
			break
		}
		parts = append(parts, c.conjuncts(item, root, level+1)...)
	}
	if len(parts) == 0 {
		return []*jsontree.Node{anyValue}
	}
	return parts
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
		all := allValues(have)
		if all == nil {
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
			faults = append(faults, c.fitBounds(a, b, path, []string{"minLength"}, []string{"maxLength"})...)
		case "array":
			faults = append(faults, c.fitItems(a, b, path)...)
		case "object":
			faults = append(faults, c.fitMembers(a, b, path)...)
		}
	}
	return append(faults, c.fitOpaque(a, b, path)...)
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
	} else if whole := b.Without(slices.Concat([]string{"anyOf", "oneOf"}, definitions)...); len(whole.Without(append(annotations, "type")...).Members) > 0 {
		for _, name := range definitions {
			if d := c.to.Get(name); d != nil {
				whole.Set(name, d)
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

// fitItems compares the keywords of arrays.
func (c *comparison) fitItems(a, b *jsontree.Node, path []string) []fault {
	faults := c.fitBounds(a, b, path, []string{"minItems"}, []string{"maxItems"})
	if b.Get("uniqueItems").Is(true) && !a.Get("uniqueItems").Is(true) {
		faults = append(faults, c.boundFault(path, "uniqueItems", nil, anyValue)...)
	}
	inside := append(slices.Clip(path), "[]")
	item := func(n *jsontree.Node, i int) *jsontree.Node {
		rest := orAny(n.Get("items"))
		switch list := n.ItemsOf("prefixItems"); {
		case i < len(list):
			return list[i]
		case rest.Kind == jsontree.Array:
			return anyValue // fitOpaque compares the list
		}
		return rest
	}
	count := max(len(a.ItemsOf("prefixItems")), len(b.ItemsOf("prefixItems")))
	for i := range count {
		faults = append(faults, c.fit(item(a, i), item(b, i), inside)...)
	}
	if most := number(a.Get("maxItems")); most != nil && most.Cmp(big.NewRat(int64(count), 1)) <= 0 {
		return faults
	}
	now := item(b, count)
	return append(faults, c.fit(c.sent(item(a, count), now, false), now, inside)...)
}

// fitMembers compares the keywords of objects.
func (c *comparison) fitMembers(a, b *jsontree.Node, path []string) []fault {
	faults := c.fitBounds(a, b, path, []string{"minProperties"}, []string{"maxProperties"})
	below := func(name string) []string { return append(slices.Clip(path), name) }
	isGone := func(name string) bool {
		return c.reversed && b.Get("properties").Get(name) != nil && a.Get("properties").Get(name) == nil
	}
	for _, p := range b.MembersOf("properties") {
		if isGone(p.Name) {
			faults = append(faults, fault{"gone", below(p.Name), "is gone"})
		}
	}
	required := compactItems(a.Get("required"))
	for _, item := range b.ItemsOf("required") {
		name, ok := item.Text()
		if !ok || slices.Contains(required, item.Compact()) || isGone(name) {
			continue
		}
		problem := "is new and required"
		if a.Get("properties").Get(name) != nil {
			problem = c.word("is required now", "may be missing now")
		}
		faults = append(faults, fault{c.word("required", "optional"), below(name), problem})
	}
	isRequired := func(name string) bool {
		return slices.Contains(compactItems(b.Get("required")), jsontree.NewString(name).Compact())
	}
	more := orAny(b.Get("additionalProperties"))
	hasPatterns := b.Get("patternProperties") != nil
	for _, p := range a.MembersOf("properties") {
		now := b.Get("properties").Get(p.Name)
		switch {
		case now != nil:
			faults = append(faults, c.fit(c.sent(p.Value, now, !isRequired(p.Name)), now, below(p.Name))...)
		case p.Value.Is(false) || hasPatterns:
		case more.Is(false) && c.reversed:
			faults = append(faults, fault{"form", below(p.Name), "is new, and the old schema has no other members"})
		case more.Is(false):
			faults = append(faults, fault{"gone", below(p.Name), "is refused now"})
		case c.ignores && b.Get("additionalProperties") == nil || c.ignores && more.Is(true):
			faults = append(faults, fault{"gone", below(p.Name), "is ignored now"})
		default:
			faults = append(faults, c.fit(p.Value, more, below(p.Name))...)
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
		faults = append(faults, c.fit(c.sent(rest, more, true), more, below("*"))...)
		for _, p := range b.MembersOf("properties") {
			if rest.Kind == jsontree.Object && a.Get("properties").Get(p.Name) == nil && !isGone(p.Name) {
				faults = append(faults, c.fit(rest, p.Value, below(p.Name))...)
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
	only := func(name string, value *jsontree.Node) *jsontree.Node {
		return jsontree.NewObject(jsontree.Member{Name: name, Value: value})
	}
	for _, name := range slices.Sorted(maps.Keys(opaque)) {
		now, was, of := b.Get(name), a.Get(name), opaque[name]
		switch {
		case now == nil || was != nil && c.same(only(name, was), only(name, now)) || of != "" && !slices.Contains(types, of):
		case name == "items" && now.Kind != jsontree.Array:
		case name == "format" && c.reversed:
			faults = append(faults, fault{"type", path, fmt.Sprintf("had the format %s and has %s now", now.Compact(), cmp.Or(strings.Join(compactItems(was), ""), "none"))})
		case c.reversed && name == "pattern":
		case was == nil:
			faults = append(faults, fault{"form", path, fmt.Sprintf(c.word("has %s=%s now", "had %s=%s before"), name, now.Compact())})
		default:
			faults = append(faults, fault{"form", path, "has another " + name + ": " + now.Compact()})
		}
	}
	return faults
}
