package mcptask

import (
	"time"
)

// TaskSupport determines whether a tool may run as a task.
type TaskSupport string

// The values of TaskSupport, as they stand on the wire of 2025-11-25.
const (
	TaskForbidden TaskSupport = "forbidden"
	TaskOptional  TaskSupport = "optional"
	TaskRequired  TaskSupport = "required"
)

// LostPolicy decides whether a running task fails or restarts when its worker dies.
type LostPolicy string

// The values of LostPolicy.
const (
	// FailWhenLost ends the task with an error for which
	// errors.Is(err, ErrWorkerLost) holds.
	FailWhenLost LostPolicy = "fail"
	// RestartWhenLost runs the handler again; see [Task.Attempt].
	RestartWhenLost LostPolicy = "restart"
)

// ChangePolicy decides whether a stored task runs if the declaration has changed and its arguments no longer fit.
type ChangePolicy string

// The values of ChangePolicy.
const (
	// FailOnChange ends the task with an error for which errors.Is(err, ErrChanged) holds.
	FailOnChange ChangePolicy = "fail"
	// RunOnChange runs the handler with the arguments as they are, if its input can hold them.
	RunOnChange ChangePolicy = "run"
)

// LeavePolicy decides whether the work of a call stops when its caller leaves.
type LeavePolicy string

// The values of LeavePolicy.
const (
	// StopOnLeave stops the work and deletes the record of its task. If the caller knows the task, it is cancelled instead.
	StopOnLeave LeavePolicy = "stop"
	// KeepOnLeave lets the work go on. The task is kept until its TTL ends, and the fallback tool task_list finds it.
	KeepOnLeave LeavePolicy = "keep"
)

// Fallback determines how clients without tasks are served.
type Fallback string

// The values of Fallback.
const (
	// FallbackNone, or "", answers a plain call with its result, however long that takes; see [Policy.Wait].
	FallbackNone Fallback = "none"
	// FallbackTools lets a plain call that takes long go on behind the fallback tools.
	FallbackTools Fallback = "tools"
)

// Defaults of a Policy.
const (
	DefaultTTL      = 24 * time.Hour
	DefaultPoll     = time.Second
	DefaultAttempts = 5
)

// Policy determines how a tool runs.
type Policy struct {
	// Task determines whether the tool may run as a task. "" means TaskForbidden, and TaskOptional in an AddTaskTool.
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
	// the call blocks as long as taskserver.Backend.PlainWait says, and without them there is no limit.
	Wait time.Duration
	// Deadline bounds how long the handler works, in all runs of the task together; 0 means no limit. The time in which it
	// waits for a slot, for an answer, in Sleep or in WithoutSlot does not count: the deadline stands still while any
	// goroutine of the handler waits so, even if others work. Beyond the deadline the task fails, and
	// errors.Is(err, ErrDeadline) holds.
	// A run whose process died counts up to its last stored report, step, position or question.
	Deadline time.Duration
	// Concurrency bounds how many handlers of the tool's tasks run at once in this process; 0 means no bound but
	// taskserver.Options.Concurrency. More tasks wait in line. A handler that waits for an answer, in Sleep or in
	// WithoutSlot does not count. The maximum is 1,000,000. It needs a tool that may run as a task, and the local executor.
	Concurrency int
	// OnLost decides whether the task fails or restarts when its worker dies; "" means FailWhenLost.
	OnLost LostPolicy
	// OnChange decides whether a run after a restart takes arguments that no longer fit the tool's input schema; "" means
	// FailOnChange.
	OnChange ChangePolicy
	// OnLeave decides what happens to the work when the caller leaves before it has the result or the task. A caller
	// leaves by closing its connection, or by cancelling the call, as hosts do when they lose patience. "" means
	// StopOnLeave. KeepOnLeave needs a tool that may run as a task, and the fallback tools.
	OnLeave LeavePolicy
	// Attempts is how many runs of a task may lose their worker, with RestartWhenLost: a task that kills each of its
	// workers fails after as many, with data.reason "worker_lost". A run that a closing server has handed over is not
	// counted. 0 means DefaultAttempts. The maximum is 1,000.
	//
	// Servers that share a store should have the same Attempts. A server that has lost a task judges by its own
	// Attempts whether another server goes on with it. If that one has more, such as while a new version is rolled out,
	// [Task.Interrupted] wrongly returns false, and the workflow of the task is cancelled. With a taskserver.Engine,
	// Attempts does not matter here.
	Attempts int
	// Immediate is text for the model while the task runs.
	Immediate string
}

// Annotations are a tool's hints to clients. A nil field gives no hint.
type Annotations struct {
	ReadOnly, Destructive, Idempotent, OpenWorld *bool
}

// Hint makes a value for Annotations.
func Hint(v bool) *bool { return &v }
