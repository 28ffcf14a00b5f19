package providers

import (
	"maps"
	"regexp"
	"slices"
)

var (
	// FunctionDeclaration in the reference of Vertex AI,
	// https://cloud.google.com/vertex-ai/docs/reference/rest/v1beta1/FunctionDeclaration, read 2026-11: the names of functions
	// and those of parameters.
	geminiName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_.-]{0,63}$`)
	geminiKey  = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]{0,63}$`)
)

// geminiFields are the fields of Schema: the same reference, and the type Schema of @google/genai 2.32.0 (2026-11).
var geminiFields = []string{
	"anyOf", "default", "description", "enum", "example", "format", "items", "maxItems", "maxLength", "maxProperties", "maximum", "minItems",
	"minLength", "minProperties", "minimum", "nullable", "pattern", "properties", "propertyOrdering", "required", "title", "type",
}

// dropped are the keywords that the field parameters lacks and that hosts drop, because the server checks them anyway. $ref is
// not one of them: without it, nothing is left.
var dropped = []string{
	"$schema", "additionalProperties", "contentEncoding", "contentMediaType", "examples", "exclusiveMaximum", "exclusiveMinimum", "multipleOf",
	"patternProperties", "propertyNames", "uniqueItems",
}

// Gemini has the rules of a FunctionDeclaration whose arguments are in the field parameters, once the host has dropped the
// keywords that this field lacks.
func Gemini(name string, schema map[string]any) []string {
	plain, _ := Plain(schema)
	return GeminiParameters(name, plain)
}

// GeminiParameters has the rules of the field parameters as it is sent: [geminiFields] alone, one type a schema
// (https://github.com/github/copilot-cli/issues/4623, 2026-09; "schema didn't specify the schema type field",
// https://github.com/oOo0oOo/lean-lsp-mcp/issues/185, 2026-04), enums of strings that are not empty
// (https://github.com/github/copilot-cli/issues/4835, 2026-09; https://github.com/sbroenne/mcp-server-excel/issues/607,
// 2026-04), arrays with items (https://github.com/Skyvern-AI/skyvern/issues/8611, 2026-09), and required properties that
// exist: the reference of Schema says that required names properties.
func GeminiParameters(name string, schema map[string]any) []string {
	var f findings
	if !geminiName.MatchString(name) {
		f.add("name", "%q", name)
	}
	if kind, _ := schema["type"].(string); kind != "object" && kind != "OBJECT" {
		f.add("", "type %v", schema["type"])
	}
	walk("", schema, f.checkGemini)
	return f
}

// checkGemini checks one schema without those in it.
func (f *findings) checkGemini(path string, schema map[string]any) {
	for key := range sorted(schema) {
		if !slices.Contains(geminiFields, key) {
			f.add(path, "%s", key)
		}
	}
	kind, isOne := schema["type"].(string)
	switch {
	case schema["type"] == nil && schema["anyOf"] == nil && schema["$ref"] == nil:
		f.add(path, "no type")
	case schema["type"] != nil && !isOne:
		f.add(path, "types %v", schema["type"])
	}
	for _, value := range list(schema["enum"]) {
		if text, ok := value.(string); !ok || text == "" || kind == "object" || kind == "array" {
			f.add(path, "%v in an enum", value)
		}
	}
	if kind == "array" || kind == "ARRAY" {
		if _, ok := schema["items"].(map[string]any); !ok {
			f.add(path, "array without items")
		}
	}
	names := properties(schema)
	for _, key := range names {
		if !geminiKey.MatchString(key) {
			f.add(path, "property %q", key)
		}
	}
	for _, key := range list(schema["required"]) {
		if name, ok := key.(string); !ok || !slices.Contains(names, name) {
			f.add(path, "required %v is no property", key)
		}
	}
}

// Plain returns a schema without the keywords that hosts drop for Gemini, and which of them it had. It does not count
// additionalProperties with false, which most schemas have.
func Plain(schema map[string]any) (plain map[string]any, without []string) {
	found := map[string]bool{}
	plain = dropKeywords(schema, found).(map[string]any)
	return plain, slices.Sorted(maps.Keys(found))
}

func dropKeywords(value any, found map[string]bool) any {
	schema, ok := value.(map[string]any)
	if !ok {
		return value
	}
	kept := map[string]any{}
	for key, value := range schema {
		switch {
		case slices.Contains(dropped, key):
			if key != "additionalProperties" || value != false {
				found[key] = true
			}
		case key == "items":
			kept[key] = dropKeywords(value, found)
		case slices.Contains(namedByKey, key):
			named := map[string]any{}
			inner, _ := value.(map[string]any)
			for name, value := range inner {
				named[name] = dropKeywords(value, found)
			}
			kept[key] = named
		case slices.Contains(listed, key):
			var all []any
			for _, value := range list(value) {
				all = append(all, dropKeywords(value, found))
			}
			kept[key] = all
		default:
			kept[key] = value
		}
	}
	return kept
}
