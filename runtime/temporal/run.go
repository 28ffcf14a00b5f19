package temporal

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"reflect"
	goruntime "runtime"
	"strings"
	"sync"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

const (
	// defaultPoll is the default of WorkflowOptions.Poll.
	defaultPoll = time.Second
	// slowestPoll is the longest pause between two queries, in multiples of Poll.
	slowestPoll = 10
	// startPatience bounds one request to start a workflow. A task that ends meanwhile waits for the answer.
	startPatience = 10 * time.Second
	// cancelPatience bounds the attempts to cancel a workflow.
	cancelPatience = 30 * time.Second
	// longestGet bounds one request for the result of a workflow.
	longestGet = time.Hour
	// longestDecoding is longer than a data converter takes to fail. A request for a result that is open for longer
	// waits for the end of the workflow.
	longestDecoding = time.Minute
	// toldFailures is the number of failures after which the task is told why they happen.
	toldFailures = 3
	// firstPause and longestPause are the pauses between attempts while Temporal does not answer.
	firstPause   = 500 * time.Millisecond
	longestPause = 10 * time.Second
)

// WorkflowOptions say how [Run] starts workflows, and how it follows them.
type WorkflowOptions struct {
	// TaskQueue is the queue of the workers that have the workflow. It is required.
	TaskQueue string
	// Poll is how often a running workflow is asked for its progress and its questions. While nothing
	// changes, the pause grows to ten times Poll. 0 means one second.
	Poll time.Duration
	// Name tells the workflows of one type in one task apart. It is part of the workflow's ID, which is
	// TASK/TYPE or TASK/TYPE/NAME. A / in a type or a name is %2F there, and a % is %25. A handler that
	// runs a type twice gives each run its own Name. Without
	// it, the second run gets the result of the first, as a handler does that runs again.
	Name string
	// Start, if it is not nil, completes the options of a workflow before it starts: timeouts, a RetryPolicy, search
	// attributes, further fields of the memo. It is called again when the start is tried again, and concurrently for
	// other tasks. Its values for ID, for the policies on an ID in use, and for TaskQueue are ignored.
	Start func(ctx context.Context, task *mcptask.Task, options *client.StartWorkflowOptions)
}

// Run runs a workflow as the handler of a task, or as a part of it. It starts the workflow and returns
// its result, decoded into Out. workflow is the workflow's function or the name of its type. The tool
// needs onlost=restart: a handler that runs again, on any replica, joins the workflow that runs, or
// takes the result of the one that has ended while Temporal retains it. The ID of the workflow begins with the
// task's ID. In a plain call it is random.
//
// A tracing interceptor of the client continues the span of the context or, if there is none, the trace of
// [mcptask.Task.Trace].
//
// While the workflow runs, the handler gives its slot back. If the workflow uses package taskflow, Run reports its
// progress and asks its questions. The task knows a question by TYPE/STEP or TYPE/NAME/STEP, with the escapes of
// WorkflowOptions.Name. Any other workflow works too. Run follows a workflow that continues as new, is retried, or is
// reset by an operator.
//
// If the context ends because the task is over, Run cancels the workflow and returns the context's error as soon as
// Temporal has taken the cancellation. It does not wait until the workflow has cleaned up. If the
// workflow has already ended, its result counts. If Temporal cannot be reached then, Run gives up after 30 seconds,
// and the workflow goes on. If the context ends because the server closes or has lost the task, the workflow goes
// on, and the next run of the handler joins it. A task that is cancelled while no server runs
// its handler does not cancel its workflow: set WorkflowExecutionTimeout in WorkflowOptions.Start to bound such a
// workflow.
//
// The error of a failed workflow has the message of its cause, without the words of Temporal around it:
// no IDs of runs, no names of workers. errors.As finds a typed error that taskflow.EncodeError has encoded. While Temporal
// cannot be reached, Run tries again until the context ends.
func Run[Out any](ctx context.Context, task *mcptask.Task, c client.Client, options WorkflowOptions, workflow any, args ...any) (Out, error) {
	var out Out
	if err := runWorkflow(ctx, task, c, options, workflow, &out, args); err != nil {
		var none Out // out may have been decoded in part
		return none, err
	}
	return out, nil
}

// NewRunner returns a runner of workflows that are tools, as [Run] runs them. Generated code calls it by
// the name of the workflow's type. Its methods are safe for concurrent use.
func NewRunner(c client.Client, options WorkflowOptions) mcptask.WorkflowRunner {
	return runner{c, options}
}

// runner is a mcptask.WorkflowRunner with one client and one set of options for all workflows.
type runner struct {
	client  client.Client
	options WorkflowOptions
}

// RunWorkflow implements mcptask.WorkflowRunner.
func (r runner) RunWorkflow(ctx context.Context, task *mcptask.Task, workflow string, out any, args ...any) error {
	return runWorkflow(ctx, task, r.client, r.options, workflow, out, args)
}

