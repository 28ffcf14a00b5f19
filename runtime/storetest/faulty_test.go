package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestFaultyStore checks that a Faulty store breaks promises, and that each fault does as it says.
func TestFaultyStore(t *testing.T) {
	for _, f := range []Faults{{Refuse: 0.1}, {Lose: 0.1}, {Conflict: 0.1}, {Cut: 0.1}} {
		bubble.Test(t, func(t *testing.T) {
			stores := inBubble(func(t testing.TB) taskstore.Store { return NewFaulty(openMemory(t), f, 2) })
			failures := append(recorded(t, "Update/whole records", stores), recorded(t, "Changes/every version", stores)...)
			if len(failures) == 0 {
				t.Errorf("%+v went unseen", f)
			}
		})
	}
	ctx := t.Context()
	memory := openMemory(t)
	s := NewFaulty(memory, Faults{Refuse: 1}, 1)
	r := (&kit{epoch: time.Now()}).newRecord("t", "p", time.Now())
	if _, err := s.Create(ctx, r, taskstore.Quota{}); !errors.Is(err, ErrFault) {
		t.Errorf("refused: %v", err)
	}
	if _, err := memory.Get(ctx, "t"); !errors.Is(err, taskstore.ErrNoRecord) {
		t.Errorf("what was refused was done: %v", err)
	}
	s.Set(Faults{Lose: 1})
	if _, err := s.Create(ctx, r, taskstore.Quota{}); !errors.Is(err, ErrFault) {
		t.Errorf("lost: %v", err)
	}
	r, err := memory.Get(ctx, "t")
	if err != nil {
		t.Errorf("what was lost was not done: %v", err)
	}
	s.Set(Faults{Conflict: 1})
	if _, err := s.Update(ctx, r, r, taskstore.Quota{}); !errors.Is(err, taskstore.ErrConflict) {
		t.Errorf("a conflict: %v", err)
	}
	if err := s.Release(ctx, "w1"); err != nil {
		t.Errorf("conflicts are for updates only: %v", err)
	}
	s.Set(Faults{Latency: time.Hour})
	ended, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := s.Delete(ended, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slow call: %v", err)
	}
	s.Set(Faults{Miss: 1})
	items := 0
	for c, err := range s.Changes(ctx) {
		if err != nil || !c.Missed {
			t.Errorf("the feed has %+v, %v", c, err)
		}
		if items++; items == 2 {
			break
		}
		if err := s.Delete(ctx, r); err != nil {
			t.Error(err)
		}
	}
	s.Set(Faults{Cut: 1})
	for c, err := range s.Changes(ctx) {
		if !errors.Is(err, ErrFault) {
			t.Errorf("the feed has %+v, %v", c, err)
		}
	}
	if s.Failed() != 4 {
		t.Errorf("%d calls failed, want 4", s.Failed())
	}
}
