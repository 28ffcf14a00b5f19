package providers

import (
	"regexp"

	validator "github.com/santhosh-tekuri/jsonschema/v6"
)

var (
	// The pattern in the error about a tool's name: https://github.com/github/copilot-cli/issues/1879 (2026-03).
	anthropicName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	// The pattern in the error "Property keys should match pattern", such as
	// https://github.com/ComposioHQ/composio/issues/3500 (2026-06) and
	// https://github.com/beautyfree/appstore-connect-mcp/issues/2 (2026-04). Some report that it is checked at the root alone.
	anthropicKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
)

// Anthropic has the rules of input_schema in the Messages API: "does not support oneOf, allOf, or anyOf at the top level", such as
// https://github.com/kenn-io/kata/pull/365 (2026-09).
func Anthropic(name string, schema map[string]any) []string {
	var f findings
	if !anthropicName.MatchString(name) {
		f.add("name", "%q", name)
	}
	if schema["type"] != "object" {
		f.add("", "type %v", schema["type"])
	}
	for _, keyword := range keywords(schema, "oneOf", "anyOf", "allOf") {
		f.add("", "%s at the root", keyword)
	}
	walk("", schema, func(path string, schema map[string]any) {
		for _, key := range properties(schema) {
			if !anthropicKey.MatchString(key) {
				f.add(path, "property %q", key)
			}
		}
	})
	// "JSON schema is invalid. It must match JSON Schema draft 2020-12", such as
	// https://github.com/anthropics/claude-code/issues/586.
	compiler := validator.NewCompiler()
	compiler.DefaultDraft(validator.Draft2020)
	compiler.UseRegexpEngine(anyPattern)
	err := compiler.AddResource("tool.json", schema)
	if err == nil {
		_, err = compiler.Compile("tool.json")
	}
	if err != nil {
		f.add("", "not JSON Schema 2020-12")
	}
	return f
}

// ManagedAgents has the rules of custom tools in Anthropic's Managed Agents, which are those of the Messages API without
// references: https://platform.claude.com/docs/en/managed-agents/self-hosted-sandboxes, as quoted in
// https://github.com/diegosouzapw/OmniRoute/issues/13552 (2026-09).
func ManagedAgents(name string, schema map[string]any) []string {
	f := findings(Anthropic(name, schema))
	walk("", schema, func(path string, schema map[string]any) {
		for _, keyword := range keywords(schema, "$ref", "$dynamicRef") {
			f.add(path, "%s", keyword)
		}
	})
	return f
}

// anyPattern takes the patterns that Go does not have, such as lookahead, which JSON Schema has.
func anyPattern(string) (validator.Regexp, error) { return regexp.MustCompile(""), nil }
