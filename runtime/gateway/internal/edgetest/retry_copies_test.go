package edgetest

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// laggingStore takes 100 ms to read a task.
type laggingStore struct{ taskstore.Store }

// Get implements taskstore.Store.
func (s laggingStore) Get(ctx context.Context, id string) (taskstore.Record, error) {
	time.Sleep(100 * time.Millisecond)
	return s.Store.Get(ctx, id)
}

func newLaggingStore() taskstore.Store { return laggingStore{taskstore.NewMemory()} }

// TestRetrySentTwice checks that a repeated call that is cut short leaves the work to another one that is still open,
// as when a client has lost a connection and sent the call again, and even if that one has only come in.
func TestRetrySentTwice(t *testing.T) {
	for name, apart := range map[string]time.Duration{"long after": time.Second, "at once": 20 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			eachStoredRetrier(t, time.Minute, newLaggingStore, func(t *testing.T, _ *wiretest.Peer, call func(string, map[string]any) retrier, ran *atomic.Int32) {
				c := call("work", map[string]any{"ms": 10_000})
				state := wantAsked(c.call(""), "go", "Go?")
				leave := beginRetry(c, state, "go", note("a"))
				time.Sleep(time.Second)
				time.AfterFunc(apart, leave)
				c.call(state).WantText(false, "worked on a")
				if n := ran.Load(); n != 1 {
					t.Errorf("ran %d times", n)
				}
			})
		})
	}
}

// TestRetryCopyLeft checks that the broken copy of a call leaves the work alone after the other copy was answered with
// the task or its next question.
func TestRetryCopyLeft(t *testing.T) {
	t.Run("with the task", func(t *testing.T) {
		eachRetrier(t, 2*time.Second, func(t *testing.T, p *wiretest.Peer, call func(string, map[string]any) retrier, _ *atomic.Int32) {
			c := call("work", map[string]any{"ms": 20_000})
			if !strings.HasPrefix(c.tool, "slow_") {
				return // never becomes a task
			}
			state := wantAsked(c.call(""), "go", "Go?")
			first := p.Send("tools/call", c.params(state, []string{"go", note("a")})) // returns when the response begins
			time.Sleep(time.Second)
			leave := beginRetry(c, state)
			answer := first.Next()
			task := (&wiretest.Response{T: t, Status: 200, Body: []byte(answer.Text), Result: answer.Result}).WantTask("working")
			leave()
			time.Sleep(30 * time.Second)
			p.CallTool("slow_task_result", map[string]any{"task": task}).WantText(false, "worked on a")
		})
	})
	t.Run("with a question", func(t *testing.T) {
		eachStoredRetrier(t, time.Minute, newLaggingStore, func(_ *testing.T, _ *wiretest.Peer, call func(string, map[string]any) retrier, _ *atomic.Int32) {
			c := call("both", map[string]any{})
			wantAsked(c.call(""), "before/First", "A note?")
			state := wantAsked(c.call("", "before/First", note("milk")), "later", "Later?")
			leave := beginRetry(c, state)
			time.AfterFunc(20*time.Millisecond, leave)
			wantAsked(c.call(state), "later", "Later?")
			time.Sleep(time.Second)
			c.call(state, "later", note("bread")).WantText(false, "milk and bread")
		})
	})
}

// TestRetryWithKey checks that a repeated call that is cut short leaves the work to a caller that comes back with the
// idempotency key of the first call.
func TestRetryWithKey(t *testing.T) {
	eachRetrier(t, time.Minute, func(t *testing.T, _ *wiretest.Peer, call func(string, map[string]any) retrier, ran *atomic.Int32) {
		c := call("work", map[string]any{"ms": 10_000})
		c.key = "key-0123456789abcdef"
		state := wantAsked(c.call(""), "go", "Go?")
		leave := beginRetry(c, state, "go", note("a"))
		time.Sleep(time.Second)
		leave()
		time.Sleep(time.Second)
		c.call("").WantText(false, "worked on a")
		if n := ran.Load(); n != 1 {
			t.Errorf("ran %d times", n)
		}
	})
}

// TestRetryWithKeyWaits checks that work with an idempotency key goes on when the wait of its call is over.
func TestRetryWithKeyWaits(t *testing.T) {
	eachRetrier(t, 2*time.Second, func(_ *testing.T, _ *wiretest.Peer, call func(string, map[string]any) retrier, _ *atomic.Int32) {
		c := call("work", map[string]any{"ms": 10_000})
		c.key = "key-0123456789abcdef"
		r := c.call(wantAsked(c.call(""), "go", "Go?"), "go", note("a"))
		if strings.HasPrefix(c.tool, "slow_") {
			r.WantTask("working")
		} else {
			r.WantText(true, "goes on, longer than the 2s that a call without a task may take. Call it again with the same idempotency key")
		}
		time.Sleep(10 * time.Second)
		c.call("").WantText(false, "worked on a")
	})
}
