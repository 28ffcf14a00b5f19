package schemafile_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// definitions are those of a schema file, decoded.
type definitions map[string]any

// mutation is one change that a new revision might make.
type mutation struct {
	name     string
	revision string // the one that is changed
	change   func(definitions)
	// header changes the file around the definitions; nil leaves it.
	header func(map[string]any)
}

const legacy, modern = "2025-11-25", "2026-07-28"

// mutations are the changes whose reports the test holds.
var mutations = []mutation{
	{name: "a new optional field", revision: legacy, change: func(d definitions) { d.properties("Task")["priority"] = object("type", "integer") }},
	{name: "a new required field of a result", revision: legacy, change: func(d definitions) {
		d.properties("Task")["owner"] = object("type", "string")
		d.require("Task", "owner")
	}},
	{name: "a new required field of a request", revision: legacy, change: func(d definitions) {
		params := d.properties("GetTaskRequest")["params"].(map[string]any)
		params["properties"].(map[string]any)["reason"] = object("type", "string")
		params["required"] = append(params["required"].([]any), "reason")
	}},
	{name: "a field gone", revision: legacy, change: func(d definitions) { delete(d.properties("Task"), "statusMessage") }},
	{name: "a required field gone", revision: legacy, change: func(d definitions) {
		delete(d.properties("Task"), "createdAt")
		d.release("Task", "createdAt")
	}},
	{name: "a renamed field", revision: legacy, change: func(d definitions) { d.renameProperty("Task", "pollInterval", "pollIntervalMs") }},
	{name: "a renamed required field", revision: legacy, change: func(d definitions) {
		d.renameProperty("Task", "taskId", "id")
		d.release("Task", "taskId")
		d.require("Task", "id")
	}},
	{name: "a field renamed and of another type", revision: legacy, change: func(d definitions) {
		delete(d.properties("Task"), "pollInterval")
		d.properties("Task")["pollEvery"] = object("type", "string")
	}},
	{name: "a field made required", revision: legacy, change: func(d definitions) { d.require("Task", "pollInterval") }},
	{name: "a field made optional", revision: legacy, change: func(d definitions) { d.release("Task", "lastUpdatedAt") }},
	{name: "an integer to a string", revision: legacy, change: func(d definitions) { d.property("Task", "pollInterval")["type"] = "string" }},
	{name: "null allowed", revision: legacy, change: func(d definitions) { d.property("Task", "pollInterval")["type"] = []any{"integer", "null"} }},
	{name: "null allowed by anyOf", revision: legacy, change: func(d definitions) {
		d.properties("Task")["pollInterval"] = object("anyOf", []any{object("type", "integer"), object("type", "null")})
	}},
	{name: "null forbidden", revision: legacy, change: func(d definitions) {
		d.properties("Task")["ttl"] = object("type", "integer")
	}},
	{name: "items of another type", revision: legacy, change: func(d definitions) {
		d.property("ListTasksResult", "tasks")["items"] = object("type", "string")
	}},
	{name: "a bound on a field", revision: legacy, change: func(d definitions) { d.property("Task", "taskId")["maxLength"] = 64 }},
	{name: "a new state", revision: legacy, change: func(d definitions) { d.values("TaskStatus", "", "paused") }},
	{name: "a state gone", revision: legacy, change: func(d definitions) { d.values("TaskStatus", "cancelled") }},
	{name: "a renamed state", revision: legacy, change: func(d definitions) { d.values("TaskStatus", "working", "running") }},
	{name: "a new value", revision: legacy, change: func(d definitions) {
		p := d.property("ToolExecution", "taskSupport")
		p["enum"] = append(p["enum"].([]any), "preferred")
	}},
	{name: "a value gone", revision: legacy, change: func(d definitions) {
		d.property("ToolExecution", "taskSupport")["enum"] = []any{"forbidden", "required"}
	}},
	{name: "a renamed value", revision: legacy, change: func(d definitions) {
		d.property("ToolExecution", "taskSupport")["enum"] = []any{"never", "optional", "required"}
	}},
	{name: "a new method", revision: legacy, change: func(d definitions) {
		d["PauseTaskRequest"] = message("tasks/pause", true)
		d["PauseTaskResult"] = object("allOf", []any{object("$ref", "#/$defs/Result"), object("$ref", "#/$defs/Task")})
	}},
	{name: "a new method without the word", revision: legacy, change: func(d definitions) { d["PauseRequest"] = message("tasks/pause", true) }},
	{name: "a method gone", revision: legacy, change: func(d definitions) { d.remove("ListTasksRequest", "ListTasksResult") }},
	{name: "a renamed method", revision: legacy, change: func(d definitions) { d.property("GetTaskPayloadRequest", "method")["const"] = "tasks/payload" }},
	{name: "a method renamed with its definition", revision: legacy, change: func(d definitions) {
		d.renameDefinition("CancelTaskRequest", "StopTaskRequest")
		d.property("StopTaskRequest", "method")["const"] = "tasks/stop"
	}},
	{name: "a new notification", revision: legacy, change: func(d definitions) { d["TaskProgressNotification"] = message("notifications/tasks/progress", false) }},
	{name: "a notification gone", revision: legacy, change: func(d definitions) { d.remove("TaskStatusNotification") }},
	{name: "a renamed notification", revision: legacy, change: func(d definitions) {
		d.property("TaskStatusNotification", "method")["const"] = "notifications/tasks/changed"
	}},
	{name: "a new capability", revision: legacy, change: func(d definitions) {
		tasks := d.property("ServerCapabilities", "tasks")
		tasks["properties"].(map[string]any)["pause"] = object("type", "object")
	}},
	{name: "a capability gone", revision: legacy, change: func(d definitions) {
		delete(d.property("ServerCapabilities", "tasks")["properties"].(map[string]any), "list")
	}},
	{name: "a new definition", revision: legacy, change: func(d definitions) { d["TaskPriority"] = object("type", "integer") }},
	{name: "a definition gone", revision: legacy, change: func(d definitions) { d.remove("RelatedTaskMetadata") }},
	{name: "a definition written out where it was referred to", revision: legacy, change: func(d definitions) {
		d.properties("Task")["status"] = d["TaskStatus"]
		delete(d, "TaskStatus")
	}},
	{name: "a renamed definition", revision: legacy, change: func(d definitions) { d.renameDefinition("TaskStatus", "TaskState") }},
	{name: "two renamed definitions and a new field", revision: legacy, change: func(d definitions) {
		d.renameDefinition("TaskStatus", "TaskState")
		d.renameDefinition("RelatedTaskMetadata", "TaskReference")
		d.properties("Task")["priority"] = object("type", "integer")
	}},
	{name: "a closed object", revision: legacy, change: func(d definitions) {
		d["TaskMetadata"].(map[string]any)["additionalProperties"] = false
	}},
	{name: "descriptions alone", revision: legacy, change: func(d definitions) {
		d["Task"].(map[string]any)["description"] = "Something else."
		d.property("Task", "ttl")["description"] = "Something else."
	}},
	{name: "definitions in the place of $defs", revision: legacy, header: func(file map[string]any) {
		file["definitions"] = file["$defs"]
		delete(file, "$defs")
	}},
	{name: "a header of draft-07", revision: legacy, header: func(file map[string]any) { file["$schema"] = "http://json-schema.org/draft-07/schema#" }},
	{name: "a new error", revision: modern, change: func(d definitions) { d["TaskQuotaError"] = errorOf(-32050) }},
	{name: "an error with another code", revision: modern, change: func(d definitions) {
		d["MissingRequiredClientCapabilityError"] = withCode(d["MissingRequiredClientCapabilityError"], -32021, -32099)
	}},
	{name: "another constant", revision: modern, change: func(d definitions) {
		d["CreateTaskResult"] = replaced(d["CreateTaskResult"], `"const":"task"`, `"const":"job"`)
	}},
	{name: "an opened object", revision: modern, change: func(d definitions) {
		delete(d["TasksExtensionCapability"].(map[string]any), "additionalProperties")
	}},
	{name: "a new variant", revision: modern, change: func(d definitions) {
		for _, definition := range d {
			changeUnions(definition, func(variants []any) []any {
				return append(variants, object("type", "object", "properties",
					object("taskId", object("type", "string"), "status", object("const", "paused")), "required", []any{"taskId", "status"}))
			})
		}
	}},
	{name: "a variant gone", revision: modern, change: func(d definitions) {
		for _, definition := range d {
			changeUnions(definition, func(variants []any) []any { return variants[:len(variants)-1] })
		}
	}},
	{name: "several at once", revision: legacy, change: func(d definitions) {
		d.values("TaskStatus", "", "paused")
		d["PauseTaskRequest"] = message("tasks/pause", true)
		d.properties("Task")["priority"] = object("type", "integer")
		d.renameProperty("Task", "pollInterval", "pollIntervalMs")
	}},
}

