package terminal

import (
	"encoding/json"
	"fmt"
	"strings"
)

// schema has the keywords of a JSON Schema that this package reads.
type schema struct {
	root document
	node any
}

// document is a decoded schema. Each reference is looked up once: it may be long, and stand in many places.
type document struct {
	members map[string]any
	targets map[string]any // of references
}

// find returns the part of the document that a reference names, or nil.
func (d document) find(reference string) any {
	if target, ok := d.targets[reference]; ok {
		return target
	}
	path, ok := strings.CutPrefix(reference, "#")
	if !ok {
		return nil
	}
	var target any = d.members
	for _, step := range strings.Split(path, "/")[1:] {
		parent, _ := target.(map[string]any)
		target = parent[unescapeStep(step)]
	}
	d.targets[reference] = target
	return target
}

// readSchema reads a schema. One that is not JSON allows everything.
func readSchema(text json.RawMessage) schema {
	var root map[string]any
	if json.Unmarshal(text, &root) != nil {
		return schema{}
	}
	return schema{document{root, map[string]any{}}, root}
}

// maxReferences bounds how many $ref lie in one another.
const maxReferences = 16

// members returns the keywords of a schema, after its references within the document.
func (s schema) members() map[string]any {
	m, _ := s.node.(map[string]any)
	for range maxReferences {
		reference, ok := m["$ref"].(string)
		if !ok {
			break
		}
		m, _ = s.root.find(reference).(map[string]any)
	}
	return m
}

// unescapeStep returns the name in a step of a JSON Pointer.
func unescapeStep(step string) string { return strings.NewReplacer("~1", "/", "~0", "~").Replace(step) }

// property returns the schema of a property. ok is false if the object declares others and does not state that it takes
// more.
func (s schema) property(name string) (p schema, ok bool) {
	m := s.members()
	properties, _ := m["properties"].(map[string]any)
	if node, ok := properties[name]; ok {
		return schema{s.root, node}, true
	}
	more, says := m["additionalProperties"]
	if says && more != false {
		return schema{s.root, more}, true
	}
	_, patterns := m["patternProperties"]
	return schema{}, patterns || !says && properties == nil
}

// maxBranches bounds how many branches of anyOf, oneOf and allOf are read. They may refer to each other.
const maxBranches = 200

// kinds returns the types that the schema allows. An empty result means that it does not limit
// them.
func (s schema) kinds() []string {
	branches := maxBranches
	return s.kindsWithin(&branches)
}

// kindsWithin is kinds with the number of branches that may still be read.
func (s schema) kindsWithin(branches *int) (kinds []string) {
	m := s.members()
	switch kind := m["type"].(type) {
	case string:
		return []string{kind}
	case []any:
		for _, k := range kind {
			kinds = append(kinds, fmt.Sprint(k))
		}
		return kinds
	}
	for _, value := range s.choices() {
		kinds = append(kinds, kindOf(value))
	}
	for _, keyword := range []string{"anyOf", "oneOf", "allOf"} {
		nodes, _ := m[keyword].([]any)
		for _, node := range nodes {
			if *branches--; *branches >= 0 {
				kinds = append(kinds, schema{s.root, node}.kindsWithin(branches)...)
			}
		}
	}
	return kinds
}

// choices returns the values of enum and const.
func (s schema) choices() []any {
	m := s.members()
	choices, _ := m["enum"].([]any)
	if value, ok := m["const"]; ok {
		choices = append(choices, value)
	}
	return choices
}

// values returns the values to choose from, as a person types them.
func (s schema) values() (values []string) {
	for _, choice := range s.choices() {
		if text, ok := choice.(string); ok {
			values = append(values, text)
		} else if text, err := encode(choice); err == nil {
			values = append(values, string(text))
		}
	}
	return values
}

// kindOf names the type of a JSON value.
func kindOf(value any) string {
	switch value.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case []any:
		return "array"
	}
	return "object"
}
