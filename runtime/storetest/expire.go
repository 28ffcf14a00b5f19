package storetest

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func testExpire(k *kit) {
	const records, over = 25, 13
	for i := range records {
		r := k.newRecord(fmt.Sprintf("t%02d", i), "p", k.epoch)
		r.ExpiresAt, r.IdempotencyKey = k.minutesAfter(i*7%records-over), fmt.Sprintf("t%02d", i)
		if r.ExpiresAt.Equal(k.epoch) {
			r.ExpiresAt = k.minutesAfter(10) // is the store's time now
		}
		if i%2 == 0 {
			r = finishRecord(r)
		}
		k.createRecord(r)
	}
	k.expireRecords(0, 0)
	total := map[string]bool{}
	for _, want := range []int{5, 5, 3, 0} {
		for _, r := range k.expireRecords(5, want) {
			if r.ExpiresAt.After(k.epoch) || r.Version != 1 || r.Principal != "p" || r.Tool != "tool" || r.IdempotencyKey != r.ID {
				k.Errorf("expired: %s", describeRecords(r))
			}
			total[r.ID] = true
			k.wantAbsent(r.ID)
		}
	}
	if left := k.listIDs("p", 50, nil); len(total) != over || len(left) != records-over {
		k.Errorf("%d gone, %d left", len(total), len(left))
	}
	for id := range total { // nothing of them is left, so they can be created again
		r := k.newRecord(id, "p", k.epoch)
		r.IdempotencyKey = id
		k.createRecord(r)
	}
	// Expire uses a changed expiry.
	first := k.getRecord("t00")
	sooner := first
	sooner.ExpiresAt = k.minutesAfter(-10)
	second := k.updateRecord(first, sooner)
	later := second
	later.ExpiresAt = k.minutesAfter(600)
	k.updateRecord(second, later)
	k.expireRecords(5, 0)
	last := k.getRecord("t24")
	sooner = last
	sooner.ExpiresAt = k.minutesAfter(-10)
	k.updateRecord(last, sooner)
	for _, r := range k.expireRecords(5, 1) {
		if r.ID != "t24" || r.Version != 2 {
			k.Errorf("after the expiry was moved: %s", describeRecords(r))
		}
	}
}

// testExpireClock moves the store's clock over the expiry of records. The clock may go on
// meanwhile, so each record is compared with the time before and after the call.
func testExpireClock(k *kit) {
	k.advanceClock(0)
	left := map[string]time.Time{}
	now := k.readClock().Truncate(time.Microsecond)
	const steps, step = 5, 10 * time.Minute
	for i := range steps {
		for _, off := range []time.Duration{-time.Second, -time.Microsecond, 0, time.Microsecond, time.Second, time.Minute} {
			r := k.newRecord(fmt.Sprint(i, off), "p", k.epoch)
			r.ExpiresAt = now.Add(time.Duration(i+1)*step + off)
			k.createRecord(r)
			left[r.ID] = r.ExpiresAt
		}
	}
	k.expireRecords(100, 0)
	for range steps {
		k.advanceClock(step)
		before := k.readClock()
		gone, err := k.other.Expire(k.ctx, 100)
		after := k.readClock()
		if err != nil {
			k.Errorf("expire: %v", err)
		}
		for _, r := range gone {
			if left[r.ID].After(after) {
				k.Errorf("%s expired before %v", describeRecords(r), after)
			}
			delete(left, r.ID)
		}
		for id, expiry := range left {
			if !expiry.After(before) {
				k.Errorf("%s, which expires at %v, is there at %v", id, expiry, before)
			}
		}
	}
}

// wantTombstone checks the rest of an expired record.
func (k *kit) wantTombstone(id, principal string) {
	k.Helper()
	for _, s := range []taskstore.Store{k.s, k.other} {
		got, err := s.Get(k.ctx, id)
		if !errors.Is(err, taskstore.ErrRecordExpired) || !errors.Is(err, taskstore.ErrNoRecord) {
			k.Errorf("get %q, which has expired: %v", id, err)
		}
		k.wantRecord("an expired record", got, taskstore.Record{ID: id, Principal: principal})
	}
}

