package temporal

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// The names of a task in Temporal. Workflows outlive the processes that started them, so these names and the types
// below never change.
const (
	workflowType   = "mcptask.Task"
	activityType   = "mcptask.Run"
	answeredSignal = "mcptask.Answered"
)

// runInput is the input of the activity.
type runInput struct {
	TaskID string
	// Cancelled says that somebody has cancelled the workflow.
	Cancelled bool `json:",omitempty"`
}

// runEnd is the result of the activity.
type runEnd string

const (
	runOver  runEnd = "over"
	runWaits runEnd = "waits"
)

const (
	// A workflow that waits for an answer has the record looked at after pauses that grow between these, since the
	// signal may be lost with the process that took the answer. Each look adds eleven events to the workflow's history.
	firstLookPause   = time.Minute
	longestLookPause = time.Hour
)

// keepTask is the workflow of a task: it has the handler run until the task is over. It decides nothing else: the
// record of the task says whether the handler may run again after its process was lost.
func (x *executor) keepTask(ctx workflow.Context, taskID string) error {
	answered := workflow.GetSignalChannel(ctx, answeredSignal)
	pause := firstLookPause
	for {
		end, err := x.executeRun(ctx, runInput{TaskID: taskID})
		switch {
		case ctx.Err() != nil && (err != nil || end != runOver):
			return x.endCancelled(ctx, taskID)
		case err != nil:
			return err
		case end == runOver:
			drain(answered) // of answers that came while the run kept its place
			return nil
		}
		if hasCome := x.awaitAnswer(ctx, answered, pause); hasCome {
			pause = firstLookPause
		} else {
			pause = min(2*pause, longestLookPause)
		}
		if ctx.Err() != nil {
			return x.endCancelled(ctx, taskID)
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			return workflow.NewContinueAsNewError(ctx, workflowType, taskID)
		}
	}
}

// awaitAnswer waits for the signal, and at most for the given time. It reports whether the signal has come.
func (x *executor) awaitAnswer(ctx workflow.Context, answered workflow.ReceiveChannel, most time.Duration) (hasCome bool) {
	timer, stop := workflow.WithCancel(ctx)
	defer stop()
	selector := workflow.NewSelector(ctx)
	selector.AddReceive(answered, func(c workflow.ReceiveChannel, _ bool) {
		hasCome = true
		drain(c) // one look is enough for all
	})
	selector.AddFuture(workflow.NewTimer(timer, most), func(workflow.Future) {})
	selector.Select(ctx)
	return hasCome
}

// drain drops the signals that have come: a run takes all answers from the record.
func drain(signals workflow.ReceiveChannel) {
	for signals.ReceiveAsync(nil) {
	}
}

// endCancelled ends the task of a workflow that was cancelled, if no run of the handler has ended it.
func (x *executor) endCancelled(ctx workflow.Context, taskID string) error {
	detached, _ := workflow.NewDisconnectedContext(ctx)
	if _, err := x.executeRun(detached, runInput{TaskID: taskID, Cancelled: true}); err != nil {
		return err
	}
	return ctx.Err()
}

// executeRun executes the activity. Temporal repeats it if its worker is lost or the task was left, until the
// workflow times out.
func (x *executor) executeRun(ctx workflow.Context, in runInput) (runEnd, error) {
	info := workflow.GetInfo(ctx)
	until := info.WorkflowStartTime.Add(info.WorkflowExecutionTimeout)
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: max(until.Sub(workflow.Now(ctx)), time.Second),
		HeartbeatTimeout:       x.options.Heartbeat,
		WaitForCancellation:    true,
		RetryPolicy:            &sdktemporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute},
	})
	var end runEnd
	err := workflow.ExecuteActivity(ctx, activityType, in).Get(ctx, &end)
	return end, err
}

