package mcptask

import (
	"fmt"
	"time"
)

// TaskSupport says whether a tool may run as a task (C-14).
type TaskSupport string

// The values of TaskSupport, as they stand on the wire of 2025-11-25.
const (
	TaskForbidden TaskSupport = "forbidden"
	TaskOptional  TaskSupport = "optional"
	TaskRequired  TaskSupport = "required"
)

// LostPolicy says what happens to a running task whose worker died.
type LostPolicy string

// The values of LostPolicy.
const (
	// FailWhenLost ends the task with an error for which
	// errors.Is(err, ErrWorkerLost) holds.
	FailWhenLost LostPolicy = "fail"
	// RestartWhenLost runs the handler again; see [Task.Attempt].
	RestartWhenLost LostPolicy = "restart"
)

// Fallback says how clients without tasks are served.
type Fallback string

// The values of Fallback.
const (
	FallbackNone  Fallback = "none"
	FallbackTools Fallback = "tools"
)

// The names of the fallback tools, after the service's prefix.
const (
	ToolTaskStatus = "task_status"
	ToolTaskResult = "task_result"
	ToolTaskCancel = "task_cancel"
	ToolTaskAnswer = "task_answer"
)

// Defaults of a Policy.
const (
	DefaultTTL      = 24 * time.Hour
	DefaultPoll     = time.Second
	DefaultAttempts = 5
)

// maxAttempts bounds Policy.Attempts, because each attempt may cost a process its life.
const maxAttempts = 1000

// maxDuration bounds every duration. The wire ends at 2^53-1 milliseconds (schema of
// 2026-07-28), and time.Duration ends earlier.
const maxDuration = 100 * 365 * 24 * time.Hour

// Policy says how a tool runs.
type Policy struct {
	// Task says whether the tool may run as a task; "" is TaskForbidden.
	Task TaskSupport
	// TTL is how long a task is kept, counted from its creation; 0 means DefaultTTL. A
	// task that still runs then is cancelled.
	TTL time.Duration
	// Poll is the polling interval that requestors are told; 0 means DefaultPoll.
	Poll time.Duration
	// Grace is how long a call may take to be answered at once instead of becoming a
	// task. It has no effect if a client of 2025-11-25 asked for a task.
	Grace time.Duration
	// Wait is how long a plain call may block. 0 leaves it to the server: with the fallback tools
	// the call blocks as long as Server.PlainWait says, and without them there is no limit.
	Wait time.Duration
	// Deadline bounds the handler's work; 0 means no limit.
	Deadline time.Duration
	// OnLost says what happens when the worker dies; "" is FailWhenLost.
	OnLost LostPolicy
	// Attempts is how many runs of a task may lose their worker, with RestartWhenLost: a
	// task that kills each of its workers fails after as many, with data.reason
	// "worker_lost". A run that a closing server has handed over is not counted. 0 means
	// DefaultAttempts, and 1,000 is the most.
	//
	// Servers that share a store should have the same Attempts. A server that has lost a task judges by its own
	// Attempts whether another server goes on with it. If that one has more, such as while a new version is rolled
	// out, [Task.Interrupted] wrongly returns false, and the workflow of the task is cancelled. With an [Engine],
	// Attempts does not matter here.
	Attempts int
	// Immediate is text for the model while the task runs (C-20).
	Immediate string
}

// normalize fills in defaults and refuses invalid values.
func (p Policy) normalize() (Policy, error) {
	if p.Task == "" {
		p.Task = TaskForbidden
	}
	if p.TTL == 0 {
		p.TTL = DefaultTTL
	}
	if p.Poll == 0 {
		p.Poll = DefaultPoll
	}
	if p.OnLost == "" {
		p.OnLost = FailWhenLost
	}
	if p.Attempts == 0 && p.OnLost == RestartWhenLost {
		p.Attempts = DefaultAttempts
	}
	switch p.Task {
	case TaskForbidden, TaskOptional, TaskRequired:
	default:
		return p, fmt.Errorf("task support %q is not forbidden, optional or required", p.Task)
	}
	switch p.OnLost {
	case FailWhenLost, RestartWhenLost:
	default:
		return p, fmt.Errorf("lost policy %q is not fail or restart", p.OnLost)
	}
	switch {
	case p.Attempts < 0 || p.Attempts > maxAttempts:
		return p, fmt.Errorf("attempts %d is not between 1 and %d, nor 0 for the default of %d", p.Attempts, maxAttempts, DefaultAttempts)
	case p.Attempts > 0 && p.OnLost != RestartWhenLost:
		return p, fmt.Errorf("attempts %d has no effect on a tool that does not restart: set OnLost to RestartWhenLost, or leave Attempts 0", p.Attempts)
	}
	for _, key := range []struct {
		name  string
		value time.Duration
	}{
		{"ttl", p.TTL},
		{"poll", p.Poll},
		{"grace", p.Grace},
		{"wait", p.Wait},
		{"deadline", p.Deadline},
	} {
		if key.value < 0 || key.value > maxDuration {
			return p, fmt.Errorf("%s %v is not between 0 and %v", key.name, key.value, maxDuration)
		}
	}
	if p.Poll < time.Millisecond || p.TTL < time.Millisecond {
		return p, fmt.Errorf("ttl %v or poll %v is below a millisecond, the wire's unit", p.TTL, p.Poll)
	}
	if p.Deadline > p.TTL {
		return p, fmt.Errorf("deadline %v is longer than ttl %v: the task would be gone before it", p.Deadline, p.TTL)
	}
	return p, nil
}

// Annotations are a tool's hints to clients. A nil field gives no hint.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Hint makes a value for Annotations.
func Hint(v bool) *bool { return &v }
