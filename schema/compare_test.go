package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// mutate returns the revision's schema file with one text replaced.
func mutate(t *testing.T, revision, from, to string) *schema.Document {
	t.Helper()
	text := string(read(t, revision, "tasks.schema.json"))
	if !strings.Contains(text, from) {
		t.Fatalf("schema/%s does not contain %s", revision, from)
	}
	return parse(t, []byte(strings.Replace(text, from, to, 1)))
}

func TestCompareReports(t *testing.T) {
	tests := []struct {
		name, revision, from, to string
		want                     []string // paths and kinds
	}{{
		"a new value of an enum", "2025-11-25",
		`["working", "input_required",`, `["working", "paused", "input_required",`,
		[]string{"TaskStatus enum changed"},
	}, {
		"another type", "2025-11-25",
		`"type": ["integer", "null"]`, `"type": "integer"`,
		[]string{"CancelTaskResult.ttl type changed", "GetTaskResult.ttl type changed",
			"Task.ttl type changed", "TaskStatusNotificationParams.ttl type changed"},
	}, {
		"a member no longer required", "2025-11-25",
		`"required": ["tasks"]`, `"required": []`,
		[]string{"ListTasksResult.tasks changed"},
	}, {
		"a new member", "2025-11-25",
		`"taskSupport": {`, `"parallel": {"type": "boolean"}, "taskSupport": {`,
		[]string{"ToolExecution.parallel added"},
	}, {
		"a renamed member", "2025-11-25",
		`"nextCursor": {`, `"next": {`,
		[]string{"ListTasksResult.next added", "ListTasksResult.nextCursor removed"},
	}, {
		"a new definition", "2025-11-25",
		`"TaskMetadata": {`, `"PauseTaskRequest": {"type": "object"}, "TaskMetadata": {`,
		[]string{"PauseTaskRequest added"},
	}, {
		"a member of one alternative", "2026-07-28",
		`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "error"]`,
		`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]`,
		[]string{"FailedTask.error changed"},
	}, {
		"another method", "2026-07-28",
		`"const": "tasks/update"`, `"const": "tasks/answer"`,
		[]string{"UpdateTaskRequest.method enum changed"},
	}, {
		"a closed object that opens", "2026-07-28",
		`"additionalProperties": false`, `"additionalProperties": true`,
		[]string{"TasksExtensionCapability{} removed"},
	}, {
		"a part of a definition that is compared in parts", "2026-07-28",
		`"const": "elicitation/create"`, `"const": "elicitation/ask"`,
		[]string{"ElicitRequest.method enum changed"},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			surface := load(t, test.revision)
			official := mutate(t, test.revision, test.from, test.to)
			var got []string
			for _, d := range schema.Compare(surface, official) {
				got = append(got, fmt.Sprintf("%s %s", d.Path, d.Kind))
				if d.String() == "" || (d.Ours == "") != (d.Kind == schema.Added) || (d.Official == "") != (d.Kind == schema.Removed) {
					t.Errorf("incomplete difference %#v", d)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
			if cmp.Equal(fingerprints(surface, ours(surface)), fingerprints(surface, official)) && test.name != "a new definition" {
				t.Error("the fingerprints did not notice")
			}
		})
	}
}

// TestCompareWithout covers a file that lacks a definition.
func TestCompareWithout(t *testing.T) {
	surface := load(t, "2025-11-25")
	official := parse(t, []byte(`{"definitions": {}}`))
	differences := schema.Compare(surface, official)
	if len(differences) != len(surface.Definitions) {
		t.Fatalf("%d differences, want one for each of %d definitions", len(differences), len(surface.Definitions))
	}
	if got := differences[0]; got.Path != "CancelTaskRequest" || got.Kind != schema.Removed {
		t.Errorf("first difference is %v", got)
	}
}

// minimal returns a surface of a schema file, with some members of surface.json.
func minimal(t *testing.T, definitions, members string) *schema.Surface {
	t.Helper()
	surface, err := schema.ParseSurface([]byte(definitions), []byte(`{`+members+`"serverCapabilities": {}, "clientCapabilities": {}}`), []byte(`{}`))
	if err != nil {
		t.Fatal(err)
	}
	return surface
}

// TestEquivalent checks the rules of the normal form.
func TestEquivalent(t *testing.T) {
	tests := []struct{ name, one, other string }{
		{"const and enum", `{"const": "a"}`, `{"type": "string", "enum": ["a"]}`},
		{"anyOf of consts", `{"anyOf": [{"const": "b", "type": "string"}, {"const": "a", "type": "string"}]}`, `{"enum": ["a", "b"]}`},
		{"anyOf of types", `{"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}`, `{"type": ["null", "integer"], "maximum": 9}`},
		{"order and words", `{"title": "T", "description": "d", "required": ["b", "a"]}`, `{"$comment": "c", "required": ["a", "b"]}`},
		{"reference", `{"properties": {"x": {"$ref": "#/$defs/Y"}}}`, `{"properties": {"x": {"type": "object", "properties": {"y": {"type": "string"}}}}}`},
		{"allOf", `{"allOf": [{"$ref": "#/$defs/Y"}, {"required": ["y"]}], "type": "object"}`, `{"type": "object", "properties": {"y": {"type": "string"}}, "required": ["y"]}`},
		{"narrowed by allOf", `{"allOf": [{"properties": {"m": {"type": "string"}}}, {"properties": {"m": {"const": "x"}}}]}`, `{"properties": {"m": {"enum": ["x"]}}}`},
		{"always true", `{"type": "object", "properties": {}, "additionalProperties": {}, "propertyNames": {"type": "string"}}`, `{"type": "object", "additionalProperties": true}`},
		{"never true", `{"additionalProperties": false}`, `{"additionalProperties": {"not": {}}}`},
		{"recursion", `{"items": {"$ref": "#/$defs/X"}}`, `{"description": "d", "items": {"$ref": "#/definitions/X"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			build := func(x string) string {
				return fmt.Sprintf(`{"$defs": {"X": %s, "Y": {"type": "object", "properties": {"y": {"type": "string"}}}}}`, x)
			}
			surface := minimal(t, build(test.one), "")
			if differences := schema.Compare(surface, parse(t, []byte(build(test.other)))); len(differences) > 0 {
				t.Error(differences)
			}
			if differences := schema.Compare(surface, parse(t, []byte(build(`{"type": "array"}`)))); len(differences) == 0 {
				t.Error("another schema counts as the same")
			}
		})
	}
}

// TestNestedReferences compares a small hostile file, which would take forever if all its references were followed.
func TestNestedReferences(t *testing.T) {
	defs := map[string]any{"D0": map[string]any{"type": "string"}}
	for i := range 40 {
		ref := map[string]any{"$ref": fmt.Sprintf("#/$defs/D%d", i)}
		defs[fmt.Sprintf("D%d", i+1)] = map[string]any{"type": "object", "properties": map[string]any{"a": ref, "b": ref}}
	}
	data, err := json.Marshal(map[string]any{"$defs": defs})
	if err != nil {
		t.Fatal(err)
	}
	if differences := schema.Compare(minimal(t, string(data), ""), parse(t, data)); len(differences) > 0 {
		t.Error(differences)
	}
}
