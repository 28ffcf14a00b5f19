package schema_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// next is 2026-07-28 as the base of an invented revision, with texts of its files
// replaced, and all revisions with it.
func next(t *testing.T, replace ...string) (*schema.Surface, []*schema.Surface) {
	t.Helper()
	own := invented(t, append(replace, `"revision": "2026-07-28"`, `"revision": "2027-03-01"`,
		`"protocolVersion": "2026-07-28"`, `"protocolVersion": "2027-03-01", "base": "2026-07-28"`)...)
	all := []*schema.Surface{own}
	for _, revision := range schema.Revisions() {
		all = append(all, load(t, revision))
	}
	return own, all
}

// TestRename: what a revision calls otherwise is found wherever it stands.
func TestRename(t *testing.T) {
	own, all := next(t,
		`"ttlMs"`, `"retentionMs"`, `Task/ttlMs`, `Task/retentionMs`, `its ttlMs is`, `its retentionMs is`,
		`"input_required"`, `"awaiting_input"`, `"tasks/update"`, `"tasks/answer"`, `which tasks/update answers`, `which tasks/answer answers`,
		`-32021`, `-32031`, `"inputResponses"`, `"answers"`, `params/inputResponses`, `params/answers`,
		`"pollIntervalMs": {`, `"priority": {"type": "integer"}, "pollIntervalMs": {`)
	got, err := schema.Rename(own, all)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]string{"tasks/update": "tasks/answer"}, got.Methods); diff != "" {
		t.Errorf("methods (-want +got)\n%s", diff)
	}
	status := &schema.Shape{Values: map[string]string{"input_required": "awaiting_input"}}
	code := &schema.Shape{Values: map[string]string{"-32021": "-32031"}}
	failure := &schema.Shape{Members: map[string]*schema.Shape{"code": code}}
	ttl := map[string]string{"ttlMs": "retentionMs"}
	for name, want := range map[string]*schema.Shape{
		"tasks/get":    {Names: ttl, Members: map[string]*schema.Shape{"status": status, "error": failure}},
		"tasks/cancel": nil,
		"tools/call": {By: "resultType", Of: map[string]*schema.Shape{
			"task": {Names: ttl, Members: map[string]*schema.Shape{"status": status}}, "input_required": nil,
		}},
	} {
		if diff := cmp.Diff(want, got.Results[name], cmp.Transformer("plain", plainShape)); diff != "" {
			t.Errorf("the result of %s (-want +got)\n%s", name, diff)
		}
	}
	if diff := cmp.Diff(map[string]string{"inputResponses": "answers"}, got.Params["tasks/update"].Names); diff != "" {
		t.Errorf("the params of tasks/update (-want +got)\n%s", diff)
	}
	if _, ok := got.Params["tasks/get"]; ok {
		t.Error("tasks/get has params of its own")
	}
	version := got.Request.Members["_meta"].Members["io.modelcontextprotocol/protocolVersion"]
	if version == nil || version.Values["2026-07-28"] != "2027-03-01" {
		t.Errorf("the protocol version is %v", version)
	}
	if got.Notice != nil || got.Result != nil {
		t.Errorf("%v, %v", got.Notice, got.Result)
	}
	if of := got.Failure.Of["-32022"]; of == nil || of.Members["data"].Members["supported"].Each.Values["2026-07-28"] != "2027-03-01" {
		t.Errorf("the versions of an error: %v", of)
	}
}

// plainShape is a shape for comparison: no map is like an empty one.
func plainShape(s *schema.Shape) any {
	if s == nil {
		return nil
	}
	type shape struct {
		Names, Values map[string]string
		Members       map[string]any
		By            string
		Of            map[string]any
	}
	out := shape{Names: map[string]string{}, Values: map[string]string{}, Members: map[string]any{}, By: s.By, Of: map[string]any{}}
	for from, to := range s.Names {
		out.Names[from] = to
	}
	for from, to := range s.Values {
		out.Values[from] = to
	}
	for name, member := range s.Members {
		out.Members[name] = plainShape(member)
	}
	for name, of := range s.Of {
		out.Of[name] = plainShape(of)
	}
	return out
}

