// Package executortest tests every promise of [taskserver.Executor], [taskserver.RunFunc] and, if the executor is
// one, [taskserver.Engine]. It does so through servers. An executor's own test looks like this:
//
//	func TestExecutor(t *testing.T) {
//		executortest.Run(t, executortest.Harness{
//			New: func(t testing.TB, group string, run taskserver.RunFunc) (taskserver.Executor, error) {
//				return myexecutor.New(run, myexecutor.Options{Queue: group})
//			},
//		})
//	}
//
// Run it with -race too. Each promise is a subtest:
//
//   - Submit/runs once: the handler gets its principal and a megabyte of arguments, and its result of four megabytes
//     comes back.
//   - Submit/many tasks: each of many tasks of several servers runs once.
//   - Submit/again: a task that is queued, runs, or is over, and is submitted again at any server, runs no more often.
//   - Submit/unknown task: a task that does not exist does no harm.
//   - Submit/ended context: Submit returns if its context has ended.
//   - Submit/fails: a server submits a task again that the executor has refused.
//   - Submit/never called: a task that was stored and never submitted is submitted by another server.
//   - RunFunc/values of the context: the handler sees the values of the RunFunc's context.
//   - RunFunc/ended context: a task whose run begins with a context that has ended runs later.
//   - RunFunc/tool elsewhere: a task runs at the servers that have its tool.
//   - RunFunc/panics: handlers that panic, or end their goroutines, end as internal errors. The
//     executor goes on.
//   - RunFunc/ttl and deadline: they end the handler's context.
//   - Cancel/queued, Cancel/running, Cancel/asking: the task ends at once. Its handler's context ends if it runs, and
//     it never starts otherwise. Any server takes the cancellation.
//   - Cancel/sleeping: so does a task whose handler sleeps. A handler that sleeps is not taken for lost. If the executor
//     has Slots, other tasks run while more tasks sleep than it runs at once.
//   - Stop/running: the task ends with the handler's outcome.
//   - Stop/asking: the task ends.
//   - Questions/elsewhere: any server takes the answer, which the handler gets.
//   - Questions/waiting tasks: if the executor is an Engine or has Slots, other tasks run while more tasks wait for
//     answers than it runs at once. All get their answers.
//   - Questions/one of two: a handler that waits for any of two answers goes on with one.
//   - Questions/attempts: the runs of a handler that waits are no attempts, see [mcptask.Policy].
//   - Questions/steps: a handler that waits runs no step twice, whether it runs again after the answer or not.
//   - Close/goes on elsewhere: a handler that may restart sees the end of its context, and its task runs at another
//     server.
//   - Close/fails: a task whose handler may not restart ends with the error worker_lost.
//   - Close/queued: tasks that have not started run at another server.
//   - Close/steps: a step that is done after Close has begun is stored, and the last positions are handed over.
//   - Close/ended context: Close returns if its context has ended, and the handler runs on.
//   - Kill/restarts, Kill/asking, Kill/fails: if the process of the server ends, a task whose handler may restart
//     runs at another server, also while it asks. Any other task ends with the error worker_lost.
//   - Kill/poison: a task that kills each of its servers fails after as many as its policy says.
//   - Kill/writes nothing: the result of a run that was taken for lost is dropped.
//   - Kill/steps: the next run does no stored step again. It gets the values, the positions and the keys of the first run,
//     and sleeps only for the rest.
//   - Kill/stores nothing: a run that was taken for lost stores no step.
//   - Engine/cancellation lost, Engine/answer lost: the task ends although the engine misses the event.
//
// In all of them, no handler without onlost=restart runs twice, no two runs of a task have the same Attempt, and an
// Engine calls no RunFunc for a task while an earlier call goes on, unless it has ended the context of that call or
// lost its process. After Close has returned nil, the RunFunc is not called.
package executortest

