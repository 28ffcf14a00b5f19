package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// errNoTemporal is the error of a request while Temporal is away.
var errNoTemporal = serviceerror.NewUnavailable("dial tcp 10.1.2.3:7233: connection refused")

// failWorkflow returns the error that the SDK makes of a workflow's failure.
func failWorkflow(cause error) error {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
	env.ExecuteWorkflow(func(workflow.Context) error { return cause })
	return env.GetWorkflowError()
}

// TestStart checks how a workflow is started, and that its result is that of the task.
func TestStart(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		options := WorkflowOptions{TaskQueue: "builds", Name: "first", Start: func(_ context.Context, task *mcptask.Task, o *client.StartWorkflowOptions) {
			*o = client.StartWorkflowOptions{ID: "mine", TaskQueue: "other", WorkflowRunTimeout: time.Hour, Memo: map[string]any{"task": task.ID(), flowwire.MemoTask: 1},
				WorkflowExecutionErrorWhenAlreadyStarted: true}
		}}
		s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
			return Run[built](ctx, task, c, options, "Build", "main", 7)
		})
		task := beginBuild(t, s)
		f := <-c.begun
		o := f.options
		if o.ID != task.ID+"/Build/first" || o.TaskQueue != "builds" || o.WorkflowRunTimeout != time.Hour ||
			o.WorkflowIDReusePolicy != enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE ||
			o.WorkflowIDConflictPolicy != enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING || o.WorkflowExecutionErrorWhenAlreadyStarted {
			t.Errorf("%+v", o)
		}
		if o.Memo["task"] != task.ID || o.Memo[flowwire.MemoTask] != (flowwire.Memo{Task: task.ID}) {
			t.Errorf("memo: %+v", o.Memo)
		}
		if f.name != "Build" || len(f.args) != 2 || f.args[0] != "main" || f.args[1] != 7 {
			t.Errorf("%s%v", f.name, f.args)
		}
		f.end(built{Image: "shop:1"}, nil)
		if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), `{"image":"shop:1"}`) {
			t.Errorf("outcome: %s", buildOutcome(r))
		}
	})
}

// TestPlainCall checks that a plain call has workflows of its own, and that its end cancels them.
func TestPlainCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		ids := map[string]bool{}
		for range 2 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = s.Backend().Call(ctx, builder, "build", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModePlain})
			}()
			f := <-c.begun
			if id := f.options.ID; ids[id] || !strings.HasPrefix(id, "plain-") || !strings.HasSuffix(id, "/Build") {
				t.Errorf("ID: %q", id)
			}
			ids[f.options.ID] = true
			cancel()
			<-f.cancels
			<-done
		}
	})
}

// TestStepsAroundWorkflow checks that a later run joins the workflow and does no stored step again, whose work may be a
// workflow of its own.
func TestStepsAroundWorkflow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, store := newFakeTemporal(), taskstore.NewMemory()
		build := func(ctx context.Context, task *mcptask.Task) (built, error) {
			base, err := mcptask.Step(ctx, task, "base", func(ctx context.Context) (built, error) {
				return Run[built](ctx, task, c, WorkflowOptions{TaskQueue: "builds"}, "Base")
			})
			if err != nil {
				return base, err
			}
			return Run[built](ctx, task, c, WorkflowOptions{TaskQueue: "builds"}, "Build", base.Image)
		}
		first := newBuildServer(t, store, buildPolicy, build)
		task := beginBuild(t, first)
		(<-c.begun).end(built{Image: "base:1"}, nil)
		f := <-c.begun
		before := c.counted("start")
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		second := newBuildServer(t, store, buildPolicy, build)
		awaitBuild(t, second, task.ID, "its second run", func(r taskstore.Record) bool { return r.Attempt == 2 })
		time.Sleep(time.Minute)
		f.end(built{Image: "shop:1"}, nil)
		if r := awaitBuild(t, second, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") || f.args[0] != "base:1" {
			t.Errorf("%s, with the arguments %v", buildOutcome(r), f.args)
		}
		if n := c.counted("start") - before; n != 1 {
			t.Errorf("the second run starts or joins %d workflows, want one", n)
		}
	})
}

