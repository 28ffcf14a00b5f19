package mcptask

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"
)

// Task is what a handler knows of the task that it runs. It is never nil; its
// ID is empty in a plain call. Its methods are safe for concurrent use.
type Task struct {
	id        string
	principal string
	attempt   int
	host      Host
	// answers are those that were given before the task, in the order of
	// ToolSpec.Questions.
	answers []upfrontAnswer

	mu    sync.Mutex
	asked map[string]bool // the keys that this attempt has used
}

// Host is what stands behind a Task: a stored task, a plain call, or the script
// of a test. Its methods are called concurrently.
type Host interface {
	// Report takes progress; total 0 is unknown.
	Report(ctx context.Context, done, total float64, message string)
	// Ask asks a question and returns the response to its request.
	Ask(ctx context.Context, in Input) (json.RawMessage, error)
}

// NewTask makes a Task for the test of a handler; servers make their own.
func NewTask(id, principal string, attempt int, host Host) *Task {
	return &Task{id: id, principal: principal, attempt: attempt, host: host}
}

// ID is the task's ID, "" in a plain call.
func (t *Task) ID() string { return t.id }

// Principal is who owns the task; "" is anonymous.
func (t *Task) Principal() string { return t.principal }

// Attempt counts the runs of the handler for this task, from 1. It exceeds 1
// only where the tool has onlost=restart.
func (t *Task) Attempt() int { return t.attempt }

// Progress tells the requestor how far the work is: done of total, in any
// unit; total 0 is unknown. It reaches requestors of both revisions as the
// status message, and as a progress notification where one was asked for
// (C-67). A task that has ended takes none (C-68).
func (t *Task) Progress(ctx context.Context, done, total float64, message string) {
	t.host.Report(ctx, done, total, message)
}

// Message sets the task's status message.
func (t *Task) Message(ctx context.Context, message string) {
	t.host.Report(ctx, 0, 0, message)
}

// stepKey is the wire key of a step: its name, step#2 where the handler asks
// it a second time. A handler that runs again counts anew, so that the same
// step gets the stored answer.
func (t *Task) takeStepKey(step string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.asked == nil {
		t.asked = map[string]bool{}
	}
	key := step
	for n := 2; t.asked[key]; n++ {
		key = step + "#" + strconv.Itoa(n)
	}
	t.asked[key] = true
	return key
}

// statusText is a progress report as a status message.
func formatStatus(done, total float64, message string) string {
	if done == 0 && total == 0 {
		return message
	}
	count := strconv.FormatFloat(done, 'f', -1, 64)
	if total > 0 {
		count += "/" + strconv.FormatFloat(total, 'f', -1, 64)
	}
	if message == "" {
		return count
	}
	return fmt.Sprintf("%s (%s)", message, count)
}

// plainHost stands behind a call without a task.
type callHost struct {
	caller Caller
	call   CallRequest
}

// Report implements Host.
func (h callHost) Report(_ context.Context, done, total float64, message string) {
	if h.call.Progress != nil {
		h.call.Progress("", done, total, message)
	}
}

// Ask implements Host: on the call's own stream, where the revision has one.
func (h callHost) Ask(ctx context.Context, in Input) (json.RawMessage, error) {
	if err := h.caller.checkCanAsk(in, h.call.Ask != nil); err != nil {
		return nil, err
	}
	return h.call.Ask(ctx, in)
}
