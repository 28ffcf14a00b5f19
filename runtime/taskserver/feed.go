package taskserver

import (
	"context"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The feed of the store has the changes of tasks by all processes. From it the server wakes the requests that wait,
// stops handlers whose tasks were cancelled or taken elsewhere, tells its observers, and takes tasks that were left.
// One goroutine reads the feed, however many tasks there are. A few more fetch the changed tasks that handlers and
// sessions of this process follow.

// maxFetchers limits how many followed tasks are fetched from the store at once.
const maxFetchers = 8

// maxWaitReads limits how many requests that wait read their tasks at once. Missed news wakes all of
// them, and the leases of running tasks must not wait for thousands of reads.
const maxWaitReads = 64

// followed is a task that something in this process follows. Backend.mu guards it.
type followed struct {
	followers int
	// needing counts the followers that need the record of a change, and not only the news.
	needing int
	// version is the newest that this process has stored, or has got from the feed.
	version int64
	// expected is the version that this process is about to store, or 0. A change to that version in the feed is not
	// new.
	expected int64
	// waiting are the entries of the task in watches.
	waiting []*watched
}

// Follow lets the functions of [Backend.Observe] know of the changes of a task by other
// processes, until unfollow is called. A version may come twice or late.
func (b *Backend) Follow(id string) (unfollow func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.follow(id)
	f.needing++
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		f.needing--
		b.unfollow(id, f)
	}
}

// follow adds a follower of a task. Backend.mu is held.
func (b *Backend) follow(id string) *followed {
	f := b.followed[id]
	if f == nil {
		f = &followed{}
		b.followed[id] = f
	}
	f.followers++
	return f
}

// unfollow removes a follower. Backend.mu is held.
func (b *Backend) unfollow(id string, f *followed) {
	if f.followers--; f.followers == 0 {
		delete(b.followed, id)
	}
}

// noteChange wakes those who wait for a change of a task, unless the process knows the version.
// Version 0 means that the task is gone. noteChange reports whether the record is needed.
func (b *Backend) noteChange(id string, version int64) (needsRecord bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.followed[id]
	if f == nil || version > 0 && version <= f.version {
		return false
	}
	f.version = version
	f.wake()
	return f.needing > 0
}

// expectChange notes that this process is about to store a version of a task.
func (b *Backend) expectChange(id string, version int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.followed[id]; f != nil {
		f.expected = version
	}
}

// missChange ends expectChange for a version that this process has not stored. Another one may
// have stored it, so the task is fetched.
func (b *Backend) missChange(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.followed[id]; f != nil {
		f.expected = 0
		f.wake()
		if f.needing > 0 {
			b.toFetch[id] = true
			b.kick(b.fetchNow)
		}
	}
}

// isExpected reports whether this process is about to store a version, or has.
func (b *Backend) isExpected(c taskstore.Change) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	f := b.followed[c.ID]
	return f != nil && c.Version > 0 && c.Version == f.expected
}

// kick makes a loop of the upkeep go on at once.
func (b *Backend) kick(now chan struct{}) {
	select {
	case now <- struct{}{}:
	default:
	}
}

// noteMissed wakes all who wait, and returns the tasks whose records are needed.
func (b *Backend) noteMissed() (needed []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id, f := range b.followed {
		f.wake()
		if f.needing > 0 {
			needed = append(needed, id)
		}
	}
	return needed
}

// readFeed reads the store's feed until it ends, and returns the pause before it is read again.
func (b *Backend) readFeed() time.Duration {
	began := time.Now()
	err := b.takeChanges()
	if err != nil && b.drained.Err() == nil && b.auditRates.Allow([2]string{"store", "Changes"}) {
		b.logger.Warn("feed of the store failed, and is read again", "error", err)
	}
	b.takeChange(taskstore.Change{Missed: true})
	if time.Since(began) > longestPause {
		b.feedPause = 0
	}
	b.feedPause = min(max(2*b.feedPause, shortestPause), longestPause)
	return b.feedPause
}

// takeChanges acts upon the changes of the feed until it ends. A panic of the store is an error of it.
func (b *Backend) takeChanges() (err error) {
	defer guard.Then(b.logger, "feed of the store", func() { err = errors.New("the store panicked") })
	for change, err := range b.store.Changes(b.drained) {
		if err != nil {
			return err
		}
		b.takeChange(change)
	}
	return nil
}

