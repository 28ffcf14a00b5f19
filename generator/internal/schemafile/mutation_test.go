package schemafile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// definitions are those of a schema file, decoded.
type definitions map[string]any

// mutation is one change that a new revision might make. It has a patch, a function, or both; the
// patch is applied first.
type mutation struct {
	name     string
	revision string // the revision that changes; empty means legacy
	// patch is a JSON merge patch of the definitions (RFC 7396): null removes a member.
	patch  string
	change func(definitions)
	// header changes the file around the definitions.
	header func(map[string]any)
}

const legacy, modern = "2025-11-25", "2026-07-28"

// mutations are the changes that TestReports has reported.
var mutations = []mutation{
	{name: "a new optional field", patch: `{"Task": {"properties": {"priority": {"type": "integer"}}}}`},
	{name: "a new required field of a result", patch: `{"Task": {
		"properties": {"owner": {"type": "string"}},
		"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "owner"]
	}}`},
	{name: "a new required field of a request", patch: `{"GetTaskRequest": {"properties": {"params": {
		"properties": {"reason": {"type": "string"}},
		"required": ["taskId", "reason"]
	}}}}`},
	{name: "a field gone", patch: `{"Task": {"properties": {"statusMessage": null}}}`},
	{name: "a required field gone", patch: `{"Task": {
		"properties": {"createdAt": null},
		"required": ["taskId", "status", "lastUpdatedAt", "ttl"]
	}}`},
	{name: "a renamed field", change: func(d definitions) { d.renameProperty("Task", "pollInterval", "pollIntervalMs") }},
	{name: "a renamed required field", patch: `{"Task": {"required": ["status", "createdAt", "lastUpdatedAt", "ttl", "id"]}}`,
		change: func(d definitions) { d.renameProperty("Task", "taskId", "id") }},
	{name: "a field renamed and of another type", patch: `{"Task": {"properties": {"pollInterval": null, "pollEvery": {"type": "string"}}}}`},
	{name: "a field made required", patch: `{"Task": {"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttl", "pollInterval"]}}`},
	{name: "a field made optional", patch: `{"Task": {"required": ["taskId", "status", "createdAt", "ttl"]}}`},
	{name: "an integer to a string", patch: `{"Task": {"properties": {"pollInterval": {"type": "string"}}}}`},
	{name: "null allowed", patch: `{"Task": {"properties": {"pollInterval": {"type": ["integer", "null"]}}}}`},
	{name: "null allowed by anyOf", patch: `{"Task": {"properties": {"pollInterval": {
		"description": null, "type": null, "anyOf": [{"type": "integer"}, {"type": "null"}]
	}}}}`},
	{name: "null forbidden", patch: `{"Task": {"properties": {"ttl": {"description": null, "type": "integer"}}}}`},
	{name: "items of another type", patch: `{"ListTasksResult": {"properties": {"tasks": {"items": {"$ref": null, "type": "string"}}}}}`},
	{name: "a bound on a field", patch: `{"Task": {"properties": {"taskId": {"maxLength": 64}}}}`},
	{name: "a new state", patch: `{"TaskStatus": {"enum": ["working", "input_required", "completed", "failed", "cancelled", "paused"]}}`},
	{name: "a state gone", patch: `{"TaskStatus": {"enum": ["working", "input_required", "completed", "failed"]}}`},
	{name: "a renamed state", patch: `{"TaskStatus": {"enum": ["input_required", "completed", "failed", "cancelled", "running"]}}`},
	{name: "a new value", patch: `{"ToolExecution": {"properties": {"taskSupport": {"enum": ["forbidden", "optional", "required", "preferred"]}}}}`},
	{name: "a value gone", patch: `{"ToolExecution": {"properties": {"taskSupport": {"enum": ["forbidden", "required"]}}}}`},
	{name: "a renamed value", patch: `{"ToolExecution": {"properties": {"taskSupport": {"enum": ["never", "optional", "required"]}}}}`},
	{name: "a new method", patch: `{
		"PauseTaskRequest": ` + pauseRequest + `,
		"PauseTaskResult": {"allOf": [{"$ref": "#/$defs/Result"}, {"$ref": "#/$defs/Task"}]}
	}`},
	{name: "a new method without the word", patch: `{"PauseRequest": ` + pauseRequest + `}`},
	{name: "a method gone", change: func(d definitions) { d.remove("ListTasksRequest", "ListTasksResult") }},
	{name: "a renamed method", patch: `{"GetTaskPayloadRequest": {"properties": {"method": {"const": "tasks/payload"}}}}`},
	{name: "a method renamed with its definition", patch: `{"CancelTaskRequest": {"properties": {"method": {"const": "tasks/stop"}}}}`,
		change: func(d definitions) { d.renameDefinition("CancelTaskRequest", "StopTaskRequest") }},
	{name: "a new notification", patch: `{"TaskProgressNotification": {
		"type": "object",
		"properties": {
			"jsonrpc": {"const": "2.0"}, "method": {"const": "notifications/tasks/progress"}, "params": {"type": "object"}
		},
		"required": ["jsonrpc", "method", "params"]
	}}`},
	{name: "a notification gone", change: func(d definitions) { d.remove("TaskStatusNotification") }},
	{name: "a renamed notification", patch: `{"TaskStatusNotification": {"properties": {"method": {"const": "notifications/tasks/changed"}}}}`},
	{name: "a new capability", patch: `{"ServerCapabilities": {"properties": {"tasks": {"properties": {"pause": {"type": "object"}}}}}}`},
	{name: "a capability gone", patch: `{"ServerCapabilities": {"properties": {"tasks": {"properties": {"list": null}}}}}`},
	{name: "a new definition", patch: `{"TaskPriority": {"type": "integer"}}`},
	{name: "a definition gone", change: func(d definitions) { d.remove("RelatedTaskMetadata") }},
	{name: "a definition written out where it was referred to", change: func(d definitions) {
		d.properties("Task")["status"] = d["TaskStatus"]
		delete(d, "TaskStatus")
	}},
	{name: "a renamed definition", change: func(d definitions) { d.renameDefinition("TaskStatus", "TaskState") }},
	{name: "two renamed definitions and a new field", patch: `{"Task": {"properties": {"priority": {"type": "integer"}}}}`,
		change: func(d definitions) {
			d.renameDefinition("TaskStatus", "TaskState")
			d.renameDefinition("RelatedTaskMetadata", "TaskReference")
		}},
	{name: "a closed object", patch: `{"TaskMetadata": {"additionalProperties": false}}`},
	{name: "descriptions alone", patch: `{"Task": {
		"description": "Something else.", "properties": {"ttl": {"description": "Something else."}}
	}}`},
	{name: "definitions in the place of $defs", header: func(file map[string]any) {
		file["definitions"] = file["$defs"]
		delete(file, "$defs")
	}},
	{name: "a header of draft-07", header: func(file map[string]any) { file["$schema"] = "http://json-schema.org/draft-07/schema#" }},
	{name: "a new error", revision: modern, patch: `{"TaskQuotaError": {
		"type": "object",
		"properties": {"error": {
			"type": "object", "properties": {"code": {"type": "integer", "const": -32050}}, "required": ["code"]
		}},
		"required": ["error"]
	}}`},
	{name: "an error with another code", revision: modern, change: func(d definitions) {
		d["MissingRequiredClientCapabilityError"] = replaced(d["MissingRequiredClientCapabilityError"], "-32021", "-32099")
	}},
	{name: "another constant", revision: modern, change: func(d definitions) {
		d["CreateTaskResult"] = replaced(d["CreateTaskResult"], `"const":"task"`, `"const":"job"`)
	}},
	{name: "an opened object", revision: modern, patch: `{"TasksExtensionCapability": {"additionalProperties": null}}`},
	{name: "a new variant", revision: modern, change: func(d definitions) {
		variant := decoded(`{"type": "object", "properties": {"taskId": {"type": "string"}, "status": {"const": "paused"}}, "required": ["taskId", "status"]}`)
		for _, definition := range d {
			changeUnions(definition, func(variants []any) []any { return append(variants, variant) })
		}
	}},
	{name: "a variant gone", revision: modern, change: func(d definitions) {
		for _, definition := range d {
			changeUnions(definition, func(variants []any) []any { return variants[:len(variants)-1] })
		}
	}},
	{name: "several at once", patch: `{
		"TaskStatus": {"enum": ["working", "input_required", "completed", "failed", "cancelled", "paused"]},
		"PauseTaskRequest": ` + pauseRequest + `,
		"Task": {"properties": {"priority": {"type": "integer"}}}
	}`, change: func(d definitions) { d.renameProperty("Task", "pollInterval", "pollIntervalMs") }},
}

