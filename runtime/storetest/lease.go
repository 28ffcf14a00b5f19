package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// leaseTime is the length of leases. No test takes as long.
const leaseTime = 10 * time.Minute

// beat begins a lease.
func (k *kit) beat(s taskstore.Store, worker string, held ...string) taskstore.Heartbeat {
	k.Helper()
	beat, err := s.Beat(k.ctx, worker, leaseTime, held)
	if err != nil {
		k.Fatalf("the beat of %s: %v", worker, err)
	}
	return beat
}

// takeLeases leases records and checks which ones.
func (k *kit) takeLeases(worker string, want ...string) []taskstore.Record {
	k.Helper()
	const limit = 50
	taken, err := k.other.Lease(k.ctx, worker, leaseTime, []string{"tool"}, limit)
	if got := recordIDs(taken); err != nil || !slices.Equal(got, want) {
		k.Errorf("%s took %q, want %q: %v", worker, got, want, err)
	}
	return taken
}

// recordIDs returns the sorted IDs of records.
func recordIDs(records []taskstore.Record) []string {
	var ids []string
	for _, r := range records {
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	return ids
}

// createFor stores a record of a worker.
func (k *kit) createFor(worker, id string) taskstore.Record {
	k.Helper()
	r := k.newRecord(id, "p", k.epoch)
	r.Claim.Worker = worker
	return k.createRecord(r)
}

func testLease(k *kit) {
	for id, worker := range map[string]string{"never begun": "never begun", "nobody's": "", "alive": "alive", "own": "taker"} {
		k.createFor(worker, id)
	}
	asking := k.newRecord("asking", "q", k.epoch)
	asking.Phase, asking.Claim.Worker = taskstore.PhaseInputRequired, "never begun"
	k.createRecord(asking)
	foreign := k.newRecord("foreign", "p", k.epoch)
	foreign.Tool = "another tool"
	foreign = k.createRecord(foreign)
	done := finishRecord(k.newRecord("done", "p", k.epoch))
	done.Claim.Worker = "never begun" // a finished record needs no worker
	k.createRecord(done)
	k.createRecord(finishRecord(k.newRecord("done and nobody's", "p", k.epoch)))
	k.beat(k.s, "alive")

	for _, c := range []struct {
		tools []string
		limit int
	}{{[]string{"tool"}, 0}, {nil, 5}, {[]string{}, 5}, {[]string{"unknown", "Tool", "too", "tool ", ""}, 5}} {
		if taken, err := k.s.Lease(k.ctx, "taker", leaseTime, c.tools, c.limit); err != nil || len(taken) != 0 {
			k.Errorf("leased with the tools %q at a limit of %d: %s, %v", c.tools, c.limit, describeRecords(taken...), err)
		}
	}
	for _, r := range k.takeLeases("taker", "asking", "never begun") {
		if got := k.getRecord(r.ID); r.Claim.Worker != "taker" || r.Version != 2 || diffRecords(r, got) != "" {
			k.Errorf("leased is %s, stored %s", describeRecords(r), describeRecords(got))
		}
	}
	k.takeLeases("taker")
	if got := k.getRecord("alive"); got.Version != 1 || got.Claim.Worker != "alive" {
		k.Errorf("the record of a worker that lives: %s", describeRecords(got))
	}
	if got := k.getRecord("nobody's"); got.Version != 1 || got.Claim.Worker != "" {
		k.Errorf("the record of no worker: %s", describeRecords(got))
	}
	k.wantRecord("a record of another tool", k.getRecord("foreign"), foreign)
	// The taker's lease has begun, since it took something.
	taken, err := k.s.Lease(k.ctx, "another taker", leaseTime, []string{"tool", "another tool"}, 5)
	if got := recordIDs(taken); err != nil || !slices.Equal(got, []string{"foreign"}) {
		k.Errorf("taken with both tools are %q, %v", got, err)
	}
}

// testFencing follows one record from worker to worker.
func testFencing(k *kit) {
	k.advanceClock(0)
	mine := k.createFor("w1", "t")
	k.beat(k.s, "w1")
	k.takeLeases("w2")
	k.advanceClock(leaseTime - time.Minute)
	k.takeLeases("w2")
	k.advanceClock(2 * time.Minute)
	k.takeLeases("w1") // its own
	taken := k.takeLeases("w2", "t")
	want := mine
	want.Version, want.Claim.Worker = 2, "w2"
	k.wantRecord("got", k.getRecord("t"), want)
	if len(taken) == 1 {
		k.wantRecord("leased", taken[0], want)
	}
	late := mine
	late.StatusMessage = "from the dead"
	_, err := k.s.Update(k.ctx, mine, late, taskstore.Quota{})
	k.wantError("the former worker's update", err, taskstore.ErrConflict)
	k.beat(k.s, "w1")
	k.wantRecord("after the former worker's late beat", k.getRecord("t"), want)
	k.advanceClock(leaseTime - time.Minute) // w2 began a lease by taking
	k.takeLeases("w3")
	k.advanceClock(2 * time.Minute)
	k.takeLeases("w1", "t") // back with its first worker
	back := k.getRecord("t")
	if back.Version != 3 || back.Claim.Worker != "w1" {
		k.Errorf("back with its first worker: %s", describeRecords(back))
	}
	_, err = k.s.Update(k.ctx, mine, late, taskstore.Quota{})
	k.wantError("an update from the first time", err, taskstore.ErrConflict)
	k.updateRecord(back, finishRecord(back))
	k.advanceClock(2 * leaseTime)
	k.takeLeases("w3") // it is done

	// The latest beat counts.
	long, other := k.createFor("long", "u"), k.createFor("never begun", "v")
	k.beat(k.s, "long")
	if _, err := k.s.Beat(k.ctx, "long", 3*leaseTime, nil); err != nil {
		k.Errorf("a beat: %v", err)
	}
	k.advanceClock(2 * leaseTime)
	k.takeLeases("w3", other.ID)
	k.advanceClock(2 * leaseTime)
	k.takeLeases("w4", long.ID, other.ID)
}

// testLeaseClocks stores records whose times lie minutes off, as those of processes with other
// clocks do.
func testLeaseClocks(k *kit) {
	var ids []string
	for _, minutes := range []int{-60, -5, 0, 5, 60} {
		r := k.newRecord(fmt.Sprint("t", minutes), "p", k.minutesAfter(minutes))
		r.ExpiresAt = k.minutesAfter(minutes + 1)
		r = k.createRecord(r)
		change := r
		change.UpdatedAt = k.minutesAfter(-minutes)
		k.updateRecord(r, change)
		ids = append(ids, r.ID)
	}
	slices.Sort(ids)
	k.beat(k.s, "w1")
	k.takeLeases("w2")
	if lost := k.beat(k.other, "w1", ids...).Lost; len(lost) != 0 {
		k.Errorf("lost to a clock: %q", lost)
	}
	if k.stores.Advance != nil {
		k.advanceClock(leaseTime - time.Minute)
		k.takeLeases("w2")
		k.advanceClock(2 * time.Minute)
	} else if err := k.s.Release(k.ctx, "w1"); err != nil {
		k.Errorf("release: %v", err)
	}
	k.takeLeases("w2", ids...)
}

func testLeaseRace(k *kit) {
	const records, batch = 60, 4
	for i := range records {
		k.createRecord(k.newRecord(fmt.Sprintf("t%02d", i), "p", k.minutesAfter(-i)))
	}
	var mu sync.Mutex
	holder := map[string]string{}
	runConcurrently(6, func(i int) {
		s, worker := k.pickStore(i), fmt.Sprint("new", i)
		if _, err := s.Beat(k.ctx, worker, leaseTime, nil); err != nil {
			k.Errorf("beat: %v", err)
		}
		for {
			taken, err := s.Lease(k.ctx, worker, leaseTime, []string{"tool"}, batch)
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
				if r.Claim.Worker != worker || r.Version != 2 {
					k.Errorf("%s took %s", worker, describeRecords(r))
				}
			}
			mu.Unlock()
		}
	})
	// A store may skip records that another call is about to take, but not forever.
	rest, err := k.other.Lease(k.ctx, "last", leaseTime, []string{"tool"}, records)
	if err != nil {
		k.Errorf("lease: %v", err)
	}
	for _, r := range rest {
		if holder[r.ID] != "" {
			k.Errorf("%s was taken from %s", r.ID, holder[r.ID])
		}
		holder[r.ID] = "last"
	}
	for id, worker := range holder {
		if r := k.getRecord(id); r.Claim.Worker != worker || r.Version != 2 {
			k.Errorf("%s is held by %s in version %d, %s took it", id, r.Claim.Worker, r.Version, worker)
		}
	}
	if len(holder) != records {
		k.Errorf("%d of %d were taken", len(holder), records)
	}
}

