package terminal_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const searchSchema = `{"type": "object", "required": ["query", "filters"], "properties": {
	"limit": {"type": "integer", "minimum": 1, "maximum": 50, "default": 10, "description": "How\nmany."},
	"query": {"type": "string", "minLength": 1, "description": "What to search\u001b[2J for."},
	"filters": {"$ref": "#/$defs/Filters"},
	"owner": {"anyOf": [{"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}, {"type": "null"}]},
	"labels": {"type": "object", "additionalProperties": {"type": "string", "maxLength": 9}},
	"steps": {"type": "array", "maxItems": 5, "items": {"type": "object", "properties": {"ratio": {"type": "number", "exclusiveMinimum": 0}}}},
	"tree": {"$ref": "#/$defs/Tree"}},
	"$defs": {
		"Filters": {"type": "object", "required": ["kind"], "description": "Filters narrow the search.", "properties": {
			"since": {"type": "string", "format": "date-time"}, "kind": {"enum": ["video", "audio"]}}},
		"Tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/Tree"}, "value": {"type": "integer", "maximum": 9}}}}}`

const searchDescription = `Searches.

  mcptask call URL search query=QUERY filters:={"kind":"video"}

Arguments
  query    text, not empty, required                 What to search for.
  filters  an object, required                       Filters narrow the search.
    kind   video or audio, required
    since  a time such as 2026-01-31T15:04:05Z
  limit    a whole number from 1 to 50, 10 by default  How many.
  owner    an object or null
    name   text, required
  labels   an object, each value text of at most 9 characters
  steps    a list of at most 5, each an object
    ratio  a number above 0
  tree     an object
    left   an object
      …
    value  a whole number up to 9

An object is written as JSON:

  mcptask call URL search query=QUERY filters:={"kind":"video"} owner:={"name":"NAME"}

Result
  hits    a list, each an object
    page  text, may be missing

It may run as a task.
`

// TestDescribeTool describes nested arguments, and the result.
func TestDescribeTool(t *testing.T) {
	tool := mcptask.ToolInfo{
		Name: "search", Description: "Searches.\x1b]0;title\x07", TaskSupport: mcptask.TaskOptional, InputSchema: json.RawMessage(searchSchema),
		OutputSchema: json.RawMessage(`{"type": "object", "required": ["hits"], "properties": {"hits": {"type": "array", "items": {"properties": {"page": {"type": "string"}}, "type": "object"}}}}`),
	}
	got := describe(t, tool)
	if got != searchDescription {
		t.Errorf("got\n%s\nwant\n%s", got, searchDescription)
	}
}

func describe(t *testing.T, tool mcptask.ToolInfo) string {
	t.Helper()
	var b strings.Builder
	err := terminal.DescribeTool(&b, tool, func(arguments ...string) string {
		return strings.Join(append([]string{"mcptask call URL", tool.Name}, arguments...), " ")
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestDescribeWithoutEnd describes schemas that refer to themselves, that would take minutes to follow, or that have too
// many properties.
func TestDescribeWithoutEnd(t *testing.T) {
	for schema, want := range map[string]string{
		`{"properties": {"a": {"type": "array", "items": {"$ref": "#/properties/a"}}}}`: "  a  a list, each a list, each a list, each a list\n",
		`{"$ref": "#"}`: "  mcptask call URL tool\n",
		`{"properties": {"a": {"anyOf": [{"$ref": "#/properties/a"}, {"$ref": "#/properties/a"}]}}}`:                      "  a  any JSON\n",
		`{"$defs": {"a": {"properties": {"b": {"$ref": "#/$defs/a"}, "c": {"$ref": "#/$defs/a"}}}}, "$ref": "#/$defs/a"}`: "  b    an object\n",
		`{"properties": {"a": {}}, "anyOf": [` + strings.Repeat(`{"$ref": "#"}, `, 3000) + `{}]}`:                         "  a  any JSON\n",
		`{"anyOf": [` + strings.Repeat(`{"anyOf": [`, 3000) + `{"properties": {"a": {}}}` + strings.Repeat(`]}`, 3001):    "  mcptask call URL tool\n",
		`{"description": "` + strings.Repeat("x", 70_000) + `"}`:                                                          "Arguments: the schema is too long to describe\n",
		`{"properties": {` + manyProperties(1000) + `}}`:                                                                  "  …\n",
		longReferences(): "  p199  any JSON\n",
	} {
		got := describe(t, mcptask.ToolInfo{Name: "tool", InputSchema: json.RawMessage(schema)})
		if !strings.Contains(got, want) || strings.Count(got, "\n") > 300 {
			t.Errorf("%.200s: got\n%s", schema, got)
		}
	}
}

// longReferences returns a schema in which every property leads to one long reference in 199 ways.
func longReferences() string {
	var properties []string
	for i := range 200 {
		properties = append(properties, fmt.Sprintf(`"p%d": {"$ref": "#/b"}`, i))
	}
	return `{"properties": {` + strings.Join(properties, ", ") + `}, "a": {"$ref": "#` + strings.Repeat("/a", 12_000) + `"}, "b": {"anyOf": [` +
		strings.Repeat(`{"$ref": "#/a"}, `, 198) + `{"$ref": "#/a"}]}}`
}

// manyProperties returns the members of an object of schemas.
func manyProperties(n int) string {
	var members []string
	for i := range n {
		members = append(members, `"p`+strings.Repeat("x", i%7)+string(rune('a'+i%26))+strings.Repeat("y", i/26)+`": {}`)
	}
	return strings.Join(members, ", ")
}
