package taskserver

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestCloseEndsTasks checks that Close ends the tasks in the server's own store as cancelled, running
// or in line. No other server could take them over.
func TestCloseEndsTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := newServer(t, Options{Concurrency: 1, Logger: slog.New(slog.NewTextHandler(&log, nil))}, numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
		var ids []string
		for range 3 {
			ids = append(ids, begin(t, s, alice, "t").ID)
		}
		time.Sleep(time.Second)
		if err := s.server.Close(); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if r, err := s.Get(t.Context(), alice, id); err != nil || !r.Done() || r.Outcome.Kind != taskstore.OutcomeCancelled {
				t.Errorf("%s is %s, %v", id, r.Phase, err)
			}
		}
		if text := log.String(); strings.Count(text, "unfinished tasks are lost") != 1 || !strings.Contains(text, "tasks=3") || !strings.Contains(text, "Options.Store") {
			t.Errorf("the log does not tell what was lost: %s", text)
		}
	})
}

// TestCloseDuringCreate checks that a task whose creation ends after Close has begun is refused and deleted, so that no
// other server runs it, unless it waits for any server.
func TestCloseDuringCreate(t *testing.T) {
	const duration = 4 * time.Second // of the creation
	for name, c := range map[string]struct {
		drain  time.Duration
		failed error
		answer error
	}{
		"within the drain": {DefaultDrain, nil, newShutdownError()},
		"in vain":          {DefaultDrain, errStore, mcptask.Errorf(mcptask.CodeInternalError, "the task could not be stored")},
		"after the drain":  {time.Second, nil, newShutdownError()},
	} {
		for _, concurrency := range []int{1, DefaultConcurrency} { // without a slot, and with one
			waits := concurrency == 1 && c.failed == nil
			bubble.Run(t, name, func(t *testing.T) {
				store := taskstore.NewMemory()
				var runs atomic.Int32
				tool := numberTool("t", restart, counting(&runs, double))
				a, err := New(Options{Concurrency: concurrency, Drain: c.drain, Store: &tapStore{Store: store, tap: func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
					if err := ctx.Err(); err != nil {
						return err
					}
					if method == "Create" && r.Tool == "t" {
						time.Sleep(duration)
						if c.failed != nil {
							return c.failed
						}
					}
					return do()
				}}}, mcptask.Tools{Service: "A", Impl: 1, Tools: []mcptask.Tool{tool, numberTool("hang", mcptask.Policy{}, hang)}})
				if err != nil {
					t.Fatal(err)
				}
				newServer(t, Options{Store: store}, tool)
				begin(t, a.Backend(), alice, "hang")
				var call sync.WaitGroup
				call.Go(func() {
					_, err := a.Backend().Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask})
					if waits && err != nil || !waits && wireError(err).Error() != c.answer.Error() {
						t.Errorf("answered with %v", err)
					}
				})
				time.Sleep(time.Second)
				began := time.Now()
				if err := a.Close(); c.drain == DefaultDrain && err != nil || time.Since(began) > c.drain+CloseMargin {
					t.Errorf("closed after %v: %v", time.Since(began), err)
				}
				if c.drain == DefaultDrain && time.Since(began) != duration-time.Second {
					t.Errorf("closed after %v, not when the creation was over", time.Since(began))
				}
				call.Wait()
				time.Sleep(2 * leaseFor)
				left, err := store.List(t.Context(), alice.Principal, taskstore.Position{}, 10)
				want := 0
				if waits {
					want = 1
				}
				if err != nil || len(left) != 1+want || !waits && left[0].Tool == "t" || int(runs.Load()) != want {
					t.Errorf("%d tasks are left, %d have run, %v", len(left), runs.Load(), err)
				}
			})
		}
	}
}