func testBeat(k *kit) {
	k.advanceClock(0)
	former := k.createFor("w1", "former")
	k.beat(k.s, "w1", "former")
	later := k.createFor("w1", "later") // after the beat
	k.createFor("w2", "another's")
	for range 3 { // each beat begins a lease anew
		k.advanceClock(leaseTime - time.Minute)
		k.beat(k.other, "w1", "former", "later")
	}
	k.takeLeases("w3", "another's")
	k.wantRecord("a beat makes no version", k.getRecord("former"), former)
	k.wantRecord("a beat makes no version", k.getRecord("later"), later)
	change := later
	change.StatusMessage = "read before the beats"
	k.updateRecord(later, change)

	k.advanceClock(leaseTime + time.Minute) // the lease ends, and nobody takes the records
	k.beat(k.s, "w2")                       // a beat of another changes nothing
	if lost := k.beat(k.s, "w1", "former", "later").Lost; len(lost) != 0 {
		k.Errorf("a lease that ended has lost %q", lost)
	}
	k.beat(k.s, "w3")
	k.takeLeases("w4")
	k.advanceClock(leaseTime - time.Minute)
	k.takeLeases("w4")
	k.advanceClock(2 * time.Minute)
	k.takeLeases("w4", "another's", "former", "later")
}

