package schema_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/schema"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

func TestLoad(t *testing.T) {
	if diff := cmp.Diff([]string{"sep-1686", "2025-11-25-rc", "2025-11-25", "task-patterns", "2026-07-28"}, schema.Revisions()); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"2025-11-25", "2026-07-28"}, schema.ReleasedRevisions()); diff != "" {
		t.Error(diff)
	}
	_, err := schema.Load("2024-01-01")
	if want := `unknown revision "2024-01-01"; known revisions are ` + strings.Join(schema.Revisions(), ", "); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	for _, revision := range schema.Revisions() {
		surface := load(t, revision)
		if surface.Revision != revision {
			t.Errorf("schema/%s says that it is %s", revision, surface.Revision)
		}
		if surface.Standing == "" || surface.About == "" || surface.Provenance.Standing == "" || len(surface.Date) != len("2006-01-02") {
			t.Errorf("schema/%s does not say what it is worth: %q, %q, %q of %q", revision, surface.Standing, surface.About, surface.Provenance.Standing, surface.Date)
		}
		wantStatuses, wantTerminal := []string{"working", "input_required", "completed", "failed", "cancelled"}, []string{"completed", "failed", "cancelled"}
		if revision == "sep-1686" {
			wantStatuses = append(append([]string{"submitted"}, wantStatuses...), "unknown")
			wantTerminal = append(wantTerminal, "unknown")
		}
		var statuses, terminal []string
		for _, status := range surface.Statuses {
			statuses = append(statuses, status.Name)
			if status.Terminal {
				terminal = append(terminal, status.Name)
			}
		}
		if diff := cmp.Diff(wantStatuses, statuses); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(wantTerminal, terminal); diff != "" {
			t.Error(diff)
		}
		for _, code := range surface.ErrorCodes {
			if code.Name == "" || code.Code >= 0 || code.Doc == "" {
				t.Errorf("%s: incomplete error code %+v", revision, code)
			}
		}
		for _, definition := range surface.Definitions {
			if !strings.HasPrefix(definition.Doc, definition.Name+" ") {
				t.Errorf("%s: the description of %s does not begin with its name", revision, definition.Name)
			}
		}
	}
}

// TestCapabilities compares the declarations byte for byte, because they go over the wire.
func TestCapabilities(t *testing.T) {
	rules.Covers(t, "C-02", "E-01")
	tests := []struct{ revision, server, client string }{
		{"sep-1686", `{"tasks":{"requests":{"tools":{"call":true}}}}`,
			`{"tasks":{"requests":{"sampling":{"createMessage":true},"elicitation":{"create":true}}}}`},
		{"2025-11-25-rc", `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`},
		{"task-patterns", `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`},
		{"2025-11-25", `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`,
			`{"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`},
		{"2026-07-28", `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`, `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`},
	}
	var seen []string
	for _, test := range tests {
		seen = append(seen, test.revision)
		surface := load(t, test.revision)
		if got := string(surface.ServerCapabilities); got != test.server {
			t.Errorf("%s: server declares %s", test.revision, got)
		}
		if got := string(surface.ClientCapabilities); got != test.client {
			t.Errorf("%s: client declares %s", test.revision, got)
		}
		valid(t, test.revision, "ServerCapabilities", test.server, true)
		valid(t, test.revision, "ClientCapabilities", test.client, true)
	}
	everyRevision(t, seen)
}

// everyRevision fails the test unless it has seen every revision.
func everyRevision(t *testing.T, seen []string) {
	t.Helper()
	for _, revision := range schema.Revisions() {
		if !slices.Contains(seen, revision) {
			t.Errorf("nothing on %s: add it to the cases", revision)
		}
	}
}

