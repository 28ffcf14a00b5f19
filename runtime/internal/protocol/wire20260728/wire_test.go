package wire20260728

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// roundTrip decodes a message into T and encodes it again; the two must be the
// same JSON.
func roundTrip[T any](t *testing.T, message string) T {
	t.Helper()
	var value T
	if err := json.Unmarshal([]byte(message), &value); err != nil {
		t.Fatalf("%s: %v", message, err)
	}
	encoded, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(plain(t, []byte(message)), plain(t, encoded)); diff != "" {
		t.Errorf("%T (-message +encoded):\n%s", value, diff)
	}
	return value
}

func plain(t *testing.T, data []byte) any {
	t.Helper()
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatal(err)
	}
	return value
}

const times = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z"`

func TestRoundTrip(t *testing.T) {
	created := roundTrip[CreateTaskResult](t, `{"resultType":"task","taskId":"T","status":"working",`+times+`,"ttlMs":60000,"pollIntervalMs":5000}`)
	if created.ResultType != ResultTypeTask || created.TaskID != "T" || *created.TTLMs != 60000 || *created.PollIntervalMs != 5000 {
		t.Errorf("decoded %+v", created)
	}
	asked := roundTrip[GetTaskResult](t, `{"resultType":"complete","taskId":"T","status":"input_required",`+times+`,"ttlMs":60000,"inputRequests":{"k1":{"method":"elicitation/create","params":{"mode":"form","message":"m","requestedSchema":{"type":"object","properties":{}}}},"k2":{"method":"roots/list"}}}`)
	if asked.ResultType != ResultTypeComplete || asked.InputRequests["k1"].Method != MethodElicitationCreate {
		t.Errorf("decoded %+v", asked)
	}
	roundTrip[GetTaskResult](t, `{"resultType":"complete","taskId":"T","status":"completed",`+times+`,"ttlMs":null,"result":{"content":[],"isError":false}}`)
	failed := roundTrip[GetTaskResult](t, `{"resultType":"complete","taskId":"T","status":"failed",`+times+`,"ttlMs":60000,"error":{"code":-32603,"message":"m"}}`)
	if failed.Error == nil || failed.Error.Code != -32603 || failed.Error.Data != nil {
		t.Errorf("decoded %+v", failed.Error)
	}
	roundTrip[DetailedTask](t, `{"taskId":"T","status":"cancelled",`+times+`,"ttlMs":60000}`)
	roundTrip[DetailedTask](t, `{"taskId":"T","status":"input_required",`+times+`,"ttlMs":60000,"inputRequests":{}}`)
	roundTrip[TaskStatusNotificationParams](t, `{"_meta":{"io.modelcontextprotocol/subscriptionId":1},"taskId":"T","status":"working",`+times+`,"ttlMs":60000}`)
	roundTrip[UpdateTaskResult](t, `{"resultType":"complete"}`)
	roundTrip[CancelTaskResult](t, `{"resultType":"complete"}`)
	roundTrip[RequestMetaObject](t, `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"n","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"progressToken":"p"}`)
	roundTrip[SubscriptionsListenRequestParams](t, `{"_meta":{},"notifications":{"toolsListChanged":true,"taskIds":["T"]}}`)
	roundTrip[SubscriptionsAcknowledgedNotificationParams](t, `{"notifications":{"taskIds":[]}}`)
	roundTrip[InputRequiredResult](t, `{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}`)
	roundTrip[InputResponseRequestParams](t, `{"_meta":{},"inputResponses":{"k":{"roots":[]}},"requestState":"s"}`)
	roundTrip[MissingRequiredClientCapabilityErrorData](t, `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`)
	roundTrip[UnsupportedProtocolVersionErrorData](t, `{"requested":"x","supported":["2026-07-28"]}`)
	roundTrip[TasksExtensionCapability](t, `{}`)
}

// TestAnswersStayRaw holds that an answer of any shape decodes: a key that is
// not outstanding is dropped before anybody looks at its value.
func TestAnswersStayRaw(t *testing.T) {
	params := roundTrip[UpdateTaskRequestParams](t, `{"taskId":"T","inputResponses":{"k1":{"action":"accept","content":{"ok":true}},"unknown":{"ignored":true},"junk":7}}`)
	if got := string(params.InputResponses["k1"]); got != `{"action":"accept","content":{"ok":true}}` {
		t.Errorf("k1 is %s", got)
	}
}

// TestVariants holds that each variant is a part of the union.
func TestVariants(t *testing.T) {
	base := `"taskId":"T",` + times + `,"ttlMs":null`
	roundTrip[WorkingTask](t, `{"status":"working",`+base+`}`)
	roundTrip[InputRequiredTask](t, `{"status":"input_required",`+base+`,"inputRequests":{"k":{"method":"roots/list"}}}`)
	roundTrip[CompletedTask](t, `{"status":"completed",`+base+`,"result":{"resultType":"complete","content":[]}}`)
	roundTrip[FailedTask](t, `{"status":"failed",`+base+`,"error":{"code":-32603,"message":"m","data":null}}`)
	roundTrip[CancelledTask](t, `{"status":"cancelled",`+base+`}`)
}
