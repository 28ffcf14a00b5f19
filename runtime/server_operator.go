package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Operator sees and changes the tasks of all principals, for a person who operates the server. What it does is in the
// audit trail under the person's name. A change that has begun goes on if its context ends, so that the trail has it. All
// methods are safe for concurrent use.
type Operator struct {
	server *Server
	name   string
}

// Operator returns the operator with a person's name. The program has checked who the person is: an Operator may do
// everything.
func (s *Server) Operator(name string) *Operator { return &Operator{s, name} }

// audit writes to the audit trail what the operator does.
func (o *Operator) audit(ctx context.Context, action string, r Record, attrs ...any) {
	o.server.logger.InfoContext(ctx, "operator acts", append([]any{"audit", "operator", "action", action, "operator", o.name,
		"task", LogID(r.Principal, r.ID), "tool", r.Tool, "principal", r.Principal}, attrs...)...)
}

// Task returns a task, whole, or ErrNoRecord. It is not in the audit trail; see [Operator.Reveal].
func (o *Operator) Task(ctx context.Context, id string) (Record, error) {
	t := o.server.newRequestRetry()
	return o.server.getRecord(ctx, t, id)
}

// Reveal writes to the audit trail that the person looks at something of a task that is hidden otherwise, such as its
// arguments.
func (o *Operator) Reveal(ctx context.Context, r Record, what string) {
	o.audit(ctx, "reveal", r, "what", what)
}

// ErrTaskEnded says that an operator's action comes too late.
var ErrTaskEnded = errors.New("mcptask: the task has ended already")

// auditOutcome writes an action to the audit trail, and returns the error to show the person. If the store has failed, the
// record has the error: the change may be stored.
func (o *Operator) auditOutcome(ctx context.Context, err error, action string, r Record, attrs ...any) error {
	var refused *QuotaError
	switch {
	case err == nil:
		o.audit(ctx, action, r, attrs...)
	case errors.Is(err, errTerminal):
		return ErrTaskEnded
	case !isGone(err) && !errors.As(err, &refused):
		o.audit(ctx, action, r, append(attrs, "error", err)...)
	}
	return err
}

// Cancel ends a task as cancelled, as its requestor can. The error is ErrTaskEnded, ErrNoRecord or the store's.
func (o *Operator) Cancel(ctx context.Context, id string) error {
	s := o.server
	record, err := o.Task(ctx, id)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	ended, err := s.applyEvent(ctx, record, func(Record) event {
		return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}, operator: o.name}
	})
	if err := o.auditOutcome(ctx, err, "cancel", record); err != nil {
		return err
	}
	s.cancelHandler(id, ErrCancelled)
	s.tellEngine(ended, "Cancel", Engine.Cancel)
	return nil
}

// ErrNotAsked says that a task does not ask what an operator answers.
var ErrNotAsked = errors.New("mcptask: the task does not ask this now")

// Answer answers a question of a task in its requestor's place. The response is that to the question's request, such as
// {"action":"accept","content":{…}} for a form. The error is ErrNotAsked, ErrTaskEnded, ErrNoRecord, the store's, or says
// why the response does not fit.
func (o *Operator) Answer(ctx context.Context, id, key string, response json.RawMessage) error {
	s := o.server
	record, err := o.Task(ctx, id)
	if err != nil {
		return err
	}
	i := record.findInput(key)
	if !record.isOutstanding(key) {
		return fmt.Errorf("%w: %q", ErrNotAsked, key)
	}
	if err := checkAnswer(ctx, &s.schemas, record.Inputs[i], response); err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx)
	answered, err := s.applyEvent(ctx, record, func(r Record) event {
		if !r.isOutstanding(key) {
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
	s.tellEngineOfAnswer(answered)
	return nil
}

// ErrNoTool says that the server does not have the tool of a task.
var ErrNoTool = errors.New("mcptask: this server does not have the tool of the task")

// RunAgain makes a new task with the tool, the arguments and the owner of a task, and returns it. The new task has neither
// the idempotency key nor the name of the old one, and no answers. Its requestor learns of it only from a list. The error
// is ErrNoTool, ErrNoRecord, that of a limit of the owner's, or the store's.
func (o *Operator) RunAgain(ctx context.Context, id string) (Record, error) {
	s := o.server
	former, err := o.Task(ctx, id)
	if err != nil {
		return Record{}, err
	}
	t, ok := s.catalog.findTool(former.Tool)
	if !ok {
		return Record{}, fmt.Errorf("%w: %q: use a server of the same store that has it", ErrNoTool, former.Tool)
	}
	call := CallRequest{Mode: ModeTask, Trace: TraceOf(ctx), operator: o.name, again: "again " + LogID("", former.ID)}
	ctx = context.WithoutCancel(ctx)
	reply, _, err := s.beginTask(ctx, former.asCaller(), t, former.Arguments, call, nil)
	if err != nil {
		return Record{}, err
	}
	o.audit(ctx, "run again", *reply.Task, "former", LogID(former.Principal, former.ID))
	return *reply.Task, nil
}
