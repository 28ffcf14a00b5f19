package storetest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// follower reads a feed and checks that each record's versions come in order, without a gap. One
// goroutine uses it.
type follower struct {
	k    *kit
	s    taskstore.Store
	next func() (taskstore.Change, error, bool)
	stop func()
	// seen has the latest version of each record that the feed has told of since it missed any.
	seen map[string]int64
	// missed says that the feed has missed changes after its beginning. Then it may still have some
	// that nobody wants anymore.
	missed bool
}

// beginTimeout limits the time until a feed begins.
const beginTimeout = 20 * time.Second

// follow begins to read a feed. Changes that begin after it returns are in the feed. It ends the test if the feed does
// not begin with Missed, because whoever reads the feed would wait until the test's timeout.
func (k *kit) follow(s taskstore.Store) *follower {
	k.Helper()
	f := &follower{k: k, s: s}
	ctx, cancel := context.WithCancel(k.ctx)
	f.next, f.stop = iter.Pull2(s.Changes(ctx))
	k.Cleanup(func() {
		f.stop()
		cancel()
	})
	late := time.AfterFunc(beginTimeout, cancel)
	c, err, ok := f.next()
	switch isInTime := late.Stop(); {
	case !isInTime:
		k.Fatalf("a feed has no change for %v: its first Change has Missed set, and comes at once", beginTimeout)
	case err != nil || !ok:
		k.Fatalf("a feed ended before its first change, which has Missed set: %v", err)
	case c != taskstore.Change{Missed: true}:
		k.Fatalf("a feed begins with %+v: its first Change has Missed set, and nothing else", c)
	}
	f.seen = map[string]int64{}
	return f
}

// read returns the next change. If there is none, it fails the test and returns false.
func (f *follower) read() (taskstore.Change, bool) {
	f.k.Helper()
	c, err, ok := f.next()
	switch {
	case f.k.ctx.Err() != nil:
		f.k.Errorf("the feed ended with the time of the test: it has lost a change, and no Change with Missed set tells of that")
		return c, false
	case !ok || err != nil:
		f.k.Errorf("the feed ended: %v", err)
		return c, false
	}
	if c.Missed == (c.ID != "" || c.Free) || c.Version < 0 {
		f.k.Errorf("the feed has a change of several kinds, or of none: %+v", c)
	}
	if c.Missed {
		f.seen = map[string]int64{}
	}
	if c.ID != "" {
		if former, ok := f.seen[c.ID]; ok && c.Version != former+1 && c.Version != former && c.Version != 0 {
			f.k.Errorf("the feed has version %d of %s after version %d", c.Version, c.ID, former)
		}
		f.seen[c.ID] = c.Version
	}
	return c, true
}

// want reads until all of some changes have come: those of one record in this order, and anything else between them.
// After a Change with Missed set, the stored records may take their place.
func (f *follower) want(changes ...taskstore.Change) {
	f.k.Helper()
	changes = slices.Clone(changes)
	isLast := func(i int) bool {
		return !slices.ContainsFunc(changes[i+1:], func(w taskstore.Change) bool { return w.ID == changes[i].ID })
	}
	for len(changes) > 0 {
		c, ok := f.read()
		if !ok {
			f.k.Errorf("still wanted are %+v", changes)
			return
		}
		if c.Missed {
			f.missed = true
			var later []taskstore.Change
			for i, w := range changes {
				if isLast(i) && w.ID != "" && f.checkStored(w) != nil {
					later = append(later, w)
				}
			}
			changes = later
			continue
		}
		i := slices.IndexFunc(changes, func(w taskstore.Change) bool { return w.ID == c.ID && (c.ID != "" || w.Free == c.Free) })
		if i < 0 {
			continue
		}
		if c.ID != "" && c.Version == 0 {
			c.Phase, c.Free = "", false // of no meaning
		}
		if c != changes[i] {
			if f.missed {
				continue
			}
			f.k.Errorf("the feed has %+v, want %+v", c, changes[i])
		}
		if isLast(i) && c.ID != "" {
			if err := f.checkStored(c); err != nil {
				f.k.Errorf("after a change: %v", err)
			}
		}
		changes = slices.Delete(changes, i, i+1)
	}
}