import (
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/tuning"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Harness makes the parts of a test.
type Harness struct {
	// New makes an executor that calls run. The executors of one group are for servers that share a store. They share a
	// backend, such as a queue. A server closes its executor. A nil New means the executor that servers have by
	// default.
	New func(t testing.TB, group string, run taskserver.RunFunc) (taskserver.Executor, error)
	// Store opens an empty store for the servers of a group. Run closes it. A nil Store means a memory store.
	Store func(t testing.TB) taskstore.Store
	// Kill makes an executor stop as if its process had ended: from then on, nothing that its RunFunc does or returns
	// reaches the backend of the executor. Run cuts its server off from the store before. The contexts of handlers may
	// end with context.Canceled, or not at all. The executor is closed afterwards. Without New, the executor is nil. A
	// nil Kill skips the tests that need it.
	Kill func(t testing.TB, x taskserver.Executor)
	// Slots is how many handlers an executor runs at once. 0 means that there is no limit.
	Slots int
	// Patience bounds each test. 0 means 5 minutes.
	Patience time.Duration
	// Subtest runs a subtest, such as in parallel with others, or in a bubble of testing/synctest. nil means t.Run.
	Subtest func(t *testing.T, name string, f func(*testing.T)) bool
}

const (
	// lease is how long a server that was killed keeps its tasks during the tests, unless tuning.Lease is set
	// already.
	lease = 5 * time.Second
	// defaultPatience is long enough for an engine to find out events that it was not told.
	defaultPatience = 5 * time.Minute
)

// Run tests that an executor keeps every promise. While it runs, new servers in this process have short leases.
func Run(t *testing.T, h Harness) {
	if h.Patience == 0 {
		h.Patience = defaultPatience
	}
	if h.Subtest == nil {
		h.Subtest = (*testing.T).Run
	}
	if tuning.Lease == 0 {
		tuning.Lease = lease
		t.Cleanup(func() { tuning.Lease = 0 })
	}
	for _, p := range promises {
		h.Subtest(t, p.name, func(t *testing.T) { p.runTest(t, h) })
	}
}

// promise is a subtest.
type promise struct {
	name string
	test func(k *kit)
}

// promises lists the tests by name. The package comment describes them.
var promises = []promise{
	{"Submit/runs once", testRunsOnce},
	{"Submit/many tasks", testManyTasks},
	{"Submit/again", testSubmitAgain},
	{"Submit/unknown task", testUnknownTask},
	{"Submit/ended context", testSubmitEnded},
	{"Submit/fails", testSubmitFails},
	{"Submit/never called", testNeverSubmitted},
	{"RunFunc/values of the context", testValues},
	{"RunFunc/ended context", testEndedContext},
	{"RunFunc/tool elsewhere", testToolElsewhere},
	{"RunFunc/panics", testPanics},
	{"RunFunc/ttl and deadline", testTimeouts},
	{"Cancel/queued", testCancelQueued},
	{"Cancel/running", testCancelRunning},
	{"Cancel/asking", testCancelAsking},
	{"Cancel/sleeping", testCancelSleeping},
	{"Stop/running", testStopRunning},
	{"Stop/asking", testStopAsking},
	{"Questions/elsewhere", testAnswerElsewhere},
	{"Questions/waiting tasks", testWaitingTasks},
	{"Questions/one of two", testOneOfTwo},
	{"Questions/attempts", testAttempts},
	{"Questions/steps", testAskingSteps},
	{"Close/goes on elsewhere", testCloseRestarts},
	{"Close/fails", testCloseFails},
	{"Close/queued", testCloseQueued},
	{"Close/steps", testCloseSteps},
	{"Close/ended context", testCloseEnded},
	{"Kill/restarts", testKillRestarts},
	{"Kill/asking", testKillAsking},
	{"Kill/fails", testKillFails},
	{"Kill/poison", testPoison},
	{"Kill/writes nothing", testWritesNothing},
	{"Kill/steps", testKillSteps},
	{"Kill/stores nothing", testStaleSteps},
	{"Engine/cancellation lost", testCancelLost},
	{"Engine/answer lost", testAnswerLost},
}
