package storetest

import (
	"fmt"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// leases takes leases and returns the IDs of what was taken.
func (k *kit) leases(worker string, now, until time.Time, want int) []mcptask.Record {
	k.Helper()
	const limit = 50
	taken, err := k.other.Lease(k.ctx, worker, now, until, limit)
	if err != nil || len(taken) != want {
		k.Errorf("%s took %d records at %v, want %d: %v", worker, len(taken), now, want, err)
	}
	return taken
}

func testLease(k *kit) {
	mine := k.create(record("t", "p", epoch)) // until minute 1
	asking := record("asking", "q", epoch)
	asking.Phase, asking.LeaseUntil = mcptask.PhaseInputRequired, minutes(50)
	k.create(asking)
	k.create(done(record("done", "p", epoch)))
	stale := done(record("done with a lease", "p", epoch)) // which means nothing any longer
	stale.Worker, stale.LeaseUntil = "w1", epoch
	k.create(stale)

	k.leases("w2", minutes(1), minutes(5), 0) // at its last moment
	k.leases("w1", minutes(9), minutes(9), 0) // its own
	if taken, err := k.s.Lease(k.ctx, "w2", minutes(9), minutes(10), 0); err != nil || len(taken) != 0 {
		k.Errorf("leased at a limit of 0: %s, %v", brief(taken...), err)
	}
	taken := k.leases("w2", minutes(1).Add(time.Microsecond), minutes(10), 1) // a microsecond later
	want := mine
	want.Version, want.Worker, want.LeaseUntil = 2, "w2", minutes(10)
	if len(taken) == 1 {
		k.same("leased", taken[0], want)
	}
	k.same("got", k.get("t"), want)
	mine.StatusMessage = "from the dead"
	_, err := k.s.Update(k.ctx, mine, mcptask.Quota{})
	k.is("the former worker's update", err, mcptask.ErrConflict)
	if err := k.s.Renew(k.ctx, "w1", minutes(30)); err != nil { // it holds one record less
		k.Errorf("renew: %v", err)
	}
	if err := k.s.Release(k.ctx, "w3"); err != nil { // holds nothing
		k.Errorf("release: %v", err)
	}
	k.same("after the former worker's renewal", k.get("t"), want)
	k.leases("w3", minutes(10), minutes(20), 0)
	k.leases("w1", minutes(11), minutes(20), 1) // back again
	back := k.get("t")
	if back.Version != 3 || back.Worker != "w1" {
		k.Errorf("back with its first worker: %s", brief(back))
	}
	k.update(done(back))
	k.leases("w3", minutes(30).Add(time.Microsecond), minutes(40), 1) // of the other one; what is done is nobody's
	free := k.create(record("free", "p", epoch))
	free.Worker, free.LeaseUntil = "", time.Time{}
	k.update(free)
	k.leases("w4", epoch, minutes(40), 1) // of no worker at all
}

func testLeaseRace(k *kit) {
	const records, batch = 60, 4
	for i := range records {
		k.create(record(fmt.Sprintf("t%02d", i), "p", minutes(-i)))
	}
	var mu sync.Mutex
	holder := map[string]string{}
	each(6, func(i int) {
		s, worker := k.way(i), fmt.Sprint("new", i)
		for {
			taken, err := s.Lease(k.ctx, worker, minutes(60), minutes(70), batch)
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
				if r.Worker != worker || r.Version != 2 || !r.LeaseUntil.Equal(minutes(70)) {
					k.Errorf("%s took %s", worker, brief(r))
				}
			}
			mu.Unlock()
		}
	})
	// A store may skip what another is about to take, but not for ever.
	rest := k.leases("last", minutes(60), minutes(70), records-len(holder))
	for _, r := range rest {
		holder[r.ID] = "last"
	}
	for id, worker := range holder {
		if r := k.get(id); r.Worker != worker || r.Version != 2 {
			k.Errorf("%s is held by %s in version %d, %s took it", id, r.Worker, r.Version, worker)
		}
	}
	if len(holder) != records {
		k.Errorf("%d of %d were taken", len(holder), records)
	}
}

func testRenew(k *kit) {
	a := k.create(record("a", "p", epoch))
	k.create(record("b", "q", epoch))
	other := record("c", "p", epoch)
	other.Worker = "w9"
	k.create(other)
	stale := k.create(done(record("done", "p", epoch)))
	if err := k.s.Renew(k.ctx, "w1", minutes(61)); err != nil {
		k.Fatalf("renew: %v", err)
	}
	if got := k.get("a"); got.Version != 1 || !got.LeaseUntil.Equal(minutes(61)) {
		k.Errorf("renewed: %s", brief(got))
	}
	k.same("a record that is done", k.get("done"), stale)
	if taken := k.leases("w2", minutes(61), minutes(120), 1); len(taken) == 1 && taken[0].ID != "c" {
		k.Errorf("a renewed lease was taken: %s", brief(taken[0]))
	}
	if err := k.other.Release(k.ctx, "w1"); err != nil {
		k.Fatalf("release: %v", err)
	}
	if got := k.get("a"); got.Version != 1 {
		k.Errorf("a release made version %d", got.Version)
	}
	a.StatusMessage = "the worker that releases may still write"
	k.update(a)
	if taken := k.leases("w3", epoch, minutes(120), 2); len(taken) == 2 && (taken[0].ID == "c" || taken[1].ID == "c") {
		k.Errorf("another worker's lease was released: %s", brief(taken...))
	}
	if got := k.get("c"); got.Worker != "w2" || !got.LeaseUntil.Equal(minutes(120)) {
		k.Errorf("the other worker's record: %s", brief(got))
	}
}

func testRenewUnderUpdate(k *kit) {
	r := k.create(record("t", "p", epoch))
	if err := k.s.Renew(k.ctx, "w1", minutes(60)); err != nil {
		k.Fatalf("renew: %v", err)
	}
	r.StatusMessage = "read before the renewal"
	r = k.update(r)
	if !r.LeaseUntil.Equal(minutes(60)) {
		k.Errorf("the lease that Update returns ends at %v", r.LeaseUntil)
	}
	k.leases("w2", minutes(30), minutes(60), 0)
	r.LeaseUntil = minutes(600) // no way to renew one either
	r = k.update(r)
	if got := k.get("t"); !got.LeaseUntil.Equal(minutes(60)) || !r.LeaseUntil.Equal(minutes(60)) {
		k.Errorf("the lease ends at %v", got.LeaseUntil)
	}
	r.Worker, r.LeaseUntil = "w2", minutes(120)
	if r = k.update(r); r.Worker != "w2" || !r.LeaseUntil.Equal(minutes(120)) {
		k.Errorf("a new worker brings its own lease: %s", brief(r))
	}
	if err := k.s.Renew(k.ctx, "w1", minutes(300)); err != nil { // the former one
		k.Fatalf("renew: %v", err)
	}
	k.leases("w3", minutes(121), minutes(130), 1)
	r = done(k.get("t"))
	k.update(r)
	k.same("ended", k.get("t"), func() mcptask.Record { r.Version++; return r }())
	k.leases("w4", minutes(600), minutes(601), 0)
}
