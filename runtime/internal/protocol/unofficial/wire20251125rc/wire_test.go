package wire20251125rc

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
	const at = `"createdAt":"2026-01-01T00:00:00Z"`
	created := roundTrip[CreateTaskResult](t, `{"task":{"taskId":"T","status":"working",`+at+`,"ttl":60000,"pollInterval":5000}}`)
	if got := created.Task; got.TaskID != "T" || got.Status != "working" || *got.TTL != 60000 || *got.PollInterval != 5000 {
		t.Errorf("decoded %+v", got)
	}
	roundTrip[GetTaskResult](t, `{"taskId":"T","status":"failed","statusMessage":"no",`+at+`,"ttl":null}`)
	roundTrip[CancelTaskResult](t, `{"_meta":{"x":1},"taskId":"T","status":"cancelled",`+at+`,"ttl":null}`)
	roundTrip[TaskStatusNotificationParams](t, `{"taskId":"T","status":"input_required",`+at+`,"ttl":0}`)
	roundTrip[ListTasksResult](t, `{"tasks":[{"taskId":"T","status":"completed",`+at+`,"ttl":1}],"nextCursor":"c"}`)
	roundTrip[RequestParams](t, `{"task":{}}`)
	roundTrip[RequestParams](t, `{"task":{"ttl":0}}`)
	roundTrip[CancelledNotificationParams](t, `{"taskId":"T","requestId":7}`)
	roundTrip[Tool](t, `{"annotations":{"taskHint":"always"}}`)
	roundTrip[ServerCapabilities](t, `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`)
}