// nameWorkflow returns the name of a workflow's type: the name itself, or that of the function as
// Temporal's SDK derives it.
func nameWorkflow(workflow any) (string, error) {
	if name, ok := workflow.(string); ok {
		return name, nil
	}
	v := reflect.ValueOf(workflow)
	if v.Kind() != reflect.Func || v.IsNil() {
		return "", fmt.Errorf("temporal: a workflow is given by its function or by the name of its type, not as %T", workflow)
	}
	name := goruntime.FuncForPC(v.Pointer()).Name()
	return strings.TrimSuffix(name[strings.LastIndexByte(name, '.')+1:], "-fm"), nil
}

// flow is a workflow that a handler has started, or joined, and waits for.
type flow struct {
	client   client.Client
	options  WorkflowOptions
	task     *mcptask.Task
	workflow any    // its function or the name of its type, as Temporal's client takes it
	name     string // the workflow's type
	id       string
	run      client.WorkflowRun // nil until it has started
	panicked sync.Map           // the kinds of requests that have panicked, so that the log has each once
}

// runWorkflow is Run with the result decoded into out. A nil out drops the result.
func runWorkflow(ctx context.Context, task *mcptask.Task, c client.Client, options WorkflowOptions, workflow, out any, args []any) error {
	name, err := nameWorkflow(workflow)
	switch {
	case err != nil:
		return err
	case c == nil:
		return errors.New("temporal: there is no client of Temporal")
	case name == "":
		return errors.New("temporal: the workflow has no name")
	case options.TaskQueue == "":
		return fmt.Errorf("temporal: WorkflowOptions.TaskQueue is empty: set it to the task queue of the workers that have the workflow %s", name)
	}
	if options.Poll <= 0 {
		options.Poll = defaultPoll
	}
	f := &flow{client: c, options: options, task: task, workflow: workflow, name: name, id: chooseID(task.ID(), name, options.Name)}
	return task.WithoutSlot(withTrace(ctx, task.Trace()), func(ctx context.Context) error {
		err := f.start(ctx, args)
		if err == nil {
			err = f.await(ctx, out)
		}
		if ctx.Err() == nil {
			return err
		}
		return f.cancelUnlessInterrupted(ctx, out, err)
	})
}

// chooseID returns the ID of the workflow of a type. It is never the bare ID of the task: if an executor of this
// package runs the handler, that is the ID of the executor's own workflow. name is that of WorkflowOptions, or "".
func chooseID(taskID, workflowType, name string) string {
	if taskID == "" {
		taskID = "plain-" + rand.Text()
	}
	id := taskID + "/" + escapePart(workflowType)
	if name != "" {
		id += "/" + escapePart(name)
	}
	return id
}

// escapePart makes a part of an ID that has no /, so that no two lists of parts have the same ID. A type may have one.
func escapePart(part string) string { return partEscapes.Replace(part) }

var partEscapes = strings.NewReplacer("%", "%25", "/", "%2F")

// start starts the workflow, or joins it. If a start is refused although an earlier request may have reached Temporal,
// the workflow is looked for: it is joined if it exists, and the refusal stands if it does not.
func (f *flow) start(ctx context.Context, args []any) error {
	mayExist := f.task.Attempt() > 1
	told := ""
	var backoff backoff
	for {
		var run client.WorkflowRun
		err := f.try("the start of", func() (err error) {
			run, err = f.requestStart(ctx, args)
			return err
		})
		mayExist = mayExist || isOutage(err) || errors.Is(err, errPanicked)
		if err != nil && !isOutage(err) && ctx.Err() == nil {
			refusal := fmt.Errorf("the workflow %s was not started: %s", f.name, describeRefusal(err))
			if !mayExist {
				return refusal
			}
			if run, err = f.findRun(ctx); err != nil && !mayPass(err) {
				return refusal
			}
		}
		switch {
		case err == nil:
			f.run = run
			if told != "" && ctx.Err() == nil {
				f.task.Message(ctx, "the workflow has started")
			}
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		}
		words := "Temporal does not answer: the workflow starts when it does"
		if isDenied(err) {
			words = "Temporal refuses this server: the task goes on when it no longer does"
		}
		if words != told {
			told = words
			f.task.Message(ctx, words)
		}
		if !backoff.wait(ctx) {
			return ctx.Err()
		}
	}
}

// findRun returns the newest run of the workflow. The error is a NotFound if the workflow does not exist.
func (f *flow) findRun(ctx context.Context) (run client.WorkflowRun, err error) {
	err = f.try("a look at", func() error {
		described, err := f.client.DescribeWorkflowExecution(ctx, f.id, "")
		if err == nil {
			run = f.client.GetWorkflow(ctx, f.id, described.GetWorkflowExecutionInfo().GetExecution().GetRunId())
		}
		return err
	})
	return run, err
}

// try makes one request of Temporal's client. A panic, of the data converter for one, is an error that may pass.
func (f *flow) try(what string, request func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			if _, isLogged := f.panicked.LoadOrStore(what, true); !isLogged {
				guard.Log(nil, what+" the workflow "+f.name, p)
			}
			err = errPanicked
		}
	}()
	return request()
}

