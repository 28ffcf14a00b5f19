package storetest

import (
	"context"
	"fmt"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func testWait(k *kit) {
	first := k.createRecord(newRecord("t", "p", epoch))
	for _, version := range []int64{0, -1} {
		got, err := k.other.Wait(k.ctx, "t", version)
		k.wantError("a version that is there", err, nil)
		k.wantRecord("a version that is there", got, first)
	}
	_, err := k.s.Wait(k.ctx, "unknown", 0)
	k.wantError("no record", err, mcptask.ErrNoRecord)
	_, err = k.s.Wait(k.ctx, "unknown", 5)
	k.wantError("no record", err, mcptask.ErrNoRecord)

	third := make(chan mcptask.Record, 1)
	runConcurrently(21, func(i int) {
		if i == 20 {
			k.pause()
			third <- k.updateTwice(first)
			return
		}
		got, err := k.pickStore(i).Wait(k.ctx, "t", 2)
		if err != nil || got.Version != 3 {
			k.Errorf("waited for version %d: %v", got.Version, err)
		}
	})
	got, err := k.s.Wait(k.ctx, "t", 1) // already newer
	k.wantError("a version behind", err, nil)
	k.wantRecord("a version behind", got, <-third)

	// A lease makes a new version. A renewal does not.
	runConcurrently(2, func(i int) {
		if i == 0 {
			got, err := k.other.Wait(k.ctx, "t", 3)
			if err != nil || got.Version != 4 || got.Worker != "w2" {
				k.Errorf("waited for %s, %v", describeRecords(got), err)
			}
			return
		}
		k.pause()
		if err := k.s.Renew(k.ctx, "w1", minutesAfter(2)); err != nil {
			k.Errorf("renew: %v", err)
		}
		k.pause()
		if _, err := k.s.Lease(k.ctx, "w2", minutesAfter(3), minutesAfter(4), 1); err != nil {
			k.Errorf("lease: %v", err)
		}
	})
}

// updateTwice makes two versions.
func (k *kit) updateTwice(r mcptask.Record) mcptask.Record {
	for range 2 {
		var err error
		if r, err = k.s.Update(k.ctx, r, mcptask.Quota{}); err != nil {
			k.Errorf("update: %v", err)
		}
	}
	return r
}

// testWakeUps lets waiters follow writers at full speed. A lost wake-up makes a waiter hang until
// the test's timeout.
func testWakeUps(k *kit) {
	const versions, rounds = 500, 100
	k.createRecord(newRecord("t", "p", epoch))
	runConcurrently(7, func(i int) {
		s := k.pickStore(i)
		if i > 0 {
			for version := int64(0); version < versions; {
				got, err := s.Wait(k.ctx, "t", version)
				if err != nil || got.Version <= version {
					k.Errorf("version %d after %d: %v", got.Version, version, err)
					return
				}
				version = got.Version
			}
			return
		}
		r, err := s.Get(k.ctx, "t")
		for err == nil && r.Version < versions {
			if r, err = s.Update(k.ctx, r, mcptask.Quota{}); err == nil {
				r, err = s.Wait(k.ctx, "t", r.Version-1)
			}
		}
		if err != nil {
			k.Errorf("at version %d: %v", r.Version, err)
		}
	})
	// In ping-pong, each side makes every other version and waits for the other side. No later
	// change can make up for a lost wake-up.
	k.createRecord(newRecord("ping-pong", "p", epoch))
	runConcurrently(2, func(i int) {
		s := k.pickStore(i)
		for {
			r, err := s.Get(k.ctx, "ping-pong")
			if err == nil && r.Version%2 == int64(i) {
				r, err = s.Update(k.ctx, r, mcptask.Quota{})
			}
			if err == nil && r.Version < 2*rounds {
				r, err = s.Wait(k.ctx, "ping-pong", r.Version)
			}
			if err != nil {
				k.Errorf("at version %d: %v", r.Version, err)
				return
			}
			if r.Version >= 2*rounds {
				return
			}
		}
	})
	// Change each of many records once, just when a waiter comes.
	for n := range rounds {
		id := fmt.Sprint("once", n)
		r := k.createRecord(newRecord(id, "p", epoch))
		gone := n%2 == 1
		runConcurrently(2, func(i int) {
			var err error
			switch {
			case i == 0:
				_, err = k.other.Wait(k.ctx, id, 1)
			case gone:
				err = k.s.Delete(k.ctx, r)
			default:
				_, err = k.s.Update(k.ctx, r, mcptask.Quota{})
			}
			if gone && i == 0 {
				k.wantError("the end of a wait", err, mcptask.ErrNoRecord)
			} else {
				k.wantError("a change while one waits", err, nil)
			}
		})
	}
}

func testThousands(k *kit) {
	const waiters, records = 3000, 30
	all := make([]mcptask.Record, records)
	for i := range all {
		all[i] = k.createRecord(newRecord(fmt.Sprint("t", i), "p", epoch))
	}
	runConcurrently(waiters+1, func(i int) {
		if i < waiters {
			got, err := k.pickStore(i).Wait(k.ctx, fmt.Sprint("t", i%records), 1)
			if err != nil || got.Version != 2 || got.ID != fmt.Sprint("t", i%records) {
				k.Errorf("waiter %d: version %d of %q, %v", i, got.Version, got.ID, err)
			}
			return
		}
		k.pause()
		for _, r := range all {
			if _, err := k.s.Update(k.ctx, r, mcptask.Quota{}); err != nil {
				k.Errorf("update: %v", err)
			}
		}
	})
}

func testWaitGone(k *kit) {
	for _, id := range []string{"deleted", "expired", "made anew"} {
		k.createRecord(newRecord(id, "p", epoch))
	}
	k.deleteRecord("made anew")
	k.createRecord(newRecord("made anew", "p", minutesAfter(300)))
	runConcurrently(31, func(i int) {
		if i < 30 {
			_, err := k.pickStore(i).Wait(k.ctx, []string{"deleted", "expired", "made anew"}[i%3], 1)
			k.wantError("the record went", err, mcptask.ErrNoRecord)
			return
		}
		k.pause()
		k.deleteRecord("deleted")
		k.expireRecords(minutesAfter(120), 5, 1)
		k.pause()
		k.deleteRecord("made anew")
	})
}

func testWaitCalledOff(k *kit) {
	k.createRecord(newRecord("t", "p", epoch))
	ended, cancel := context.WithCancel(k.ctx)
	cancel()
	_, err := k.s.Wait(ended, "t", 1)
	k.wantError("called off before", err, context.Canceled)
	waiting, cancel := context.WithCancel(k.ctx)
	short, cancelShort := context.WithTimeout(k.ctx, 10*time.Millisecond)
	defer cancelShort()
	runConcurrently(21, func(i int) {
		switch {
		case i == 20:
			k.pause()
			cancel()
		case i%2 == 0:
			_, err := k.pickStore(i/2).Wait(waiting, "t", 1)
			k.wantError("called off", err, context.Canceled)
		default:
			_, err := k.pickStore(i/2).Wait(short, "t", 1)
			k.wantError("out of time", err, context.DeadlineExceeded)
		}
	})
	r := k.getRecord("t") // other waiters are not affected
	runConcurrently(2, func(i int) {
		if i == 0 {
			_, err := k.other.Wait(k.ctx, "t", 1)
			k.wantError("a later wait", err, nil)
			return
		}
		_, err := k.s.Update(k.ctx, r, mcptask.Quota{})
		k.wantError("a later update", err, nil)
	})
}

func testClose(k *kit) {
	k.createRecord(newRecord("t", "p", epoch))
	runConcurrently(11, func(i int) {
		if i < 10 {
			_, err := k.s.Wait(k.ctx, "t", 1)
			k.wantError("the store closed", err, mcptask.ErrServerClosed)
			return
		}
		k.pause()
		if err := k.s.Close(); err != nil {
			k.Errorf("close: %v", err)
		}
	})
	_, err := k.s.Wait(k.ctx, "t", 1)
	k.wantError("wait after the end", err, mcptask.ErrServerClosed)
	if stored, err := k.s.Create(k.ctx, newRecord("late", "p", epoch), mcptask.Quota{}); err == nil {
		k.Errorf("created after the end: %s", describeRecords(stored))
	}
	if err := k.s.Close(); err != nil {
		k.Errorf("closed twice: %v", err)
	}
}
