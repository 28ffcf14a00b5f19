package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// wireType is a Go type to generate: a map if element is set, or else a struct.
type wireType struct {
	name, doc string
	fields    []field
	element   string // the element type of a map with string keys
}

// field is a field of a struct.
type field struct {
	name, json, doc string
	typ             goType
	required        bool
}

// goType is the Go type of a value on the wire.
type goType struct {
	text string
	// pointer is set if an optional member is a pointer, because its zero value has a meaning.
	pointer bool
	// omitZero is set if an empty list or map differs from a missing one.
	omitZero bool
}

// raw is any value, kept unchanged.
var raw = goType{text: "json.RawMessage"}

func sliceOf(elem goType) goType { return goType{text: "[]" + elem.text, omitZero: true} }

func mapOf(elem goType) goType { return goType{text: "map[string]" + elem.text, omitZero: true} }

// fixedValue is a value that the schema fixes.
type fixedValue struct {
	name, value, property string
	definitions           []string // the definitions that contain it
}

// builder converts the definitions of one surface to Go types.
type builder struct {
	definitions map[string]*node
	statuses    []string
	types       []wireType
	constants   []fixedValue
}

func buildTypes(surface *schema.Surface) (*builder, error) {
	b := &builder{definitions: map[string]*node{}}
	for _, status := range surface.Statuses {
		b.statuses = append(b.statuses, status.Name)
	}
	for _, definition := range surface.Definitions {
		n := &node{}
		if err := json.Unmarshal(definition.Schema, n); err != nil {
			return nil, fmt.Errorf("%s: %w", definition.Name, err)
		}
		b.definitions[definition.Name] = n
	}
	for _, definition := range surface.Definitions {
		if err := b.addDefinition(definition.Name); err != nil {
			return nil, err
		}
	}
	seen := map[string]bool{}
	for _, t := range b.types {
		if seen[t.name] {
			return nil, fmt.Errorf("two types would be called %s: rename a definition", t.name)
		}
		seen[t.name] = true
	}
	return b, nil
}

// addDefinition adds the types of one definition. A message gets no type of its own. Only its
// inline params or error data do.
func (b *builder) addDefinition(name string) error {
	n := b.definitions[name]
	fields, err := b.flattenMembers(name, n)
	if err != nil {
		return err
	}
	if inner, suffix := findPayload(fields); suffix != "" {
		if inner == nil || len(inner.Properties) == 0 {
			return nil
		}
		return b.addStruct(name+suffix, inner.Doc, inner, suffix == "Params")
	}
	switch {
	case n.isMap():
		element := raw
		if n.Additional.values != nil {
			if element, err = b.typeOf(name+"Value", n.Additional.values, nil); err != nil {
				return err
			}
		}
		b.types = append(b.types, wireType{name: name, doc: n.Doc, element: element.text})
	case b.isStruct(n):
		return b.addStruct(name, n.Doc, n, false)
	}
	return nil
}

// findPayload recognizes a message by its constant method or its jsonrpc member. It returns the
// content of the message and the suffix for the type's name. suffix is empty if the definition is
// not a message.
func findPayload(members []member) (inner *node, suffix string) {
	get := func(name string) *node {
		for _, m := range members {
			if m.name == name {
				return m.schema
			}
		}
		return nil
	}
	if failure := get("error"); failure != nil && get("jsonrpc") != nil {
		for _, part := range failure.AllOf {
			if data := part.property("data"); data != nil && len(data.Properties) > 0 {
				return data, "Data"
			}
		}
		return nil, "Data"
	}
	if method := get("method"); get("jsonrpc") != nil || method != nil && method.constant() != "" && len(members) <= 2 {
		return get("params"), "Params"
	}
	return nil, ""
}

// addStruct adds a struct and the structs inside it. The params of every request may have a _meta,
// whether or not their schema mentions it.
func (b *builder) addStruct(name, doc string, n *node, params bool) error {
	members, err := b.flattenMembers(name, n)
	if err != nil {
		return err
	}
	if params && !slices.ContainsFunc(members, func(m member) bool { return m.name == "_meta" }) {
		meta := member{name: "_meta", schema: &node{Doc: "Metadata, by key."}}
		members = append([]member{meta}, members...)
	}
	at := len(b.types)
	t := wireType{name: name, doc: doc}
	for _, m := range members {
		f := field{name: goName(m.name), json: m.name, doc: m.schema.Doc, required: m.required}
		if f.typ, err = b.memberType(name, m); err != nil {
			return err
		}
		if slices.ContainsFunc(t.fields, func(other field) bool { return other.name == f.name }) {
			return fmt.Errorf("%s: two members would be called %s", name, f.name)
		}
		t.fields = append(t.fields, f)
		if m.schema.constant() != "" && !slices.Contains(b.statuses, m.schema.constant()) {
			b.addConstant(name, m)
		}
	}
	b.types = slices.Insert(b.types, at, t) // before the structs inside it
	return nil
}

func (b *builder) addConstant(definition string, m member) {
	c := fixedValue{name: goName(m.name) + goName(m.schema.constant()), value: m.schema.constant(), property: m.name}
	i := slices.IndexFunc(b.constants, func(other fixedValue) bool { return other.name == c.name })
	if i < 0 {
		i = len(b.constants)
		b.constants = append(b.constants, c)
	}
	b.constants[i].definitions = append(b.constants[i].definitions, definition)
}

