package storetest

import (
	"fmt"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func testExpire(k *kit) {
	const records = 25
	for i := range records {
		r := newRecord(fmt.Sprintf("t%02d", i), "p", epoch)
		r.ExpiresAt, r.IdempotencyKey = minutesAfter(i*7%records), fmt.Sprintf("t%02d", i)
		if i%2 == 0 {
			r = finishRecord(r)
		}
		k.createRecord(r)
	}
	k.expireRecords(epoch.Add(-time.Microsecond), 10, 0) // before the first
	k.expireRecords(minutesAfter(12), 0, 0)
	now := minutesAfter(12) // 13 records, including the one that expires at this moment
	total := map[string]bool{}
	for _, want := range []int{5, 5, 3, 0} {
		gone, err := k.other.Expire(k.ctx, now, 5)
		if err != nil || len(gone) != want {
			k.Fatalf("a batch of %d, want %d: %v", len(gone), want, err)
		}
		for _, r := range gone {
			if r.ExpiresAt.After(now) || r.Version != 1 || r.Principal != "p" || r.Tool != "tool" || r.IdempotencyKey != r.ID {
				k.Errorf("expired: %s", describeRecords(r))
			}
			total[r.ID] = true
			k.wantAbsent(r.ID)
		}
	}
	if left := k.listIDs("p", 50, nil); len(total) != 13 || len(left) != 12 {
		k.Errorf("%d gone, %d left", len(total), len(left))
	}
	k.expireRecords(minutesAfter(13).Add(-time.Microsecond), 5, 0) // a microsecond too soon
	for id := range total {                                        // nothing of them is left, so they can be created again
		r := newRecord(id, "p", epoch)
		r.IdempotencyKey = id
		k.createRecord(r)
	}
	// Expire uses a changed expiry.
	sooner, later := k.getRecord("t24"), k.getRecord("t00")
	if sooner.ID == "" || total[sooner.ID] {
		k.Fatalf("t24 should be left: %v", total)
	}
	sooner.ExpiresAt, later.ExpiresAt = minutesAfter(-10), minutesAfter(600)
	k.updateRecord(sooner)
	k.updateRecord(later)
	for _, r := range k.expireRecords(minutesAfter(-10), 5, 1) {
		if r.ID != "t24" || r.Version != 2 {
			k.Errorf("after the expiry was moved: %s", describeRecords(r))
		}
	}
	k.expireRecords(minutesAfter(599), 50, records-2)
	if left := k.listIDs("p", 50, nil); len(left) != 1 || left[0] != "t00" {
		k.Errorf("left are %q", left)
	}
}

func testExpireRace(k *kit) {
	const records = 90
	for i := range records {
		k.createRecord(newRecord(fmt.Sprint("t", i), "p", minutesAfter(i%3)))
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
					r, _ = s.Update(k.ctx, r, mcptask.Quota{}) // may come too late
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
			gone, err := s.Expire(k.ctx, minutesAfter(600), 7)
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
	k.expireRecords(minutesAfter(600), records, records-len(times))
	k.wantCreate("after all have gone", newRecord("next", "p", epoch), quotaOf(1, 0), nil)
}
