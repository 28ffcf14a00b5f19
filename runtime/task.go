package mcptask

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
)

// Task is a handler's view of the task that it runs. It is never nil. Its ID is
// empty in a plain call that the server does not run as a task. Its methods are safe for concurrent use.
type Task struct {
	host   Host
	info   TaskInfo
	random string // in the place of an ID, in a plain call

	mu    sync.Mutex
	names map[string]nameUse
}

// nameUse is what a run has done with a name.
type nameUse struct {
	isKey      bool // of a question or a step
	isPosition bool
	next       int // name#next is the first key of the name that may be free, see [Task.takeStepKey]
}

// Host carries out the requests of a Task: for a stored task, a plain call, or the script of a test. Its methods are
// called concurrently. A Host may also have these methods:
//
//   - Interrupted() bool, for [Task.Interrupted]
//   - LeaveSlot() (takeBack func()), for [Task.WithoutSlot]
//   - Returned() error, which is called when the handler has returned, before its result is encoded. Its error
//     answers the call in place of the result.
//   - those of [StepHost]
type Host interface {
	// Report takes progress. A total of 0 means unknown.
	Report(ctx context.Context, done, total float64, message string)
	// Ask asks a question and returns the response to its request.
	Ask(ctx context.Context, in Request) (json.RawMessage, error)
}

// TaskInfo describes a task when a run of its handler begins. The methods of [Task] return the fields that have their
// names.
type TaskInfo struct {
	ID, Principal string
	// Created is when the task was created. It is zero in a plain call.
	Created time.Time
	Attempt int
	Trace   string
	// Questions are those that were asked before the task, see [ToolSpec], and Answers the responses to them, in
	// the same order.
	Questions []InputSpec
	Answers   []json.RawMessage
}

// NewTask makes the Task of one run of a handler. Servers call it, and tests of handlers.
func NewTask(host Host, info TaskInfo) *Task {
	t := &Task{host: host, info: info}
	if info.ID == "" {
		t.random = rand.Text()
	}
	return t
}

type taskKey struct{}

// NewContext returns a context that carries the task. Servers call it for each run of a handler, and tests of handlers
// that call [FromContext].
func NewContext(ctx context.Context, task *Task) context.Context {
	return context.WithValue(ctx, taskKey{}, task)
}

// FromContext returns the task of the handler that ctx belongs to, also in a plain call; see [Task]. It returns false
// if no server of this package runs the handler.
func FromContext(ctx context.Context) (*Task, bool) {
	task, ok := ctx.Value(taskKey{}).(*Task)
	return task, ok
}

// ID returns the task's ID, or "" in a plain call.
func (t *Task) ID() string { return t.info.ID }

// Principal returns the owner of the task, or "" if the owner is anonymous.
func (t *Task) Principal() string { return t.info.Principal }

// Attempt counts the runs of the handler for this task, from 1. It exceeds 1
// only if the tool has onlost=restart.
func (t *Task) Attempt() int { return t.info.Attempt }

// Trace returns the trace that the call of the tool belongs to: the traceparent of W3C Trace
// Context and, after a line break, the tracestate if there is one. It names the server's span of
// the call if a hook has made one, as those of package oteltask do, and otherwise the span that the
// client has named. It returns "" if there is neither. The handler's context has a span only if
// hooks, middleware or the executor have put one there.
func (t *Task) Trace() string { return t.info.Trace }

// Progress tells the requestor how far the work is: done of total, in any unit. A total of 0 means unknown. In both
// revisions it becomes the status message, and also a progress notification if the requestor asked for one. If the total
// is unknown, the status message leaves out done beside a message. After the end of the task Progress does nothing. A task
// that succeeds drops a last report below its total. One that fails or is cancelled keeps it.
func (t *Task) Progress(ctx context.Context, done, total float64, message string) {
	t.host.Report(ctx, done, total, message)
}

// Message sets the task's status message.
func (t *Task) Message(ctx context.Context, message string) {
	t.host.Report(ctx, 0, 0, message)
}

// escapeStep returns a step's name without the mark by which a server tells the forms of a question apart.
func escapeStep(step string) string { return strings.ReplaceAll(step, spec.FormMark, "~-form") }

// takeStepKey returns the key of a step or a question: its name, or name#2 if the run has used the name already. Each
// run counts from the start, so that it gets what an earlier one has stored. giveBack frees the key. takeStepKey refuses
// the name of a position.
func (t *Task) takeStepKey(step string) (key string, giveBack func(), err error) {
	if err := checkStepName(step); err != nil {
		return "", nil, err
	}
	step = escapeStep(step)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]nameUse{}
	}
	n := max(t.names[step].next, 1)
	for key = keyOf(step, n); t.names[key].isKey; key = keyOf(step, n) {
		n++
	}
	if t.names[key].isPosition {
		return "", nil, fmt.Errorf("mcptask: the name %q is that of a Save or Load of this run: give the step or the question another name", key)
	}
	t.setKey(step, key, true, n+1)
	return key, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.setKey(step, key, false, min(n, t.names[step].next))
	}, nil
}

// keyOf returns the n-th key of a name, from 1.
func keyOf(name string, n int) string {
	if n == 1 {
		return name
	}
	return name + "#" + strconv.Itoa(n)
}

// setKey notes whether a key is taken, and the next number of its name. t.mu is held.
func (t *Task) setKey(name, key string, isKey bool, next int) {
	use := t.names[key]
	use.isKey = isKey
	t.names[key] = use
	use = t.names[name]
	use.next = next
	t.names[name] = use
}

// usePosition notes the name of a position. It refuses the name of a step or a question.
func (t *Task) usePosition(name string) error {
	if err := checkStepName(name); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.names == nil {
		t.names = map[string]nameUse{}
	}
	use := t.names[name]
	if use.isKey {
		return fmt.Errorf("mcptask: the name %q is that of a step or a question of this run: give the position another name", name)
	}
	use.isPosition = true
	t.names[name] = use
	return nil
}