// errLeft makes Temporal run a task again, at another worker if this one closes. It is benign, so that neither logs nor
// metrics count it as a failure.
var errLeft = sdktemporal.NewApplicationErrorWithOptions(
	"the run of the task has ended before the task: the server closes, does not reach its store, does not have the tool, or an answer has come",
	"mcptask.Left", sdktemporal.ApplicationErrorOptions{Category: sdktemporal.ApplicationErrorCategoryBenign})

// runTask is the activity: one run of the handler of a task.
func (x *executor) runTask(ctx context.Context, in runInput) (runEnd, error) {
	run, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	switch {
	case in.Cancelled:
		end(mcptask.ErrCancelled)
	case x.closing.Err() != nil: // no handler begins that would be ended at once
		end(context.Canceled)
	}
	ended := make(chan taskserver.RunEnd, 1)
	go func() {
		defer guard.Then(nil, "the run of a task", func() { ended <- taskserver.RunLeft })
		ended <- x.run(run, in.TaskID)
	}()
	beating, stopBeating := context.WithCancel(context.WithoutCancel(ctx))
	defer stopBeating()
	go func() {
		defer guard.Recover(nil, "the heartbeats of a task")
		x.beat(beating, end)
	}()
	over, closing := ctx.Done(), x.closing.Done()
	for {
		select {
		case result := <-ended:
			switch result {
			case taskserver.RunLeft:
				return "", errLeft
			case taskserver.RunWaits:
				return runWaits, nil
			}
			return runOver, nil
		case <-over:
			over = nil
			if cause := explainEnd(context.Cause(ctx)); cause != nil {
				end(cause)
			}
		case <-closing:
			closing = nil
			end(context.Canceled)
		}
	}
}

const (
	// beatsPerHeartbeat divides Options.Heartbeat into the pauses between heartbeats.
	beatsPerHeartbeat = 3
	// longestBeatPause bounds the pause after a heartbeat that has failed.
	longestBeatPause = 10 * time.Second
)

// beat tells Temporal that a run goes on, until ctx ends, and ends the run if Temporal says so. It does not use
// activity.RecordHeartbeat: after one heartbeat that fails, the SDK ends the activity's context, with which all later
// ones fail.
func (x *executor) beat(ctx context.Context, end context.CancelCauseFunc) {
	interval := x.options.Heartbeat / beatsPerHeartbeat
	timer := time.NewTimer(interval)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		err := x.sendBeat(ctx, interval)
		next := interval
		if cause := explainEnd(err); cause != nil {
			end(cause)
		} else if err != nil && ctx.Err() == nil {
			activity.GetLogger(ctx).Warn("Temporal has not taken a heartbeat", "error", err)
			next = min(next/beatsPerHeartbeat, longestBeatPause)
		}
		timer.Reset(next)
	}
}

// sendBeat sends a heartbeat. If an interceptor of the client panics, that heartbeat has failed.
func (x *executor) sendBeat(ctx context.Context, within time.Duration) (err error) {
	defer guard.Then(nil, "a heartbeat of a task", func() { err = errPanicked })
	if within >= time.Second {
		within *= 2 // of which the SDK waits for half, and ten seconds at most
	}
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	info := activity.GetInfo(ctx)
	return x.client.RecordActivityHeartbeatWithOptions(ctx, client.RecordActivityHeartbeatOptions{
		TaskToken: info.TaskToken, WorkflowID: info.WorkflowExecution.ID, WorkflowType: workflowType,
		ActivityType: activityType, TaskQueue: info.TaskQueue,
	})
}

// explainEnd returns why a run has to end, given the error of a heartbeat or the cause of the end of the activity's
// context. It returns nil if the run goes on. Temporal may have taken it for lost then, if it could not be reached
// for a while. If it begins another run, the record of the task tells this one.
func explainEnd(err error) error {
	switch {
	case sdktemporal.IsCanceledError(err):
		return mcptask.ErrCancelled
	case isNotFound(err):
		return mcptask.ErrSuperseded
	case errors.Is(err, activity.ErrActivityPaused), errors.Is(err, activity.ErrActivityReset):
		return context.Canceled // Temporal runs it again, when it is told to
	}
	return nil
}
