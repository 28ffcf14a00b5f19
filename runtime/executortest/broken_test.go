package executortest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memengine"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// faulty is an engine with a fault.
type faulty struct {
	taskserver.Engine
	submit func(ctx context.Context, task taskserver.Submission) error
	close  func(ctx context.Context) error
}

// Submit implements taskserver.Executor.
func (x faulty) Submit(ctx context.Context, task taskserver.Submission) error {
	if x.submit != nil {
		return x.submit(ctx, task)
	}
	return x.Engine.Submit(ctx, task)
}

// Close implements taskserver.Executor.
func (x faulty) Close(ctx context.Context) error {
	if x.close != nil {
		return x.close(ctx)
	}
	return x.Engine.Close(ctx)
}

// replaceEnd returns run, except that it returns to instead of from.
func replaceEnd(run taskserver.RunFunc, from, to taskserver.RunEnd) taskserver.RunFunc {
	return func(ctx context.Context, taskID string) taskserver.RunEnd {
		if end := run(ctx, taskID); end != from {
			return end
		}
		return to
	}
}

// TestBrokenExecutors checks that the tests fail for an executor that breaks a promise.
func TestBrokenExecutors(t *testing.T) {
	cases := []struct {
		fault, promise, failure string
		// run changes the RunFunc, and set the engine. over is closed at the end of the test.
		run func(run taskserver.RunFunc) taskserver.RunFunc
		set func(x *faulty, over <-chan struct{})
	}{
		{fault: "none", promise: "Submit/again"},
		{fault: "loses tasks", promise: "Submit/runs once", failure: "does not end", set: func(x *faulty, _ <-chan struct{}) {
			x.submit = func(context.Context, taskserver.Submission) error { return nil }
		}},
		{fault: "loses refused tasks", promise: "Submit/never called", failure: "does not end", set: func(x *faulty, _ <-chan struct{}) {
			x.submit = func(context.Context, taskserver.Submission) error { return errors.New("no") }
		}},
		{fault: "hangs", promise: "Submit/ended context", failure: "Submit has not returned", set: func(x *faulty, over <-chan struct{}) {
			x.submit = func(ctx context.Context, task taskserver.Submission) error {
				if ctx.Err() != nil {
					<-over
				}
				return x.Engine.Submit(ctx, task)
			}
		}},
		{fault: "runs each task twice at once", promise: "Submit/runs once", failure: "while an earlier call goes on", run: func(run taskserver.RunFunc) taskserver.RunFunc {
			return func(ctx context.Context, taskID string) taskserver.RunEnd {
				first := make(chan taskserver.RunEnd)
				go func() { first <- run(ctx, taskID) }()
				end := run(ctx, taskID)
				return min(end, <-first)
			}
		}},
		{fault: "forgets what is left", promise: "RunFunc/ended context", failure: "does not end", run: func(run taskserver.RunFunc) taskserver.RunFunc {
			return replaceEnd(run, taskserver.RunLeft, taskserver.RunOver)
		}},
		{fault: "forgets what is left", promise: "Close/goes on elsewhere", failure: "run 2 of", run: func(run taskserver.RunFunc) taskserver.RunFunc {
			return replaceEnd(run, taskserver.RunLeft, taskserver.RunOver)
		}},
		{fault: "forgets what waits", promise: "Questions/elsewhere", failure: "does not end", run: func(run taskserver.RunFunc) taskserver.RunFunc {
			return replaceEnd(run, taskserver.RunWaits, taskserver.RunOver)
		}},
		{fault: "does not end contexts", promise: "Close/goes on elsewhere", failure: "does not close", run: func(run taskserver.RunFunc) taskserver.RunFunc {
			return func(ctx context.Context, taskID string) taskserver.RunEnd {
				return run(context.WithoutCancel(ctx), taskID)
			}
		}},
		{fault: "closes in its own time", promise: "Close/ended context", failure: "Close has not returned", set: func(x *faulty, _ <-chan struct{}) {
			x.close = func(context.Context) error { return x.Engine.Close(context.Background()) }
		}},
		{fault: "goes on after Close", promise: "Close/queued", failure: "after Close has returned", run: func(run taskserver.RunFunc) taskserver.RunFunc {
			return func(ctx context.Context, taskID string) taskserver.RunEnd {
				end := run(ctx, taskID)
				if end == taskserver.RunLeft {
					// The clock of the test goes on when Close has returned and all else waits.
					time.AfterFunc(time.Millisecond, func() { run(context.Background(), taskID) })
				}
				return end
			}
		}},
	}
	for _, c := range cases {
		bubble.Run(t, c.fault+" "+c.promise, func(t *testing.T) {
			cluster := memengine.Cluster{Slots: 2}
			over := make(chan struct{})
			h := Harness{Slots: 2, Patience: 5 * time.Minute, New: func(_ testing.TB, _ string, run taskserver.RunFunc) (taskserver.Executor, error) {
				if c.run != nil {
					run = c.run(run)
				}
				x, err := cluster.Join(run)
				broken := &faulty{Engine: x.(taskserver.Engine)}
				if c.set != nil {
					c.set(broken, over)
				}
				return broken, err
			}}
			time.AfterFunc(h.Patience+time.Minute, func() { close(over) })
			failures := strings.Join(recordFailures(t, c.promise, h), "\n")
			if isBroken := c.fault != "none"; isBroken != (failures != "") || !strings.Contains(failures, c.failure) {
				t.Errorf("the failures are %q, want one with %q", failures, c.failure)
			}
			time.Sleep(h.Patience + 2*time.Minute)
		})
	}
}