// checkStored checks that Get returns at least the version in the last change of a record.
func (f *follower) checkStored(c taskstore.Change) error {
	r, err := f.s.Get(f.k.ctx, c.ID)
	if err != nil && !errors.Is(err, taskstore.ErrNoRecord) {
		return err
	}
	if r.Version < c.Version || c.Version == 0 && err == nil {
		return fmt.Errorf("the feed has %+v, stored is version %d", c, r.Version)
	}
	return nil
}

// changeTo returns the change that a feed has for a version of a record.
func changeTo(r taskstore.Record) taskstore.Change { return r.Change() }

func testChanges(k *kit) {
	before := k.createFor("w0", "before")
	feeds := []*follower{k.follow(k.s), k.follow(k.other)}
	wantAll := func(want ...taskstore.Change) {
		k.Helper()
		for _, f := range feeds {
			f.want(want...)
		}
	}
	a := k.createFor("w1", "a")
	wantAll(changeTo(a))
	change := a
	change.Phase = taskstore.PhaseRunning
	running := k.updateRecord(a, change)
	wantAll(changeTo(running))
	// A call that changes nothing is not in the feed; the follower would notice another version.
	_, err := k.other.Create(k.ctx, k.newRecord("a", "p", k.epoch), taskstore.Quota{})
	k.wantError("create again", err, taskstore.ErrExists)
	_, err = k.other.Update(k.ctx, a, change, taskstore.Quota{})
	k.wantError("update again", err, taskstore.ErrConflict)
	k.beat(k.s, "w1", "a")
	asking := running
	asking.Phase = taskstore.PhaseInputRequired
	asking, err = k.other.Update(k.ctx, running, asking, taskstore.Quota{})
	k.wantError("update by the other handle", err, nil)
	var want []taskstore.Change
	for _, r := range k.takeLeases("w2", "before") {
		want = append(want, changeTo(r))
	}
	wantAll(append(want, changeTo(asking))...)
	done := k.updateRecord(asking, finishRecord(asking))
	want = []taskstore.Change{changeTo(done), {ID: "a"}, {ID: before.ID, Version: 3, Phase: before.Phase}, {ID: before.ID}}
	k.deleteRecord("a")
	taken := k.getRecord(before.ID)
	expired := taken
	expired.ExpiresAt = k.minutesAfter(-1)
	k.updateRecord(taken, expired)
	k.expireRecords(5, 1)
	wantAll(want...)
	again := k.createFor("", "a")
	wantAll(changeTo(again))
	later := k.follow(k.other) // has the changes from here on
	k.deleteRecord("a")
	later.want(taskstore.Change{ID: "a"})
	wantAll(taskstore.Change{ID: "a"})
}

// testChangesRace follows writers at full speed. A lost change is a gap in the versions, or makes a
// reader wait until the test's timeout.
func testChangesRace(k *kit) {
	const versions, rounds = 300, 100
	f := k.follow(k.other)
	r := k.createFor("w1", "t")
	runConcurrently(2, func(i int) {
		if i == 0 {
			for err := error(nil); err == nil && r.Version < versions; {
				if r, err = k.s.Update(k.ctx, r, r, taskstore.Quota{}); err != nil {
					k.Errorf("at version %d: %v", r.Version, err)
				}
			}
			return
		}
		for last := int64(0); last < versions; last = max(last, f.seen["t"]) {
			c, ok := f.read()
			if !ok {
				return
			}
			if c.Missed {
				if now, err := f.s.Get(k.ctx, "t"); err == nil {
					last = now.Version
				}
			}
		}
	})
	// In ping-pong, each side makes every other version and waits for the other side. No later
	// change can make up for a lost one.
	k.createFor("w1", "ping-pong")
	runConcurrently(2, func(i int) {
		s := k.pickStore(i)
		for change, err := range s.Changes(k.ctx) {
			if err != nil {
				k.Errorf("the feed: %v", err)
				return
			}
			if change.ID != "ping-pong" && !change.Missed {
				continue
			}
			r, err := s.Get(k.ctx, "ping-pong")
			if err == nil && r.Version < change.Version {
				k.Errorf("version %d after a change to %d", r.Version, change.Version)
			}
			if err == nil && r.Version%2 == int64(i) && r.Version < rounds {
				r, err = s.Update(k.ctx, r, r, taskstore.Quota{})
			}
			if err != nil {
				k.Errorf("at version %d: %v", r.Version, err)
				return
			}
			if r.Version >= rounds {
				return
			}
		}
		if k.ctx.Err() != nil {
			k.Errorf("a change was lost: %v", k.ctx.Err())
		}
	})
}

