package mcptask

import (
	"context"
	"errors"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// The feed of the store tells what all processes do with tasks. From it the server wakes the
// requests that wait, stops handlers whose tasks were cancelled or taken elsewhere, tells its
// observers, and takes tasks that were left. One goroutine reads the feed, however many tasks there
// are. A few more fetch the changed tasks that handlers and sessions of this process follow.

// maxFetchers limits how many followed tasks are fetched from the store at once.
const maxFetchers = 8

// maxWaitReads limits how many requests that wait read their tasks at once. Missed news wakes all of
// them, and the leases of running tasks must not wait for thousands of reads.
const maxWaitReads = 64

// followed is a task that something in this process follows. Server.mu guards it.
type followed struct {
	followers int
	// needing counts the followers that need the record of a change, and not only the news.
	needing int
	// version is the newest that this process has stored, or has got from the feed.
	version int64
	// expected is the version that this process is about to store, or 0. What the feed tells of it is
	// not new.
	expected int64
	// waiting are the entries of the task in watches.
	waiting []*watched
}

// Follow lets the functions of [Server.Observe] know of the changes of a task by other
// processes, until unfollow is called. A version may come twice or late.
func (s *Server) Follow(id string) (unfollow func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.follow(id)
	f.needing++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		f.needing--
		s.unfollow(id, f)
	}
}

// follow adds a follower of a task. Server.mu is held.
func (s *Server) follow(id string) *followed {
	f := s.followed[id]
	if f == nil {
		f = &followed{}
		s.followed[id] = f
	}
	f.followers++
	return f
}

// unfollow removes a follower. Server.mu is held.
func (s *Server) unfollow(id string, f *followed) {
	if f.followers--; f.followers == 0 {
		delete(s.followed, id)
	}
}

// noteChange wakes those who wait for a change of a task, unless the process knows the version.
// Version 0 means that the task is gone. noteChange reports whether the record is needed.
func (s *Server) noteChange(id string, version int64) (needsRecord bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[id]
	if f == nil || version > 0 && version <= f.version {
		return false
	}
	f.version = version
	f.wake()
	return f.needing > 0
}

// expectChange notes that this process is about to store a version of a task.
func (s *Server) expectChange(id string, version int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.followed[id]; f != nil {
		f.expected = version
	}
}

// missChange ends expectChange for a version that this process has not stored. Another one may
// have stored it, so the task is fetched.
func (s *Server) missChange(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.followed[id]; f != nil {
		f.expected = 0
		f.wake()
		if f.needing > 0 {
			s.toFetch[id] = true
			s.kick(s.fetchNow)
		}
	}
}

// isExpected reports whether this process is about to store a version, or has.
func (s *Server) isExpected(c Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	f := s.followed[c.ID]
	return f != nil && c.Version > 0 && c.Version == f.expected
}

// kick makes a loop of the upkeep go on at once.
func (s *Server) kick(now chan struct{}) {
	select {
	case now <- struct{}{}:
	default:
	}
}

// noteMissed wakes all who wait, and returns the tasks whose records are needed.
func (s *Server) noteMissed() (needed []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, f := range s.followed {
		f.wake()
		if f.needing > 0 {
			needed = append(needed, id)
		}
	}
	return needed
}

// readFeed reads the store's feed until it ends, and returns the pause before it is read again.
func (s *Server) readFeed() time.Duration {
	began := time.Now()
	err := s.takeChanges()
	if err != nil && s.drained.Err() == nil && s.auditRates.Allow([2]string{"store", "Changes"}) {
		s.logger.Warn("feed of the store failed, and is read again", "error", err)
	}
	s.takeChange(Change{Missed: true})
	if time.Since(began) > longestPause {
		s.feedPause = 0
	}
	s.feedPause = min(max(2*s.feedPause, shortestPause), longestPause)
	return s.feedPause
}

