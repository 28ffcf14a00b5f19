package jsonschema

import (
	"fmt"
	"go/types"
	"strconv"
	"strings"
	"unicode"
)

// assembly combines the schemas of a graph under one root.
type assembly struct {
	*graph

	root       string
	useCounts  map[string]int
	references map[string][]string // for each key, the keys that its schema refers to
	loops      map[string]bool     // keys that refer to themselves, directly or indirectly
	names      map[string]string   // keys under $defs
}

// assemble inlines every type, except those used twice or by themselves, which go under $defs. A
// root that uses itself is "#".
func (g *graph) assemble(root string) *object {
	a := &assembly{
		graph: g, root: root,
		useCounts: map[string]int{}, references: map[string][]string{}, loops: map[string]bool{}, names: map[string]string{},
	}
	for _, key := range g.queue {
		a.references[key] = references(g.nodes[key])
		for _, used := range a.references[key] {
			a.useCounts[used]++
		}
	}
	for _, key := range g.queue {
		a.loops[key] = a.canReach(key, key, map[string]bool{})
	}
	a.nameDefinitions()
	schema := a.expandReferences(cloneValue(g.nodes[root])).(*object)
	schema.remove("description") // the tool's own description says more
	defs := newObject()
	for _, key := range g.queue {
		if name, ok := a.names[key]; ok {
			defs.set(name, a.expandReferences(cloneValue(g.nodes[key])))
		}
	}
	if len(defs.keys) > 0 {
		schema.set("$defs", defs)
	}
	return schema
}

// references lists the keys that a schema refers to, once per reference.
func references(value any) []string {
	var keys []string
	switch v := value.(type) {
	case *object:
		if ref, ok := v.get("$ref").(string); ok {
			keys = append(keys, ref)
		}
		for _, k := range v.keys {
			keys = append(keys, references(v.values[k])...)
		}
	case []any:
		for _, item := range v {
			keys = append(keys, references(item)...)
		}
	}
	return keys
}

func (a *assembly) canReach(from, to string, seen map[string]bool) bool {
	for _, used := range a.references[from] {
		if used == to {
			return true
		}
		if !seen[used] {
			seen[used] = true
			if a.canReach(used, to, seen) {
				return true
			}
		}
	}
	return false
}

// nameDefinitions names the schemas under $defs package.Type. It uses the whole import path if two
// packages have the same name.
func (a *assembly) nameDefinitions() {
	short := func(p *types.Package) string { return p.Name() }
	long := func(p *types.Package) string { return strings.ReplaceAll(p.Path(), "/", ".") }
	count := map[string]int{}
	var shared []string
	for _, key := range a.queue {
		if key != a.root && (a.useCounts[key] > 1 || a.loops[key]) {
			shared = append(shared, key)
			count[definitionName(a.types[key], short)]++
		}
	}
	taken := map[string]bool{}
	for _, key := range shared {
		name := definitionName(a.types[key], short)
		if count[name] > 1 {
			name = definitionName(a.types[key], long)
		}
		for i, base := 2, name; taken[name]; i++ {
			name = base + "_" + strconv.Itoa(i) // signs were dropped, so Page[*int] and Page[[]int] have the same name
		}
		taken[name] = true
		a.names[key] = name
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

// expandReferences replaces the references in a schema and converts the null marks.
func (a *assembly) expandReferences(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = a.expandReferences(v[i])
		}
		return v
	case *object:
		if key, ok := v.get("$ref").(string); ok {
			v = a.resolveReference(v, key)
		} else {
			for _, k := range v.keys {
				v.values[k] = a.expandReferences(v.values[k])
			}
		}
		return admitNull(v)
	}
	return value
}

// resolveReference replaces one reference. Keywords next to the reference override those of its
// target.
func (a *assembly) resolveReference(node *object, key string) *object {
	name, shared := a.names[key]
	switch {
	case key == a.root:
		node.set("$ref", "#")
		return node
	case shared:
		node.set("$ref", "#/$defs/"+name)
		return node
	case a.nodes[key] == nil: // a reference that the user wrote
		return node
	}
	inner := a.expandReferences(cloneValue(a.nodes[key])).(*object)
	for _, k := range node.keys {
		if k != "$ref" {
			inner.set(k, node.values[k])
		}
	}
	return inner
}

// admitNull converts the mark of correctSchema to JSON Schema.
func admitNull(node *object) *object {
	if !node.has(nullMark) {
		return node
	}
	node.remove(nullMark)
	if len(node.keys) == 0 {
		return node // any value is valid already
	}
	if t, ok := node.get("type").(string); ok {
		node.set("type", []any{t, "null"})
		if choices, ok := node.get("enum").([]any); ok {
			node.set("enum", append(choices, nil))
		}
		return node
	}
	outer := newObject()
	for _, k := range []string{"title", "description", "default"} {
		if node.has(k) {
			outer.set(k, node.get(k))
			node.remove(k)
		}
	}
	if len(node.keys) > 0 {
		outer.set("anyOf", []any{node, newObject("type", "null")})
	}
	return outer
}