const pauseRequest = `{
	"type": "object",
	"properties": {
		"jsonrpc": {"const": "2.0"}, "id": {"$ref": "#/$defs/RequestId"}, "method": {"const": "tasks/pause"}, "params": {"type": "object"}
	},
	"required": ["jsonrpc", "method", "params", "id"]
}`

// applyPatch applies a JSON merge patch to an object.
func applyPatch(target, patch map[string]any) {
	for name, value := range patch {
		inner, isObject := value.(map[string]any)
		old, wasObject := target[name].(map[string]any)
		switch {
		case value == nil:
			delete(target, name)
		case isObject && wasObject:
			applyPatch(old, inner)
		default:
			target[name] = value
		}
	}
}

// decoded decodes an object.
func decoded(text string) (object map[string]any) {
	if err := json.Unmarshal([]byte(text), &object); err != nil {
		panic(err)
	}
	return object
}

// changeUnions changes each union of the states of a task. The official file repeats the union
// wherever ours refers to DetailedTask.
func changeUnions(value any, change func([]any) []any) {
	switch value := value.(type) {
	case []any:
		for _, item := range value {
			changeUnions(item, change)
		}
	case map[string]any:
		for keyword, member := range value {
			changeUnions(member, change)
			if variants, ok := member.([]any); ok && keyword == "anyOf" && isUnion(variants) {
				value[keyword] = change(variants)
			}
		}
	}
}

