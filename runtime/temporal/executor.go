package temporal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Defaults of Options.
const (
	DefaultTaskQueue = "mcptask"
	DefaultHeartbeat = 30 * time.Second
	DefaultPatience  = 10 * time.Second
)

// Options configure an executor. The zero value is ready to use.
type Options struct {
	// TaskQueue is where the runs of handlers wait for a worker. "" means DefaultTaskQueue. Servers
	// that share a store and a queue run each other's tasks. If they share the store, servers of another queue
	// or namespace need queues of other names.
	TaskQueue string
	// SubmitOnly lets this process run no handlers, so that other processes run all of them.
	SubmitOnly bool
	// Concurrency is how many handlers this process runs at once. 0 means
	// taskserver.DefaultConcurrency.
	Concurrency int
	// Heartbeat is how long a handler's process may be silent until Temporal gives the run up for lost. 0 means
	// DefaultHeartbeat. The minimum is a second.
	Heartbeat time.Duration
	// Patience is how long a handler that waits for an answer keeps its place, if its tool has onlost=restart. Then its
	// run ends, and the handler runs again after the answer. 0 means DefaultPatience. The minimum is a second.
	Patience time.Duration
	// SearchAttributes are those of a task's workflow. They have to be registered in the namespace. nil sets
	// none, so that nothing of a task but its ID is in Temporal.
	SearchAttributes func(taskserver.Submission) sdktemporal.SearchAttributes
	// Interceptors are those of the worker, beside the client's. They do not see heartbeats.
	Interceptors []interceptor.WorkerInterceptor
}

// setDefaults fills in the options that are not set, and refuses invalid ones.
func (o *Options) setDefaults() error {
	o.TaskQueue = cmp.Or(o.TaskQueue, DefaultTaskQueue)
	o.Concurrency = cmp.Or(o.Concurrency, taskserver.DefaultConcurrency)
	o.Heartbeat = cmp.Or(o.Heartbeat, DefaultHeartbeat)
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	switch {
	case o.Concurrency < 0:
		return fmt.Errorf("temporal: Concurrency %d is below 0: leave it 0 for the default of %d", o.Concurrency, taskserver.DefaultConcurrency)
	case o.Heartbeat < time.Second:
		return fmt.Errorf("temporal: Heartbeat %v is below a second: leave it 0 for the default of %v", o.Heartbeat, DefaultHeartbeat)
	}
	return nil
}

// executor is a [taskserver.Engine] on Temporal. A task is a workflow with the task's ID, and a run of its handler an
// activity.
type executor struct {
	client  client.Client
	options Options
	run     taskserver.RunFunc
	worker  worker.Worker // nil with SubmitOnly

	closing context.Context // ends when Close begins
	close   context.CancelFunc
}

// NewExecutor returns a function for taskserver.Options.Executor. The executor does not close the client. If its worker
// cannot start, for example because the client does not reach Temporal, taskserver.New returns the error.
func NewExecutor(c client.Client, options Options) func(taskserver.RunFunc) (taskserver.Executor, error) {
	return func(run taskserver.RunFunc) (taskserver.Executor, error) {
		if c == nil {
			return nil, errors.New("temporal: the client is nil")
		}
		if err := options.setDefaults(); err != nil {
			return nil, err
		}
		x := &executor{client: c, options: options, run: run}
		x.closing, x.close = context.WithCancel(context.Background())
		if options.SubmitOnly {
			return x, nil
		}
		x.worker = worker.New(c, options.TaskQueue, worker.Options{
			MaxConcurrentActivityExecutionSize: options.Concurrency,
			Interceptors:                       options.Interceptors,
			WorkerStopTimeout:                  365 * 24 * time.Hour, // Close bounds the wait
		})
		x.register(x.worker)
		if err := x.worker.Start(); err != nil {
			x.close()
			return nil, fmt.Errorf("temporal: the worker of the task queue %s does not start: %w", options.TaskQueue, err)
		}
		return x, nil
	}
}

// register registers the workflow and its activity.
func (x *executor) register(r worker.Registry) {
	r.RegisterWorkflowWithOptions(x.keepTask, workflow.RegisterOptions{Name: workflowType})
	r.RegisterActivityWithOptions(x.runTask, activity.RegisterOptions{Name: activityType})
}

// Name implements taskserver.Engine.
func (x *executor) Name() string { return "temporal/" + x.options.TaskQueue }

// Patience implements taskserver.Engine.
func (x *executor) Patience() time.Duration { return x.options.Patience }

// expiryMargin is how much longer than its task a workflow may live, so that the task ends by itself first.
const expiryMargin = time.Minute

// Submit implements taskserver.Executor. It starts the task's workflow, unless there is one that runs. If somebody has
// closed the workflow before the task ended, the task gets a new one. The record then says whether the handler has run.
func (x *executor) Submit(ctx context.Context, task taskserver.Submission) error {
	left := time.Until(task.Until)
	if left <= 0 {
		return nil // the store deletes it
	}
	options := client.StartWorkflowOptions{
		ID:                       task.TaskID,
		TaskQueue:                x.options.TaskQueue,
		WorkflowExecutionTimeout: left + expiryMargin,
		WorkflowIDReusePolicy:    enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enums.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}
	if x.options.SearchAttributes != nil {
		options.TypedSearchAttributes = x.options.SearchAttributes(task)
	}
	_, err := x.client.ExecuteWorkflow(withTrace(ctx, task.Trace), options, workflowType, task.TaskID)
	return err
}

// Cancel implements taskserver.Engine.
func (x *executor) Cancel(ctx context.Context, task taskserver.Submission) error {
	return ignoreGone(x.client.CancelWorkflow(ctx, task.TaskID, ""))
}

// Answered implements taskserver.Engine.
func (x *executor) Answered(ctx context.Context, task taskserver.Submission) error {
	return ignoreGone(x.client.SignalWorkflow(ctx, task.TaskID, "", answeredSignal, nil))
}

// ignoreGone drops the error that a workflow does not run: its task has ended meanwhile.
func ignoreGone(err error) error {
	if isNotFound(err) {
		return nil
	}
	return err
}

// Close implements taskserver.Executor. It ends running handlers. Those that may run again do so at another worker.
func (x *executor) Close(ctx context.Context) error {
	x.close()
	if x.worker == nil {
		return nil
	}
	stopped := make(chan struct{})
	go func() {
		defer guard.Recover(nil, "the end of the worker")
		defer close(stopped)
		x.worker.Stop()
	}()
	select {
	case <-stopped:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