// takeChange acts upon one change.
func (b *Backend) takeChange(c taskstore.Change) {
	if c.Version > 0 && c.Phase == taskstore.PhaseDone {
		b.ends.count(b.Now())
	}
	switch {
	case c.Missed, c.Free && c.ID == "":
		b.kick(b.adoptNow)
		if b.line != nil {
			b.kick(b.line.now)
		}
	case c.Free:
		b.noteFree()
	}
	// A name may have a later task than the one that has ended.
	if c.ID != "" && (c.Version == 0 || c.Phase == taskstore.PhaseDone) && !isNamed(c.ID) {
		b.forgetCall(c.ID) // of a task that was created here and has run elsewhere
	}
	switch {
	case c.Missed:
		b.fetchSoon(b.noteMissed()...)
		b.notifySessions()
	case b.isExpected(c):
	case c.ID != "" && (b.noteChange(c.ID, c.Version) || b.isOfFollowedSession(c)):
		b.fetchSoon(c.ID)
	}
}

// fetchSoon lets fetchers read tasks.
func (b *Backend) fetchSoon(ids ...string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		b.toFetch[id] = true
	}
	b.kick(b.fetchNow)
}

// startFetchers starts goroutines that fetch tasks.
func (b *Backend) startFetchers() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	for range min(maxFetchers-b.fetchers, len(b.toFetch)) { // those that run may be slow
		b.fetchers++
		b.upkeep.Go(func() {
			defer guard.Recover(b.logger, "reading of changed tasks")
			for id, ok := b.nextToFetch(); ok; id, ok = b.nextToFetch() {
				b.fetchTask(id)
			}
		})
	}
	return StoreWait
}

// nextToFetch takes a task to fetch. If there is none, the fetcher ends.
func (b *Backend) nextToFetch() (string, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for id := range b.toFetch {
		delete(b.toFetch, id)
		return id, true
	}
	b.fetchers--
	return "", false
}

// fetchTask reads a task that has changed elsewhere. It stops the task's handler if the record
// says so, and tells observers. If the store fails, the task is fetched again later.
func (b *Backend) fetchTask(id string) {
	defer guard.Recover(b.logger, "a changed task")
	begun := b.hasBegun(id) // before that, the record may not be stored yet
	record, err := callOnce(b.drained, b.newTaskRetry(), "Get", func(ctx context.Context) (taskstore.Record, error) { return b.store.Get(ctx, id) })
	b.endFetch(id, err)
	switch {
	case err == nil:
		b.stopIfEnded(record)
		b.notifyObservers(record)
	case isGone(err) && begun:
		b.cancelHandler(id, mcptask.ErrExpired)
	}
}

// unfetched is a task that the store has failed to return. Backend.mu guards it.
type unfetched struct {
	failures int
	pending  bool // whether the task will be fetched again
}

// endFetch ends a fetch, which has returned err. If the store has failed, the task is fetched again after
// a pause that grows.
func (b *Backend) endFetch(id string, err error) {
	failed := err != nil && !isStoreAnswer(err) && b.drained.Err() == nil
	if failed {
		b.warnOfFailure("store", "Get", err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	u := b.unfetched[id]
	switch {
	case u != nil && u.pending: // and that call will see the changes that this one has missed
	case !failed:
		delete(b.unfetched, id)
	default:
		if u == nil {
			u = &unfetched{}
			b.unfetched[id] = u
		}
		u.failures++
		u.pending = true
		time.AfterFunc(spread(pauseAfter(u.failures)), func() {
			defer guard.Recover(b.logger, "a changed task")
			b.fetchAgain(id)
		})
	}
}

// fetchAgain lets fetchers read a task that the store has failed to return, if it is still followed.
func (b *Backend) fetchAgain(id string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.followed[id]; (f == nil || f.needing == 0) && b.sessions[MarkOfTask(id)] == nil {
		delete(b.unfetched, id)
		return
	}
	b.unfetched[id].pending = false
	b.toFetch[id] = true
	b.kick(b.fetchNow)
}
