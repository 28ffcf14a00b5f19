// Package memengine is a small [taskserver.Engine] in memory, for tests. It keeps the promises of an engine as long as
// its process lives.
package memengine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const (
	// pause is how long a task that was left waits for its next run.
	pause = 100 * time.Millisecond
	// look is how often the RunFunc looks at a task that waits for an answer, since the news of the answer may
	// be lost with the server that took it.
	look = time.Minute
)

// Cluster is the state that the executors of several servers share. The zero value is ready to use.
type Cluster struct {
	// Patience is that of the engine.
	Patience time.Duration
	// Slots is how many handlers each executor runs at once. 0 means no limit.
	Slots int

	mu      sync.Mutex // guards all below, and the fields of executors and jobs
	jobs    map[string]*job
	queue   []*job
	members []*executor
}

// job is a task that is not over.
type job struct {
	submission taskserver.Submission
	call       *call // the one that counts, or nil
	answered   bool  // since the call began
	cancelled  bool
	next       *time.Timer // starts the next call, or nil
}

// call is a call of a RunFunc.
type call struct {
	job *job
	end context.CancelCauseFunc
}

// executor is a member of a cluster.
type executor struct {
	cluster *Cluster
	run     taskserver.RunFunc
	running sync.WaitGroup
	calls   map[*call]bool // those that have not returned
	gone    bool           // closed or dead
}

// Join makes an executor, as taskserver.Options.Executor wants it.
func (c *Cluster) Join(run taskserver.RunFunc) (taskserver.Executor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := &executor{cluster: c, run: run, calls: map[*call]bool{}}
	c.members = append(c.members, x)
	c.dispatch()
	return x, nil
}

// Kill ends an executor as the end of its process would: the cluster ignores the results of its runs.
func Kill(x taskserver.Executor) {
	member := x.(*executor)
	c := member.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lose(member)
	c.dispatch()
}

// GiveUp takes the run of a task for lost, and ends its context. The next one begins.
func (c *Cluster) GiveUp(taskID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[taskID]; j != nil && j.call != nil {
		j.call.end(mcptask.ErrSuperseded)
		j.call = nil
		c.enqueue(j)
	}
}

// Forget deletes a task in the engine, as an operator might.
func (c *Cluster) Forget(taskID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[taskID]; j != nil {
		if j.call != nil {
			j.call.end(mcptask.ErrSuperseded)
		}
		c.remove(j)
	}
}

// Cancel cancels a task in the engine, as an operator might.
func (c *Cluster) Cancel(taskID string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[taskID]
	if j == nil {
		return
	}
	j.cancelled = true
	if j.call != nil {
		j.call.end(mcptask.ErrCancelled)
	} else {
		c.enqueue(j)
	}
}

// lose takes all runs of an executor for lost. mu is held.
func (c *Cluster) lose(x *executor) {
	x.gone = true
	for call := range x.calls {
		if call.job.call == call {
			call.job.call = nil
			c.enqueue(call.job)
		}
	}
}

// remove removes a job. mu is held.
func (c *Cluster) remove(j *job) {
	if j.next != nil {
		j.next.Stop()
	}
	c.queue = slices.DeleteFunc(c.queue, func(other *job) bool { return other == j })
	delete(c.jobs, j.submission.TaskID)
}

// enqueue puts a job into the line, unless it is there. mu is held.
func (c *Cluster) enqueue(j *job) {
	if c.jobs[j.submission.TaskID] != j {
		return
	}
	if j.next != nil {
		j.next.Stop()
		j.next = nil
	}
	if !slices.Contains(c.queue, j) {
		c.queue = append(c.queue, j)
	}
	c.dispatch()
}

// enqueueAfter is enqueue after a while. mu is held.
func (c *Cluster) enqueueAfter(j *job, d time.Duration) {
	j.next = time.AfterFunc(d, guard.Func(nil, "the pause before a run", func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if j.call == nil {
			c.enqueue(j)
		}
	}))
}

// dispatch starts the jobs that can start. mu is held.
func (c *Cluster) dispatch() {
	var left []*job
	for _, j := range c.queue {
		if x := c.choose(j.cancelled); x != nil {
			c.start(x, j)
		} else {
			left = append(left, j)
		}
	}
	c.queue = left
}

// choose returns an executor for the next run, or nil. A run whose context has ended needs no slot. mu is held.
func (c *Cluster) choose(needsNoSlot bool) *executor {
	for i, x := range c.members {
		if !x.gone && (needsNoSlot || c.Slots == 0 || len(x.calls) < c.Slots) {
			c.members = append(slices.Delete(c.members, i, i+1), x) // the next run goes to another member
			return x
		}
	}
	return nil
}

// start calls the RunFunc. mu is held.
func (c *Cluster) start(x *executor, j *job) {
	ctx, end := context.WithCancelCause(context.Background())
	made := &call{j, end}
	j.call, j.answered, x.calls[made] = made, false, true
	if j.cancelled {
		end(mcptask.ErrCancelled)
	}
	x.running.Go(guard.Func(nil, "the run of a task", func() { c.finish(x, made, x.run(ctx, j.submission.TaskID)) }))
}

// finish acts upon the end of a call.
func (c *Cluster) finish(x *executor, ended *call, how taskserver.RunEnd) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.dispatch()
	ended.end(nil)
	delete(x.calls, ended)
	j := ended.job
	if j.call != ended || c.jobs[j.submission.TaskID] != j {
		return
	}
	j.call = nil
	switch {
	case how == taskserver.RunOver:
		c.remove(j)
	case how == taskserver.RunLeft:
		c.enqueueAfter(j, pause)
	case j.answered || j.cancelled:
		c.enqueue(j)
	default:
		c.enqueueAfter(j, look)
	}
}

// Submit implements taskserver.Executor.
func (x *executor) Submit(ctx context.Context, task taskserver.Submission) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c := x.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if x.gone {
		return errors.New("memengine: the executor is closed")
	}
	if c.jobs[task.TaskID] == nil {
		j := &job{submission: task}
		if c.jobs == nil {
			c.jobs = map[string]*job{}
		}
		c.jobs[task.TaskID] = j
		c.enqueue(j)
	}
	return nil
}

// Close implements taskserver.Executor.
func (x *executor) Close(ctx context.Context) error {
	c := x.cluster
	c.mu.Lock()
	x.gone = true
	for call := range x.calls {
		call.end(context.Canceled)
	}
	c.mu.Unlock()
	done := make(chan struct{})
	guard.Go(nil, "the wait for runs", func() {
		x.running.Wait()
		close(done)
	})
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		c.mu.Lock()
		defer c.mu.Unlock()
		c.lose(x)
		return ctx.Err()
	}
}

// Name implements taskserver.Engine.
func (x *executor) Name() string { return "memengine/tasks" }

// Patience implements taskserver.Engine.
func (x *executor) Patience() time.Duration { return x.cluster.Patience }

// Cancel implements taskserver.Engine.
func (x *executor) Cancel(_ context.Context, task taskserver.Submission) error {
	x.cluster.Cancel(task.TaskID)
	return nil
}

// Answered implements taskserver.Engine.
func (x *executor) Answered(_ context.Context, task taskserver.Submission) error {
	c := x.cluster
	c.mu.Lock()
	defer c.mu.Unlock()
	if j := c.jobs[task.TaskID]; j != nil {
		j.answered = true
		if j.call == nil {
			c.enqueue(j)
		}
	}
	return nil
}
