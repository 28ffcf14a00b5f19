package taskserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Operator sees and changes the tasks of all principals, for a person who operates the server. Its actions are in the
// audit trail under the person's name. A change that has begun goes on if its context ends, so that the trail has it.
// All methods are safe for concurrent use.
type Operator struct {
	backend *Backend
	name    string
}

// audit writes an action of the operator to the audit trail.
func (o *Operator) audit(ctx context.Context, action string, attrs ...any) {
	o.backend.logger.InfoContext(ctx, "operator acts", append([]any{"audit", "operator", "action", action, "operator", o.name}, attrs...)...)
}

// auditTask writes an action on a task to the audit trail.
func (o *Operator) auditTask(ctx context.Context, action string, r taskstore.Record, attrs ...any) {
	o.audit(ctx, action, append([]any{"task", taskstore.LogID(r.Principal, r.ID), "tool", r.Tool, "principal", r.Principal}, attrs...)...)
}

// Task returns a task, whole, or ErrNoRecord. It is not in the audit trail; see [Operator.Reveal].
func (o *Operator) Task(ctx context.Context, id string) (taskstore.Record, error) {
	t := o.backend.newRequestRetry()
	return o.backend.getRecord(ctx, t, id)
}

// Steps returns the steps of a task without their values, oldest first, or ErrNoRecord. It tries once.
func (o *Operator) Steps(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
	steps, err := callOnce(ctx, o.backend.newRequestRetry(), "ListSteps", func(ctx context.Context) ([]taskstore.StepSummary, error) {
		if inspector, ok := o.backend.store.(taskstore.Inspector); ok {
			return inspector.ListSteps(ctx, id)
		}
		steps, err := o.backend.store.Steps(ctx, id)
		return taskstore.SummarizeSteps(steps), err
	})
	slices.SortFunc(steps, func(a, b taskstore.StepSummary) int { return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name)) })
	return steps, err
}

// StepValues returns the steps of a task with their values, oldest first, or ErrNoRecord. It tries once. It is not in the
// audit trail; see [Operator.Reveal].
func (o *Operator) StepValues(ctx context.Context, id string) ([]taskstore.Step, error) {
	return callOnce(ctx, o.backend.newRequestRetry(), "Steps", func(ctx context.Context) ([]taskstore.Step, error) {
		return o.backend.store.Steps(ctx, id)
	})
}

// Reveal writes to the audit trail that the person looks at something of a task that is hidden otherwise, such as its
// arguments.
func (o *Operator) Reveal(ctx context.Context, r taskstore.Record, what string) {
	o.auditTask(ctx, "reveal", r, "what", what)
}

// RevealOwners writes to the audit trail that the person sees the owners of tasks.
func (o *Operator) RevealOwners(ctx context.Context, principals []string) {
	o.audit(ctx, "reveal", "what", "owners", "principals", principals)
}

// ErrTaskEnded says that an operator's action comes too late.
var ErrTaskEnded = errors.New("mcptask: the task has already ended")

// auditOutcome writes an action to the audit trail, and returns the error to show the person. If the store has failed,
// the record has the error: the change may be stored.
func (o *Operator) auditOutcome(ctx context.Context, err error, action string, r taskstore.Record, attrs ...any) error {
	var refused *taskstore.QuotaError
	switch {
	case err == nil:
		o.auditTask(ctx, action, r, attrs...)
	case errors.Is(err, errTerminal):
		return ErrTaskEnded
	case !isGone(err) && !errors.As(err, &refused):
		o.auditTask(ctx, action, r, append(attrs, "error", err)...)
	}
	return err
}

// Cancel ends a task as cancelled, as its requestor can. The error is ErrTaskEnded, ErrNoRecord or the store's.
func (o *Operator) Cancel(ctx context.Context, id string) error {
	b := o.backend
	record, err := o.Task(ctx, id)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	ended, err := b.applyEvent(ctx, record, func(taskstore.Record) event {
		return event{kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeCancelled}, operator: o.name}
	})
	if err := o.auditOutcome(ctx, err, "cancel", record); err != nil {
		return err
	}
	b.cancelHandler(id, mcptask.ErrCancelled)
	b.tellEngine(ended, "Cancel", Engine.Cancel)
	return nil
}

// ErrNotAsked says that the task does not ask the question that an operator answers.
var ErrNotAsked = errors.New("mcptask: the task does not ask this now")

// Answer answers a question of a task in its requestor's place. The response is that to the question's request, such as
// {"action":"accept","content":{…}} for a form. The error is ErrNotAsked, ErrTaskEnded, ErrNoRecord, the store's, or
// says why the response does not fit.
func (o *Operator) Answer(ctx context.Context, id, key string, response json.RawMessage) error {
	b := o.backend
	record, err := o.Task(ctx, id)
	if err != nil {
		return err
	}
	key = currentForm(&record, key, response)
	i := findInput(&record, key)
	if !isOutstanding(&record, key) {
		return fmt.Errorf("%w: %q", ErrNotAsked, key)
	}
	if err := mcptask.CheckAnswer(ctx, record.Inputs[i].Request, response); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	answered, err := b.applyEvent(ctx, record, func(r taskstore.Record) event {
		if !isOutstanding(&r, key) {
			return event{}
		}
		return event{kind: eventAnswer, key: key, answer: response, operator: o.name}
	})
	if errors.Is(err, errVoid) {
		return fmt.Errorf("%w: %q", ErrNotAsked, key)
	}
	var given struct {
		Action string `json:"action"`
	}
	_ = json.Unmarshal(response, &given) // the response to a request to a model has none
	if err := o.auditOutcome(ctx, err, "answer", record, "key", key, "response", given.Action); err != nil {
		return err
	}
	b.tellEngineOfAnswer(answered)
	return nil
}

// ErrNoTool says that the server does not have the tool of a task.
var ErrNoTool = errors.New("mcptask: this server does not have the tool of the task")

// RunAgain makes a new task with the tool, the arguments and the owner of a task, and returns it. The new task has
// neither the idempotency key nor the name of the old one, and no answers. Its requestor learns of it only from a list.
// The error is ErrNoTool, ErrNoRecord, mcptask.ErrChanged if the arguments no longer fit the tool, that of a limit of the
// owner's, or the store's.
func (o *Operator) RunAgain(ctx context.Context, id string) (taskstore.Record, error) {
	b := o.backend
	former, err := o.Task(ctx, id)
	if err != nil {
		return taskstore.Record{}, err
	}
	t, ok := b.catalog.findTool(former.Tool)
	if !ok {
		return taskstore.Record{}, fmt.Errorf("%w: %q: use a server of the same store that has it", ErrNoTool, former.Tool)
	}
	if _, misfit := t.bindStored(former.Arguments); misfit != nil {
		return taskstore.Record{}, misfit
	}
	call := CallRequest{Mode: ModeTask, Trace: TraceOf(ctx), operator: o.name, again: "again " + taskstore.LogID("", former.ID)}
	ctx = context.WithoutCancel(ctx)
	reply, _, err := b.beginTask(ctx, callerOf(&former), t, former.Arguments, call, nil)
	if err != nil {
		return taskstore.Record{}, err
	}
	o.auditTask(ctx, "run again", *reply.Task, "former", taskstore.LogID(former.Principal, former.ID))
	return *reply.Task, nil
}
