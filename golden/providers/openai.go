package providers

import (
	"regexp"
	"slices"
)

var (
	// The interface FunctionObject in https://learn.microsoft.com/en-us/javascript/api/@azure/ai-projects/functionobject (2026-11): a-z, A-Z, 0-9, underscores and dashes, at most 64 characters.
	openAIName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)
	// "is not a 'regex'", such as https://github.com/zed-industries/zed/issues/60474 (2026-07).
	lookaround = regexp.MustCompile(`\(\?<?[=!]`)
)

// OpenAI has the rules of a function whose strict is false, as hosts send the tools of servers. The rules of the root are in
// the error of https://github.com/goruck/home-generative-agent/pull/545 (2026-08), "object schema missing properties" is in
// https://github.com/inboxapi/cli/issues/106 (2026-05), "array schema missing items" in
// https://github.com/rootlyhq/rootly-mcp-server/issues/82 (2026-04).
func OpenAI(name string, schema map[string]any) []string {
	var f findings
	if !openAIName.MatchString(name) {
		f.add("name", "%q", name)
	}
	if schema["type"] != "object" {
		f.add("", "type %v", schema["type"])
	}
	for _, keyword := range keywords(schema, "oneOf", "anyOf", "allOf", "enum", "const", "not") {
		f.add("", "%s at the root", keyword)
	}
	if _, ok := schema["properties"].(map[string]any); !ok {
		f.add("", "no properties")
	}
	walk("", schema, func(path string, schema map[string]any) {
		if has(schema["type"], "array") {
			switch schema["items"].(type) {
			case map[string]any:
			default:
				f.add(path, "array without items")
			}
		}
		if pattern, _ := schema["pattern"].(string); lookaround.MatchString(pattern) {
			f.add(path, "pattern %s", pattern)
		}
	})
	return f
}

// The limits of a strict schema.
const (
	strictDepth      = 10
	strictProperties = 5000
	strictEnums      = 1000
	strictText       = 120_000
)

// strictKeywords are the documented keywords of a strict schema: the types' own, and those that hold the others together.
var strictKeywords = []string{
	"$defs", "$ref", "additionalProperties", "anyOf", "const", "definitions", "description", "enum", "exclusiveMaximum", "exclusiveMinimum",
	"format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required", "title", "type",
}

// strictFormats are the documented formats of a strict schema.
var strictFormats = []string{"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"}

// OpenAIStrict has the rules of a function whose strict is true: "Structured Outputs, supported schemas", as of 2026-02 in
// https://jsonschemaprofiles.unitvectorylabs.com/schemas/openai. Hosts do not send the tools of servers so. It refuses what
// is not documented.
func OpenAIStrict(name string, schema map[string]any) []string {
	f := findings(OpenAI(name, schema))
	count, enums, text := 0, 0, 0
	walk("", schema, func(path string, schema map[string]any) {
		f.checkStrict(path, schema)
		names, values := properties(schema), list(schema["enum"])
		count, enums = count+len(names), enums+len(values)
		for _, name := range names {
			text += len(name)
		}
		for _, value := range values {
			if value, ok := value.(string); ok {
				text += len(value)
			}
		}
	})
	if depth := objectDepth(schema); depth > strictDepth {
		f.add("", "%d levels", depth)
	}
	if count > strictProperties || enums > strictEnums || text > strictText {
		f.add("", "%d properties, %d values of enums, %d characters", count, enums, text)
	}
	return f
}

// checkStrict checks one schema without those in it.
func (f *findings) checkStrict(path string, schema map[string]any) {
	for key := range sorted(schema) {
		if !slices.Contains(strictKeywords, key) {
			f.add(path, "%s", key)
		}
	}
	if len(keywords(schema, "type", "anyOf", "$ref", "enum", "const")) == 0 {
		f.add(path, "no type")
	}
	if format, ok := schema["format"].(string); ok && !slices.Contains(strictFormats, format) {
		f.add(path, "format %s", format)
	}
	if !has(schema["type"], "object") {
		return
	}
	if schema["additionalProperties"] != false {
		f.add(path, "open object")
	}
	required := list(schema["required"])
	for _, name := range properties(schema) {
		if !slices.Contains(required, any(name)) {
			f.add(path, "optional %s", name)
		}
	}
}
