package taskserver

import (
	"context"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Executor decides when and where the handler of a task runs. The store stays
// the only record of a task: an executor knows only its Submission. All methods
// are safe for concurrent use. docs/dev/executors.md says how to write one, and
// package executortest tests it.
//
// With a plain Executor, a task belongs to the server that runs its handler. The lease of that server in
// the store keeps the task alive. An executor that keeps tasks alive itself is an [Engine].
type Executor interface {
	// Submit schedules a task that is stored: the executor calls its RunFunc for it,
	// later and in another goroutine. Submitting a task again does not run it more often. ctx bounds
	// the call of Submit and not the run. If Submit fails, a server that shares the store submits
	// the task later.
	Submit(ctx context.Context, task Submission) error
	// Close starts no further handlers and ends the contexts of running ones. It
	// returns when they have returned, or with ctx's error before. It is called once.
	Close(ctx context.Context) error
}

// RunFunc runs the handler of a task to its end, or finds that there is nothing to run. The record
// of the task decides, so a call that is not needed does no harm. The handler sees the values
// of ctx. The end of ctx tells the handler to stop. The cause says why: [mcptask.ErrCancelled] if the task was
// cancelled through the executor, [mcptask.ErrSuperseded] if the executor has given the run up for lost, and
// context.Canceled if the executor closes. An executor may call the RunFunc with a context that has ended.
type RunFunc func(ctx context.Context, taskID string) RunEnd

// RunEnd says how a run has ended, for an executor that decides whether there is another one.
type RunEnd int

const (
	// RunOver means that there is nothing left to run: the task has ended or is gone, or another run
	// has it.
	RunOver RunEnd = iota
	// RunLeft means that the task has not ended and is to run elsewhere or later: this server closes,
	// does not reach its store, or does not have the tool, or an answer came while the run ended to wait
	// for it. An Engine calls the RunFunc again. Any other executor forgets the task: the leases of the
	// store see to it that it runs.
	RunLeft
	// RunWaits means that the handler has given up its place until a question is answered. Only an
	// Engine gets it. The Engine calls the RunFunc again after Answered. The RunFunc returns RunWaits
	// again if that call comes too early.
	RunWaits
)

// Submission is a task to run.
type Submission struct {
	TaskID string
	// Account is the account that the task counts against, see [Caller.Account].
	Account string
	// Principal is "" for all anonymous callers, whatever accounts they have.
	Principal string
	Tool      string
	// Until is when the task is deleted, whether it has ended or not, by the clock of this process. Its handler
	// stops by itself then.
	Until time.Time
	// Trace is the Trace of the [taskstore.Record].
	Trace string
}

// submissionOf returns the Submission of a task.
func submissionOf(r *taskstore.Record) Submission {
	return Submission{r.ID, r.Account, r.Principal, r.Tool, r.ExpiresAt, r.Trace}
}

// Slots is implemented by executors that bound how many handlers run at once.
// A handler that waits for a person releases its slot meanwhile.
type Slots interface {
	// Release gives the slot of a task's handler to the next waiting task.
	Release(task Submission)
	// Acquire takes a slot again and waits in line for it. If ctx ends first, the
	// caller has a slot all the same.
	Acquire(ctx context.Context, task Submission)
}

// Engine is an Executor that keeps tasks alive itself, such as one on a workflow engine. Servers
// that share it and the store run each other's tasks. The engine alone decides when a run is lost: the leases of the
// store do not matter. It calls the RunFunc for a task
//
//   - again, anywhere, if the last call has returned RunLeft, or if its process is lost. The record
//     says whether the handler may run again: if not, the RunFunc ends the task with worker_lost.
//   - never while an earlier call goes on, unless it has given that call up for lost. It first ends the
//     context of that call with ErrSuperseded, if it can reach the process.
//   - with a context that [mcptask.ErrCancelled] has ended, if somebody cancels the task in the engine.
//
// Submit of a task that the engine has changes nothing. Servers submit all unfinished tasks again now and then, in case
// somebody has deleted one in the engine. They cannot do so if the [taskstore.Store] is not an [taskstore.Inspector].
type Engine interface {
	Executor
	// Name returns the Worker of the records whose handlers the engine runs. It returns the same for all
	// servers that share the engine and the store.
	Name() string
	// Patience returns how long a handler that may restart keeps its place while it waits for an answer. Then its run
	// returns RunWaits. Values under a second are raised to a second.
	Patience() time.Duration
	// Cancel tells the engine that a task has been cancelled or asked to stop. The engine ends the
	// context of a running handler. If none runs, it calls the RunFunc with an ended context.
	Cancel(ctx context.Context, task Submission) error
	// Answered tells the engine that a question of a task is answered. The call may come before the run has
	// returned RunWaits. It may also be lost with its server, so an engine calls the RunFunc now and then for a
	// task that waits.
	Answered(ctx context.Context, task Submission) error
}

const (
	// engineLease is how long tasks stay with an engine after the last of its servers has gone. Then
	// servers without it may take them.
	engineLease = taskstore.LastingLease
	// submitAgain is the longest time until the tasks of an engine are submitted again.
	submitAgain = 10 * time.Minute
)

// submit submits a stored task. The end of ctx, which may be that of a request, does not matter. A panic of the
// executor is an error.
func (b *Backend) submit(ctx context.Context, r taskstore.Record) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), StoreTimeout)
	defer cancel()
	task := submissionOf(&r)
	task.Until = task.Until.Add(-time.Duration(b.clock.Load())) // executors have the clock of this process
	defer guard.Then(b.logger, "executor", func() { err = errors.New("the executor panicked") })
	return b.executor.Submit(ctx, task)
}

