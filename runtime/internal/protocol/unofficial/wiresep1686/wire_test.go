package wiresep1686

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
	created := roundTrip[TaskMetadata](t, `{"taskId":"T","keepAlive":60000}`)
	if created.TaskID != "T" || *created.KeepAlive != 60000 {
		t.Errorf("decoded %+v", created)
	}
	roundTrip[TaskMetadata](t, `{"taskId":"T"}`)
	roundTrip[TaskAugmentedRequestParams](t, `{"_meta":{"modelcontextprotocol.io/task":{"taskId":"T","keepAlive":60000}}}`)
	roundTrip[TaskCreatedNotificationParams](t, `{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}}`)
	roundTrip[GetTaskResult](t, `{"taskId":"T","keepAlive":30000,"pollFrequency":5000,"status":"submitted","_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}}`)
	roundTrip[GetTaskResult](t, `{"taskId":"T","keepAlive":null,"status":"failed","error":"no"}`)
	roundTrip[ListTasksResult](t, `{"tasks":[{"taskId":"T","keepAlive":0,"status":"unknown"}],"nextCursor":"c"}`)
	roundTrip[ListTasksRequestParams](t, `{"cursor":"c"}`)
	roundTrip[DeleteTaskRequestParams](t, `{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}},"taskId":"T"}`)
	roundTrip[DeleteTaskResult](t, `{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"T"}}}`)
	roundTrip[CancelledNotificationParams](t, `{"requestId":7,"reason":"late"}`)
	roundTrip[ServerCapabilities](t, `{"tasks":{"requests":{"tools":{"call":true}}}}`)
	roundTrip[ClientCapabilities](t, `{"tasks":{"requests":{"sampling":{"createMessage":true},"elicitation":{"create":true}}}}`)
	roundTrip[Tool](t, `{"annotations":{"taskHint":true}}`)
}
