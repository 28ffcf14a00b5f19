package storetest

import (
	"fmt"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// takeLeases takes leases and checks how many records were taken.
func (k *kit) takeLeases(worker string, now, until time.Time, want int) []mcptask.Record {
	k.Helper()
	const limit = 50
	taken, err := k.other.Lease(k.ctx, worker, now, until, limit)
	if err != nil || len(taken) != want {
		k.Errorf("%s took %d records at %v, want %d: %v", worker, len(taken), now, want, err)
	}
	return taken
}

func testLease(k *kit) {
	mine := k.createRecord(newRecord("t", "p", epoch)) // until minute 1
	asking := newRecord("asking", "q", epoch)
	asking.Phase, asking.LeaseUntil = mcptask.PhaseInputRequired, minutesAfter(50)
	k.createRecord(asking)
	k.createRecord(finishRecord(newRecord("done", "p", epoch)))
	stale := finishRecord(newRecord("done with a lease", "p", epoch)) // a finished record's lease has no meaning
	stale.Worker, stale.LeaseUntil = "w1", epoch
	k.createRecord(stale)

	k.takeLeases("w2", minutesAfter(1), minutesAfter(5), 0) // at the last moment of the lease
	k.takeLeases("w1", minutesAfter(9), minutesAfter(9), 0) // its own lease
	if taken, err := k.s.Lease(k.ctx, "w2", minutesAfter(9), minutesAfter(10), 0); err != nil || len(taken) != 0 {
		k.Errorf("leased at a limit of 0: %s, %v", describeRecords(taken...), err)
	}
	taken := k.takeLeases("w2", minutesAfter(1).Add(time.Microsecond), minutesAfter(10), 1) // a microsecond later
	want := mine
	want.Version, want.Worker, want.LeaseUntil = 2, "w2", minutesAfter(10)
	if len(taken) == 1 {
		k.wantRecord("leased", taken[0], want)
	}
	k.wantRecord("got", k.getRecord("t"), want)
	mine.StatusMessage = "from the dead"
	_, err := k.s.Update(k.ctx, mine, mcptask.Quota{})
	k.wantError("the former worker's update", err, mcptask.ErrConflict)
	if err := k.s.Renew(k.ctx, "w1", minutesAfter(30)); err != nil { // it holds one record less
		k.Errorf("renew: %v", err)
	}
	if err := k.s.Release(k.ctx, "w3"); err != nil { // holds nothing
		k.Errorf("release: %v", err)
	}
	k.wantRecord("after the former worker's renewal", k.getRecord("t"), want)
	k.takeLeases("w3", minutesAfter(10), minutesAfter(20), 0)
	k.takeLeases("w1", minutesAfter(11), minutesAfter(20), 1) // takes it back
	back := k.getRecord("t")
	if back.Version != 3 || back.Worker != "w1" {
		k.Errorf("back with its first worker: %s", describeRecords(back))
	}
	k.updateRecord(finishRecord(back))
	k.takeLeases("w3", minutesAfter(30).Add(time.Microsecond), minutesAfter(40), 1) // the other record; finished ones have no worker
	free := k.createRecord(newRecord("free", "p", epoch))
	free.Worker, free.LeaseUntil = "", time.Time{}
	k.updateRecord(free)
	k.takeLeases("w4", epoch, minutesAfter(40), 1) // had no worker
}

func testLeaseRace(k *kit) {
	const records, batch = 60, 4
	for i := range records {
		k.createRecord(newRecord(fmt.Sprintf("t%02d", i), "p", minutesAfter(-i)))
	}
	var mu sync.Mutex
	holder := map[string]string{}
	runConcurrently(6, func(i int) {
		s, worker := k.pickStore(i), fmt.Sprint("new", i)
		for {
			taken, err := s.Lease(k.ctx, worker, minutesAfter(60), minutesAfter(70), batch)
			if err != nil || len(taken) > batch {
				k.Errorf("%d taken, %v", len(taken), err)
				return
			}
			if len(taken) == 0 {
				return
			}
			mu.Lock()
			for _, r := range taken {
				if holder[r.ID] != "" {
					k.Errorf("%s was taken by %s and by %s", r.ID, holder[r.ID], worker)
				}
				holder[r.ID] = worker
				if r.Worker != worker || r.Version != 2 || !r.LeaseUntil.Equal(minutesAfter(70)) {
					k.Errorf("%s took %s", worker, describeRecords(r))
				}
			}
			mu.Unlock()
		}
	})
	// A store may skip records that another call is about to take, but not forever.
	rest := k.takeLeases("last", minutesAfter(60), minutesAfter(70), records-len(holder))
	for _, r := range rest {
		holder[r.ID] = "last"
	}
	for id, worker := range holder {
		if r := k.getRecord(id); r.Worker != worker || r.Version != 2 {
			k.Errorf("%s is held by %s in version %d, %s took it", id, r.Worker, r.Version, worker)
		}
	}
	if len(holder) != records {
		k.Errorf("%d of %d were taken", len(holder), records)
	}
}

func testRenew(k *kit) {
	a := k.createRecord(newRecord("a", "p", epoch))
	k.createRecord(newRecord("b", "q", epoch))
	other := newRecord("c", "p", epoch)
	other.Worker = "w9"
	k.createRecord(other)
	stale := k.createRecord(finishRecord(newRecord("done", "p", epoch)))
	if err := k.s.Renew(k.ctx, "w1", minutesAfter(61)); err != nil {
		k.Fatalf("renew: %v", err)
	}
	if got := k.getRecord("a"); got.Version != 1 || !got.LeaseUntil.Equal(minutesAfter(61)) {
		k.Errorf("renewed: %s", describeRecords(got))
	}
	k.wantRecord("a record that is done", k.getRecord("done"), stale)
	if taken := k.takeLeases("w2", minutesAfter(61), minutesAfter(120), 1); len(taken) == 1 && taken[0].ID != "c" {
		k.Errorf("a renewed lease was taken: %s", describeRecords(taken[0]))
	}
	if err := k.other.Release(k.ctx, "w1"); err != nil {
		k.Fatalf("release: %v", err)
	}
	if got := k.getRecord("a"); got.Version != 1 {
		k.Errorf("a release made version %d", got.Version)
	}
	a.StatusMessage = "the worker that releases may still write"
	k.updateRecord(a)
	if taken := k.takeLeases("w3", epoch, minutesAfter(120), 2); len(taken) == 2 && (taken[0].ID == "c" || taken[1].ID == "c") {
		k.Errorf("another worker's lease was released: %s", describeRecords(taken...))
	}
	if got := k.getRecord("c"); got.Worker != "w2" || !got.LeaseUntil.Equal(minutesAfter(120)) {
		k.Errorf("the other worker's record: %s", describeRecords(got))
	}
}

func testRenewUnderUpdate(k *kit) {
	r := k.createRecord(newRecord("t", "p", epoch))
	if err := k.s.Renew(k.ctx, "w1", minutesAfter(60)); err != nil {
		k.Fatalf("renew: %v", err)
	}
	r.StatusMessage = "read before the renewal"
	r = k.updateRecord(r)
	if !r.LeaseUntil.Equal(minutesAfter(60)) {
		k.Errorf("the lease that Update returns ends at %v", r.LeaseUntil)
	}
	k.takeLeases("w2", minutesAfter(30), minutesAfter(60), 0)
	r.LeaseUntil = minutesAfter(600) // an Update cannot renew a lease
	r = k.updateRecord(r)
	if got := k.getRecord("t"); !got.LeaseUntil.Equal(minutesAfter(60)) || !r.LeaseUntil.Equal(minutesAfter(60)) {
		k.Errorf("the lease ends at %v", got.LeaseUntil)
	}
	r.Worker, r.LeaseUntil = "w2", minutesAfter(120)
	if r = k.updateRecord(r); r.Worker != "w2" || !r.LeaseUntil.Equal(minutesAfter(120)) {
		k.Errorf("a new worker brings its own lease: %s", describeRecords(r))
	}
	if err := k.s.Renew(k.ctx, "w1", minutesAfter(300)); err != nil { // the former worker
		k.Fatalf("renew: %v", err)
	}
	k.takeLeases("w3", minutesAfter(121), minutesAfter(130), 1)
	r = finishRecord(k.getRecord("t"))
	k.updateRecord(r)
	k.wantRecord("ended", k.getRecord("t"), func() mcptask.Record { r.Version++; return r }())
	k.takeLeases("w4", minutesAfter(600), minutesAfter(601), 0)
}