// nameWorker returns the Worker of a task whose handler this server runs.
func (b *Backend) nameWorker() string {
	if b.engine != nil {
		return b.engine.Name()
	}
	return b.worker
}

// nameNobody returns a Worker that never has a lease: servers take its tasks with their next regular look for orphans.
func (b *Backend) nameNobody() string { return b.worker + "/nobody" }

// mayPassTasks reports whether the executor is neither an engine nor the local one. It may pass tasks to other servers,
// and the leases keep its tasks alive.
func (b *Backend) mayPassTasks() bool { return b.engine == nil && b.line == nil }

// claimAfterRun returns the claim of a task after a run that another one is to follow. An engine keeps the task.
// Otherwise it waits for any server.
func (b *Backend) claimAfterRun() taskstore.Claim {
	if b.engine != nil {
		return taskstore.Claim{Worker: b.engine.Name()}
	}
	return taskstore.Claim{}
}

// chooseClaim returns the claim of a lost task that is to run again. With the local executor it waits for any server.
// Otherwise this server is about to submit it. A task that has never run is that of the server even if there is an
// engine, which may not have it.
func (b *Backend) chooseClaim(orphan taskstore.Record) taskstore.Claim {
	if b.line != nil {
		return taskstore.Claim{}
	}
	if orphan.Attempt == 0 {
		return taskstore.Claim{Worker: b.worker}
	}
	return taskstore.Claim{Worker: b.nameWorker()}
}

// tellEngine calls a method of the engine for a task, if there is an engine. name is the method's, for the log. It does
// so in the background, and tries again for a while. If all tries fail, the engine gets the news with its next call of
// the RunFunc.
func (b *Backend) tellEngine(r taskstore.Record, name string, tell func(Engine, context.Context, Submission) error) {
	if b.engine != nil {
		submission := submissionOf(&r) // r would be copied to the heap for all executors
		b.countNews(1)
		go func() {
			defer guard.Recover(b.logger, "news for the engine")
			defer b.countNews(-1)
			_, err := callStore(b.drained, b.newEngineRetry(), name, func(ctx context.Context) (struct{}, error) {
				return struct{}{}, tell(b.engine, ctx, submission)
			})
			if err != nil && b.drained.Err() == nil {
				b.logger.Warn("engine not told", "task", taskstore.LogID(submission.Principal, submission.TaskID), "tool", submission.Tool, "error", err)
			}
		}()
	}
}

// countNews counts the calls of tellEngine that are under way.
func (b *Backend) countNews(change int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.news += change; b.news == 0 {
		b.kick(b.newsTold)
	}
}

// newsMargin is how long Close waits until the engine has got its news.
const newsMargin = time.Second

// awaitNews waits until the engine has got its news, at most for newsMargin or until ctx ends.
func (b *Backend) awaitNews(ctx context.Context) {
	late := time.NewTimer(newsMargin)
	defer late.Stop()
	for {
		b.mu.Lock()
		left := b.news
		b.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-b.newsTold:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// tellEngineOfAnswer tells the engine that a parked task need not wait any more. A run that is not parked yet needs no
// news: it takes the answer from the record, or finds it there when it ends.
func (b *Backend) tellEngineOfAnswer(r taskstore.Record) {
	if isResumable(&r) {
		b.tellEngine(r, "Answered", Engine.Answered)
	}
}

// submitUnfinished submits the unfinished tasks of the engine again, and those of this server that have not started.
// Somebody may have deleted one in the engine.
func (b *Backend) submitUnfinished() time.Duration {
	if inspector, ok := b.store.(taskstore.Inspector); ok {
		for _, worker := range []string{b.engine.Name(), b.worker} {
			if err := b.submitAll(inspector, worker); err != nil && b.closing.Err() == nil {
				b.logger.Warn("tasks of the engine not checked", "error", err)
			}
		}
	}
	return spread(submitAgain)
}

// submitPatience is how long the failing calls of one submitAll may take in all. After that, the engine counts as away.
const submitPatience = time.Minute

// submitAll submits all unfinished tasks of a worker. It goes on after a task that the engine refuses.
func (b *Backend) submitAll(inspector taskstore.Inspector, worker string) error {
	var before taskstore.Position
	var refused error
	var failing time.Duration
	for {
		page, err := callOnce(b.closing, b.newTaskRetry(), "Scan", func(ctx context.Context) ([]taskstore.Record, error) {
			return inspector.Scan(ctx, taskstore.Filter{Worker: worker}, before, sweepBatch)
		})
		if err != nil {
			return err
		}
		for _, r := range page {
			before = taskstore.Position{CreatedAt: r.CreatedAt, ID: r.ID}
			began := time.Now()
			if err := b.submit(b.closing, r); err != nil {
				failing += time.Since(began)
				refused = err
			}
			if failing > submitPatience || b.closing.Err() != nil {
				return refused
			}
		}
		if len(page) < sweepBatch {
			return refused
		}
	}
}
