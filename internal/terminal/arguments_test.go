package terminal_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const deploySchema = `{"type": "object", "required": ["branch"], "additionalProperties": false,
	"properties": {
		"branch": {"type": "string", "pattern": "^[a-z0-9]+$"},
		"replicas": {"$ref": "#/$defs/count"},
		"ratio": {"type": ["number", "null"]},
		"force": {"type": "boolean"},
		"tags": {"type": "array", "items": {"type": "string"}},
		"ports": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
		"place": {"enum": ["staging", "production"]},
		"level": {"enum": [1, 2]},
		"id": {"type": ["integer", "string"]},
		"note": {"type": ["string", "null"]},
		"any": {},
		"owner": {"type": "object", "additionalProperties": false, "properties": {"name": {"type": "string"}, "age": {"type": "integer"},
			"home": {"type": "object", "properties": {"size": {"type": "object", "properties": {"min": {"type": "integer"}}}}},
			"labels": {"type": "object", "additionalProperties": {"type": "string"}}}},
		"guest": {"anyOf": [{"type": "object", "properties": {"name": {"type": "string"}}}, {"type": "null"}]}
	},
	"$defs": {"count": {"type": "integer", "minimum": 1}}}`

func TestArguments(t *testing.T) {
	deploy := mcptask.ToolInfo{Name: "deploy", InputSchema: json.RawMessage(deploySchema)}
	for _, test := range []struct {
		words, base, want string // an error begins with !
	}{
		{"branch=main", "", `{"branch":"main"}`},
		{"branch=7", "", `{"branch":"7"}`},
		{"branch=a&b<c>", "", `!branch: `},
		{"branch=main replicas=3 force=true ratio=0.5", "", `{"branch":"main","force":true,"ratio":0.5,"replicas":3}`},
		{"branch=main ratio=null note=null", "", `{"branch":"main","note":"null","ratio":null}`},
		{"branch=main note:=null", "", `{"branch":"main","note":null}`},
		{"branch=main tags=a tags=7", "", `{"branch":"main","tags":["a","7"]}`},
		{"branch=main tags=a", "", `{"branch":"main","tags":["a"]}`},
		{`branch=main tags=["a","b"]`, "", `{"branch":"main","tags":["a","b"]}`},
		{"branch=main ports=80 ports=443", "", `{"branch":"main","ports":[80,443]}`},
		{"branch=main ports=http", "", `!ports.0: got string, want integer`},
		{"branch=main place=staging level=2", "", `{"branch":"main","level":2,"place":"staging"}`},
		{"branch=main place=there", "", `!place: `},
		{"branch=main level=two", "", `!level: got "two", want 1 or 2`},
		{"branch=main owner=ann", "", `!owner: got "ann", want an object, as JSON`},
		{"branch=main id=7", "", `{"branch":"main","id":7}`},
		{"branch=main id=x7", "", `{"branch":"main","id":"x7"}`},
		{`branch=main any={"a":1}`, "", `{"any":{"a":1},"branch":"main"}`},
		{"branch=main any=null", "", `{"any":null,"branch":"main"}`},
		{"branch=main any=a=b", "", `{"any":"a=b","branch":"main"}`},
		{`any:=[1]`, `{"branch":"main"}`, `{"any":[1],"branch":"main"}`},
		{"branch=dev", `{"branch":"main"}`, `{"branch":"dev"}`},
		{"", `[]`, `!the arguments are not a JSON object`},
		{"", `null`, `!the arguments are not a JSON object`},
		{"", "", `!missing property "branch"`},
		{"branch=main replicas=0", "", `!replicas: `},
		{"branch=main replicas=many", "", `!replicas: got "many", want a whole number from 1`},
		{"branch=main force=yes", "", `!force: got "yes", want true or false`},
		{"branch=a branch=b", "", `!branch: got 2 values, want one`},
		{"branhc=main", "", `!deploy has no argument "branhc"; did you mean branch?`},
		{"branch=main owner.name=ann", "", `!owner is an object: write it as JSON, such as 'owner:={"name":"ann"}'`},
		{"branch=main owner.age=old", "", `!owner.age: got "old", want a whole number`},
		{"branch=main owner.home.size.min=3", "", `!owner is an object: write it as JSON, such as 'owner:={"home":{"size":{"min":3}}}'`},
		{"branch=main owner.home.size.min=x", "", `!owner.home.size.min: got "x", want a whole number`},
		{"branch=main owner.home.size.max=3", "", `!deploy has no argument "owner.home.size.max"; it has `},
		{"branch=main owner.labels.a.b=1", "", `!owner is an object: write it as JSON, such as 'owner:={"labels":{"a.b":"1"}}'`},
		{"branch=main guest.name=ann", "", `!guest is an object: write it as JSON, such as 'guest:={"name":"ann"}'`},
		{"branch=main owner.size=1", "", `!deploy has no argument "owner.size"; it has `},
		{"branch=main branch.name=1", "", `!deploy has no argument "branch.name"; `},
		{"branch=main elephant=1", "", `!deploy has no argument "elephant"; it has any, branch, `},
		{"branch=main replicas:=x", "", `!replicas: "x" is not JSON; give text as replicas=x`},
		{"main", "", `!"main" is not an argument: write NAME=VALUE or NAME:=JSON`},
		{"=main", "", `!"=main" is not an argument`},
	} {
		got, err := terminal.Arguments(t.Context(), deploy, json.RawMessage(test.base), strings.Fields(test.words))
		if message, isError := strings.CutPrefix(test.want, "!"); isError {
			if err == nil || !strings.HasPrefix(err.Error(), message) {
				t.Errorf("%s: %s, %v, want the error %s", test.words, got, err, message)
			}
		} else if err != nil || string(got) != test.want {
			t.Errorf("%s: %s, %v, want %s", test.words, got, err, test.want)
		}
	}
}

