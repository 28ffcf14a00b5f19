package wiretaskpatterns

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

func TestRoundTrip(t *testing.T) {
	const at = `"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:01Z"`
	task := roundTrip[Task](t, `{"id":"task-001","status":"working",`+at+`,"pollInterval":5000,"ttl":86400}`)
	if task.ID != "task-001" || *task.TTL != 86400 {
		t.Errorf("decoded %+v", task)
	}
	roundTrip[Task](t, `{"id":"task-001","status":"working",`+at+`}`)
	roundTrip[TaskRequestParams](t, `{"_meta":{"taskId":"task-001"}}`)
	roundTrip[CreateTaskResult](t, `{"_meta":{"task":{"id":"task-001","status":"working",`+at+`}}}`)
	roundTrip[GetTaskRequestParams](t, `{"id":"task-001"}`)
	roundTrip[GetTaskResult](t, `{"id":"task-001","status":"failed",`+at+`,"error":{"code":-32603,"message":"no"}}`)
	roundTrip[GetTaskPayloadResult](t, `{"id":"task-001","status":"completed","result":{"content":[]}}`)
	roundTrip[GetTaskPayloadResult](t, `{"id":"task-001","status":"failed","error":{"message":"no"}}`)
	roundTrip[ListTasksResult](t, `{"tasks":[{"id":"task-001","status":"completed",`+at+`,"result":{"content":[]}}]}`)
	roundTrip[CancelTaskResult](t, `{"id":"task-001","status":"cancelled"}`)
	roundTrip[Tool](t, `{"execution":{"taskSupport":"required"}}`)
}
