package mcptask

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/validate"
)

// Task is a handler's view of the task that it runs. It is never nil. Its ID is
// empty in a plain call. Its methods are safe for concurrent use.
type Task struct {
	id        string
	principal string
	attempt   int
	trace     string
	host      Host
	// upfront has the answers that were given before the task, in the order of
	// ToolSpec.Questions.
	upfront []upfrontAnswer
	// schemas has the compiled schemas of the server; nil compiles them each time.
	schemas *validate.Cache

	mu    sync.Mutex
	asked map[string]bool // the keys that this attempt has used
}

// Host carries out what a Task is told: for a stored task, a plain call, or the
// script of a test. Its methods are called concurrently.
type Host interface {
	// Report takes progress. A total of 0 means unknown.
	Report(ctx context.Context, done, total float64, message string)
	// Ask asks a question and returns the response to its request.
	Ask(ctx context.Context, in Input) (json.RawMessage, error)
}

// NewTask makes a Task for the test of a handler. Servers make their own.
func NewTask(id, principal string, attempt int, host Host) *Task {
	return &Task{id: id, principal: principal, attempt: attempt, host: host}
}

// ID returns the task's ID, or "" in a plain call.
func (t *Task) ID() string { return t.id }

// Principal returns the owner of the task, or "" if the owner is anonymous.
func (t *Task) Principal() string { return t.principal }

// Attempt counts the runs of the handler for this task, from 1. It exceeds 1
// only if the tool has onlost=restart.
func (t *Task) Attempt() int { return t.attempt }

// Trace returns the trace that the call of the tool belongs to: the traceparent of W3C Trace
// Context and, after a line break, the tracestate if there is one. It names the server's span of
// the call if a hook has made one, as those of package oteltask do, and otherwise the span that the
// client has named. It returns "" if there is neither. The handler's context has a span only if
// hooks, middleware or the executor have put one there.
func (t *Task) Trace() string { return t.trace }

// Progress tells the requestor how far the work is: done of total, in any unit. A
// total of 0 means unknown. In both revisions it becomes the status message, and
// also a progress notification if the requestor asked for one (C-67). After the
// end of the task it does nothing (C-68).
func (t *Task) Progress(ctx context.Context, done, total float64, message string) {
	t.host.Report(ctx, done, total, message)
}

// Message sets the task's status message.
func (t *Task) Message(ctx context.Context, message string) {
	t.host.Report(ctx, 0, 0, message)
}

// takeStepKey returns the wire key of a step: its name, or step#2 when the handler
// asks it a second time. Each attempt counts from the start, so that the same step
// gets the stored answer.
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

// Report returns the task's progress, and its status message without the count.
func (r Record) Report() ProgressReport {
	report := ProgressReport{Done: r.Progress.Done, Total: max(r.Progress.Total, 0), Message: r.StatusMessage}
	switch count := formatStatus(r.Progress.Done, r.Progress.Total, ""); {
	case report.Message == count:
		report.Message = ""
	case count != "":
		report.Message = strings.TrimSuffix(report.Message, " ("+count+")")
	}
	return report
}

// formatStatus writes a progress report as a status message.
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
