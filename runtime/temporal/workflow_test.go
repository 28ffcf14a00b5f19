package temporal

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// newSuite makes an environment in which the workflow of a task runs.
func newSuite(t *testing.T) (*testsuite.TestWorkflowEnvironment, *executor) {
	t.Helper()
	x := &executor{options: Options{}}
	if err := x.options.setDefaults(); err != nil {
		t.Fatal(err)
	}
	x.closing, x.close = context.WithCancel(t.Context())
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
	env.SetWorkflowRunTimeout(24 * time.Hour)
	x.register(env)
	return env, x
}

// runs makes the activity return these ends in turn, and counts the runs. The last one repeats.
func runs(env *testsuite.TestWorkflowEnvironment, ends ...any) (count func() int) {
	n := 0
	env.OnActivity(activityType, mock.Anything, mock.Anything).Return(func(context.Context, runInput) (runEnd, error) {
		end := ends[min(n, len(ends)-1)]
		n++
		if err, ok := end.(error); ok {
			return "", err
		}
		return end.(runEnd), nil
	})
	return func() int { return n }
}

// TestTaskIsRunUntilItIsOver checks that a run that was left, or that failed, is repeated.
func TestTaskIsRunUntilItIsOver(t *testing.T) {
	env, _ := newSuite(t)
	count := runs(env, errLeft, errors.New("a lost worker"), runOver)
	env.ExecuteWorkflow(workflowType, "a task")
	if err := env.GetWorkflowError(); err != nil || count() != 3 {
		t.Errorf("%d runs, %v", count(), err)
	}
}

// TestTaskWaitsForAnswer checks that a task that waits runs again after the signal, and that it looks by
// itself if the signal does not come.
func TestTaskWaitsForAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		answer       time.Duration // after the begin
		least, most  time.Duration // that the task takes
		ends         []any
		signals, run int
	}{
		"answered":          {10 * time.Second, 10 * time.Second, 11 * time.Second, []any{runWaits, runOver}, 1, 2},
		"answered twice":    {10 * time.Second, 10 * time.Second, 11 * time.Second, []any{runWaits, runOver}, 2, 2},
		"signal lost":       {0, time.Minute, 2 * time.Minute, []any{runWaits, runOver}, 0, 2},
		"many signals lost": {0, 3 * time.Hour, 9 * time.Hour, []any{runWaits, runWaits, runWaits, runWaits, runWaits, runWaits, runWaits, runWaits, runWaits, runOver}, 0, 10},
	} {
		t.Run(name, func(t *testing.T) {
			env, _ := newSuite(t)
			count := runs(env, c.ends...)
			for range c.signals {
				env.RegisterDelayedCallback(func() { env.SignalWorkflow(answeredSignal, nil) }, c.answer)
			}
			began := env.Now()
			env.ExecuteWorkflow(workflowType, "a task")
			took := env.Now().Sub(began)
			if err := env.GetWorkflowError(); err != nil || count() != c.run || took < c.least || took > c.most {
				t.Errorf("%d runs in %v, %v", count(), took, err)
			}
		})
	}
}

// TestCancelledWorkflow checks that the task of a cancelled workflow ends, even if no handler runs.
func TestCancelledWorkflow(t *testing.T) {
	env, _ := newSuite(t)
	var inputs []runInput
	env.OnActivity(activityType, mock.Anything, mock.Anything).Return(func(_ context.Context, in runInput) (runEnd, error) {
		inputs = append(inputs, in)
		if in.Cancelled {
			return runOver, nil
		}
		return runWaits, nil
	})
	env.RegisterDelayedCallback(env.CancelWorkflow, 10*time.Second)
	env.ExecuteWorkflow(workflowType, "a task")
	if err := env.GetWorkflowError(); !sdktemporal.IsCanceledError(err) {
		t.Errorf("%v", err)
	}
	if n := len(inputs); n != 2 || inputs[n-1] != (runInput{TaskID: "a task", Cancelled: true}) {
		t.Errorf("%+v", inputs)
	}
}