// requestStart requests the start once. If the task ends meanwhile, it waits for the answer: a workflow that
// starts after its cancellation would go on forever.
func (f *flow) requestStart(ctx context.Context, args []any) (client.WorkflowRun, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	request, cancel := context.WithTimeout(context.WithoutCancel(ctx), startPatience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		defer guard.Recover(nil, "the end of a start")
		if f.task.Interrupted(ctx) {
			cancel()
		}
	})()
	options := client.StartWorkflowOptions{}
	if f.options.Start != nil {
		f.options.Start(ctx, f.task, &options)
	}
	options.ID = f.id
	options.TaskQueue = f.options.TaskQueue
	options.WorkflowIDReusePolicy = enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE
	options.WorkflowIDConflictPolicy = enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING
	options.WorkflowExecutionErrorWhenAlreadyStarted = false // the result is that of the closed workflow
	memo := maps.Clone(options.Memo)
	if memo == nil {
		memo = map[string]any{}
	}
	memo[flowwire.MemoTask] = flowwire.Memo{Task: f.task.ID()}
	options.Memo = memo
	return f.client.ExecuteWorkflow(request, options, f.workflow, args...)
}

// await waits for the end of the workflow, and follows it meanwhile.
func (f *flow) await(ctx context.Context, out any) error {
	ctx, cancel := context.WithCancel(ctx)
	follower := startFollower(ctx, f)
	defer follower.wait()
	defer cancel()
	var backoff backoff
	unread := 0 // how often the data converter has failed
	for {
		running := time.AfterFunc(longestDecoding, follower.forgetUnreadResult)
		err := f.get(ctx, out)
		if !running.Stop() {
			unread = 0
		}
		switch {
		case err == nil, ctx.Err() != nil:
			return err
		case isEnded(err):
			if isNewer := f.joinNewerRun(ctx, err); !isNewer {
				return newFailure(err, "the workflow "+f.name)
			}
			continue
		case isOutage(err), isDenied(err):
		case isCodecFailure(err): // the end of the task bounds the wait
			if unread++; unread == toldFailures {
				follower.tellUnreadResult(ctx)
			}
		default:
			return fmt.Errorf("the result of the workflow %s was not read: %s", f.name, describeRefusal(err))
		}
		if !backoff.wait(ctx) {
			return ctx.Err()
		}
	}
}

// get waits for the result, at most for longestGet. In one Get, the stack of the SDK grows with each run that is
// continued as new; the next Get goes on from the newest of them.
func (f *flow) get(ctx context.Context, out any) error {
	ctx, cancel := context.WithTimeout(ctx, longestGet)
	defer cancel()
	return f.try("the result of", func() error { return f.run.Get(ctx, out) })
}

// joinNewerRun takes the run that an operator's reset has put in place of a run, if there is one.
func (f *flow) joinNewerRun(ctx context.Context, err error) bool {
	var terminated *sdktemporal.TerminatedError
	if !errors.As(err, &terminated) {
		return false
	}
	var backoff backoff
	for {
		newest, err := f.findRun(ctx)
		switch {
		case err == nil:
			if newest.GetRunID() == f.run.GetRunID() {
				return false
			}
			f.run = newest
			return true
		case !mayPass(err) || !backoff.wait(ctx):
			return false
		}
	}
}

// cancelUnlessInterrupted cancels the workflow after the context has ended, unless another run of the handler goes on
// with it. err is the error of the wait for the workflow. If the workflow is over, its result counts, which may take
// cancelPatience to read.
func (f *flow) cancelUnlessInterrupted(ctx context.Context, out any, err error) error {
	if err == nil || f.task.Interrupted(ctx) {
		return err
	}
	detached, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelPatience)
	defer cancel()
	isOver := f.cancel(detached, context.Cause(ctx))
	var backoff backoff
	for isOver && f.run != nil {
		if err = f.get(detached, out); err == nil {
			return nil
		}
		isOver = mayPass(err) && backoff.wait(detached)
	}
	return ctx.Err()
}

// cancel cancels the workflow. It reports whether the workflow was over.
func (f *flow) cancel(ctx context.Context, cause error) (isOver bool) {
	var backoff backoff
	for {
		err := f.try("the cancellation of", func() error {
			return f.client.CancelWorkflowWithOptions(ctx, client.CancelWorkflowOptions{WorkflowID: f.id, Reason: cause.Error()})
		})
		switch {
		case err == nil:
			return false
		case isNotFound(err):
			return true
		case !mayPass(err) || !backoff.wait(ctx):
			return false
		}
	}
}

// backoff paces attempts, with pauses that grow.
type backoff struct{ pause time.Duration }

// wait waits for the next pause. It returns false if ctx ends first.
func (b *backoff) wait(ctx context.Context) bool {
	b.pause = min(max(2*b.pause, firstPause), longestPause)
	timer := time.NewTimer(b.pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
