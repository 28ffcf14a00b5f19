package taskserver

import (
	"context"
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// leaseFor is how long a worker that has died keeps its tasks, unless Backend.lease differs.
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
func (b *Backend) renewEvery() time.Duration { return b.lease / 3 }

// renewAgain is the pause after a renewal that failed.
func (b *Backend) renewAgain() time.Duration { return b.renewEvery() / 5 }

// startUpkeep starts the work that goes on until the server has drained. Each kind
// has its own goroutine, so that a slow store call for one delays no other.
func (b *Backend) startUpkeep() {
	b.startLoop("renewal of the lease", 0, nil, b.keepLease)
	b.startLoop("feed of the store", 0, nil, b.readFeed)
	b.startLoop("reading of changed tasks", StoreWait, b.fetchNow, b.startFetchers)
	b.startLoop("expiry", sweepEvery, nil, b.deleteExpired)
	b.startLoop("adoption", b.renewEvery(), b.adoptNow, b.adoptOrphans)
	if _, ok := b.store.(taskstore.Inspector); ok && !b.ownStore {
		b.startLoop("check of stored tasks", b.lease, nil, b.lookForStale) // the leases of dead workers have ended by then
	}
	if b.line != nil {
		b.startLoop("waiting tasks", 0, b.line.now, b.line.startWaiting)
	}
	if b.engine != nil {
		b.startLoop("check of the engine's tasks", spread(submitAgain), nil, b.submitUnfinished)
	}
}

// startLoop calls do again and again in a goroutine. do returns how long to wait
// until the next call, unless there is something in now before.
func (b *Backend) startLoop(what string, first time.Duration, now <-chan struct{}, do func() time.Duration) {
	b.upkeep.Go(func() {
		defer guard.Recover(b.logger, what)
		timer := time.NewTimer(first)
		defer timer.Stop()
		for {
			select {
			case <-timer.C:
			case <-now:
			case <-b.drained.Done():
				return
			}
			timer.Reset(b.runGuarded(what, do))
		}
	})
}

// runGuarded calls do once and survives its panic.
func (b *Backend) runGuarded(what string, do func() time.Duration) (next time.Duration) {
	defer guard.Then(b.logger, what, func() { next = b.renewEvery() })
	return do()
}

// keepLease renews the lease of this worker.
func (b *Backend) keepLease() time.Duration {
	b.beating.Store(time.Now().UnixNano())
	err := b.renewLease(b.drained)
	if err != nil && b.drained.Err() == nil {
		b.logger.Error("lease not renewed", "error", err)
		return b.renewAgain()
	}
	return b.renewEvery()
}

// ensureLease begins the lease of this worker, or renews it if it may end before a call of the store
// does. Without a lease, other workers would take the tasks of this one.
func (b *Backend) ensureLease(ctx context.Context) error {
	if b.hasLease() {
		return nil
	}
	_, err := callStore(ctx, b.newRequestRetry(), "Beat", func(ctx context.Context) (struct{}, error) {
		if b.hasLease() { // another call has renewed it
			return struct{}{}, nil
		}
		return struct{}{}, b.renewLease(ctx)
	})
	return err
}

// hasLease reports whether the lease lasts longer than a call of the store.
func (b *Backend) hasLease() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return !b.renewed.IsZero() && time.Since(b.renewed) < b.lease-b.renewEvery()
}

// renewLease calls the store's Beat, which tells the time and which tasks of running handlers are
// lost. It does not wait for a call that hangs, so that the next one may succeed.
func (b *Backend) renewLease(ctx context.Context) error {
	if b.renewing.Add(1) > maxRenewals {
		b.renewing.Add(-1)
		return fmt.Errorf("the store does not return from %d calls", maxRenewals)
	}
	ctx, cancel := context.WithTimeout(ctx, StoreTimeout)
	defer cancel()
	return b.callDetached(ctx, "renewal of the lease", func(ctx context.Context) error {
		defer b.renewing.Add(-1)
		held, began := b.listRuns(), time.Now()
		beat, err := b.beat(ctx, b.worker, b.lease, held)
		ended := time.Now()
		switch {
		case err != nil:
		case b.engine != nil: // its tasks have another worker
			beat, err = b.beat(ctx, b.engine.Name(), engineLease, held)
		}
		if err != nil {
			return err
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		if began.After(b.renewed) {
			b.renewed = began
			b.setClock(beat.Now, began, ended)
		}
		for _, id := range beat.Lost {
			b.toFetch[id] = true
			b.kick(b.fetchNow)
		}
		return nil
	})
}

// beat makes one call of the store's Beat.
func (b *Backend) beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	return hookStore(ctx, b, "Beat", func(ctx context.Context) (taskstore.Heartbeat, error) { return b.store.Beat(ctx, worker, lease, held) })
}

