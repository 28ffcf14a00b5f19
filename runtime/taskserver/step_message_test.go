package taskserver

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestStepMessage checks that the status message of a silent handler tells its newest step at no write of its own, and
// that a handler's reports are not replaced.
func TestStepMessage(t *testing.T) {
	step := func(ctx context.Context, task *mcptask.Task, name string) {
		_, _ = mcptask.Step(ctx, task, name, func(context.Context) (int, error) { return 1, nil })
	}
	sleep := func(ctx context.Context, task *mcptask.Task) { _ = mcptask.Sleep(ctx, task, "cool down", time.Hour) }
	for name, c := range map[string]struct {
		work     func(context.Context, *mcptask.Task)
		message  string
		progress taskstore.Progress
		writes   int // without the one that creates the task
	}{
		"a step": {func(ctx context.Context, task *mcptask.Task) { step(ctx, task, "up\nload") }, `The step "up\nload" is done.`, taskstore.Progress{}, 1},
		"two steps": {func(ctx context.Context, task *mcptask.Task) {
			step(ctx, task, "upload")
			step(ctx, task, "encode")
		}, `The step "encode" is done.`, taskstore.Progress{}, 2},
		"a position": {func(ctx context.Context, task *mcptask.Task) { _ = mcptask.Save(ctx, task, "row", 1) }, "", taskstore.Progress{}, 1},
		"a sleep":    {sleep, `The sleep "cool down" ends at 2000-01-01 01:00:00 UTC.`, taskstore.Progress{}, 1},
		"a message": {func(ctx context.Context, task *mcptask.Task) {
			task.Message(ctx, "Encodes.")
			step(ctx, task, "encode")
		}, "Encodes.", taskstore.Progress{}, 2},
		"a message that is not stored yet": {func(ctx context.Context, task *mcptask.Task) {
			task.Message(ctx, "Uploads.")
			task.Message(ctx, "Encodes.")
			step(ctx, task, "encode")
		}, "Encodes.", taskstore.Progress{}, 2},
		"progress": {func(ctx context.Context, task *mcptask.Task) {
			task.Progress(ctx, 1, 2, "")
			step(ctx, task, "encode")
		}, "1/2", taskstore.Progress{Done: 1, Total: 2}, 2},
		"a message after a step": {func(ctx context.Context, task *mcptask.Task) {
			step(ctx, task, "upload")
			task.Message(ctx, "Encodes.")
		}, "Encodes.", taskstore.Progress{}, 2},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			writes := 0
			store := &tapStore{Store: taskstore.NewMemory(), tap: func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
				if method == "Update" {
					writes++
				}
				return do()
			}}
			b := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				c.work(ctx, task)
				return hang(ctx, task, in)
			}))
			id := begin(t, b, alice, "t").ID
			time.Sleep(time.Minute) // of the bubble
			synctest.Wait()
			if r, err := b.Get(t.Context(), alice, id); err != nil || r.StatusMessage != c.message || r.Progress != c.progress || writes != c.writes {
				t.Errorf("%q, %+v after %d writes, want %q, %+v after %d; %v", r.StatusMessage, r.Progress, writes, c.message, c.progress, c.writes, err)
			}
		})
	}
}

// TestStepMessageOfLaterRun checks that a run keeps the progress of a former one until it reports its own.
func TestStepMessageOfLaterRun(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		work := func(_ context.Context, task *mcptask.Task) {}
		tool := numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			work(ctx, task)
			return hang(ctx, task, in)
		})
		work = func(ctx context.Context, task *mcptask.Task) { task.Progress(ctx, 1, 2, "Uploads.") }
		first := newServer(t, Options{Store: store}, tool)
		id := begin(t, first, alice, "t").ID
		synctest.Wait()
		if err := first.server.Close(); err != nil {
			t.Fatal(err)
		}
		work = func(ctx context.Context, task *mcptask.Task) {
			_, _ = mcptask.Step(ctx, task, "encode", func(context.Context) (int, error) { return 1, nil })
		}
		second := newServer(t, Options{Store: store}, tool)
		synctest.Wait()
		time.Sleep(time.Minute)
		steps, err := store.Steps(t.Context(), id)
		if err != nil || len(steps) != 1 {
			t.Fatalf("%v, %v", steps, err)
		}
		if r, err := second.Get(t.Context(), alice, id); err != nil || r.StatusMessage != "Uploads. (1/2)" || r.Progress.Done != 1 {
			t.Errorf("%q, %+v, %v", r.StatusMessage, r.Progress, err)
		}
	})
}
