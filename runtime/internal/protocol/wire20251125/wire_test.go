package wire20251125

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/schema/rules"
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
	created := roundTrip[CreateTaskResult](t, `{"task":{"taskId":"T","status":"working",`+times+`,"ttl":60000,"pollInterval":5000}}`)
	if got := created.Task; got.TaskID != "T" || got.Status != "working" || *got.TTL != 60000 || *got.PollInterval != 5000 {
		t.Errorf("decoded %+v", got)
	}
	roundTrip[GetTaskResult](t, `{"taskId":"T","status":"failed","statusMessage":"no",`+times+`,"ttl":null}`)
	roundTrip[CancelTaskResult](t, `{"_meta":{"x":1},"taskId":"T","status":"cancelled",`+times+`,"ttl":null}`)
	roundTrip[TaskStatusNotificationParams](t, `{"taskId":"T","status":"input_required",`+times+`,"ttl":0}`)
	roundTrip[ListTasksResult](t, `{"tasks":[{"taskId":"T","status":"completed",`+times+`,"ttl":1}],"nextCursor":"c"}`)
	roundTrip[ListTasksResult](t, `{"tasks":[]}`)
	roundTrip[GetTaskPayloadResult](t, `{"content":[{"type":"text","text":"x"}],"isError":false,"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"T"}}}`)
	roundTrip[RelatedTaskMetadata](t, `{"taskId":"T"}`)
	roundTrip[GetTaskRequestParams](t, `{"_meta":{"progressToken":7},"taskId":"T"}`)
	roundTrip[PaginatedRequestParams](t, `{"cursor":"c"}`)
	roundTrip[Tool](t, `{"execution":{"taskSupport":"required"}}`)
	roundTrip[ServerCapabilities](t, `{"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`)
	roundTrip[ClientCapabilities](t, `{"tasks":{"list":{},"cancel":{},"requests":{"sampling":{"createMessage":{}},"elicitation":{"create":{}}}}}`)
	roundTrip[Error](t, `{"code":-32603,"message":"m","data":[1,{"a":null}]}`)
}

// TestTaskIsAskedFor holds C-15: an empty task object is not a missing one.
func TestTaskIsAskedFor(t *testing.T) {
	rules.Covers(t, "C-15")
	if params := roundTrip[TaskAugmentedRequestParams](t, `{"task":{}}`); params.Task == nil || params.Task.TTL != nil {
		t.Errorf("decoded %+v", params)
	}
	if params := roundTrip[TaskAugmentedRequestParams](t, `{"task":{"ttl":0}}`); params.Task == nil || *params.Task.TTL != 0 {
		t.Errorf("decoded %+v", params)
	}
	if params := roundTrip[TaskAugmentedRequestParams](t, `{}`); params.Task != nil {
		t.Errorf("decoded %+v", params)
	}
}