// object makes an object of names and values.
func object(pairs ...any) map[string]any {
	o := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		o[pairs[i].(string)] = pairs[i+1]
	}
	return o
}

func message(method string, request bool) map[string]any {
	properties := object("jsonrpc", object("const", "2.0"), "method", object("const", method), "params", object("type", "object"))
	required := []any{"jsonrpc", "method", "params"}
	if request {
		properties["id"] = object("$ref", "#/$defs/RequestId")
		required = append(required, "id")
	}
	return object("type", "object", "properties", properties, "required", required)
}

func errorOf(code int) map[string]any {
	return object("type", "object", "properties", object("error", object("type", "object",
		"properties", object("code", object("type", "integer", "const", code)), "required", []any{"code"})), "required", []any{"error"})
}

// changeUnions changes each union of the states of a task, which the official file has written out
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

// isUnion tells whether there is a variant for each of the five states.
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

// withCode replaces a number wherever it stands in a definition.
func withCode(definition any, from, to int) any {
	was, err := json.Marshal(from)
	if err != nil {
		panic(err)
	}
	is, err := json.Marshal(to)
	if err != nil {
		panic(err)
	}
	return replaced(definition, string(was), string(is))
}

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

func (d definitions) property(name, property string) map[string]any {
	return d.properties(name)[property].(map[string]any)
}