// TestRenameRefuses: what is more than names says what it is.
func TestRenameRefuses(t *testing.T) {
	tests := []struct {
		name    string
		replace []string
		want    string
	}{
		{"an unknown base", []string{`"protocolVersion": "2026-07-28"`, `"protocolVersion": "2027-03-01", "base": "2026-07-82"`},
			`there is no revision "2026-07-82" to be the base: use one of ` + strings.Join(schema.Revisions(), ", ")},
		{"a base with sessions", []string{`"protocolVersion": "2026-07-28"`, `"protocolVersion": "2027-03-01", "base": "2025-11-25"`},
			"the requests of 2025-11-25 do not name their protocol version in _meta"},
		{"a version that is taken", []string{`"protocolVersion": "2026-07-28"`, `"protocolVersion": "2025-11-25", "base": "2026-07-28"`},
			"2025-11-25 has the protocol version 2025-11-25 too"},
		{"the version of the base", []string{`"protocolVersion": "2026-07-28"`, `"protocolVersion": "2026-07-28", "base": "2026-07-28"`},
			"2026-07-28 has the protocol version 2026-07-28 too"},
		{"no version", []string{`"protocolVersion": "2026-07-28"`, `"protocolVersion": "", "base": "2026-07-28"`}, "it has no protocolVersion"},
		{"another type", []string{`"createdAt": {
          "description": "When the task was created, as an ISO 8601 timestamp.",
          "type": "string"`, `"createdAt": {
          "description": "When the task was created, as an ISO 8601 timestamp.",
          "type": "integer"`}, `Task.createdAt type: changed from "string" to "integer"`},
		{"a required member", []string{`"required": ["taskId", "inputResponses"]`, `"required": ["taskId", "inputResponses", "why"]`,
			`"inputResponses": {
                  "description"`, `"why": {"type": "string"}, "inputResponses": {
                  "description"`}, "UpdateTaskRequest.params.why has to be there"},
		{"an optional member that has to be there", []string{`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]`,
			`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs"]`}, "Task.pollIntervalMs has to be there"},
		{"a member that may be missing", []string{`"required": ["taskId", "status", "createdAt", "lastUpdatedAt", "ttlMs"]`,
			`"required": ["taskId", "status", "createdAt", "lastUpdatedAt"]`}, "Task.ttlMs: changed from"},
		{"a member that no field means", []string{`"requestState"`, `"state"`}, "requestState: no longer in 2027-03-01"},
		{"a status", []string{`"enum": ["working",`, `"enum": ["working", "paused",`}, "TaskStatus enum: changed from"},
		{"a status that means another", []string{`"means": ["input"]`, `"means": ["queued"]`}, "the status input_required is gone"},
		{"a status that is followed by others", []string{`"next": ["working", "completed", "failed", "cancelled"]`, `"next": ["working", "failed", "cancelled"]`},
			"the status input_required is followed by other statuses"},
		{"a method", []string{`"methods": [`, `"methods": [{"name": "tasks/list", "direction": "client-to-server", "doc": "Lists.", "serves": ["list"]},`},
			"it has 1 methods more than its base"},
		{"a method for something else", []string{`"serves": ["cancel"]`, `"serves": ["delete"]`}, "the method tasks/cancel has another direction"},
		{"a method that is gone", []string{`"tasks/cancel"`, `"tasks/stop"`, `"serves": ["cancel"]`, `"serves": ["delete"]`}, "the method tasks/cancel is gone"},
		{"a notification the other way", []string{`"name": "notifications/tasks",
      "direction": "server-to-client"`, `"name": "notifications/tasks",
      "direction": "both"`}, "the notification notifications/tasks has another direction"},
		{"another unit", []string{`"at": "Task/pollIntervalMs", "unit": "milliseconds"`, `"at": "Task/pollIntervalMs", "unit": "seconds"`}, "another unit, clock or other values"},
		{"another HTTP status", []string{`"code": -32602,
      "doc": "Says that the params are invalid: an unknown task, or _meta without a required key.",
      "httpStatus": 400`, `"code": -32602,
      "doc": "Says that the params are invalid: an unknown task, or _meta without a required key.",
      "httpStatus": 404`}, "the error code InvalidParams goes with HTTP 404 (before: 400)"},
		{"another way", []string{`"is-error": "completed"`, `"is-error": "failed"`}, "is-error: failed (before: completed)"},
		{"another refusal", []string{`"case": "unknown-task", "code": "InvalidParams"`, `"case": "unknown-task", "code": "InternalError"`}, "the case unknown-task is refused otherwise"},
		{"another header", []string{`"name": "Mcp-Name"`, `"name": "Mcp-Task"`}, "its HTTP headers are others"},
		{"another place of capabilities", []string{`"tasks": "/extensions/io.modelcontextprotocol~1tasks"`, `"tasks": "/tasks"`}, "the server declares tasks in another place"},
		{"other settings", []string{`"io.modelcontextprotocol/tasks": {}`, `"io.modelcontextprotocol/tasks": {"list": true}`}, "the server declares other capabilities"},
		{"another place of a field", []string{`"at": "Task/taskId"`, `"at": "GetTaskRequest/params/taskId"`}, "which is another place"},
		{"a name for two", []string{`"at": "Task/ttlMs"`, `"at": "Task/pollIntervalMs"`}, "the fields collide: task.pollIntervalMs and task.ttlMs would both be task.pollIntervalMs"},
		{"a status for two", []string{`"name": "failed",
      "doc"`, `"name": "cancelled",
      "doc"`, `"failed", "cancelled"`, `"cancelled"`}, "the statuses collide: cancelled and failed would both be cancelled"},
		{"a code for two", []string{`"code": -32021`, `"code": -32022`, `"const": -32021`, `"const": -32022`},
			"the error codes collide: -32021 and -32022 would both be -32022"},
		{"an old name for something new", []string{`"ttlMs": {`, `"retentionMs": {"type": ["integer", "null"]}, "ttlMs": {`, `"at": "Task/ttlMs"`, `"at": "Task/retentionMs"`},
			"the names collide: in Task, ttlMs could be retentionMs or ttlMs"},
		{"a name in one place only", []string{`"WorkingTask is a task whose work is going on.",
      "type": "object",
      "properties": {
        "taskId": {`, `"", "properties": {
        "id": {`, `"Task is the state of a task, without what only one status has.",
      "type": "object",
      "properties": {
        "taskId": {`, `"", "type": "object", "properties": {
        "id": {`, `"at": "Task/taskId"`, `"at": "Task/id"`}, "the names collide: taskId is called id in one place and taskId in another of the same message"},
		{"a required name that is none", []string{`"inputResponses": {
                  "description"`, `"answers": {
                  "description"`, `params/inputResponses"`, `params/answers"`}, "UpdateTaskRequest/params requires inputResponses, which is called answers there"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			own, all := next(t, test.replace...)
			_, err := schema.Rename(own, all)
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.HasPrefix(err.Error(), "schema/2027-03-01") {
				t.Fatalf("the error is %v, want %s", err, test.want)
			}
			if strings.Contains(err.Error(), "\n") && !strings.Contains(err.Error(), "write the revision by hand, in runtime/internal/dialect/") {
				t.Errorf("it does not say what to do: %v", err)
			}
		})
	}
}