func (b *builder) memberType(parent string, m member) (goType, error) {
	switch {
	case m.name == "_meta":
		return goType{text: mapOf(raw).text}, nil
	case m.name == "code" && m.schema.is("integer"):
		return goType{text: "int", pointer: true}, nil // JSON-RPC error codes are ints elsewhere
	}
	return b.typeOf(parent+goName(m.name), m.schema, nil)
}

// typeOf returns the Go type of a schema. It adds an inline struct under the given name. within
// lists the definitions that are being resolved.
func (b *builder) typeOf(name string, n *node, within []string) (goType, error) {
	if ref := n.definition(); ref != "" {
		target := b.definitions[ref]
		switch {
		case target.isMap():
			return goType{text: ref, omitZero: true}, nil
		case b.isStruct(target):
			return goType{text: ref, pointer: true}, nil
		case slices.Contains(within, ref):
			return raw, nil // only a named type can contain itself
		}
		return b.typeOf(name, target, append(slices.Clone(within), ref))
	}
	switch {
	case n.is("string"):
		return goType{text: "string"}, nil
	case n.is("boolean"):
		return goType{text: "bool"}, nil
	case n.is("integer"):
		return goType{text: "int64", pointer: true}, nil
	case len(n.Types) == 2 && slices.Contains(n.Types, "integer") && slices.Contains(n.Types, "null"):
		return goType{text: "*int64"}, nil // nil stands for null
	case n.is("array") && n.Items != nil:
		elem, err := b.typeOf(name+"Item", n.Items, within)
		return sliceOf(elem), err
	case len(n.Properties) > 0 && !n.Additional.open:
		doc := words.AfterName(name+" is about", n.Doc)
		return goType{text: name, pointer: true}, b.addStruct(name, doc, n, false)
	case n.is("object") && n.Additional.values != nil:
		elem, err := b.typeOf(name+"Value", n.Additional.values, within)
		return mapOf(elem), err
	}
	return raw, nil
}

// isMap reports whether a definition becomes a map.
func (n *node) isMap() bool { return n.Additional.open || n.Additional.values != nil }

// isStruct reports whether a definition that is not a map becomes a struct. Others get no type.
func (b *builder) isStruct(n *node) bool {
	return n.Additional.closed || len(n.Properties) > 0 || len(n.AllOf) > 0 || len(n.AnyOf) > 0 && b.isTagged(n.AnyOf)
}

// member is a property of a definition after allOf and tagged anyOf are flattened.
type member struct {
	name     string
	schema   *node
	required bool
}

// flattenMembers flattens a definition into its properties. within lists the definitions that are
// being flattened.
func (b *builder) flattenMembers(path string, n *node, within ...string) ([]member, error) {
	if ref := n.definition(); ref != "" {
		target, ok := b.definitions[ref]
		if !ok || slices.Contains(within, ref) {
			return nil, fmt.Errorf("%s: cannot flatten the definition %q into it", path, ref)
		}
		return b.flattenMembers(path, target, append(slices.Clone(within), ref)...)
	}
	var out []member
	for _, p := range n.Properties {
		out = append(out, member{p.name, p.schema, slices.Contains(n.Required, p.name)})
	}
	for _, part := range n.AllOf {
		members, err := b.flattenMembers(path, part, within...)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			i := slices.IndexFunc(out, func(o member) bool { return o.name == m.name })
			if i < 0 {
				out = append(out, m)
				continue
			}
			// The later part narrows the earlier one, in its place.
			out[i] = member{m.name, m.schema, m.required || out[i].required}
		}
	}
	if len(n.AnyOf) == 0 || !b.isTagged(n.AnyOf) {
		return out, nil
	}
	union, err := b.mergeVariants(path, n.AnyOf, within)
	return append(out, union...), err
}

// mergeVariants merges the variants of a tagged union. A member is required if all variants require
// it. The tag is no longer a constant.
func (b *builder) mergeVariants(path string, variants []*node, within []string) ([]member, error) {
	var out []member
	count := map[string]int{}
	for _, variant := range variants {
		members, err := b.flattenMembers(path, variant, within...)
		if err != nil {
			return nil, err
		}
		for _, m := range members {
			if m.required {
				count[m.name]++
			}
			if slices.ContainsFunc(out, func(o member) bool { return o.name == m.name }) {
				continue
			}
			plain := *m.schema
			plain.Const = nil
			out = append(out, member{name: m.name, schema: &plain})
		}
	}
	for i, m := range out {
		out[i].required = count[m.name] == len(variants)
	}
	return out, nil
}

// isTagged reports whether the variants are objects that share a property with a constant value.
func (b *builder) isTagged(variants []*node) bool {
	shared := map[string]int{}
	for _, variant := range variants {
		if ref := variant.definition(); ref != "" {
			variant = b.definitions[ref]
		}
		for _, p := range variant.Properties {
			if p.schema.constant() != "" {
				shared[p.name]++
			}
		}
	}
	for _, count := range shared {
		if count == len(variants) {
			return true
		}
	}
	return false
}