// TestWireExamples validates the smallest messages of each revision, and the
// same messages broken in one place.
func TestWireExamples(t *testing.T) {
	rules.Covers(t, "C-02", "C-14", "E-01")
	const at = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z"`
	tests := []struct {
		revision, definition, message string
		valid                         bool
	}{
		{a, "TaskAugmentedRequestParams", `{"name":"t","arguments":{},"_meta":{"modelcontextprotocol.io/task":{"taskId":"T","keepAlive":60000}}}`, true},
		{a, "TaskAugmentedRequestParams", `{"name":"t","_meta":{"modelcontextprotocol.io/task":{"keepAlive":60000}}}`, false},
		{a, "TaskCreatedNotification", `{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}}}`, true},
		{a, "TaskCreatedNotification", `{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{"_meta":{"modelcontextprotocol.io/related-task":{}}}}`, false},
		{a, "GetTaskResult", `{"taskId":"T","keepAlive":30000,"pollFrequency":5000,"status":"submitted","_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}}`, true},
		{a, "GetTaskResult", `{"taskId":"T","keepAlive":null,"status":"unknown"}`, true},
		{a, "GetTaskResult", `{"taskId":"T","status":"unknown"}`, false},
		{a, "ListTasksResult", `{"tasks":[{"taskId":"T","keepAlive":null,"status":"failed","error":"no"}]}`, true},
		{a, "DeleteTaskRequest", `{"jsonrpc":"2.0","id":1,"method":"tasks/delete","params":{"taskId":"T"}}`, true},
		{a, "ServerCapabilities", `{"tasks":{"requests":{"tools":{"call":{}}}}}`, false},
		{a, "Tool", `{"name":"t","annotations":{"taskHint":"always"}}`, false},
		{b, "RequestParams", `{"name":"t","arguments":{},"task":{"ttl":60000}}`, true},
		{b, "RequestParams", `{"task":{"ttl":null}}`, false},
		{b, "CreateTaskResult", `{"task":{"taskId":"T","status":"working","createdAt":"2026-01-01T00:00:00Z","ttl":60000,"pollInterval":5000}}`, true},
		{b, "CreateTaskResult", `{"task":{"taskId":"T","status":"working","createdAt":"2026-01-01T00:00:00Z","ttl":null}}`, true},
		{b, "GetTaskResult", `{"taskId":"T","status":"submitted","createdAt":"2026-01-01T00:00:00Z","ttl":60000}`, false},
		{b, "Tool", `{"name":"t","annotations":{"taskHint":"always"}}`, true},
		{b, "Tool", `{"name":"t","annotations":{"taskHint":"required"}}`, false},
		{d, "TaskRequestParams", `{"name":"t","arguments":{},"_meta":{"taskId":"task-001"}}`, true},
		{d, "TaskRequestParams", `{"name":"t","_meta":{"taskId":7}}`, false},
		{d, "CreateTaskResult", `{"_meta":{"task":{"id":"task-001","status":"working",` + at + `,"pollInterval":5000,"ttl":86400}}}`, true},
		{d, "CreateTaskResult", `{"_meta":{}}`, false},
		{d, "GetTaskRequest", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"task-001"}}`, false},
		{d, "GetTaskResult", `{"id":"task-001","status":"failed",` + at + `,"error":{"message":"no"}}`, true},
		{d, "GetTaskPayloadResult", `{"id":"task-001","status":"completed","result":{"content":[]}}`, true},
		{d, "GetTaskPayloadResult", `{"content":[]}`, false},
		{c, "TaskAugmentedRequestParams", `{"name":"t","arguments":{},"task":{"ttl":60000}}`, true},
		{c, "TaskAugmentedRequestParams", `{"task":{}}`, true},
		{c, "TaskAugmentedRequestParams", `{"task":{"ttl":null}}`, false},
		{c, "CreateTaskResult", `{"task":{"taskId":"T","status":"working",` + at + `,"ttl":60000,"pollInterval":5000}}`, true},
		{c, "CreateTaskResult", `{"task":{"taskId":"T","status":"working",` + at + `,"ttl":null}}`, true},
		{c, "CreateTaskResult", `{"task":{"taskId":"T","status":"working","createdAt":"x","ttl":60000}}`, false},
		{c, "CreateTaskResult", `{"taskId":"T","status":"working",` + at + `,"ttl":60000}`, false},
		{c, "GetTaskResult", `{"taskId":"T","status":"submitted",` + at + `,"ttl":60000}`, false},
		{c, "GetTaskResult", `{"taskId":"T","status":"working",` + at + `,"ttl":1.5}`, false},
		{c, "GetTaskPayloadResult", `{"content":[{"type":"text","text":"x"}],"isError":false,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}}}`, true},
		{c, "ServerCapabilities", `{"tasks":{"requests":{"tools":{"call":true}}}}`, false},
		{c, "Tool", `{"name":"t","execution":{"taskSupport":"never"}}`, false},
		{e, "RequestParams", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`, true},
		{e, "RequestParams", `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}`, false},
		{e, "CreateTaskResult", `{"resultType":"task","taskId":"T","status":"working",` + at + `,"ttlMs":60000,"pollIntervalMs":5000}`, true},
		{e, "CreateTaskResult", `{"resultType":"complete","taskId":"T","status":"working",` + at + `,"ttlMs":60000}`, false},
		{e, "CreateTaskResult", `{"resultType":"task","task":{"taskId":"T","status":"working",` + at + `,"ttlMs":60000}}`, false},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"input_required",` + at + `,"ttlMs":60000,"inputRequests":{"k1":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}}}}`, true},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"input_required",` + at + `,"ttlMs":60000}`, false},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"input_required",` + at + `,"ttlMs":60000,"inputRequests":{"k1":{"method":"tools/call","params":{}}}}`, false},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"completed",` + at + `,"ttlMs":60000,"result":{"content":[],"isError":false}}`, true},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"completed",` + at + `,"ttlMs":60000}`, false},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"failed",` + at + `,"ttlMs":60000,"error":{"code":-32603,"message":"m"}}`, true},
		{e, "GetTaskResult", `{"resultType":"complete","taskId":"T","status":"failed",` + at + `,"ttlMs":60000,"error":{"message":"m"}}`, false},
		{e, "GetTaskResult", `{"resultType":"task","taskId":"T","status":"working",` + at + `,"ttlMs":60000}`, false},
		{e, "UpdateTaskRequest", `{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"T","inputResponses":{"k1":{"action":"accept","content":{"ok":true}}}}}`, true},
		{e, "UpdateTaskRequest", `{"jsonrpc":"2.0","id":1,"method":"tasks/update","params":{"taskId":"T"}}`, false},
		{e, "CancelTaskResult", `{"resultType":"complete"}`, true},
		{e, "CancelTaskResult", `{}`, false},
		{e, "TasksExtensionCapability", `{}`, true},
		{e, "TasksExtensionCapability", `{"list":{}}`, false},
		{e, "SubscriptionFilter", `{"toolsListChanged":true,"taskIds":["T"]}`, true},
		{e, "SubscriptionFilter", `{"taskIds":"T"}`, false},
		{e, "MissingRequiredClientCapabilityError", `{"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"Missing required client capability","data":{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, true},
		{e, "MissingRequiredClientCapabilityError", `{"jsonrpc":"2.0","id":1,"error":{"code":-32003,"message":"m","data":{"requiredCapabilities":{}}}}`, false},
		{e, "HeaderMismatchError", `{"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"m"}}`, true},
	}
	var seen []string
	for _, test := range tests {
		seen = append(seen, test.revision)
		valid(t, test.revision, test.definition, test.message, test.valid)
	}
	everyRevision(t, seen)
}