// wantUnknown checks that nothing is left of a record.
func (k *kit) wantUnknown(id string) {
	k.Helper()
	for _, s := range []taskstore.Store{k.s, k.other} {
		if got, err := s.Get(k.ctx, id); !errors.Is(err, taskstore.ErrNoRecord) || errors.Is(err, taskstore.ErrRecordExpired) {
			k.Errorf("get %q, of which nothing should be left: %s, %v", id, describeRecords(got), err)
		}
	}
}

func testTombstones(k *kit) {
	k.advanceClock(0)
	for _, id := range []string{"expired", "anew", "twice", "deleted"} {
		r := k.newKeyedRecord(id, "owner of "+id, "tool", "k")
		r.ExpiresAt = k.minutesAfter(-1)
		k.createRecord(r)
	}
	stale := k.getRecord("expired") // until Expire removes it
	k.deleteRecord("deleted")
	k.wantUnknown("deleted")
	k.expireRecords(5, 3)
	for _, id := range []string{"expired", "anew", "twice"} {
		k.wantTombstone(id, "owner of "+id)
	}
	k.wantUnknown("deleted")
	_, err := k.s.Update(k.ctx, stale, stale, taskstore.Quota{})
	k.wantError("update what has expired", err, taskstore.ErrNoRecord)
	k.wantError("delete what has expired", k.s.Delete(k.ctx, stale), taskstore.ErrNoRecord)
	k.wantTombstone("expired", "owner of expired")
	if ids := k.listIDs("owner of expired", 5, nil); len(ids) != 0 {
		k.Errorf("a tombstone is listed: %q", ids)
	}
	k.wantCreate("a tombstone does not count", k.newRecord("new", "owner of expired", k.epoch), quotaOf(1, 1), nil)

	k.createRecord(k.newRecord("anew", "another owner", k.epoch))
	if got := k.getRecord("anew"); got.Version != 1 || got.Principal != "another owner" {
		k.Errorf("a new record with the ID of an expired one: %s", describeRecords(got))
	}
	k.deleteRecord("anew")
	k.wantUnknown("anew") // the new record was deleted

	k.advanceClock(taskstore.TombstoneFor - 5*time.Minute)
	k.wantTombstone("expired", "owner of expired")
	r := k.newRecord("twice", "second owner", k.epoch)
	r.ExpiresAt = k.minutesAfter(-1)
	k.createRecord(r)
	k.expireRecords(5, 1)
	k.wantTombstone("twice", "second owner")
	k.advanceClock(10 * time.Minute)
	k.expireRecords(5, 1) // "new"
	k.wantUnknown("expired")
	k.wantTombstone("twice", "second owner") // of the second record
	k.advanceClock(taskstore.TombstoneFor)
	k.wantUnknown("twice")
	k.wantUnknown("new")
	k.createRecord(k.newRecord("expired", "p", k.epoch))
}

func testExpireRace(k *kit) {
	const records = 90
	for i := range records {
		k.createRecord(k.newRecord(fmt.Sprint("t", i), "p", k.minutesAfter(i%3-100)))
	}
	var mu sync.Mutex
	times := map[string]int{}
	runConcurrently(6, func(i int) {
		s := k.pickStore(i)
		if i >= 4 { // updates and deletes must not restore records
			for n := range records {
				id := fmt.Sprint("t", n)
				r, err := s.Get(k.ctx, id)
				if err == nil {
					r, _ = s.Update(k.ctx, r, r, taskstore.Quota{}) // may come too late
				}
				if n%10 == i {
					if err := s.Delete(k.ctx, r); err == nil {
						mu.Lock()
						times[id]++
						mu.Unlock()
					}
				}
			}
			return
		}
		for idle := 0; idle < 2; {
			gone, err := s.Expire(k.ctx, 7)
			if err != nil || len(gone) > 7 {
				k.Errorf("%d expired, %v", len(gone), err)
				return
			}
			if len(gone) == 0 {
				idle++
			}
			mu.Lock()
			for _, r := range gone {
				times[r.ID]++
			}
			mu.Unlock()
		}
	})
	for id, n := range times {
		if n != 1 {
			k.Errorf("%s went %d times", id, n)
		}
		k.wantAbsent(id)
	}
	if left := k.listIDs("p", 100, nil); len(times)+len(left) != records {
		k.Errorf("%d gone, %d left of %d", len(times), len(left), records)
	}
	k.expireRecords(records, records-len(times))
	k.wantCreate("after all have gone", k.newRecord("next", "p", k.epoch), quotaOf(1, 0), nil)
}
