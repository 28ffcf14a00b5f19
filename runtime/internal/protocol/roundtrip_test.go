package protocol_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wire20251125rc"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wiresep1686"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial/wiretaskpatterns"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20251125"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/wire20260728"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// roundTrip decodes a message into the value of a pointer and encodes it again. Both messages must be the same JSON.
func roundTrip(t *testing.T, into any, message string) {
	t.Helper()
	if err := json.Unmarshal([]byte(message), into); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	encoded, err := json.Marshal(into)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decodeJSON(t, []byte(message)), decodeJSON(t, encoded)); diff != "" {
		t.Errorf("%T (-message +encoded):\n%s", into, diff)
	}
}

func decodeJSON(t *testing.T, data []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

const (
	created    = `"createdAt":"2026-01-01T00:00:00Z"`
	times      = created + `,"lastUpdatedAt":"2026-01-01T00:00:01Z"`
	base       = `"taskId":"T",` + times
	tasksCalls = `"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`
	extension  = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	released   = `"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}}`
	proposed   = `"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}`
)

// TestRoundTrips checks that the generated types of every revision lose nothing of a message.
func TestRoundTrips(t *testing.T) {
	for _, test := range []struct {
		into    any
		message string
	}{
		{new(wire20251125.GetTaskResult), `{"taskId":"T","status":"failed","statusMessage":"no",` + times + `,"ttl":null}`},
		{new(wire20251125.CancelTaskResult), `{"_meta":{"x":1},"taskId":"T","status":"cancelled",` + times + `,"ttl":null}`},
		{new(wire20251125.TaskStatusNotificationParams), `{"taskId":"T","status":"input_required",` + times + `,"ttl":0}`},
		{new(wire20251125.ListTasksResult), `{"tasks":[{"taskId":"T","status":"completed",` + times + `,"ttl":1}],"nextCursor":"c"}`},
		{new(wire20251125.ListTasksResult), `{"tasks":[]}`},
		{new(wire20251125.GetTaskPayloadResult), `{"content":[{"type":"text","text":"x"}],"isError":false,` + released + `}`},
		{new(wire20251125.RelatedTaskMetadata), `{"taskId":"T"}`},
		{new(wire20251125.GetTaskRequestParams), `{"_meta":{"progressToken":7},"taskId":"T"}`},
		{new(wire20251125.PaginatedRequestParams), `{"cursor":"c"}`},
		{new(wire20251125.Tool), `{"execution":{"taskSupport":"required"}}`},
		{new(wire20251125.ServerCapabilities), `{` + tasksCalls + `}`},
		{new(wire20251125.ClientCapabilities), `{"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`},
		{new(wire20251125.Error), `{"code":-32603,"message":"m","data":[1,{"a":null}]}`},

		{new(wire20260728.GetTaskResult), `{"resultType":"complete",` + base + `,"status":"completed","ttlMs":null,"result":{"content":[],"isError":false}}`},
		{new(wire20260728.DetailedTask), `{` + base + `,"status":"cancelled","ttlMs":60000}`},
		{new(wire20260728.DetailedTask), `{` + base + `,"status":"input_required","ttlMs":60000,"inputRequests":{}}`},
		{new(wire20260728.TaskStatusNotificationParams), `{"_meta":{"io.modelcontextprotocol/subscriptionId":1},` + base + `,"status":"working","ttlMs":60000}`},
		{new(wire20260728.UpdateTaskResult), `{"resultType":"complete"}`},
		{new(wire20260728.CancelTaskResult), `{"resultType":"complete"}`},
		{new(wire20260728.RequestMetaObject), `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + extension + `,"progressToken":"p"}`},
		{new(wire20260728.SubscriptionsListenRequestParams), `{"_meta":{},"notifications":{"toolsListChanged":true,"taskIds":["T"]}}`},
		{new(wire20260728.SubscriptionsAcknowledgedNotificationParams), `{"notifications":{"taskIds":[]}}`},
		{new(wire20260728.InputRequiredResult), `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}`},
		{new(wire20260728.InputResponseRequestParams), `{"_meta":{},"inputResponses":{"k":{"roots":[]}},"requestState":"s"}`},
		{new(wire20260728.MissingRequiredClientCapabilityErrorData), `{"requiredCapabilities":` + extension + `}`},
		{new(wire20260728.UnsupportedProtocolVersionErrorData), `{"requested":"x","supported":["2026-07-28"]}`},
		{new(wire20260728.TasksExtensionCapability), `{}`},
		// Each variant is a part of the union.
		{new(wire20260728.WorkingTask), `{"status":"working",` + base + `,"ttlMs":null}`},
		{new(wire20260728.InputRequiredTask), `{"status":"input_required",` + base + `,"ttlMs":null,"inputRequests":{"k":{"method":"roots/list"}}}`},
		{new(wire20260728.CompletedTask), `{"status":"completed",` + base + `,"ttlMs":null,"result":{"resultType":"complete","content":[]}}`},
		{new(wire20260728.FailedTask), `{"status":"failed",` + base + `,"ttlMs":null,"error":{"code":-32603,"message":"m","data":null}}`},
		{new(wire20260728.CancelledTask), `{"status":"cancelled",` + base + `,"ttlMs":null}`},

		{new(wire20251125rc.GetTaskResult), `{"taskId":"T","status":"failed","statusMessage":"no",` + created + `,"ttl":null}`},
		{new(wire20251125rc.CancelTaskResult), `{"_meta":{"x":1},"taskId":"T","status":"cancelled",` + created + `,"ttl":null}`},
		{new(wire20251125rc.TaskStatusNotificationParams), `{"taskId":"T","status":"input_required",` + created + `,"ttl":0}`},
		{new(wire20251125rc.ListTasksResult), `{"tasks":[{"taskId":"T","status":"completed",` + created + `,"ttl":1}],"nextCursor":"c"}`},
		{new(wire20251125rc.RequestParams), `{"task":{}}`},
		{new(wire20251125rc.RequestParams), `{"task":{"ttl":0}}`},
		{new(wire20251125rc.CancelledNotificationParams), `{"taskId":"T","requestId":7}`},
		{new(wire20251125rc.Tool), `{"annotations":{"taskHint":"always"}}`},
		{new(wire20251125rc.ServerCapabilities), `{` + tasksCalls + `}`},

		{new(wiretaskpatterns.Task), `{"id":"T","status":"working",` + times + `}`},
		{new(wiretaskpatterns.TaskRequestParams), `{"_meta":{"taskId":"T"}}`},
		{new(wiretaskpatterns.CreateTaskResult), `{"_meta":{"task":{"id":"T","status":"working",` + times + `}}}`},
		{new(wiretaskpatterns.GetTaskRequestParams), `{"id":"T"}`},
		{new(wiretaskpatterns.GetTaskResult), `{"id":"T","status":"failed",` + times + `,"error":{"code":-32603,"message":"no"}}`},
		{new(wiretaskpatterns.GetTaskPayloadResult), `{"id":"T","status":"completed","result":{"content":[]}}`},
		{new(wiretaskpatterns.GetTaskPayloadResult), `{"id":"T","status":"failed","error":{"message":"no"}}`},
		{new(wiretaskpatterns.ListTasksResult), `{"tasks":[{"id":"T","status":"completed",` + times + `,"result":{"content":[]}}]}`},
		{new(wiretaskpatterns.CancelTaskResult), `{"id":"T","status":"cancelled"}`},
		{new(wiretaskpatterns.Tool), `{"execution":{"taskSupport":"required"}}`},

		{new(wiresep1686.TaskMetadata), `{"taskId":"T"}`},
		{new(wiresep1686.TaskAugmentedRequestParams), `{"_meta":{"modelcontextprotocol.io/task":{"taskId":"T","keepAlive":60000}}}`},
		{new(wiresep1686.TaskCreatedNotificationParams), `{` + proposed + `}`},
		{new(wiresep1686.GetTaskResult), `{"taskId":"T","keepAlive":30000,"pollFrequency":5000,"status":"submitted",` + proposed + `}`},
		{new(wiresep1686.GetTaskResult), `{"taskId":"T","keepAlive":null,"status":"failed","error":"no"}`},
		{new(wiresep1686.ListTasksResult), `{"tasks":[{"taskId":"T","keepAlive":0,"status":"unknown"}],"nextCursor":"c"}`},
		{new(wiresep1686.ListTasksRequestParams), `{"cursor":"c"}`},
		{new(wiresep1686.DeleteTaskRequestParams), `{` + proposed + `,"taskId":"T"}`},
		{new(wiresep1686.DeleteTaskResult), `{` + proposed + `}`},
		{new(wiresep1686.CancelledNotificationParams), `{"requestId":7,"reason":"late"}`},
		{new(wiresep1686.ServerCapabilities), `{"tasks":{"requests":{"tools":{"call":true}}}}`},
		{new(wiresep1686.ClientCapabilities), `{"tasks":{"requests":{"sampling":{"createMessage":true},"elicitation":{"create":true}}}}`},
		{new(wiresep1686.Tool), `{"annotations":{"taskHint":true}}`},
	} {
		roundTrip(t, test.into, test.message)
	}
}

// TestDecoded checks that each member gets into the field of its name.
func TestDecoded(t *testing.T) {
	minute, second := int64(60000), int64(5000)
	for message, want := range map[string]any{
		`{"task":{` + base + `,"status":"working","ttl":60000,"pollInterval":5000}}`: wire20251125.CreateTaskResult{Task: wire20251125.Task{
			TaskID: "T", Status: "working", CreatedAt: "2026-01-01T00:00:00Z", LastUpdatedAt: "2026-01-01T00:00:01Z", TTL: &minute, PollInterval: &second}},
		`{"task":{"taskId":"T","status":"working",` + created + `,"ttl":60000,"pollInterval":5000}}`: wire20251125rc.CreateTaskResult{Task: wire20251125rc.Task{
			TaskID: "T", Status: "working", CreatedAt: "2026-01-01T00:00:00Z", TTL: &minute, PollInterval: &second}},
		`{"resultType":"task",` + base + `,"status":"working","ttlMs":60000,"pollIntervalMs":5000}`: wire20260728.CreateTaskResult{
			ResultType: wire20260728.ResultTypeTask, TaskID: "T", Status: "working", CreatedAt: "2026-01-01T00:00:00Z", LastUpdatedAt: "2026-01-01T00:00:01Z", TTLMs: &minute, PollIntervalMs: &second},
		`{"resultType":"complete",` + base + `,"status":"failed","ttlMs":60000,"error":{"code":-32603,"message":"m"}}`: wire20260728.GetTaskResult{
			ResultType: wire20260728.ResultTypeComplete, TaskID: "T", Status: "failed", CreatedAt: "2026-01-01T00:00:00Z", LastUpdatedAt: "2026-01-01T00:00:01Z", TTLMs: &minute,
			Error: &wire20260728.Error{Code: -32603, Message: "m"}},
		`{"resultType":"complete",` + base + `,"status":"input_required","ttlMs":60000,"inputRequests":{"k1":{"method":"elicitation/create","params":{"mode":"form"}},"k2":{"method":"roots/list"}}}`: wire20260728.GetTaskResult{
			ResultType: wire20260728.ResultTypeComplete, TaskID: "T", Status: "input_required", CreatedAt: "2026-01-01T00:00:00Z", LastUpdatedAt: "2026-01-01T00:00:01Z", TTLMs: &minute,
			InputRequests: wire20260728.InputRequests{"k1": {Method: wire20260728.MethodElicitationCreate, Params: json.RawMessage(`{"mode":"form"}`)}, "k2": {Method: "roots/list"}}},
		// An answer of any shape decodes. If its key is not outstanding, the server drops it without looking at its
		// value.
		`{"taskId":"T","inputResponses":{"k1":{"action":"accept","content":{"ok":true}},"unknown":{"ignored":true},"junk":7}}`: wire20260728.UpdateTaskRequestParams{
			TaskID: "T", InputResponses: map[string]json.RawMessage{"k1": json.RawMessage(`{"action":"accept","content":{"ok":true}}`), "unknown": json.RawMessage(`{"ignored":true}`), "junk": json.RawMessage(`7`)}},
		`{"id":"T","status":"working",` + times + `,"pollInterval":5000,"ttl":60000}`: wiretaskpatterns.Task{
			ID: "T", Status: "working", CreatedAt: "2026-01-01T00:00:00Z", LastUpdatedAt: "2026-01-01T00:00:01Z", PollInterval: &second, TTL: &minute},
		`{"taskId":"T","keepAlive":60000}`: wiresep1686.TaskMetadata{TaskID: "T", KeepAlive: &minute},
	} {
		into := reflect.New(reflect.TypeOf(want)).Interface()
		roundTrip(t, into, message)
		if diff := cmp.Diff(want, reflect.ValueOf(into).Elem().Interface()); diff != "" {
			t.Errorf("%s (-want +decoded):\n%s", message, diff)
		}
	}
}

// TestTaskIsAskedFor checks that an empty task object is not a missing one.
func TestTaskIsAskedFor(t *testing.T) {
	rules.Covers(t, "C-15")
	zero := int64(0)
	for message, want := range map[string]*wire20251125.TaskMetadata{`{"task":{}}`: {}, `{"task":{"ttl":0}}`: {TTL: &zero}, `{}`: nil} {
		var params wire20251125.TaskAugmentedRequestParams
		if roundTrip(t, &params, message); !reflect.DeepEqual(params.Task, want) {
			t.Errorf("%s: decoded %+v, want %+v", message, params.Task, want)
		}
	}
}