// TestDefinitionsCompile compiles every definition by itself.
func TestDefinitionsCompile(t *testing.T) {
	for _, revision := range schema.Revisions() {
		for _, definition := range load(t, revision).Definitions {
			compile(t, revision, definition.Name)
		}
	}
}

func valid(t *testing.T, revision, definition, message string, want bool) {
	t.Helper()
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(message))
	if err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	err = compile(t, revision, definition).Validate(instance)
	if (err == nil) != want {
		t.Errorf("%s %s: valid is %t, want %t: %s\n%v", revision, definition, err == nil, want, message, err)
	}
}

func compile(t *testing.T, revision, definition string) *jsonschema.Schema {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(read(t, revision, "tasks.schema.json")))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("mem:///tasks.schema.json", document); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("mem:///tasks.schema.json#/$defs/" + definition)
	if err != nil {
		t.Fatalf("%s: %v", definition, err)
	}
	return compiled
}

// TestParse reads files, most of which are refused.
func TestParse(t *testing.T) {
	tests := []struct{ name, file, want string }{
		{"nothing", ``, "not JSON"},
		{"half", `{"$defs": {`, "not JSON"},
		{"a list", `[]`, "not a JSON object"},
		{"no definitions", `{"type": "object"}`, `no "$defs"`},
		{"definitions as list", `{"$defs": []}`, "$defs: not a JSON object"},
		{"a repeated name", `{"$defs": {"A": {}, "A": {}}}`, `duplicate member "A"`},
		{"an unknown reference", `{"$defs": {"A": {"items": {"$ref": "#/$defs/B"}}}}`, "A.items.$ref: #/$defs/B does not lead to a definition"},
		{"a reference elsewhere", `{"$defs": {"A": {"$ref": "https://example.com/x"}}}`, "A.$ref: https://example.com/x does not lead to a definition"},
		{"a cycle", `{"$defs": {"A": {"$ref": "#/$defs/A"}}}`, "A: the definition refers to itself: A -> A"},
		{"a cycle by others", `{"definitions": {"A": {"allOf": [{"type": "object"}, {"$ref": "#/definitions/B"}]}, "B": {"anyOf": [{"oneOf": [{"$ref": "#/definitions/C"}]}]}, "C": {"$ref": "#/definitions/B"}}}`,
			"B: the definition refers to itself: B -> C -> B"},
		{"a recursive type", `{"$defs": {"A": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/A"}}, {"properties": {"a": {"$ref": "#/$defs/A"}}}]}}}`, ""},
		{"two ways to the same", `{"$defs": {"A": {"allOf": [{"$ref": "#/$defs/B"}, {"$ref": "#/$defs/C"}]}, "B": {"$ref": "#/$defs/C"}, "C": {}}}`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.Parse([]byte(test.file))
			checkRefused(t, err, test.want)
		})
	}
}

