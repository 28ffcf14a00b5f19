package taskserver

import (
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestDecideAfterLoss checks what becomes of tasks whose worker is lost.
func TestDecideAfterLoss(t *testing.T) {
	again := mcptask.Policy{OnLost: mcptask.RestartWhenLost, Attempts: 3}
	s := newServer(t, Options{}, numberTool("again", again, confirm), numberTool("once", mcptask.Policy{}, confirm))
	for _, c := range []struct {
		record taskstore.Record
		want   AfterLoss
	}{
		{taskstore.Record{Tool: "unknown", CancelRequested: true}, LostUnserved},
		{taskstore.Record{Tool: "again", Attempt: 1, Tries: 1, CancelRequested: true}, LostCancelled},
		{taskstore.Record{Tool: "again", CancelRequested: true}, LostCancelled},
		{taskstore.Record{Tool: "once"}, LostRunsAgain}, // it has not run
		{taskstore.Record{Tool: "once", Attempt: 1, Tries: 1}, LostForGood},
		{taskstore.Record{Tool: "again", Attempt: 5, Tries: 2}, LostRunsAgain}, // closing servers have handed over three runs
		{taskstore.Record{Tool: "again", Attempt: 3, Tries: 3}, LostTooOften},
	} {
		if got := s.DecideAfterLoss(c.record); got != c.want {
			t.Errorf("%+v: %q, want %q", c.record, got, c.want)
		}
		isEnd := s.decideAdoption(c.record).kind == eventFinish
		if isEnd != (c.want != LostRunsAgain) {
			t.Errorf("%+v: the task ends: %t", c.record, isEnd)
		}
	}
}
