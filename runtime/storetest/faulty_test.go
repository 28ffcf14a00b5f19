package storetest

import (
	"context"
	"errors"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestSlowStore checks that a slow store keeps every promise.
func TestSlowStore(t *testing.T) {
	for _, p := range promises {
		bubble.Run(t, p.name, func(t *testing.T) {
			p.runTest(t, Stores{Open: func(t testing.TB) mcptask.Store {
				return NewFaulty(openMemory(t), Faults{Latency: time.Millisecond}, 1)
			}})
		})
	}
}

// TestFaultyStore checks that a Faulty store breaks promises, and that each fault does what it says.
func TestFaultyStore(t *testing.T) {
	faulty := func(faults Faults) Stores {
		return Stores{Open: func(t testing.TB) mcptask.Store { return NewFaulty(openMemory(t), faults, 1) }}
	}
	for _, f := range []Faults{{Refuse: 0.1}, {Lose: 0.1}, {Conflict: 0.1}} {
		if failures := recorded(t, "Update/whole records", faulty(f), testTimeout); len(failures) == 0 {
			t.Errorf("%+v went unseen", f)
		}
	}
	ctx := t.Context()
	memory := openMemory(t)
	s := NewFaulty(memory, Faults{Refuse: 1}, 1)
	r := newRecord("t", "p", epoch)
	if _, err := s.Create(ctx, r, mcptask.Quota{}); !errors.Is(err, ErrFault) {
		t.Errorf("refused: %v", err)
	}
	if _, err := memory.Get(ctx, "t"); !errors.Is(err, mcptask.ErrNoRecord) {
		t.Errorf("what was refused was done: %v", err)
	}
	s.Set(Faults{Lose: 1})
	if _, err := s.Create(ctx, r, mcptask.Quota{}); !errors.Is(err, ErrFault) {
		t.Errorf("lost: %v", err)
	}
	r, err := memory.Get(ctx, "t")
	if err != nil {
		t.Errorf("what was lost was not done: %v", err)
	}
	s.Set(Faults{Conflict: 1})
	if _, err := s.Update(ctx, r, mcptask.Quota{}); !errors.Is(err, mcptask.ErrConflict) {
		t.Errorf("a conflict: %v", err)
	}
	if err := s.Renew(ctx, "w1", minutesAfter(5)); err != nil {
		t.Errorf("conflicts are for updates only: %v", err)
	}
	s.Set(Faults{Latency: time.Hour})
	ended, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	if err := s.Delete(ended, r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a slow call: %v", err)
	}
	if s.Failed() != 3 {
		t.Errorf("%d calls failed, want 3", s.Failed())
	}
}