// TestProgress checks that the newest report becomes the task's, and that a quiet workflow is asked less often.
func TestProgress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Reports: 4, Done: 1, Total: 3, Message: "compiling"})
		awaitBuild(t, s, task.ID, "the progress", func(r taskstore.Record) bool {
			return r.Progress == (taskstore.Progress{Done: 1, Total: 3}) && r.StatusMessage == "compiling (1/3)"
		})
		f.show(flowwire.State{Reports: 4, Message: "of a run that continued as new"})
		awaitBuild(t, s, task.ID, "the message", func(r taskstore.Record) bool {
			return r.StatusMessage == "of a run that continued as new"
		})
		time.Sleep(time.Minute)
		before := c.counted("query")
		time.Sleep(10 * time.Minute)
		if n := c.counted("query") - before; n < 55 || n > 65 {
			t.Errorf("%d queries in ten minutes", n)
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestForeignWorkflow checks that a workflow without package taskflow works and is soon left alone, and
// that one without workers is asked again.
func TestForeignWorkflow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		time.Sleep(30 * time.Minute)
		if n := c.counted("query"); n != unknownQueries {
			t.Errorf("%d queries", n)
		}
		f.end(built{Image: "shop:1"}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)

		c.setFail(func(call string) error {
			if call == "query" {
				return serviceerror.NewFailedPrecondition("no poller seen for task queue recently, worker may be down")
			}
			return nil
		})
		task = beginBuild(t, s)
		f = <-c.begun
		f.show(flowwire.State{Reports: 1, Message: "compiling"})
		time.Sleep(30 * time.Minute)
		c.setFail(nil)
		awaitBuild(t, s, task.ID, "the message", func(r taskstore.Record) bool { return r.StatusMessage == "compiling" })
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestUnreadableState checks that a state that cannot be decoded harms nothing, that the task says so, and that the
// workflow is followed again afterwards, however often that happens.
func TestUnreadableState(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		for round := range int64(2 * unknownQueries) {
			f.mu.Lock()
			f.state = func() (flowwire.State, error) { panic("boom") }
			f.mu.Unlock()
			awaitBuild(t, s, task.ID, "the reason", func(r taskstore.Record) bool {
				return r.StatusMessage == "the workflow Build goes on, but its progress and its questions cannot be read"
			})
			f.show(flowwire.State{Reports: round + 1, Message: "readable"})
			awaitBuild(t, s, task.ID, "the message", func(r taskstore.Record) bool { return r.StatusMessage == "readable" })
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestPassingQueryFailure checks that the reason why the queries fail goes when they succeed again, also if the
// workflow has reported nothing since.
func TestPassingQueryFailure(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		for _, round := range []struct {
			state flowwire.State
			want  string
		}{
			{flowwire.State{}, "the workflow Build goes on"},
			{flowwire.State{Reports: 1, Message: "waiting"}, "waiting"},
			{flowwire.State{Reports: 2, Done: 1, Total: 3, Message: "compiling"}, "compiling (1/3)"},
		} {
			f.show(round.state)
			time.Sleep(time.Minute)
			f.mu.Lock()
			f.state = func() (flowwire.State, error) { panic("boom") }
			f.mu.Unlock()
			awaitBuild(t, s, task.ID, "the reason", func(r taskstore.Record) bool { return strings.Contains(r.StatusMessage, "cannot be read") })
			f.show(round.state)
			time.Sleep(2 * time.Minute)
			r, err := s.Backend().Get(t.Context(), builder, task.ID)
			if err != nil || r.StatusMessage != round.want || r.Progress != (taskstore.Progress{Done: round.state.Done, Total: round.state.Total}) {
				t.Errorf("got %q, %+v, %v, want %q", r.StatusMessage, r.Progress, err, round.want)
			}
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestLongWorkflow checks that one request for the result does not wait for as long as the workflow runs: it would keep
// a frame of the stack for each run that was continued as new.
func TestLongWorkflow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		policy := buildPolicy
		policy.TTL = 10 * longestGet
		s := newBuildServer(t, nil, policy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		time.Sleep(3*longestGet + time.Minute)
		if n := c.counted("get"); n != 4 {
			t.Errorf("%d requests", n)
		}
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}

// TestCancel checks that the end of a task cancels its workflow, wherever it ends, and that the end of a run does not.
func TestCancel(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(t *testing.T, s *taskserver.Server, store taskstore.Store, id string)
		reason string
	}{
		"cancelled": {func(t *testing.T, s *taskserver.Server, _ taskstore.Store, id string) {
			_, _, _ = s.Backend().Cancel(t.Context(), builder, id)
		}, "the task was cancelled"},
		"stopped": {func(t *testing.T, s *taskserver.Server, _ taskstore.Store, id string) {
			_ = s.Backend().Stop(t.Context(), builder, id)
		}, "the task was cancelled"},
		"expired": {func(*testing.T, *taskserver.Server, taskstore.Store, string) {}, "the task has expired"},
		"closed":  {func(_ *testing.T, s *taskserver.Server, _ taskstore.Store, _ string) { _ = s.Close() }, ""},
		"ended elsewhere": {func(t *testing.T, _ *taskserver.Server, store taskstore.Store, id string) {
			changeStored(t, store, id, func(r *taskstore.Record) {
				r.Phase, r.TerminalAt = taskstore.PhaseDone, time.Now()
				r.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: mcptask.Errorf(mcptask.CodeInternalError, "the worker of the task was lost")}
			})
		}, "the task has ended without this run"},
		"taken by another server": {func(t *testing.T, _ *taskserver.Server, store taskstore.Store, id string) {
			changeStored(t, store, id, func(r *taskstore.Record) {
				r.Claim, r.Attempt = taskstore.Claim{Worker: "other", State: taskstore.ClaimRunning}, 2
			})
		}, ""},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			temporal := newFakeTemporal()
			store := taskstore.NewMemory()
			s := newBuildServer(t, store, buildPolicy, runBuild(temporal))
			task := beginBuild(t, s)
			f := <-temporal.begun
			f.show(flowwire.State{Questions: askFor("a")})
			awaitAsked(t, s, task.ID, "Build/a")
			c.end(t, s, store, task.ID)
			if c.reason == "" {
				time.Sleep(time.Minute)
				if n := temporal.counted("cancel"); n > 0 {
					t.Errorf("%d cancellations", n)
				}
				return
			}
			if got := <-f.cancels; got != c.reason {
				t.Errorf("reason: %q", got)
			}
		})
	}
}

// changeStored changes a record as another server does.
func changeStored(t *testing.T, store taskstore.Store, id string, change func(*taskstore.Record)) {
	t.Helper()
	r, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	changed := r
	change(&changed)
	changed.Version++
	if _, err := store.Update(t.Context(), r, changed, taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
}

// TestCloseWhileStarting checks that the end of a server does not wait for a start that is under way.
func TestCloseWhileStarting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		c.starting, c.canStart = make(chan struct{}), make(chan struct{})
		s := newBuildServer(t, taskstore.NewMemory(), buildPolicy, runBuild(c))
		beginBuild(t, s)
		<-c.starting
		before := time.Now()
		if err := s.Close(); err != nil || time.Since(before) > 0 {
			t.Errorf("%v after %v", err, time.Since(before))
		}
		if n := c.counted("cancel"); n > 0 {
			t.Errorf("%d cancellations", n)
		}
	})
}

