package taskserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// faults are the faults of a store on a bad day. They may only cost time.
var faults = storetest.Faults{Refuse: 0.15, Lose: 0.15, Conflict: 0.2, Latency: 200 * time.Millisecond}

type counted struct {
	N int `json:"n"`
}

// insistent repeats a call until it succeeds, like a client whose server has trouble.
func insistent[T any](t testing.TB, call func() (T, error)) (v T) {
	t.Helper()
	for range 1000 {
		var err error
		if v, err = call(); err == nil {
			return v
		}
		var wire *mcptask.Error
		if !errors.As(err, &wire) || wire.Code != mcptask.CodeInternalError {
			t.Fatalf("not what a store's fault brings: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("the call has failed a thousand times")
	return v
}

func TestStoreFaults(t *testing.T) {
	rules.Covers(t, "C-29", "E-22", "B-30")
	for seed := range uint64(5) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) { testStoreFaults(t, seed) })
		})
	}
}

// testStoreFaults runs a hundred tasks on a store that fails. Each is created once, runs once, keeps its
// outcome, and is deleted after its ttl.
func testStoreFaults(t *testing.T, seed uint64) {
	const tasks = 100
	memory := taskstore.NewMemory()
	store := storetest.NewFaulty(memory, faults, seed)
	var mu sync.Mutex
	runs := map[int]int{}
	spec := mcptask.ToolSpec{Name: "count", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}}
	tool := mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, in counted) (counted, error) {
		mu.Lock()
		runs[in.N]++
		mu.Unlock()
		task.Progress(ctx, 1, 2, "half")
		select {
		case <-time.After(time.Duration(in.N) * time.Second):
		case <-ctx.Done():
			return counted{}, ctx.Err()
		}
		if in.N%10 == 0 {
			return counted{}, mcptask.Errorf(4050, "ten")
		}
		return counted{2 * in.N}, nil
	})
	s, err := taskserver.New(taskserver.Options{Store: store, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))},
		mcptask.Tools{Service: "Faults", Impl: 1, Tools: []mcptask.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	caller := taskserver.Caller{Principal: "alice"}
	var calling sync.WaitGroup
	for n := range tasks {
		calling.Go(func() {
			call := func() (taskserver.CallReply, error) {
				return s.Backend().Call(t.Context(), caller, "count", json.RawMessage(fmt.Sprintf(`{"n":%d}`, n)),
					taskserver.CallRequest{Mode: taskserver.ModeTask, IdempotencyKey: fmt.Sprint("key", n)})
			}
			reply := insistent(t, call)
			if reply.Task == nil {
				t.Errorf("%d: %+v", n, reply)
				return
			}
			id := reply.Task.ID
			if _, err := memory.Get(t.Context(), id); err != nil {
				t.Errorf("task %d was announced before it was stored: %v", n, err)
			}
			if n%7 == 1 {
				insistent(t, func() (bool, error) { _, done, err := s.Backend().Cancel(t.Context(), caller, id); return done, err })
			}
			r := insistent(t, func() (taskstore.Record, error) { return s.Backend().Await(t.Context(), caller, id) })
			switch {
			case n%7 == 1:
				if r.Outcome.Kind != taskstore.OutcomeCancelled && n > 60 { // the tasks that were still at work
					t.Errorf("task %d ended with %+v", n, r.Outcome)
				}
			case n%10 == 0:
				if r.Outcome.Kind != taskstore.OutcomeError || r.Outcome.Error.Code != 4050 {
					t.Errorf("task %d ended with %+v", n, r.Outcome)
				}
			default:
				var result struct{ StructuredContent counted }
				if err := json.Unmarshal(r.Outcome.Result, &result); err != nil || result.StructuredContent.N != 2*n {
					t.Errorf("task %d ended with %s, %v", n, r.Outcome.Result, err)
				}
			}
			time.Sleep(time.Minute)
			if again := insistent(t, func() (taskstore.Record, error) { return s.Backend().Get(t.Context(), caller, id) }); again.Version != r.Version {
				t.Errorf("task %d changed after its end: %+v", n, again)
			}
		})
	}
	calling.Wait()
	all, err := memory.List(t.Context(), "alice", taskstore.Position{}, 2*tasks)
	if err != nil || len(all) != tasks {
		t.Errorf("%d records for %d tasks: %v", len(all), tasks, err)
	}
	mu.Lock()
	for n := range tasks {
		if runs[n] != 1 && n%7 != 1 {
			t.Errorf("task %d ran %d times", n, runs[n])
		}
	}
	mu.Unlock()
	time.Sleep(2 * time.Hour)
	if all, err := memory.List(t.Context(), "alice", taskstore.Position{}, tasks); err != nil || len(all) != 0 {
		t.Errorf("%d records are left after their ttl: %v", len(all), err)
	}
	if store.Failed() < tasks {
		t.Errorf("only %d calls failed", store.Failed())
	}
	store.Set(storetest.Faults{})
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
