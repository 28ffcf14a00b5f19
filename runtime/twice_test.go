package mcptask

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestDeliveredTwice checks that a second run of a task that may not start again leaves the first
// run alone, since an executor may deliver a task twice.
func TestDeliveredTwice(t *testing.T) {
	for name, policy := range map[string]Policy{
		"fails when lost":    {Task: TaskOptional},
		"restarts when lost": {Task: TaskOptional, OnLost: RestartWhenLost},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newServer(t, Options{}, numberTool("slow", policy, after(time.Minute)))
			r := begin(t, s, alice, "slow")
			synctest.Wait() // it runs
			if err := s.executor.Submit(t.Context(), r.toSubmission()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			r, err := s.Await(ctx, alice, r.ID)
			if err != nil || r.Outcome.Kind != OutcomeResult {
				t.Errorf("%+v, %v", r.Outcome, err)
			}
			synctest.Wait() // the task ends before its run does
			s.mu.Lock()
			defer s.mu.Unlock()
			if len(s.running) != 0 {
				t.Errorf("%d handlers are left", len(s.running))
			}
		})
	}
}