// explosive panics when it is decoded.
type explosive struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*explosive) UnmarshalJSON([]byte) error { panic("boom") }

// TestResultPanics checks that a task waits for better code while the decoder of its result panics, that it says so,
// and that its end leaves nothing behind.
func TestResultPanics(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
			ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
			defer cancel()
			_, err := Run[explosive](ctx, task, c, WorkflowOptions{TaskQueue: "builds"}, "Build")
			return built{}, err
		})
		task := beginBuild(t, s)
		f := <-c.begun
		f.show(flowwire.State{Questions: askFor("a")})
		awaitAsked(t, s, task.ID, "Build/a")
		f.end(7, nil)
		awaitBuild(t, s, task.ID, "the reason", func(r taskstore.Record) bool { return strings.Contains(r.StatusMessage, "cannot be read yet") })
		if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !r.Outcome.IsError {
			t.Error(buildOutcome(r))
		}
	})
}

// TestFinishedWork checks that the result of a workflow counts if the workflow has ended before its cancellation.
func TestFinishedWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		returned := make(chan built, 1)
		s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			c.setFail(func(call string) error {
				if call == "get" && ctx.Err() == nil { // Temporal is away, and then it is late
					return errNoTemporal
				}
				return nil
			})
			time.AfterFunc(time.Minute, func() { cancel(errors.New("enough")) })
			out, err := runBuild(c)(ctx, task)
			returned <- out
			return out, err
		})
		task := beginBuild(t, s)
		f := <-c.begun
		f.end(built{Image: "shop:1"}, nil)
		if out := <-returned; out.Image != "shop:1" {
			t.Errorf("%+v", out)
		}
		if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
			t.Error(buildOutcome(r))
		}
	})
}

