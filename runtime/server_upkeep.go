package mcptask

import (
	"context"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
)

const (
	// leaseFor is how long a worker that has died keeps its tasks, unless Server.lease differs.
	leaseFor = 30 * time.Second
	// maxRenewals is how many renewals may hang in a store that ignores contexts.
	maxRenewals = 4
	// sweepEvery is how often expired tasks are deleted. A request for one is refused
	// from the moment it expires.
	sweepEvery = time.Second
	// sweepBatch bounds the records of one store call.
	sweepBatch = 256
)

// renewEvery leaves two more tries before a lease ends.
func (s *Server) renewEvery() time.Duration { return s.lease / 3 }

// renewAgain is the pause after a renewal that failed.
func (s *Server) renewAgain() time.Duration { return s.renewEvery() / 5 }

// startUpkeep starts the work that goes on until the server has drained. Each kind
// has its own goroutine, so that a slow store call for one delays no other.
func (s *Server) startUpkeep() {
	s.startLoop("renewal of the lease", 0, nil, s.keepLease)
	s.startLoop("feed of the store", 0, nil, s.readFeed)
	s.startLoop("reading of changed tasks", StoreWait, s.fetchNow, s.startFetchers)
	s.startLoop("expiry", sweepEvery, nil, s.deleteExpired)
	s.startLoop("adoption", s.renewEvery(), s.adoptNow, s.adoptOrphans)
	if s.engine != nil {
		s.startLoop("check of the engine's tasks", spread(submitAgain), nil, s.submitUnfinished)
	}
}

// startLoop calls do again and again in a goroutine. do returns how long to wait
// until the next call, unless there is something in now before.
func (s *Server) startLoop(what string, first time.Duration, now <-chan struct{}, do func() time.Duration) {
	s.upkeep.Go(func() {
		defer guard.Recover(s.logger, what)
		timer := time.NewTimer(first)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-now:
			case <-s.drained.Done():
				return
			}
			timer.Reset(s.runGuarded(what, do))
		}
	})
}

// runGuarded calls do once and survives its panic.
func (s *Server) runGuarded(what string, do func() time.Duration) (next time.Duration) {
	defer guard.Then(s.logger, what, func() { next = s.renewEvery() })
	return do()
}

// keepLease renews the lease of this worker.
func (s *Server) keepLease() time.Duration {
	s.beating.Store(time.Now().UnixNano())
	err := s.renewLease(s.drained)
	if err != nil && s.drained.Err() == nil {
		s.logger.Error("lease not renewed", "error", err)
		return s.renewAgain()
	}
	return s.renewEvery()
}

// ensureLease begins the lease of this worker, or renews it if it may end before a call of the store
// does. Without a lease, other workers would take the tasks of this one.
func (s *Server) ensureLease(ctx context.Context) error {
	if s.hasLease() {
		return nil
	}
	_, err := callStore(ctx, s.newRequestRetry(), "Beat", func(ctx context.Context) (struct{}, error) {
		if s.hasLease() { // another call has renewed it
			return struct{}{}, nil
		}
		return struct{}{}, s.renewLease(ctx)
	})
	return err
}

// hasLease reports whether the lease lasts longer than a call of the store.
func (s *Server) hasLease() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.renewed.IsZero() && time.Since(s.renewed) < s.lease-s.renewEvery()
}