func (d definitions) renameProperty(name, from, to string) {
	properties := d.properties(name)
	properties[to] = properties[from]
	delete(properties, from)
}

func (d definitions) require(name, property string) {
	definition := d[name].(map[string]any)
	definition["required"] = append(definition["required"].([]any), property)
}

func (d definitions) release(name, property string) {
	definition := d[name].(map[string]any)
	definition["required"] = slices.DeleteFunc(definition["required"].([]any), func(v any) bool { return v == property })
}

// values takes a value from an enum and puts others into it.
func (d definitions) values(name, gone string, added ...any) {
	definition := d[name].(map[string]any)
	enum := slices.DeleteFunc(definition["enum"].([]any), func(v any) bool { return v == gone })
	definition["enum"] = append(enum, added...)
}

// remove takes definitions away, with the references to them in unions.
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

// renameDefinition renames a definition where it stands and where it is referred to.
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
	var file map[string]any
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	if m.change != nil {
		m.change(file["$defs"].(map[string]any))
	}
	if m.header != nil {
		m.header(file)
		text, err := json.Marshal(file)
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := file["definitions"]; ok {
			text = []byte(strings.ReplaceAll(string(text), "#/$defs/", "#/definitions/"))
		}
		if err := json.Unmarshal(text, &file); err != nil {
			t.Fatal(err)
		}
	}
	out, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return out
}