// TestOtherReplica checks that a task goes on elsewhere: the workflow is joined, and its question asked once.
func TestOtherReplica(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c, store := newFakeTemporal(), taskstore.NewMemory()
		first := newBuildServer(t, store, buildPolicy, runBuild(c))
		task := beginBuild(t, first)
		f := <-c.begun
		f.show(flowwire.State{Reports: 1, Message: "waiting", Questions: askFor("a", "b")})
		awaitAsked(t, first, task.ID, "Build/a", "Build/b")
		c.setFail(func(call string) error {
			if call == "signal" {
				return errNoTemporal
			}
			return nil
		})
		replyTo(t, first, task.ID, "Build/a", `{"action":"accept","content":{"approve":true}}`)
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		c.setFail(nil)
		second := newBuildServer(t, store, buildPolicy, runBuild(c))
		if got := <-f.signals; got.Key != "a" || string(got.Content) != `{"approve":true}` {
			t.Errorf("%+v", got)
		}
		r := awaitAsked(t, second, task.ID, "Build/b")
		if len(r.Inputs) != 2 || r.Attempt != 2 {
			t.Errorf("attempt %d: %+v", r.Attempt, r.Inputs)
		}
		f.show(flowwire.State{Reports: 1, Message: "waiting"})
		f.end(built{Image: "shop:1"}, nil)
		if r := awaitBuild(t, second, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "shop:1") {
			t.Error(buildOutcome(r))
		}
		if n := len(c.begun); n > 0 || c.counted("cancel") > 0 {
			t.Errorf("%d further workflows, %d cancellations", n, c.counted("cancel"))
		}
	})
}

// TestReset checks that the run that an operator's reset has begun is joined, also if the credentials are away at
// first, and that a workflow that was only terminated fails.
func TestReset(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		synctest.Wait() // it waits for the result
		c.setFail(func(call string) error {
			switch {
			case call == "get" && c.counted("get") == 2:
				f.restart("run-2")
				return failWorkflow(&sdktemporal.TerminatedError{})
			case call == "describe" && c.counted("describe") == 1:
				return away["credentials"]()
			}
			return nil
		})
		f.mu.Lock()
		f.err = errNoTemporal
		f.mu.Unlock()
		close(f.ended)
		synctest.Wait()
		time.Sleep(time.Minute)
		if r, err := s.Backend().Get(t.Context(), builder, task.ID); err != nil || r.Done() {
			t.Errorf("%s, %v", buildOutcome(r), err)
		}
		f.end(nil, failWorkflow(&sdktemporal.TerminatedError{}))
		r := awaitBuild(t, s, task.ID, "its end", isBuilt)
		if !strings.Contains(buildOutcome(r), "the workflow Build was terminated") || f.runID != "run-2" {
			t.Errorf("%s, %s", buildOutcome(r), f.runID)
		}
	})
}

// Build is a workflow that is named by its function.
func (*fakeFlow) Build() {}

// TestNameWorkflow checks the names of workflows.
func TestNameWorkflow(t *testing.T) {
	for want, workflow := range map[string]any{"Ship": "Ship", "TestNameWorkflow": TestNameWorkflow, "Build": (&fakeFlow{}).Build} {
		if got, err := nameWorkflow(workflow); got != want || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	}
	for _, workflow := range []any{nil, 7, (func())(nil)} {
		if _, err := nameWorkflow(workflow); err == nil {
			t.Errorf("%v is taken", workflow)
		}
	}
}

