package protocol

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestProgress sends a task's progress through each revision, and reads the forms that other servers may send in its
// place.
func TestProgress(t *testing.T) {
	now := time.Now()
	record := func(done, total float64, status string) taskstore.Record {
		return taskstore.Record{ID: "T", Phase: taskstore.PhaseRunning, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour),
			Progress: taskstore.Progress{Done: done, Total: total}, StatusMessage: status}
	}
	type report = mcptask.ProgressReport
	for _, tc := range []struct {
		record taskstore.Record
		want   report
	}{
		{record(1, 3, "build (1/3)"), report{Done: 1, Total: 3, Message: "build"}},
		{record(1.5, 0, "(1) of many"), report{Done: 1.5, Total: 0, Message: "(1) of many"}},
		{record(5, 0, "step (5)"), report{Done: 5, Total: 0, Message: "step (5)"}},
		{record(2, -1, "2"), report{Done: 2, Total: 0, Message: ""}},
		{record(0, 4, "0/4"), report{Done: 0, Total: 4, Message: ""}},
		{record(0, 0, "hello (1/3)"), report{Done: 0, Total: 0, Message: "hello (1/3)"}},
		{record(2, 3, "The task was cancelled."), report{Done: 2, Total: 3, Message: "The task was cancelled."}},
		{record(math.Inf(1), 3, "soon"), report{Done: 0, Total: 0, Message: "soon"}}, // JSON has no infinity
	} {
		legacy, err := encodeTask(ProjectTask20251125(tc.record), tc.record, "")
		if err != nil {
			t.Fatal(err)
		}
		projected := projectTask20260728(tc.record)
		projected.Meta = progressMeta(tc.record)
		modern, err := json.Marshal(projected)
		if err != nil {
			t.Fatal(err)
		}
		for _, wire := range []json.RawMessage{legacy, modern} {
			if s := readSnapshot(t, wire); s.Progress != tc.want || s.Message != tc.record.StatusMessage {
				t.Errorf("%s: %+v, want %+v", wire, s.Progress, tc.want)
			}
		}
	}
	for meta, want := range map[string]report{
		`null`: {Message: "text"}, `[]`: {Message: "text"}, `5`: {Message: "text"}, `{}`: {Message: "text"},
		`{"io.github.mcptaskgen/progress":7}`:                               {Message: "text"},
		`{"io.github.mcptaskgen/progress":{"progress":"1"}}`:                {Message: "text"},
		`{"io.github.mcptaskgen/progress":{"progress":1,"total":-5,"x":1}}`: {Done: 1},
	} {
		if s := readSnapshot(t, json.RawMessage(`{"taskId":"T","status":"working","statusMessage":"text","_meta":`+meta+`}`)); s.Progress != want {
			t.Errorf("%s: %+v, want %+v", meta, s.Progress, want)
		}
	}
}

func readSnapshot(t *testing.T, wire json.RawMessage) mcptask.Snapshot {
	t.Helper()
	s, err := readSnapshot20260728("tasks/get", wire)
	if err != nil {
		t.Fatalf("%s: %v", wire, err)
	}
	return s
}
