// Package providers checks tools by the published rules of the providers of models. It is for tests. It shares no code and
// no table with the generator's own, so that a mistake in one of them shows as a difference.
package providers

import (
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
)

// Tool is a tool as a server lists it.
type Tool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// Provider has the rules of one provider, for one way to send tools to it.
type Provider struct {
	Name string
	// Check returns why the provider refuses a tool with the name and the schema of arguments, and nothing if it takes it.
	Check func(name string, schema map[string]any) []string
}

// All returns the providers in the order of the tables.
func All() []Provider {
	return []Provider{
		{"Anthropic", Anthropic}, {"Managed Agents", ManagedAgents}, {"OpenAI", OpenAI}, {"Gemini", Gemini}, {"OpenAI strict", OpenAIStrict},
	}
}

// Decode decodes the schema of a tool's arguments.
func Decode(data json.RawMessage) (map[string]any, error) {
	var schema map[string]any
	if err := json.Unmarshal(data, &schema); err != nil {
		return nil, fmt.Errorf("the schema is not an object: %w", err)
	}
	return schema, nil
}

// The keywords that have schemas, by their form.
var (
	oneSchema  = []string{"additionalProperties", "contains", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	listed     = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	namedByKey = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// walk calls visit with each schema within a value, itself first. It does not follow references.
func walk(path string, value any, visit func(path string, schema map[string]any)) {
	schema, ok := value.(map[string]any)
	if !ok {
		return
	}
	visit(path, schema)
	for _, key := range oneSchema {
		walk(path+"/"+key, schema[key], visit)
	}
	for _, key := range listed {
		list, _ := schema[key].([]any)
		for i, inner := range list {
			walk(fmt.Sprintf("%s/%s/%d", path, key, i), inner, visit)
		}
	}
	for _, key := range namedByKey {
		named, _ := schema[key].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(named)) {
			walk(path+"/"+key+"/"+name, named[name], visit)
		}
	}
}

// keywords returns those of some keywords that a schema has.
func keywords(schema map[string]any, some ...string) []string {
	var found []string
	for _, keyword := range some {
		if _, ok := schema[keyword]; ok {
			found = append(found, keyword)
		}
	}
	return found
}

// properties returns the names of a schema's properties in order.
func properties(schema map[string]any) []string {
	named, _ := schema["properties"].(map[string]any)
	return slices.Sorted(maps.Keys(named))
}

// findings collects why a provider refuses a tool.
type findings []string

func (f *findings) add(path, format string, args ...any) {
	if path == "" {
		path = "/"
	}
	*f = append(*f, path+" "+fmt.Sprintf(format, args...))
}

// has reports whether the value of type has a type.
func has(types any, kind string) bool {
	return types == kind || slices.Contains(list(types), any(kind))
}

// list returns a value that is an array, and nil if it is none.
func list(value any) []any {
	values, _ := value.([]any)
	return values
}

// sorted returns the keys of a schema in order.
func sorted(schema map[string]any) iter.Seq[string] {
	return slices.Values(slices.Sorted(maps.Keys(schema)))
}

// objectDepth returns how many objects stand in one another.
func objectDepth(value any) int {
	deepest := 0
	switch value := value.(type) {
	case map[string]any:
		for _, inner := range value {
			deepest = max(deepest, objectDepth(inner))
		}
		if has(value["type"], "object") {
			deepest++
		}
	case []any:
		for _, inner := range value {
			deepest = max(deepest, objectDepth(inner))
		}
	}
	return deepest
}
