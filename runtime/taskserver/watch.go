package taskserver

import (
	"context"
	"iter"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// watch is one wait for the changes of some tasks. A change makes its task due in the watches that have it. The
// goroutine of a watch reads the tasks that are due, so of many changes meanwhile it sees the last.
type watch struct {
	due  []*watched    // the tasks to read. Backend.mu guards it.
	wake chan struct{} // has an element if something may be due
	// tasks are the tasks by their IDs, if there may be several. Only the goroutine of the watch uses it.
	tasks map[string]*watched
}

// watched is a task in a watch.
type watched struct {
	id    string
	watch *watch
	task  *followed
	isDue bool // whether it is in watch.due. Backend.mu guards it.
	// version is the newest that was read, or 0. Only the goroutine of the watch uses it.
	version int64
}

func newWatch() *watch { return &watch{wake: make(chan struct{}, 1)} }

// watchTask adds a task to a watch. It is due at once.
func (b *Backend) watchTask(w *watch, id string) *watched {
	b.mu.Lock()
	defer b.mu.Unlock()
	e := &watched{id: id, watch: w, task: b.follow(id)}
	e.task.waiting = append(e.task.waiting, e)
	e.setDue()
	return e
}

// unwatchTask removes a task from its watch.
func (b *Backend) unwatchTask(e *watched) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.Index(e.task.waiting, e)
	e.task.waiting = slices.Delete(e.task.waiting, i, i+1)
	b.unfollow(e.id, e.task)
}

// setDue lets the watch read the task. Backend.mu is held.
func (e *watched) setDue() {
	if e.isDue {
		return
	}
	e.isDue = true
	e.watch.due = append(e.watch.due, e)
	select {
	case e.watch.wake <- struct{}{}:
	default:
	}
}

// wake wakes the watches of the task. Backend.mu is held.
func (f *followed) wake() {
	for _, e := range f.waiting {
		e.setDue()
	}
}

// takeDue returns the tasks that a watch has to read, and takes the element of wake that tells of them. From then on
// they are no longer due. The caller reads them afterwards, so that it misses no change.
func (b *Backend) takeDue(w *watch) []*watched {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.wake:
	default:
	}
	due := w.due
	w.due = nil
	for _, e := range due {
		e.isDue = false
	}
	return due
}

// awaitDue waits until a task of a watch is due. The store may miss a change, so a tick of look makes all tasks due.
func (b *Backend) awaitDue(ctx context.Context, w *watch, look <-chan time.Time) error {
	select {
	case <-w.wake:
	case <-look:
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, e := range w.tasks {
			e.setDue()
		}
	case <-ctx.Done():
		return ctx.Err()
	case <-b.drained.Done():
		return mcptask.ErrServerClosed
	}
	return nil
}

// awaitVersion waits for a version of a record beyond the given one. If the store misses a change,
// the wait takes up to StoreWait longer.
func (b *Backend) awaitVersion(ctx context.Context, t *storeRetry, id string, version int64) (taskstore.Record, error) {
	w := newWatch()
	defer b.unwatchTask(b.watchTask(w, id))
	for {
		b.takeDue(w)
		record, err := b.getRecordInTurn(ctx, t, id)
		if err != nil || record.Version > version {
			return record, err
		}
		t.failing = time.Time{} // the store works
		again := time.NewTimer(StoreWait)
		err = b.awaitDue(ctx, w, again.C)
		again.Stop()
		if err != nil {
			return record, err
		}
	}
}

// Watch yields each of the caller's tasks as it is, and then whenever it has changed, until all of them have ended or
// are gone. It does not yield a task that is gone, or is another caller's. Of several changes while the loop is busy it
// yields the last. It starts no goroutine, and is safe for concurrent use. It ends early with an error if ctx ends, the
// server shuts down, or the store fails for too long.
func (b *Backend) Watch(ctx context.Context, caller Caller, ids ...string) iter.Seq2[taskstore.Record, error] {
	return func(yield func(taskstore.Record, error) bool) {
		w := newWatch()
		w.tasks = map[string]*watched{}
		defer func() {
			for _, e := range w.tasks {
				b.unwatchTask(e)
			}
		}()
		for _, id := range ids {
			if w.tasks[id] == nil {
				w.tasks[id] = b.watchTask(w, id)
			}
		}
		look := time.NewTicker(StoreWait)
		defer look.Stop()
		for len(w.tasks) > 0 {
			if err := b.awaitDue(ctx, w, look.C); err != nil {
				yield(taskstore.Record{}, b.checkOwned(ctx, caller, taskstore.Record{}, err))
				return
			}
			for _, e := range b.takeDue(w) {
				if w.tasks[e.id] != nil && !b.yieldWatched(ctx, caller, e, yield) {
					return
				}
			}
		}
	}
}

// yieldWatched reads a task of a watch that is due, and yields it if it has changed. It removes a task that will not
// change any more. It reports whether the watch goes on.
func (b *Backend) yieldWatched(ctx context.Context, caller Caller, e *watched, yield func(taskstore.Record, error) bool) bool {
	record, err := b.getRecordInTurn(ctx, b.newWaitRetry(), e.id)
	refusal := b.checkOwned(ctx, caller, record, err)
	if refusal != nil && err != nil && !isGone(err) {
		yield(taskstore.Record{}, refusal)
		return false
	}
	if refusal != nil || record.Done() {
		b.unwatchTask(e)
		delete(e.watch.tasks, e.id)
	}
	if refusal != nil || record.Version <= e.version {
		return true
	}
	e.version = record.Version
	return yield(record, nil)
}

// getRecordInTurn is getRecord for one of many that may have been woken together.
func (b *Backend) getRecordInTurn(ctx context.Context, t *storeRetry, id string) (taskstore.Record, error) {
	record, err := callStore(ctx, t, "Get", func(ctx context.Context) (taskstore.Record, error) {
		select {
		case b.waitReads <- struct{}{}:
			defer func() { <-b.waitReads }()
			return b.store.Get(ctx, id)
		case <-ctx.Done():
			return taskstore.Record{}, ctx.Err()
		}
	})
	if err == nil {
		b.stopIfEnded(record)
	}
	return record, err
}
