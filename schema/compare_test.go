package schema_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

const a, b, c, d, e = "sep-1686", "2025-11-25-rc", "2025-11-25", "task-patterns", "2026-07-28"

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
		want                     []string // pointers below $defs, and kinds
	}{{
		"a new value of an enum", "2025-11-25",
		`["working", "input_required",`, `["working", "paused", "input_required",`,
		[]string{"TaskStatus/enum added"},
	}, {
		"another type", "2025-11-25",
		`"type": ["integer", "null"]`, `"type": "integer"`,
		[]string{"Task/properties/ttl/type removed"},
	}, {
		"a member no longer required", "2025-11-25",
		`"required": ["tasks"]`, `"required": []`,
		[]string{"ListTasksResult/required removed"},
	}, {
		"a new member", "2025-11-25",
		`"taskSupport": {`, `"parallel": {"type": "boolean"}, "taskSupport": {`,
		[]string{"ToolExecution/properties/parallel added"},
	}, {
		"a renamed member", "2025-11-25",
		`"nextCursor": {`, `"next": {`,
		[]string{"ListTasksResult/properties/next added", "ListTasksResult/properties/nextCursor removed"},
	}, {
		"a new definition", "2025-11-25",
		`"TaskMetadata": {`, `"PauseTaskRequest": {"type": "object"}, "TaskMetadata": {`,
		[]string{"PauseTaskRequest added"},
	}, {
		"a member of one alternative", "2026-07-28",
		`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "error"]`,
		`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]`,
		[]string{"FailedTask/required removed"},
	}, {
		"another method", "2026-07-28",
		`"const": "tasks/update"`, `"const": "tasks/answer"`,
		[]string{"UpdateTaskRequest/allOf/1/properties/method/enum changed"},
	}, {
		"a closed object that opens", "2026-07-28",
		`"additionalProperties": false`, `"additionalProperties": true`,
		[]string{"TasksExtensionCapability/additionalProperties removed"},
	}, {
		"a part of a definition that is compared in parts", "2026-07-28",
		`"const": "elicitation/create"`, `"const": "elicitation/ask"`,
		[]string{"ElicitRequest/properties/method/enum changed"},
	}}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			surface := load(t, test.revision)
			official := mutate(t, test.revision, test.from, test.to)
			var got []string
			for _, d := range surface.Compare(official) {
				got = append(got, fmt.Sprintf("%s %s", strings.TrimPrefix(d.Pointer, "/$defs/"), d.Kind))
				if (d.From == "") != (d.Kind == schema.Added) || (d.To == "") != (d.Kind == schema.Removed) {
					t.Errorf("incomplete difference %#v", d)
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("differences (-want +got):\n%s", diff)
			}
		})
	}
}