// TestActivity checks the report of a run to Temporal.
func TestActivity(t *testing.T) {
	for name, c := range map[string]struct {
		run  taskserver.RunFunc
		want runEnd
		fail bool
	}{
		"over":  {func(context.Context, string) taskserver.RunEnd { return taskserver.RunOver }, runOver, false},
		"waits": {func(context.Context, string) taskserver.RunEnd { return taskserver.RunWaits }, runWaits, false},
		"left":  {func(context.Context, string) taskserver.RunEnd { return taskserver.RunLeft }, "", true},
		"panic": {func(context.Context, string) taskserver.RunEnd { panic("boom") }, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, x := newSuite(t)
			x.run = c.run
			var suite testsuite.WorkflowTestSuite
			env := suite.NewTestActivityEnvironment()
			env.RegisterActivityWithOptions(x.runTask, activity.RegisterOptions{Name: activityType})
			value, err := env.ExecuteActivity(activityType, runInput{TaskID: "a task"})
			if (err != nil) != c.fail {
				t.Fatal(err)
			}
			if left := (*sdktemporal.ApplicationError)(nil); c.fail && (!errors.As(err, &left) || left.Category() != sdktemporal.ApplicationErrorCategoryBenign) {
				t.Errorf("%v counts as a failure", err)
			}
			var end runEnd
			if err == nil {
				if err := value.Get(&end); err != nil {
					t.Fatal(err)
				}
			}
			if end != c.want {
				t.Errorf("%q", end)
			}
		})
	}
}

// TestActivityWhileClosing checks that no handler begins once the server closes: one that may not run again would be
// lost.
func TestActivityWhileClosing(t *testing.T) {
	_, x := newSuite(t)
	var early error
	x.run = func(ctx context.Context, _ string) taskserver.RunEnd {
		early = ctx.Err()
		return taskserver.RunLeft
	}
	x.close()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(x.runTask, activity.RegisterOptions{Name: activityType})
	for range 100 {
		if _, err := env.ExecuteActivity(activityType, runInput{TaskID: "a task"}); err == nil || early == nil {
			t.Fatalf("%v, and the context of the run has %v", err, early)
		}
	}
}

// TestActivityCauses checks that a run is told that the server closes, and one of a cancelled task that it was
// cancelled.
func TestActivityCauses(t *testing.T) {
	for name, c := range map[string]struct {
		in   runInput
		end  func(x *executor)
		want error
	}{
		"closing":   {runInput{TaskID: "a task"}, func(x *executor) { x.close() }, context.Canceled},
		"cancelled": {runInput{TaskID: "a task", Cancelled: true}, func(*executor) {}, mcptask.ErrCancelled},
	} {
		t.Run(name, func(t *testing.T) {
			_, x := newSuite(t)
			var got error
			x.run = func(ctx context.Context, _ string) taskserver.RunEnd {
				c.end(x)
				<-ctx.Done()
				got = context.Cause(ctx)
				return taskserver.RunOver
			}
			runActivity(t, x.runTask, c.in)
			if !errors.Is(got, c.want) {
				t.Errorf("%v", got)
			}
		})
	}
}

// beatenTemporal is a client that takes heartbeats only.
type beatenTemporal struct {
	client.Client
	take func(context.Context, client.RecordActivityHeartbeatOptions) error
}

// RecordActivityHeartbeatWithOptions implements client.Client.
func (c beatenTemporal) RecordActivityHeartbeatWithOptions(ctx context.Context, options client.RecordActivityHeartbeatOptions) error {
	return c.take(ctx, options)
}

