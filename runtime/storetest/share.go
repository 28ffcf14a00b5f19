package storetest

import (
	"fmt"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// testShared needs two handles. The other tests check the other promises across handles, because
// they alternate between the two.
func testShared(k *kit) {
	if k.stores.Share == nil {
		k.Skip("the store is for one process: Stores.Share is nil")
	}
	third := k.closeAtEnd(k.stores.Share(k, k.s))
	feeds := map[string]*follower{"first": k.follow(k.s), "second": k.follow(k.other), "third": k.follow(third)}
	first := k.createRecord(k.newKeyedRecord("t", "p", "tool", "k"))
	k.wantRecord("seen by both", k.getRecord("t"), first)
	change := first
	change.CancelRequested = true
	second, err := third.Update(k.ctx, first, change, taskstore.Quota{})
	k.wantError("an update by the third handle", err, nil)
	for _, f := range feeds {
		f.want(changeTo(first), changeTo(second))
	}
	k.beat(k.other, "w1", "t")
	k.takeLeases("w2")
	if lost := k.beat(third, "w2", "t").Lost; len(lost) != 1 {
		k.Errorf("lost is %q", lost)
	}
	if err := third.Release(k.ctx, "w1"); err != nil {
		k.Errorf("release: %v", err)
	}
	for _, f := range feeds {
		f.want(taskstore.Change{Free: true})
	}
	k.takeLeases("w2", "t")
	leased := k.getRecord("t")

	// Closing a handle does not affect the others.
	feeds["second"].stop()
	delete(feeds, "second")
	if err := k.other.Close(); err != nil {
		k.Errorf("close: %v", err)
	}
	k.other = third
	fourth := k.updateRecord(k.getRecord("t"), k.getRecord("t"))
	for _, f := range feeds {
		f.want(changeTo(leased), changeTo(fourth))
	}
	k.getRecord("t")
}

func testReopened(k *kit) {
	if k.stores.Reopen == nil {
		k.Skip("the store is not durable: Stores.Reopen is nil")
	}
	var want []taskstore.Record
	for i := range 30 {
		r := k.newFullRecord(fmt.Sprintf("t%02d", i))
		r.CreatedAt = k.epoch.Add(time.Duration(i) * time.Microsecond)
		if i%3 == 0 {
			r.Phase, r.Outcome, r.Claim.Worker = taskstore.PhaseRunning, nil, "w1"
		}
		r = k.createRecord(r)
		if i%2 == 0 {
			r = k.updateSteps(r, k.newStep("b", r.ID, 1), k.newStep("a", "1", i))
		}
		want = append(want, r)
	}
	k.beat(k.s, "w1")
	expired := k.newRecord("expired", "q", k.epoch)
	expired.ExpiresAt = k.minutesAfter(-1)
	k.createRecord(expired)
	k.expireRecords(5, 1)
	k.deleteRecord("t29")
	want = want[:29]
	for _, s := range []taskstore.Store{k.s, k.other} {
		if err := s.Close(); err != nil {
			k.Fatalf("close: %v", err)
		}
	}
	k.s = k.closeAtEnd(k.stores.Reopen(k, k.s))
	k.other = k.s
	var ids []string
	for i, r := range want {
		ids = append(ids, r.ID)
		k.wantRecord("after the restart", k.getRecord(r.ID), r)
		var steps []taskstore.Step
		if i%2 == 0 {
			steps = []taskstore.Step{k.newStep("b", r.ID, 1), k.newStep("a", "1", i)}
			taskstore.SortSteps(steps)
		}
		k.wantSteps("after the restart", r.ID, steps...)
		k.wantCreate("a key after the restart", k.newKeyedRecord("new", r.Principal, r.Tool, r.IdempotencyKey), taskstore.Quota{}, taskstore.ErrExists)
	}
	if got := k.listIDs("p", 7, nil); !slices.Equal(got, ids) {
		k.Errorf("the list after the restart: %q", got)
	}
	k.wantAbsent("t29")
	k.wantCreate("the records count after the restart", k.newRecord("new", "p", k.epoch), quotaOf(29, 0), taskstore.ErrQuotaStored)
	k.wantCreate("the unfinished ones count after the restart", k.newRecord("new", "p", k.epoch), quotaOf(0, 10), taskstore.ErrQuotaUnfinished)
	var bytes int64
	for _, r := range want {
		bytes += r.Size()
	}
	_, err := k.s.Create(k.ctx, k.newRecord("new", "q", k.epoch), taskstore.Quota{Server: taskstore.Usage{Bytes: bytes}})
	k.wantQuotaError("the bytes count after the restart", err, taskstore.ScopeServer, taskstore.ErrQuotaBytes)
	k.wantTombstone("expired", "q")
	k.takeLeases("w2")
	if lost := k.beat(k.s, "w1", "t00").Lost; len(lost) != 0 {
		k.Errorf("lost by a restart: %q", lost)
	}
	if err := k.s.Release(k.ctx, "w1"); err != nil {
		k.Errorf("release: %v", err)
	}
	k.takeLeases("w2", "t00", "t03", "t06", "t09", "t12", "t15", "t18", "t21", "t24", "t27")
}
