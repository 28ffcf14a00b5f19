package protocol_test

import (
	"encoding/json"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// Only the resultType of an answer to a tools/call of 2026-07-28 tells a task from a result. Its other members do not
// matter.
func TestResultTypes(t *testing.T) {
	rules.Covers(t, "E-14")
	const task = `"taskId":"T","status":"working","createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","ttlMs":1000`
	for answer, want := range map[string]mcptask.Status{ // "" means that the answer is refused
		`{"content":[]}`:                                           mcptask.StatusCompleted,
		`{"resultType":"complete","content":[]}`:                   mcptask.StatusCompleted,
		`{"resultType":"complete","content":[],` + task + `}`:      mcptask.StatusCompleted,
		`{"resultType":"task",` + task + `}`:                       mcptask.StatusWorking,
		`{"resultType":"task","content":[],` + task + `}`:          mcptask.StatusWorking,
		`{"resultType":"input_required","inputRequests":{}}`:       mcptask.StatusInputRequired,
		`{"resultType":"later","content":[]}`:                      "",
		`{"resultType":"Task",` + task + `}`:                       "",
		`{"resultType":"tasks",` + task + `}`:                      "",
		`{"resultType":5,"content":[]}`:                            "",
		`{"resultType":"task","task":{` + task + `},"content":[]}`: "",
	} {
		s, _, err := protocol.Client20260728{}.Started(json.RawMessage(answer))
		if want == "" && err == nil || want != "" && (err != nil || s.Status != want || (s.TaskID == "T") != (want == mcptask.StatusWorking)) {
			t.Errorf("%s: %+v, %v; want %q", answer, s, err, want)
		}
	}
}