// TestDifferenceString checks the line of a difference, in which a long value is cut.
func TestDifferenceString(t *testing.T) {
	long := `"` + strings.Repeat("ä", 300) + `"`
	for want, d := range map[string]schema.Difference{
		`/$defs/A added {"type":"string"}`:                      {Pointer: "/$defs/A", Kind: schema.Added, To: `{"type":"string"}`},
		`/$defs/A/type changed "string" -> "integer"`:           {Pointer: "/$defs/A/type", Kind: schema.Changed, From: `"string"`, To: `"integer"`},
		`/$defs/A removed "` + strings.Repeat("ä", 119) + `...`: {Pointer: "/$defs/A", Kind: schema.Removed, From: long},
	} {
		if got := d.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

// TestCompareWithout covers a file that lacks all definitions. A status is compared where others refer
// to it.
func TestCompareWithout(t *testing.T) {
	surface := load(t, "2025-11-25")
	differences := surface.Compare(parse(t, []byte(`{"definitions": {}}`)))
	if len(differences) != len(surface.Definitions) {
		t.Fatalf("%d differences, want one for each of %d definitions", len(differences), len(surface.Definitions))
	}
	if got := differences[0]; got.Pointer != "/$defs/CancelTaskRequest" || got.Kind != schema.Removed {
		t.Errorf("first difference is %v", got)
	}
}

// TestRevisionsDiffer compares all revisions with each other, in both directions.
func TestRevisionsDiffer(t *testing.T) {
	for _, from := range schema.Revisions() {
		for _, to := range schema.Revisions() {
			there, back := schema.Compare(&load(t, from).Document, &load(t, to).Document), schema.Compare(&load(t, to).Document, &load(t, from).Document)
			if (len(there) == 0) != (from == to) || (len(back) == 0) != (from == to) {
				t.Errorf("from %s to %s: %d differences, %d back", from, to, len(there), len(back))
			}
		}
	}
}

// TestPatched compares files that have a patched mistake, which is no difference, or anything else in its place, which is.
func TestPatched(t *testing.T) {
	const revision, nullable = "2025-11-25-rc", `"type": ["integer", "null"]`
	surface := load(t, revision)
	for official, want := range map[string]int{nullable: 0, `"type": "integer"`: 0, `"type": "number"`: 3, `"type": ["string", "null"]`: 2} {
		if got := surface.Compare(mutate(t, revision, nullable, official)); len(got) != want {
			t.Errorf("%s: %d differences, want %d: %v", official, len(got), want, got)
		}
	}
}

// TestOwnDefinition compares a definition of our own: it is no difference, whatever a file says of it.
func TestOwnDefinition(t *testing.T) {
	own := minimal(t, `{"$defs": {"A": {"type": "string"}}}`, `"compared": {"A": []}, `)
	for _, official := range []string{`{"$defs": {}}`, `{"$defs": {"A": {"type": "number"}}}`} {
		if got := own.Compare(parse(t, []byte(official))); len(got) != 0 {
			t.Errorf("%s: %v", official, got)
		}
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

// TestEquivalent checks which schemas count as the same.
func TestEquivalent(t *testing.T) {
	tests := []struct{ name, one, other string }{
		{"const and enum", `{"const": "a"}`, `{"type": "string", "enum": ["a"]}`},
		{"anyOf of consts", `{"anyOf": [{"const": "b", "type": "string"}, {"const": "a", "type": "string"}]}`, `{"enum": ["a", "b"]}`},
		{"anyOf of types", `{"anyOf": [{"type": "integer", "maximum": 9}, {"type": "null"}]}`, `{"type": ["null", "integer"], "maximum": 9}`},
		{"order and words", `{"title": "T", "description": "d", "required": ["b", "a"]}`, `{"$comment": "c", "required": ["a", "b"]}`},
		{"reference", `{"properties": {"x": {"$ref": "#/$defs/Y"}}}`, `{"properties": {"x": {"type": "object", "properties": {"y": {"type": "string"}}}}}`},
		{"order of anyOf", `{"anyOf": [{"type": "array"}, {"minLength": 2, "type": "string"}]}`, `{"anyOf": [{"type": "string", "minLength": 2}, {"type": "array"}]}`},
		{"variants", `{"oneOf": [{"properties": {"m": {"const": 1}, "n": {}}}, {"properties": {"m": {"const": 2}}}]}`, `{"oneOf": [{"properties": {"m": {"enum": [2]}}}, {"properties": {"n": true, "m": {"enum": [1]}}}]}`},
		{"keywords beside a reference", `{"items": {"$ref": "#/$defs/Y", "minProperties": 1}}`, `{"items": {"type": "object", "minProperties": 1, "properties": {"y": {"type": "string"}}}}`},
		{"always true", `{"type": "object", "properties": {}, "required": [], "additionalProperties": {}, "propertyNames": {"type": "string"}}`, `{"type": "object", "additionalProperties": true}`},
		{"never true", `{"additionalProperties": false}`, `{"additionalProperties": {"not": {}}}`},
		{"recursion", `{"items": {"$ref": "#/$defs/X"}}`, `{"description": "d", "items": {"$ref": "#/definitions/X"}}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			build := func(x string) string {
				return fmt.Sprintf(`{"$defs": {"X": %s, "Y": {"type": "object", "properties": {"y": {"type": "string"}}}}}`, x)
			}
			surface := minimal(t, build(test.one), "")
			if differences := surface.Compare(parse(t, []byte(build(test.other)))); len(differences) > 0 {
				t.Error(differences)
			}
			if differences := surface.Compare(parse(t, []byte(build(`{"type": "array"}`)))); len(differences) == 0 {
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
	if differences := minimal(t, string(data), "").Compare(parse(t, data)); len(differences) > 0 {
		t.Error(differences)
	}
}
