package breaking

import (
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
)

// sent returns the schema of the values that a server gets for a part of arguments or answers. It has no null that the
// server takes for something else, where the new schema b has none: a value that is left out if the part may be, or an
// empty list or map.
func (c *comparison) sent(a, b *jsontree.Node, mayBeLeftOut bool) *jsontree.Node {
	if c.reversed {
		return a
	}
	to := c.merge(b, c.to)
	types := typesOf(to)
	isList := to.Get("type").Is("array")
	isMap := to.Get("type").Is("object") && to.Get("properties") == nil
	isBytes := to.Get("type").Is("string") && to.Get("contentEncoding").Is("base64")
	if acceptsType(types, "null") && branchesOf(to) == nil || !mayBeLeftOut && !isList && !isMap && !isBytes {
		return a
	}
	return withoutNull(c.merge(a, c.from))
}

// withoutNull returns a schema that does not take null, and otherwise takes the same.
func withoutNull(n *jsontree.Node) *jsontree.Node {
	if n.Kind != jsontree.Object {
		return n
	}
	isNull := func(v *jsontree.Node) bool { return v.Kind == jsontree.Null }
	isNullType := func(v *jsontree.Node) bool { return v.Is("null") }
	if values := n.ItemsOf("enum"); slices.ContainsFunc(values, isNull) {
		n = n.Without()
		n.Set("enum", jsontree.NewArray(slices.DeleteFunc(slices.Clone(values), isNull)...))
	}
	if types := n.ItemsOf("type"); slices.ContainsFunc(types, isNullType) {
		n = n.Without()
		types = slices.DeleteFunc(slices.Clone(types), isNullType)
		n.Set("type", jsontree.NewArray(types...))
		if len(types) == 1 {
			n.Set("type", types[0])
		}
	}
	for _, keyword := range []string{"anyOf", "oneOf"} {
		branches := n.ItemsOf(keyword)
		takesNull := func(branch *jsontree.Node) bool { return branch.Get("type").Is("null") }
		if !slices.ContainsFunc(branches, takesNull) {
			continue
		}
		if branches = slices.DeleteFunc(slices.Clone(branches), takesNull); len(branches) == 0 {
			continue
		}
		n = n.Without()
		n.Set(keyword, jsontree.NewArray(branches...))
	}
	return n
}