func testLost(k *kit) {
	held := []string{"kept", "done", "deleted", "expired", "taken", "moved", "unknown"}
	for _, id := range held[:6] {
		k.createFor("w1", id)
	}
	k.createFor("w1", "not held")
	before := k.beat(k.s, "w1", "kept", "taken")
	if len(before.Lost) != 0 {
		k.Errorf("lost too soon: %q", before.Lost)
	}
	r := k.getRecord("done")
	k.updateRecord(r, finishRecord(r))
	k.deleteRecord("deleted")
	r = k.getRecord("expired")
	expired := r
	expired.ExpiresAt = k.minutesAfter(-1)
	k.updateRecord(r, expired)
	k.expireRecords(5, 1)
	r = k.getRecord("moved")
	moved := r
	moved.Claim.Worker = ""
	k.updateRecord(r, moved)
	if err := k.s.Release(k.ctx, "w1"); err != nil {
		k.Errorf("release: %v", err)
	}
	if taken, err := k.other.Lease(k.ctx, "w2", leaseTime, []string{"tool"}, 50); err != nil || len(taken) != 3 {
		k.Errorf("taken are %s, %v", describeRecords(taken...), err)
	}
	r = k.getRecord("kept") // w1 gets it back
	back := r
	back.Claim.Worker = "w1"
	k.updateRecord(r, back)
	for _, s := range []taskstore.Store{k.s, k.other} {
		beat := k.beat(s, "w1", held...)
		slices.Sort(beat.Lost)
		if want := []string{"deleted", "done", "expired", "moved", "taken", "unknown"}; !slices.Equal(beat.Lost, want) {
			k.Errorf("lost are %q, want %q", beat.Lost, want)
		}
		if beat.Now.Before(before.Now) {
			k.Errorf("the store's time was %v and is %v", before.Now, beat.Now)
		}
	}
	if k.stores.Advance != nil {
		k.advanceClock(time.Hour)
		if now := k.readClock(); now.Before(before.Now.Add(time.Hour)) {
			k.Errorf("the store's time is %v, an hour after %v", now, before.Now)
		}
	}
}

func testRelease(k *kit) {
	feeds := []*follower{k.follow(k.s), k.follow(k.other)}
	a := k.createFor("w1", "a")
	k.createFor("w1", "b")
	k.createFor("w9", "another's")
	k.beat(k.s, "w1")
	k.beat(k.s, "w9")
	if err := k.s.Release(k.ctx, "w1"); err != nil {
		k.Fatalf("release: %v", err)
	}
	for _, f := range feeds {
		f.want(taskstore.Change{Free: true})
	}
	k.wantRecord("a release makes no version", k.getRecord("a"), a)
	change := a
	change.StatusMessage = "the worker that releases may still write"
	k.updateRecord(a, change)
	k.takeLeases("w2", "a", "b")
	if got := k.getRecord("another's"); got.Claim.Worker != "w9" || got.Version != 1 {
		k.Errorf("another worker's record: %s", describeRecords(got))
	}
	if err := k.s.Release(k.ctx, "unknown"); err != nil {
		k.Errorf("a release of nothing: %v", err)
	}
	k.beat(k.other, "w1") // a released worker may come back
	k.createFor("w1", "c")
	k.takeLeases("w3")
}
