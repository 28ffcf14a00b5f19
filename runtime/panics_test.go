package mcptask

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// panicConn is a connection whose code panics: at a read, at a question.
type panicConn struct {
	fakeConn
	reads bool
}

func (c *panicConn) Task(ctx context.Context, id string) (Snapshot, error) {
	if c.reads {
		panic("a read")
	}
	s := working(id, time.Second)
	s.Questions = []Question{question("ship")}
	return s, nil
}

func (c *panicConn) Answer(context.Context, Question) (json.RawMessage, bool, error) {
	panic("a question")
}

// TestPanicsStayInside: what panics in a goroutine costs its own work, and says so to
// whoever waits for it.
func TestPanicsStayInside(t *testing.T) {
	bubble.Run(t, "an answer", func(t *testing.T) {
		c := &panicConn{}
		if _, err := started(t, c).Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "panicked") {
			t.Errorf("who waits gets %v", err)
		}
	})
	bubble.Run(t, "a read of one of many", func(t *testing.T) {
		c := &panicConn{reads: true}
		n := 0
		for _, err := range Settled(t.Context(), started(t, c), started(t, c)) {
			if n++; err == nil || !strings.Contains(err.Error(), "panicked") {
				t.Errorf("%v", err)
			}
		}
		if n != 2 {
			t.Errorf("%d calls ended", n)
		}
	})
	bubble.Run(t, "a run", func(t *testing.T) {
		var all sync.WaitGroup
		all.Add(3)
		x := pool.New(func(context.Context, string) { defer all.Done(); panic("a run") }, 1)
		for range 3 {
			if err := x.Submit("t"); err != nil {
				t.Fatal(err)
			}
		}
		all.Wait()
		if err := x.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
	bubble.Run(t, "the store", func(t *testing.T) {
		var calls atomic.Int32
		sick := &tapStore{Store: NewMemoryStore(), tap: before(func(context.Context) error { calls.Add(1); panic("upkeep") }, "Expire", "Renew")}
		s := newServer(t, Options{Store: sick}, numberTool("t", Policy{}, later(time.Minute)))
		if r := ended(t, s, alice, begin(t, s, alice, "t").ID); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		if calls.Load() < 4 {
			t.Errorf("upkeep has stopped after %d calls", calls.Load())
		}
	})
}