// renewLease calls the store's Beat, which tells the time and which tasks of running handlers are
// lost. It does not wait for a call that hangs, so that the next one may succeed.
func (s *Server) renewLease(ctx context.Context) error {
	if s.renewing.Add(1) > maxRenewals {
		s.renewing.Add(-1)
		return fmt.Errorf("the store does not return from %d calls", maxRenewals)
	}
	ctx, cancel := context.WithTimeout(ctx, StoreTimeout)
	defer cancel()
	return s.callDetached(ctx, "renewal of the lease", func(ctx context.Context) error {
		defer s.renewing.Add(-1)
		held, began := s.listRuns(), time.Now()
		beat, err := s.beat(ctx, s.worker, s.lease, held)
		ended := time.Now()
		switch {
		case err != nil:
		case s.engine != nil: // its tasks have another worker
			beat, err = s.beat(ctx, s.engine.Name(), engineLease, held)
		}
		if err != nil {
			return err
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if began.After(s.renewed) {
			s.renewed = began
			s.setClock(beat.Now, began, ended)
		}
		for _, id := range beat.Lost {
			s.toFetch[id] = true
			s.kick(s.fetchNow)
		}
		return nil
	})
}

// beat makes one call of the store's Beat.
func (s *Server) beat(ctx context.Context, worker string, lease time.Duration, held []string) (Heartbeat, error) {
	return hookStore(ctx, s, "Beat", func(ctx context.Context) (Heartbeat, error) { return s.store.Beat(ctx, worker, lease, held) })
}

// setClock notes what the store's time is. The server's own time is good enough if the store
// may have read its clock at that time. s.mu is held.
func (s *Server) setClock(now, began, ended time.Time) {
	defer func() {
		s.beaten.Store(&moment{ended, ended.Round(0).Add(time.Duration(s.clock.Load()))})
		if s.past == nil {
			s.past = steady.NewReader(func() (time.Time, time.Duration) { return s.Now(), time.Since(ended) })
		}
		s.clockKnown.Store(true)
	}()
	switch {
	case now.Before(began.Truncate(time.Microsecond)):
		s.clock.Store(int64(now.Sub(began)))
	case now.After(ended):
		s.clock.Store(int64(now.Sub(ended)))
	default:
		s.clock.Store(0)
	}
}

// moment is a time by the clock of this process, and by that of the store.
type moment struct{ local, store time.Time }

// Now returns the store's time, as far as the server knows it, in UTC and in whole
// microseconds, as stores and cursors keep it. Use it for the beginning of a period, and SureNow to decide
// whether a period has ended.
//
// The machine's clock may be set back for a moment. The monotonic clock, which counts the time since the
// last heartbeat, stands still while the machine sleeps. Now returns the later of the two, so that a period
// that begins now does not end early.
func (s *Server) Now() time.Time {
	now := time.Now()
	store := now.Round(0).Add(time.Duration(s.clock.Load()))
	if m := s.beaten.Load(); m != nil {
		if passed := m.store.Add(now.Sub(m.local)); passed.After(store) {
			store = passed
		}
	}
	return store.UTC().Truncate(time.Microsecond)
}

// SureNow returns the time by which to decide whether a period has ended. If a clock jumps ahead, SureNow
// follows only when the jump has lasted for a minute. So nothing ends early because a clock was ahead for a
// moment.
func (s *Server) SureNow() time.Time {
	if !s.clockKnown.Load() {
		return s.Now()
	}
	return s.past.Now().UTC().Truncate(time.Microsecond)
}

// isExpired reports whether a task has expired. As long as the server does not know the store's time,
// only the store deletes tasks.
func (s *Server) isExpired(r Record) bool { return s.clockKnown.Load() && r.isExpired(s.SureNow()) }

// deleteExpired deletes expired tasks and stops their handlers.
func (s *Server) deleteExpired() time.Duration {
	for {
		gone, err := callOnce(s.drained, s.newTaskRetry(), "Expire", func(ctx context.Context) ([]Record, error) {
			return s.store.Expire(ctx, sweepBatch)
		})
		if err != nil {
			if s.drained.Err() == nil {
				s.logger.Error("expired tasks not deleted", "error", err)
			}
			return sweepEvery
		}
		for _, r := range gone {
			s.announceExpiry(s.drained, r)
		}
		if len(gone) < sweepBatch {
			return sweepEvery
		}
	}
}

// announceExpiry stops the handler of a task that was deleted because it has
// expired, and tells observers and the audit trail.
func (s *Server) announceExpiry(ctx context.Context, r Record) {
	if sure := s.SureNow(); r.ExpiresAt.After(sure) { // the store was sure earlier
		r.ExpiresAt = sure
	}
	s.stopRun(r, ErrExpired)
	s.progress.Delete(r.ID)
	s.withdrawSubmission(r.ID)
	if !r.Done() {
		s.notifyObservers(r)
		s.auditEnd(ctx, r, "expired")
	}
}

// cancelUnfinished ends the tasks that are left in a store that closes with the
// server, and logs how many.
func (s *Server) cancelUnfinished(ctx context.Context) {
	t := &storeRetry{server: s, end: ctx.Done(), timeout: StoreTimeout}
	lost := 0
	defer func() {
		if lost > 0 {
			s.logger.Warn("unfinished tasks are lost, since they are kept in memory: set Options.Store to a durable store, such as runtime/sqlite", "tasks", lost)
		}
	}()
	inspector := s.store.(Inspector) // a memory store is one
	for after := (Position{}); ; {
		left, err := inspector.Scan(ctx, Filter{Unfinished: true}, after, sweepBatch)
		if err != nil {
			s.logger.Error("unfinished tasks not ended", "error", err)
			return
		}
		for _, r := range left {
			after = r.listPosition()
			_, err := s.moveTask(ctx, t, r, func(Record) event {
				return event{kind: eventFinish, outcome: Outcome{Kind: OutcomeCancelled}}
			})
			if err == nil { // otherwise the task has ended by itself
				lost++
			}
		}
		if len(left) < sweepBatch {
			return
		}
	}
}
