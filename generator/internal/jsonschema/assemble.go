package jsonschema

import (
	"fmt"
	"go/types"
	"strconv"
	"strings"
	"unicode"
)

// assembly puts the schemas of a graph together under one root.
type assembly struct {
	*graph

	root  string
	uses  map[string]int
	used  map[string][]string // the keys that the schema of a key refers to
	loops map[string]bool     // keys that reach themselves
	names map[string]string   // keys under $defs
}

// assemble writes every type out where it is used, except those that are used twice or by
// themselves, which stand under $defs. A root that uses itself is "#".
func (g *graph) assemble(root string) *object {
	a := &assembly{graph: g, root: root, uses: map[string]int{}, used: map[string][]string{}, loops: map[string]bool{}, names: map[string]string{}}
	for _, key := range g.queue {
		a.used[key] = references(g.nodes[key])
		for _, used := range a.used[key] {
			a.uses[used]++
		}
	}
	for _, key := range g.queue {
		a.loops[key] = a.reaches(key, key, map[string]bool{})
	}
	a.nameDefinitions()
	schema := a.expand(clone(g.nodes[root])).(*object)
	schema.remove("description") // the tool's own says more
	defs := newObject()
	for _, key := range g.queue {
		if name, ok := a.names[key]; ok {
			defs.set(name, a.expand(clone(g.nodes[key])))
		}
	}
	if len(defs.keys) > 0 {
		schema.set("$defs", defs)
	}
	return schema
}

// references lists the keys that a schema refers to, each as often as it does.
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

func (a *assembly) reaches(from, to string, seen map[string]bool) bool {
	for _, used := range a.used[from] {
		if used == to {
			return true
		}
		if !seen[used] {
			seen[used] = true
			if a.reaches(used, to, seen) {
				return true
			}
		}
	}
	return false
}

// nameDefinitions names what stands under $defs: package.Type, and the whole path where two
// packages have one name.
func (a *assembly) nameDefinitions() {
	short := func(p *types.Package) string { return p.Name() }
	long := func(p *types.Package) string { return strings.ReplaceAll(p.Path(), "/", ".") }
	count := map[string]int{}
	var shared []string
	for _, key := range a.queue {
		if key != a.root && (a.uses[key] > 1 || a.loops[key]) {
			shared = append(shared, key)
			count[definition(a.types[key], short)]++
		}
	}
	taken := map[string]bool{}
	for _, key := range shared {
		name := definition(a.types[key], short)
		if count[name] > 1 {
			name = definition(a.types[key], long)
		}
		for i, base := 2, name; taken[name]; i++ {
			name = base + "_" + strconv.Itoa(i) // Page[*int] and Page[[]int] differ in nothing but signs
		}
		taken[name] = true
		a.names[key] = name
	}
}

// definition is a type's name in letters that need no escape in a reference.
func definition(t types.Type, qualifier types.Qualifier) string {
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

// expand replaces the references in a schema and settles where null may stand.
func (a *assembly) expand(value any) any {
	switch v := value.(type) {
	case []any:
		for i := range v {
			v[i] = a.expand(v[i])
		}
		return v
	case *object:
		if key, ok := v.get("$ref").(string); ok {
			v = a.resolve(v, key)
		} else {
			for _, k := range v.keys {
				v.values[k] = a.expand(v.values[k])
			}
		}
		return admitNull(v)
	}
	return value
}

// resolve replaces one reference. What stands beside it wins over what it refers to.
func (a *assembly) resolve(node *object, key string) *object {
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
	inner := a.expand(clone(a.nodes[key])).(*object)
	for _, k := range node.keys {
		if k != "$ref" {
			inner.set(k, node.values[k])
		}
	}
	return inner
}

// admitNull turns the mark of correct into JSON Schema.
func admitNull(node *object) *object {
	if !node.has(null) {
		return node
	}
	node.remove(null)
	if len(node.keys) == 0 {
		return node // anything may stand here already
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