// takeChanges acts upon the changes of the feed until it ends. A panic of the store is an error of it.
func (s *Server) takeChanges() (err error) {
	defer guard.Then(s.logger, "feed of the store", func() { err = errors.New("the store panicked") })
	for change, err := range s.store.Changes(s.drained) {
		if err != nil {
			return err
		}
		s.takeChange(change)
	}
	return nil
}

// takeChange acts upon one change.
func (s *Server) takeChange(c Change) {
	if c.Version > 0 && c.Phase == PhaseDone {
		s.ends.count(s.Now())
	}
	if c.Missed || c.Free {
		s.kick(s.adoptNow)
	}
	// A name may have a later task than the one that has ended.
	if c.ID != "" && (c.Version == 0 || c.Phase == PhaseDone) && !isNamed(c.ID) {
		s.progress.Delete(c.ID) // of a task that was created here and has run elsewhere
		s.withdrawSubmission(c.ID)
	}
	switch {
	case c.Missed:
		s.fetchSoon(s.noteMissed()...)
		s.notifySessions()
	case s.isExpected(c):
	case c.ID != "" && (s.noteChange(c.ID, c.Version) || s.isOfFollowedSession(c)):
		s.fetchSoon(c.ID)
	}
}

// fetchSoon lets fetchers read tasks.
func (s *Server) fetchSoon(ids ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		s.toFetch[id] = true
	}
	s.kick(s.fetchNow)
}

// startFetchers starts goroutines that fetch tasks.
func (s *Server) startFetchers() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range min(maxFetchers-s.fetchers, len(s.toFetch)) { // those that run may be slow
		s.fetchers++
		s.upkeep.Go(func() {
			defer guard.Recover(s.logger, "reading of changed tasks")
			for id, ok := s.nextToFetch(); ok; id, ok = s.nextToFetch() {
				s.fetchTask(id)
			}
		})
	}
	return StoreWait
}

// nextToFetch takes a task to fetch. If there is none, the fetcher ends.
func (s *Server) nextToFetch() (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.toFetch {
		delete(s.toFetch, id)
		return id, true
	}
	s.fetchers--
	return "", false
}

// fetchTask reads a task that has changed elsewhere. It stops the task's handler if the record
// says so, and tells observers. If the store fails, the task is fetched again later.
func (s *Server) fetchTask(id string) {
	defer guard.Recover(s.logger, "a changed task")
	begun := s.hasBegun(id) // before that, the record may not be stored yet
	record, err := callOnce(s.drained, s.newTaskRetry(), "Get", func(ctx context.Context) (Record, error) { return s.store.Get(ctx, id) })
	s.endFetch(id, err)
	switch {
	case err == nil:
		s.stopIfEnded(record)
		s.notifyObservers(record)
	case isGone(err) && begun:
		s.cancelHandler(id, ErrExpired)
	}
}

// unfetched is a task that the store has failed to return. Server.mu guards it.
type unfetched struct {
	failures int
	pending  bool // whether the task will be fetched again
}

// endFetch ends a fetch, which has returned err. If the store has failed, the task is fetched again after
// a pause that grows.
func (s *Server) endFetch(id string, err error) {
	failed := err != nil && !isStoreAnswer(err) && s.drained.Err() == nil
	if failed {
		s.warnOfFailure("store", "Get", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	u := s.unfetched[id]
	switch {
	case u != nil && u.pending: // and that call will see what this one has missed
	case !failed:
		delete(s.unfetched, id)
	default:
		if u == nil {
			u = &unfetched{}
			s.unfetched[id] = u
		}
		u.failures++
		u.pending = true
		time.AfterFunc(spread(pauseAfter(u.failures)), func() {
			defer guard.Recover(s.logger, "a changed task")
			s.fetchAgain(id)
		})
	}
}

// fetchAgain lets fetchers read a task that the store has failed to return, if it is still followed.
func (s *Server) fetchAgain(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f := s.followed[id]; (f == nil || f.needing == 0) && s.sessions[MarkOfTask(id)] == nil {
		delete(s.unfetched, id)
		return
	}
	s.unfetched[id].pending = false
	s.toFetch[id] = true
	s.kick(s.fetchNow)
}