// setClock notes the store's time. The server's own time is good enough if the store may have read its clock at that
// time. b.mu is held.
func (b *Backend) setClock(now, began, ended time.Time) {
	defer func() {
		b.beaten.Store(&moment{ended, ended.Round(0).Add(time.Duration(b.clock.Load()))})
		if b.past == nil {
			b.past = steady.NewReader(func() (time.Time, time.Duration) { return b.Now(), time.Since(ended) })
		}
		b.clockKnown.Store(true)
	}()
	switch {
	case now.Before(began.Truncate(time.Microsecond)):
		b.clock.Store(int64(now.Sub(began)))
	case now.After(ended):
		b.clock.Store(int64(now.Sub(ended)))
	default:
		b.clock.Store(0)
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
func (b *Backend) Now() time.Time {
	now := time.Now()
	store := now.Round(0).Add(time.Duration(b.clock.Load()))
	if m := b.beaten.Load(); m != nil {
		if passed := m.store.Add(now.Sub(m.local)); passed.After(store) {
			store = passed
		}
	}
	return store.UTC().Truncate(time.Microsecond)
}

// SureNow returns the time by which to decide whether a period has ended. If a clock jumps ahead, SureNow
// follows only when the jump has lasted for a minute. So nothing ends early because a clock was ahead for a
// moment.
func (b *Backend) SureNow() time.Time {
	if !b.clockKnown.Load() {
		return b.Now()
	}
	return b.past.Now().UTC().Truncate(time.Microsecond)
}

// isExpired reports whether a task has expired. As long as the server does not know the store's time,
// only the store deletes tasks.
func (b *Backend) isExpired(r taskstore.Record) bool {
	return b.clockKnown.Load() && isExpired(&r, b.SureNow())
}

// deleteExpired deletes expired tasks and stops their handlers.
func (b *Backend) deleteExpired() time.Duration {
	for {
		gone, err := callOnce(b.drained, b.newTaskRetry(), "Expire", func(ctx context.Context) ([]taskstore.Record, error) {
			return b.store.Expire(ctx, sweepBatch)
		})
		if err != nil {
			if b.drained.Err() == nil {
				b.logger.Error("expired tasks not deleted", "error", err)
			}
			return sweepEvery
		}
		for _, r := range gone {
			b.announceExpiry(b.drained, r)
		}
		if len(gone) < sweepBatch {
			return sweepEvery
		}
	}
}

// announceExpiry stops the handler of a task that was deleted because it has
// expired, and tells observers and the audit trail.
func (b *Backend) announceExpiry(ctx context.Context, r taskstore.Record) {
	if sure := b.SureNow(); r.ExpiresAt.After(sure) { // the store was sure earlier
		r.ExpiresAt = sure
	}
	b.stopRun(r, mcptask.ErrExpired, isRunOf)
	b.forgetCall(r.ID)
	if !r.Done() {
		b.notifyObservers(r)
		b.auditEnd(ctx, r, "expired")
	}
}

// cancelUnfinished ends the tasks that are left in a store that closes with the
// server, and logs how many.
func (b *Backend) cancelUnfinished(ctx context.Context) {
	t := &storeRetry{backend: b, end: ctx.Done(), timeout: StoreTimeout}
	lost := 0
	defer func() {
		if lost > 0 {
			b.logger.Warn("unfinished tasks are lost, since they are kept in memory: set Options.Store to a durable store, such as runtime/sqlite", "tasks", lost)
		}
	}()
	inspector := b.store.(taskstore.Inspector) // a memory store is one
	for after := (taskstore.Position{}); ; {
		left, err := inspector.Scan(ctx, taskstore.Filter{Unfinished: true}, after, sweepBatch)
		if err != nil {
			b.logger.Error("unfinished tasks not ended", "error", err)
			return
		}
		for _, r := range left {
			after = r.Position()
			_, err := b.moveTask(ctx, t, r, func(taskstore.Record) event {
				return event{kind: eventFinish, outcome: taskstore.Outcome{Kind: taskstore.OutcomeCancelled}}
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