// checkRefused checks that an error contains a text, or that there is none if the text is empty.
func checkRefused(t *testing.T, err error, want string) {
	t.Helper()
	if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
		t.Errorf("error is %v, want one with %q", err, want)
	}
}

func TestParseSurfaceRefuses(t *testing.T) {
	const rest = `"serverCapabilities": {}, "clientCapabilities": {}}`
	tests := []struct{ name, surface, provenance, want string }{
		{"a misspelt member", `{"statusses": []}`, `{}`, `unknown field "statusses"`},
		{"a member that is not of the file", `{"Provenance": {}}`, `{}`, `unknown field "Provenance"`},
		{"no capabilities", `{}`, `{}`, "serverCapabilities"},
		{"an unknown definition", `{"compared": {"B": []}, ` + rest, `{}`, `compared names the definition "B"`},
		{"a bad provenance", `{` + rest, `[]`, "provenance.json"},
		{"a patch of an unknown definition", `{"patched": [{"definition": "B", "pointer": "/type", "official": 1}], ` + rest, `{}`, `patched: tasks.schema.json has nothing at /type of "B"`},
		{"a patch in no place", `{"patched": [{"definition": "A", "pointer": "/items", "official": 1}], ` + rest, `{}`, `patched: tasks.schema.json has nothing at /items of "A"`},
		{"a patch without the official value", `{"patched": [{"definition": "A", "pointer": "/type"}], ` + rest, `{}`, "or the official value is missing"},
		{"an unknown standing", `{"standing": "draft", ` + rest, `{}`, `standing is "draft"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := schema.ParseSurface([]byte(`{"$defs": {"A": {"type": "string"}}}`), []byte(test.surface), []byte(test.provenance))
			checkRefused(t, err, test.want)
		})
	}
}

// FuzzParse checks that no file, however broken, makes reading or comparing panic.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"$defs": {"Task": {"anyOf": [{"const": 1}, {"type": "null"}], "allOf": [{"$ref": "#/$defs/Task"}]}}}`))
	f.Add([]byte(`{"$defs": {"Task": {"allOf": [{"properties": {"a": {"enum": [1]}}}, {"properties": {"a": false}, "additionalProperties": false}]}}}`))
	f.Add([]byte(`{"definitions": {"TaskStatus": {"type": ["string", "null"], "enum": ["a", null, 1.5]}}}`))
	surface, err := schema.Load("2025-11-25")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		document, err := schema.Parse(data)
		if err != nil {
			return
		}
		first := surface.Compare(document)
		if second := surface.Compare(document); !slices.Equal(first, second) {
			t.Errorf("two runs differ:\n%v\n%v", first, second)
		}
		if found := schema.Compare(document, document); len(found) > 0 {
			t.Errorf("the file differs from itself: %v", found)
		}
	})
}
