package taskserver

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestOvertakenWrite checks that a server knows its own write if the store's answer was lost and another server has
// written since.
func TestOvertakenWrite(t *testing.T) {
	for name, c := range map[string]struct {
		phase taskstore.Phase
		event event
	}{
		"a start":    {taskstore.PhaseQueued, event{kind: eventStart, claim: taskstore.Claim{Worker: "w2", State: taskstore.ClaimRunning}}},
		"a claim":    {taskstore.PhaseRunning, event{kind: eventClaim, claim: taskstore.Claim{Worker: "w2"}}},
		"a leave":    {taskstore.PhaseQueued, event{kind: eventLeave}},
		"a handover": {taskstore.PhaseRunning, event{kind: eventHandOver}},
		"an answer":  {taskstore.PhaseInputRequired, event{kind: eventAnswer, key: "open", answer: json.RawMessage(`{"action":"decline"}`)}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			line := &tapStore{Store: store}
			s := newServer(t, Options{Store: line})
			known, err := store.Create(t.Context(), recordIn(c.phase), taskstore.Quota{})
			if err != nil {
				t.Fatal(err)
			}
			isLost := false
			line.set(func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
				if method != "Update" || isLost {
					return do()
				}
				isLost = true
				if err := do(); err != nil {
					return err
				}
				stopped, err := nextRecord(*r, event{kind: eventStop, at: r.UpdatedAt, nonce: "another's"})
				if err != nil {
					t.Error(err)
				}
				if _, err := store.Update(ctx, *r, stopped, taskstore.Quota{}); err != nil {
					t.Error(err)
				}
				return errStore
			})
			decided := 0
			moved, err := s.applyEvent(t.Context(), known, func(taskstore.Record) event { decided++; return c.event })
			if err != nil || decided != 1 || moved.Version != 3 || !moved.CancelRequested {
				t.Errorf("version %d after %d decisions, %v", moved.Version, decided, err)
			}
		})
	}
}