// TestHeartbeats checks that a run goes on while heartbeats fail, that they go on too, and that it ends when one says
// so.
func TestHeartbeats(t *testing.T) {
	const short, long = 30 * time.Second, 2 * time.Minute
	for name, c := range map[string]struct {
		heartbeat  time.Duration
		last, want error
	}{
		"cancelled":      {short, sdktemporal.NewCanceledError(), mcptask.ErrCancelled},
		"superseded":     {short, serviceerror.NewNotFound("taken for lost"), mcptask.ErrSuperseded},
		"paused":         {short, activity.ErrActivityPaused, context.Canceled},
		"reset":          {short, activity.ErrActivityReset, context.Canceled},
		"long heartbeat": {long, sdktemporal.NewCanceledError(), mcptask.ErrCancelled},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			_, x := newSuite(t)
			x.options.Heartbeat = c.heartbeat
			answers := []error{nil, serviceerror.NewUnavailable("away"), context.DeadlineExceeded, errPanicked, nil, c.last}
			var taken []time.Duration
			began, given := time.Now(), make(chan struct{})
			x.client = beatenTemporal{take: func(_ context.Context, options client.RecordActivityHeartbeatOptions) error {
				if len(options.TaskToken) == 0 || options.WorkflowID == "" {
					t.Errorf("a heartbeat of %+v", options)
				}
				if len(taken) == len(answers) {
					close(given)
					return nil
				}
				taken = append(taken, time.Since(began))
				answer := answers[len(taken)-1]
				if errors.Is(answer, errPanicked) {
					panic("boom")
				}
				return answer
			}}
			var got error
			x.run = func(ctx context.Context, _ string) taskserver.RunEnd {
				select {
				case <-ctx.Done():
				case <-given:
				}
				got = context.Cause(ctx)
				return taskserver.RunOver
			}
			runActivity(t, func(ctx context.Context, in runInput) (runEnd, error) {
				ctx, end := context.WithCancelCause(ctx)
				end(serviceerror.NewUnavailable("away")) // as the SDK does after a heartbeat of the user's own has failed
				return x.runTask(ctx, in)
			}, runInput{TaskID: "a task"})
			pause := c.heartbeat / 3
			soon := min(pause/3, 10*time.Second) // after one that has failed
			want := []time.Duration{pause, 2 * pause, 2*pause + soon, 2*pause + 2*soon, 2*pause + 3*soon, 3*pause + 3*soon}
			if !errors.Is(got, c.want) || !slices.Equal(taken, want) {
				t.Errorf("%v after heartbeats at %v, want %v at %v", got, taken, c.want, want)
			}
		})
	}
}

// TestHeartbeatHangs checks that a server that closes does not wait for a heartbeat, nor does a run that ends, and that
// a heartbeat gives up in time for the next.
func TestHeartbeatHangs(t *testing.T) {
	for name, end := range map[string]func(x *executor, ctx context.Context){
		"closing": func(x *executor, ctx context.Context) { x.close(); <-ctx.Done() },
		"ended":   func(*executor, context.Context) {},
	} {
		for _, heartbeat := range []time.Duration{time.Second, 30 * time.Second} {
			bubble.Run(t, name+" "+heartbeat.String(), func(t *testing.T) {
				_, x := newSuite(t)
				x.options.Heartbeat = heartbeat
				hangs := make(chan struct{}, 100)
				began := time.Now()
				x.client = beatenTemporal{take: func(ctx context.Context, _ client.RecordActivityHeartbeatOptions) error {
					hangs <- struct{}{}
					// The SDK waits for half of the time, if that is a second or more.
					deadline, _ := ctx.Deadline()
					half, cancel := context.WithTimeout(ctx, max(time.Until(deadline)/2, time.Second))
					defer cancel()
					<-half.Done()
					return half.Err()
				}}
				x.run = func(ctx context.Context, _ string) taskserver.RunEnd {
					<-hangs
					<-hangs
					end(x, ctx)
					return taskserver.RunOver
				}
				runActivity(t, x.runTask, runInput{TaskID: "a task"})
				third := heartbeat / 3
				if took, want := time.Since(began), third+third+third/3; took != want {
					t.Errorf("it took %v, not %v", took, want)
				}
			})
		}
	}
}

// runActivity runs the activity of a task. It is over then.
func runActivity(t *testing.T, run func(context.Context, runInput) (runEnd, error), in runInput) {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.RegisterActivityWithOptions(run, activity.RegisterOptions{Name: activityType})
	if _, err := env.ExecuteActivity(activityType, in); err != nil {
		t.Fatal(err)
	}
}