// TestDistinctIDs checks that no two workflows of a task share an ID, and no two questions a step, also if their names
// have slashes. Names without slashes stay as they are.
func TestDistinctIDs(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range []struct{ name, suffix, id string }{
		{"A", "", "T/A"}, {"A", "b", "T/A/b"}, {"A/b", "", "T/A%2Fb"}, {"A%2Fb", "", "T/A%252Fb"}, {"A", "b/c", "T/A/b%2Fc"}, {"A/b", "c", "T/A%2Fb/c"},
	} {
		if got := chooseID("T", c.name, c.suffix); got != c.id {
			t.Errorf("%q %q: got %q, want %q", c.name, c.suffix, got, c.id)
		}
		f := &flow{name: c.name, options: WorkflowOptions{Name: c.suffix}}
		for _, key := range []string{"s", "b/s", "c/s"} {
			step := f.nameStep(key)
			if seen[step] {
				t.Errorf("two questions have the step %q", step)
			}
			seen[step] = true
		}
	}
}

// TestRunner checks the runner of generated code: results, failures, and options that are missing.
func TestRunner(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		task := mcptask.NewTask(nil, mcptask.TaskInfo{ID: "task-1", Attempt: 1})
		go func() { (<-c.begun).end(built{Image: "shop:1"}, nil) }()
		out, err := mcptask.RunWorkflow[built](t.Context(), NewRunner(c, WorkflowOptions{TaskQueue: "builds"}), task, "Build")
		if out.Image != "shop:1" || err != nil {
			t.Errorf("%+v, %v", out, err)
		}
		if err := NewRunner(c, WorkflowOptions{TaskQueue: "builds"}).RunWorkflow(t.Context(), task, "Build", nil); err != nil {
			t.Errorf("without a result: %v", err)
		}
		go func() { (<-c.begun).end(nil, failWorkflow(sdktemporal.NewApplicationError("no disk left", "disk"))) }()
		if _, err := Run[built](t.Context(), task, c, WorkflowOptions{TaskQueue: "builds"}, "Ship"); err == nil || err.Error() != "no disk left" {
			t.Errorf("a failure: %v", err)
		}
		before := time.Now()
		if _, err := Run[int](t.Context(), task, c, WorkflowOptions{TaskQueue: "builds"}, "Build"); err == nil || !strings.Contains(err.Error(), "was not read") || time.Since(before) > 0 {
			t.Errorf("a result of another type: %v after %v", err, time.Since(before))
		}
		for _, err := range []error{
			NewRunner(nil, WorkflowOptions{TaskQueue: "builds"}).RunWorkflow(t.Context(), task, "Build", nil),
			NewRunner(c, WorkflowOptions{}).RunWorkflow(t.Context(), task, "Build", nil),
			NewRunner(c, WorkflowOptions{TaskQueue: "builds"}).RunWorkflow(t.Context(), task, "", nil),
		} {
			if err == nil {
				t.Error("options are missing")
			}
		}
	})
}

// TestStuckWorkflow checks that the task of a workflow whose code fails again and again says so, and goes on with it.
func TestStuckWorkflow(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		c := newFakeTemporal()
		c.fail = func(call string) error {
			if call == "query" {
				return serviceerror.NewWorkflowNotReady("Unable to query workflow due to Workflow Task in failed state.")
			}
			return nil
		}
		s := newBuildServer(t, nil, buildPolicy, runBuild(c))
		task := beginBuild(t, s)
		f := <-c.begun
		awaitBuild(t, s, task.ID, "the message", func(r taskstore.Record) bool {
			return r.StatusMessage == "the workflow Build does not go on: its code panics, or its result is too large for Temporal"
		})
		c.setFail(nil)
		f.show(flowwire.State{Reports: 1, Message: "going on"})
		awaitBuild(t, s, task.ID, "the progress", func(r taskstore.Record) bool { return r.StatusMessage == "going on" })
		f.end(built{}, nil)
		awaitBuild(t, s, task.ID, "its end", isBuilt)
	})
}