func testManyReaders(k *kit) {
	const readers, records = 50, 20
	k.follow(k.other).stop()
	ready := make(chan struct{})
	var reading atomic.Int32
	runConcurrently(readers+1, func(i int) {
		if i < readers {
			f := k.follow(k.pickStore(i))
			if reading.Add(1) == readers {
				close(ready)
			}
			var want []taskstore.Change
			for n := range records {
				r := k.newRecord(fmt.Sprint("t", n), "p", k.epoch)
				r.Version = 1
				want = append(want, changeTo(r), taskstore.Change{ID: r.ID})
			}
			f.want(want...)
			return
		}
		select {
		case <-ready:
		case <-k.ctx.Done():
		}
		for n := range records {
			r, err := k.pickStore(n).Create(k.ctx, k.newRecord(fmt.Sprint("t", n), "p", k.epoch), taskstore.Quota{})
			if err == nil {
				err = k.s.Delete(k.ctx, r)
			}
			if err != nil {
				k.Errorf("create and delete: %v", err)
			}
		}
	})
}

// testSlowReader makes more changes than a store should keep for a reader that has stopped.
func testSlowReader(k *kit) {
	const writers, versions = 25, 200
	slow, quick := k.follow(k.other), k.follow(k.other)
	readAll := func(f *follower) {
		for done := map[string]bool{}; len(done) < writers; {
			c, ok := f.read()
			if !ok {
				k.Errorf("%d of %d records have reached their last version", len(done), writers)
			}
			if !ok || c.Missed {
				return // if it missed some, a server reads the stored records
			}
			if c.Version == versions {
				done[c.ID] = true
			}
		}
	}
	runConcurrently(writers+1, func(i int) {
		if i == writers {
			readAll(quick)
			return
		}
		r, err := k.pickStore(i).Create(k.ctx, k.newRecord(fmt.Sprint("t", i), "p", k.epoch), taskstore.Quota{})
		for err == nil && r.Version < versions {
			r, err = k.pickStore(i).Update(k.ctx, r, r, taskstore.Quota{})
		}
		if err != nil {
			k.Errorf("version %d of %s: %v", r.Version, r.ID, err)
		}
	})
	readAll(slow)
	last := k.createFor("w1", "last") // both go on
	quick.want(changeTo(last))
	slow.want(changeTo(last))
}

func testChangesEnd(k *kit) {
	k.follow(k.s).stop()
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	for c, err := range k.s.Changes(ctx) { // its reader leaves
		if err != nil || !c.Missed {
			k.Errorf("a feed begins with %+v, %v", c, err)
		}
		break
	}
	read := func(ctx context.Context, s taskstore.Store, begin func()) {
		begun := sync.OnceFunc(begin)
		for _, err := range s.Changes(ctx) {
			if err != nil {
				k.Errorf("a feed ended with an error: %v", err)
			}
			begun()
		}
		if k.ctx.Err() != nil {
			k.Errorf("a feed did not end: %v", k.ctx.Err())
		}
	}
	end := func(ctx context.Context, stop func()) {
		const readers = 6
		var begun sync.WaitGroup
		begun.Add(readers)
		runConcurrently(readers+1, func(i int) {
			if i < readers {
				read(ctx, k.other, begun.Done)
				return
			}
			begun.Wait()
			stop()
		})
	}
	end(ctx, cancel)
	read(ctx, k.s, func() {}) // with a context that has ended before
	end(k.ctx, func() {
		if err := k.other.Close(); err != nil {
			k.Errorf("close: %v", err)
		}
	})
}

func testClose(k *kit) {
	k.createFor("w1", "t")
	for range 2 {
		if err := k.s.Close(); err != nil {
			k.Errorf("close: %v", err)
		}
	}
	if stored, err := k.s.Create(k.ctx, k.newRecord("late", "p", k.epoch), taskstore.Quota{}); err == nil {
		k.Errorf("created after the end: %s", describeRecords(stored))
	}
}
