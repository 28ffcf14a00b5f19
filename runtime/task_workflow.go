package mcptask

import (
	"context"
	"errors"
)

// WorkflowRunner runs the workflows that are tools, see [RunWorkflow]. Package temporal has one for
// workflows of Temporal.
type WorkflowRunner interface {
	// RunWorkflow starts the workflow of a type for a task, or joins it if an earlier run of the
	// handler has started it. It carries the workflow's progress and questions to the task. It
	// decodes the result into out, unless out is nil. The end of ctx cancels the workflow, unless
	// [Task.Interrupted] says that another run goes on. It must be safe for concurrent use.
	RunWorkflow(ctx context.Context, task *Task, workflow string, out any, args ...any) error
}

// RunWorkflow runs a workflow as the handler of a task. The methods that are generated for
// //mcptask:tool workflow=TYPE call it.
func RunWorkflow[Out any](ctx context.Context, runner WorkflowRunner, task *Task, workflow string, args ...any) (Out, error) {
	var out Out
	if runner == nil {
		return out, errors.New("this tool is the workflow " + workflow + ", and the server has no Runner: set it in the generated type whose name ends in Workflows")
	}
	err := runner.RunWorkflow(ctx, task, workflow, &out, args...)
	return out, err
}

// Interrupted reports whether the context of a handler has ended only for this run, and another one
// goes on with the task: the tool has onlost=restart, and the server closes, another server has the task, or
// a taskserver.Engine runs the handler again after the answer to its question. Then work that goes on elsewhere,
// such as a workflow or a job, should not be stopped. In any other case Interrupted returns false: the task was
// cancelled, has expired, has missed its deadline or has ended without this run, no other run may take it over, it is a
// plain call, or the handler itself has ended ctx, which may derive from its context.
func (t *Task) Interrupted(ctx context.Context) bool {
	host, ok := t.host.(interface{ Interrupted() bool })
	return ok && ctx.Err() != nil && host.Interrupted()
}

// WithoutSlot calls wait, which only waits for work elsewhere, such as a job of another system, and lets other handlers
// have this handler's slot meanwhile. It returns the error of wait. ctx is the handler's. Meanwhile, an
// taskserver.Engine does not end the run, even if another goroutine of the handler waits for an answer.
func (t *Task) WithoutSlot(ctx context.Context, wait func(context.Context) error) error {
	if host, ok := t.host.(interface{ LeaveSlot() (takeBack func()) }); ok {
		defer host.LeaveSlot()()
	}
	return wait(ctx)
}
