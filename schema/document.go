package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Document holds the definitions of one schema file, or of several combined.
type Document struct {
	// Definitions are in the order of the file.
	Definitions []Definition
}

// Definition is a named schema.
type Definition struct {
	Name string
	// Doc is the definition's description.
	Doc    string
	Schema json.RawMessage

	value any // Schema, decoded, without its words
}

// Definition returns the definition of that name.
func (d *Document) Definition(name string) (Definition, bool) {
	if i := slices.IndexFunc(d.Definitions, func(d Definition) bool { return d.Name == name }); i >= 0 {
		return d.Definitions[i], true
	}
	return Definition{}, false
}

// Member is a member of a JSON object.
type Member struct {
	Name  string
	Value json.RawMessage
}

// Members returns the members of a JSON object in source order. A repeated name is an error.
func Members(object json.RawMessage) ([]Member, error) {
	decoder := json.NewDecoder(bytes.NewReader(object))
	token, err := decoder.Token()
	if err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if token != json.Delim('{') {
		return nil, errors.New("not a JSON object")
	}
	var members []Member
	seen := map[string]bool{}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return nil, fmt.Errorf("not JSON: %w", err)
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("not JSON: a member's name is not a string")
		}
		if seen[name] {
			return nil, fmt.Errorf("duplicate member %q", name)
		}
		seen[name] = true
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return nil, fmt.Errorf("%s: not JSON: %w", name, err)
		}
		members = append(members, Member{name, value})
	}
	if _, err := decoder.Token(); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	return members, nil
}

// Parse reads a published schema file: an object with $defs, or with definitions as before JSON
// Schema 2019-09. It checks the references between the definitions.
func Parse(data []byte) (*Document, error) {
	if !json.Valid(data) {
		var into any
		return nil, fmt.Errorf("not JSON: %w", json.Unmarshal(data, &into))
	}
	top, err := Members(data)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(top, func(m Member) bool { return m.Name == "$defs" || m.Name == "definitions" })
	if i < 0 {
		return nil, errors.New(`no "$defs" and no "definitions": this is not an MCP schema file`)
	}
	members, err := Members(top[i].Value)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", top[i].Name, err)
	}
	document := &Document{}
	for _, member := range members {
		definition := Definition{Name: member.Name, Schema: member.Value}
		value, err := decodeJSON(member.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", member.Name, err)
		}
		if object, ok := value.(map[string]any); ok {
			definition.Doc, _ = object["description"].(string)
		}
		definition.value = dropWords(value)
		document.Definitions = append(document.Definitions, definition)
	}
	values, done := document.valuesByName(), map[string]bool{}
	for _, definition := range document.Definitions {
		if err := checkReferences(definition.Name, definition.value, values); err != nil {
			return nil, err
		}
	}
	for _, definition := range document.Definitions {
		if err := checkCycles(definition.Name, values, done, nil); err != nil {
			return nil, err
		}
	}
	return document, nil
}

// Combine combines documents. If two define the same name, the later one wins.
func Combine(documents ...*Document) *Document {
	combined := &Document{}
	for _, document := range documents {
		for _, definition := range document.Definitions {
			i := slices.IndexFunc(combined.Definitions, func(d Definition) bool { return d.Name == definition.Name })
			if i < 0 {
				combined.Definitions = append(combined.Definitions, definition)
			} else {
				combined.Definitions[i] = definition
			}
		}
	}
	return combined
}

// valuesByName maps the name of each definition to its decoded schema.
func (d *Document) valuesByName() map[string]any {
	values := make(map[string]any, len(d.Definitions))
	for _, definition := range d.Definitions {
		values[definition.Name] = definition.value
	}
	return values
}

// decodeJSON decodes JSON and keeps numbers as written.
func decodeJSON(raw json.RawMessage) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var value any
	err := decoder.Decode(&value)
	return value, err
}

// words are the keywords that do not restrict values.
var words = []string{"title", "description", "$schema", "$id", "$comment", "examples"}

// dropWords returns a schema without the keywords that do not restrict values.
func dropWords(schema any) any {
	switch schema := schema.(type) {
	case []any: // of anyOf, oneOf or allOf
		out := make([]any, len(schema))
		for i, member := range schema {
			out[i] = dropWords(member)
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for keyword, value := range schema {
			members, isObject := value.(map[string]any)
			switch {
			case slices.Contains(words, keyword):
				continue
			case isObject && (keyword == "properties" || keyword == "patternProperties"):
				properties := map[string]any{}
				for name, member := range members {
					properties[name] = dropWords(member)
				}
				value = properties
			case keyword != "enum" && keyword != "const" && keyword != "default":
				value = dropWords(value)
			}
			out[keyword] = value
		}
		return out
	}
	return schema
}

// refName returns the definition that a schema refers to, or "".
func refName(schema any) string {
	object, _ := schema.(map[string]any)
	ref, _ := object["$ref"].(string)
	for _, prefix := range []string{"#/$defs/", "#/definitions/"} {
		if name, ok := strings.CutPrefix(ref, prefix); ok && !strings.Contains(name, "/") {
			return name
		}
	}
	return ""
}

// checkCycles refuses a definition that refers to itself only through $ref, allOf, anyOf and oneOf,
// because it has no meaning. done has the definitions that were checked. chain has those that led
// here.
func checkCycles(name string, definitions map[string]any, done map[string]bool, chain []string) error {
	if i := slices.Index(chain, name); i >= 0 {
		return fmt.Errorf("%s: the definition refers to itself: %s -> %[1]s", name, strings.Join(chain[i:], " -> "))
	}
	if done[name] {
		return nil
	}
	done[name] = true
	for _, next := range directReferences(definitions[name]) {
		if err := checkCycles(next, definitions, done, append(chain, name)); err != nil {
			return err
		}
	}
	return nil
}

// directReferences returns the definitions that a schema applies to the same value.
func directReferences(schema any) (names []string) {
	if name := refName(schema); name != "" {
		names = append(names, name)
	}
	object, _ := schema.(map[string]any)
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		members, _ := object[keyword].([]any)
		for _, member := range members {
			names = append(names, directReferences(member)...)
		}
	}
	return names
}

// checkReferences refuses references that do not lead to a definition.
func checkReferences(path string, value any, definitions map[string]any) error {
	switch value := value.(type) {
	case []any:
		for i, item := range value {
			if err := checkReferences(fmt.Sprintf("%s[%d]", path, i), item, definitions); err != nil {
				return err
			}
		}
	case map[string]any:
		if ref, ok := value["$ref"].(string); ok && definitions[refName(value)] == nil {
			return fmt.Errorf("%s.$ref: %s does not lead to a definition of the same file", path, ref)
		}
		for _, name := range slices.Sorted(maps.Keys(value)) {
			if err := checkReferences(path+"."+name, value[name], definitions); err != nil {
				return err
			}
		}
	}
	return nil
}