// isUnion reports whether there is a variant for each of the five states.
func isUnion(variants []any) bool {
	objects := 0
	for _, variant := range variants {
		o, _ := variant.(map[string]any)
		ref, _ := o["$ref"].(string)
		if properties, _ := o["properties"].(map[string]any); properties["status"] != nil || strings.HasSuffix(ref, "Task") {
			objects++
		}
	}
	return objects == 5
}

// replaced replaces a text in the JSON of a definition.
func replaced(definition any, from, to string) any {
	text, err := json.Marshal(definition)
	if err != nil {
		panic(err)
	}
	if !strings.Contains(string(text), from) {
		panic("the definition does not have " + from)
	}
	var out any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(string(text), from, to)), &out); err != nil {
		panic(err)
	}
	return out
}

func (d definitions) properties(name string) map[string]any {
	return d[name].(map[string]any)["properties"].(map[string]any)
}

func (d definitions) renameProperty(name, from, to string) {
	properties := d.properties(name)
	properties[to] = properties[from]
	delete(properties, from)
}

// remove removes definitions and the references to them in unions.
func (d definitions) remove(names ...string) {
	for _, name := range names {
		delete(d, name)
	}
	dangling := func(member any) bool {
		o, _ := member.(map[string]any)
		ref, _ := o["$ref"].(string)
		return slices.Contains(names, ref[strings.LastIndexByte(ref, '/')+1:])
	}
	for _, definition := range d {
		if o, ok := definition.(map[string]any); ok {
			if members, ok := o["anyOf"].([]any); ok {
				o["anyOf"] = slices.DeleteFunc(members, dangling)
			}
		}
	}
}

// renameDefinition renames a definition and the references to it.
func (d definitions) renameDefinition(from, to string) {
	d[to] = d[from]
	delete(d, from)
	for name, definition := range d {
		text, err := json.Marshal(definition)
		if err != nil {
			panic(err)
		}
		if strings.Contains(string(text), "/"+from+`"`) {
			d[name] = replaced(definition, "/"+from+`"`, "/"+to+`"`)
		}
	}
}

// mutate applies a mutation to a schema file.
func (m mutation) mutate(t *testing.T, text []byte) []byte {
	t.Helper()
	file := decoded(string(text))
	d := file["$defs"].(map[string]any)
	if m.patch != "" {
		applyPatch(d, decoded(m.patch))
	}
	if m.change != nil {
		m.change(d)
	}
	if m.header != nil {
		m.header(file)
	}
	out, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := file["definitions"]; ok {
		out = []byte(strings.ReplaceAll(string(out), "#/$defs/", "#/definitions/"))
	}
	return out
}
