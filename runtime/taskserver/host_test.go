package taskserver

import (
	"context"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// refuseEnded is a tap of a store that refuses calls whose context has ended, as databases do.
func refuseEnded(ctx context.Context, _ string, _ *taskstore.Record, do func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return do()
}

// TestLastReport checks that a task that has ended or was handed over has its last report, whatever
// happened to the storing of it.
func TestLastReport(t *testing.T) {
	slowly := func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
		if method == "Update" && !r.Done() && r.Progress.Done == 2 {
			time.Sleep(100 * time.Millisecond)
		}
		return refuseEnded(ctx, method, r, do)
	}
	last := func(ctx context.Context, task *mcptask.Task) {
		task.Progress(ctx, 1, 2, "first")
		task.Progress(ctx, 2, 2, "last")
	}
	for name, c := range map[string]struct {
		tap    tap
		policy mcptask.Policy
		work   func(context.Context, *mcptask.Task)
	}{
		"it is being stored when the task ends": {slowly, mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task) {
			last(ctx, task)
			time.Sleep(mcptask.DefaultPoll + time.Millisecond)
		}},
		"it is being stored when the server closes": {slowly, restart, func(ctx context.Context, task *mcptask.Task) {
			time.Sleep(10*time.Second - mcptask.DefaultPoll - time.Millisecond)
			last(ctx, task)
			<-ctx.Done()
		}},
		"it comes after the end of the context": {refuseEnded, restart, func(ctx context.Context, task *mcptask.Task) {
			<-ctx.Done()
			task.Progress(ctx, 2, 2, "last")
		}},
		"it comes after the end of the context, and may not run again": {refuseEnded, mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task) {
			task.Progress(ctx, 1, 2, "first")
			<-ctx.Done()
			task.Progress(ctx, 2, 2, "last")
		}},
		"there is no room for it for a moment": {before(first(1, func(context.Context) error { return taskstore.ErrQuotaBytes }), "Update"), mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task) {
			task.Progress(ctx, 2, 2, "last")
		}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			var mu sync.Mutex
			var end taskstore.Record // as the server leaves it
			a := newServer(t, Options{Store: &tapStore{Store: store, tap: func(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
				err := c.tap(ctx, method, r, do)
				if method == "Update" && err == nil {
					mu.Lock()
					defer mu.Unlock()
					end = *r
				}
				return err
			}}}, numberTool("t", c.policy, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				c.work(ctx, task)
				return in, ctx.Err()
			}))
			begin(t, a, alice, "t")
			time.Sleep(10 * time.Second)
			if err := a.server.Close(); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Second) // slow calls end
			mu.Lock()
			defer mu.Unlock()
			if want := (taskstore.Progress{Done: 2, Total: 2}); end.Progress != want {
				t.Errorf("%+v, want %+v", end.Progress, want)
			}
		})
	}
}

// TestHandOverBeyondQuota checks that a task whose account has no room for its last report is handed
// over all the same.
func TestHandOverBeyondQuota(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		a := newServer(t, Options{Store: store, Limits: Limits{Bytes: 1000}}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			task.Message(ctx, "first")
			task.Message(ctx, strings.Repeat("last", 1000))
			<-ctx.Done()
			return in, ctx.Err()
		}))
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		if err := a.server.Close(); err != nil {
			t.Error(err)
		}
		if r, err := store.Get(t.Context(), id); err != nil || r.Claim.Worker != "" || r.Tries != 0 {
			t.Errorf("worker %q after %d tries, %v", r.Claim.Worker, r.Tries, err)
		}
	})
}