// TestRenameSaysTheSame: of several faults the order is one of the surface, not of a map.
func TestRenameSaysTheSame(t *testing.T) {
	own, all := next(t, `"io.modelcontextprotocol/tasks": {}`, `"io.modelcontextprotocol/tasks": {"list": true}`)
	_, first := schema.Rename(own, all)
	if first == nil || !strings.Contains(first.Error(), "the server declares other") || !strings.Contains(first.Error(), "the client declares other") {
		t.Fatalf("the error is %v", first)
	}
	for range 10 {
		if _, err := schema.Rename(own, all); err == nil || err.Error() != first.Error() {
			t.Fatalf("the error is %v\nand then %v", first, err)
		}
	}
}

// TestRenameOfRenamed: a base has code of its own.
func TestRenameOfRenamed(t *testing.T) {
	base, all := next(t)
	own, _ := next(t, `"protocolVersion": "2026-07-28"`, `"protocolVersion": "2028-03-01", "base": "2027-03-01"`)
	own.Revision = "2028-03-01"
	if _, err := schema.Rename(own, append(all, own)); err == nil || !strings.Contains(err.Error(), "2027-03-01 has a base itself: use 2026-07-28") {
		t.Errorf("%v", err)
	}
	if _, err := schema.Rename(base, all); err != nil { // no name differs but the version's
		t.Error(err)
	}
}