// TestArgumentsLoose uses schemas that say little, or that cannot be read.
func TestArgumentsLoose(t *testing.T) {
	for _, test := range []struct{ schema, words, want string }{
		{``, "a=1 b=x", `{"a":1,"b":"x"}`},
		{`{"type": "object"}`, "a=1 b=x", `{"a":1,"b":"x"}`},
		{`{"type": "object", "properties": {}}`, "a=1", `!none has no argument "a": it has none`},
		{`{"type": "object", "additionalProperties": {"type": "string"}}`, "a=1", `{"a":"1"}`},
		{`{"type": "object", "patternProperties": {"^x": {}}}`, "x=1", `{"x":1}`},
		{`{"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/a"}}}`, "a=1", `!a: its schema refers to itself without end`},
		{`{"type": "object", "properties": {"a": {"$ref": "https://example.com/a"}}}`, "a=x", `{"a":"x"}`},
		{`{"type": "object", "properties": {"a": true}}`, "a=x", `{"a":"x"}`},
		{`[]`, "a=x", `{"a":"x"}`},
	} {
		tool := mcptask.ToolInfo{Name: "none", InputSchema: json.RawMessage(test.schema)}
		got, err := terminal.Arguments(t.Context(), tool, nil, strings.Fields(test.words))
		if message, isError := strings.CutPrefix(test.want, "!"); isError {
			if err == nil || err.Error() != message {
				t.Errorf("%s %s: %s, %v, want the error %s", test.schema, test.words, got, err, message)
			}
		} else if err != nil || string(got) != test.want {
			t.Errorf("%s %s: %s, %v, want %s", test.schema, test.words, got, err, test.want)
		}
	}
}

// FuzzArguments looks for words and schemas that make no JSON object.
func FuzzArguments(f *testing.F) {
	f.Add(deploySchema, "branch=main", "tags=a")
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, "a=1", "b:=2")
	f.Fuzz(func(t *testing.T, schema, first, second string) {
		tool := mcptask.ToolInfo{Name: "tool", InputSchema: json.RawMessage(schema)}
		got, err := terminal.Arguments(t.Context(), tool, nil, []string{first, second})
		var object map[string]any
		if err == nil && json.Unmarshal(got, &object) != nil {
			t.Errorf("%q", got)
		}
	})
}

// TestListInOrder checks that arguments come in the order of the schema, the required ones first.
func TestListInOrder(t *testing.T) {
	const schema = `{"required": ["c", "b"], "properties": {"d": {}, "c": {}, "a": {}, "b": {}}}`
	var names string
	for _, a := range terminal.ListArguments(mcptask.ToolInfo{Name: "order", InputSchema: json.RawMessage(schema)}) {
		names += a.Name
	}
	if names != "cbda" {
		t.Errorf("the order is %s", names)
	}
}

// TestUnknownAmongThousands checks that an error does not name all that there is.
func TestUnknownAmongThousands(t *testing.T) {
	known := make([]string, 5000)
	for i := range known {
		known[i] = "tool"
	}
	if err := terminal.Unknown("the server", "tool", "another", known); len(err.Error()) > 300 || !strings.HasSuffix(err.Error(), " and 4980 more") {
		t.Error(err)
	}
}
