package storetest

import (
	"fmt"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// testShared needs two handles. The other tests check the other promises across handles, because
// they alternate between the two.
func testShared(k *kit) {
	if k.stores.Share == nil {
		k.Skip("the store is for one process: Stores.Share is nil")
	}
	first := k.createRecord(newKeyedRecord("t", "p", "tool", "k"))
	if err := k.other.Renew(k.ctx, "w1", minutesAfter(30)); err != nil {
		k.Errorf("renew: %v", err)
	}
	first.LeaseUntil = minutesAfter(30)
	k.wantRecord("seen by both", k.getRecord("t"), first)
	third := k.closeAtEnd(k.stores.Share(k, k.s))
	runConcurrently(3, func(i int) {
		switch i {
		case 0:
			got, err := third.Wait(k.ctx, "t", 1)
			if err != nil || got.Version != 2 {
				k.Errorf("waited for version %d: %v", got.Version, err)
			}
		case 1:
			_, err := k.other.Wait(k.ctx, "t", 2)
			k.wantError("the waiter's own handle closed", err, mcptask.ErrServerClosed)
		default:
			k.pause()
			if _, err := k.s.Update(k.ctx, first, mcptask.Quota{}); err != nil {
				k.Errorf("update: %v", err)
			}
			k.pause()
			if err := k.other.Close(); err != nil {
				k.Errorf("close: %v", err)
			}
		}
	})
	k.other = third // closing a handle does not affect the others
	k.updateRecord(k.getRecord("t"))
	if got := k.getRecord("t"); got.Version != 3 {
		k.Errorf("version %d after another handle was closed", got.Version)
	}
}

func testReopened(k *kit) {
	if k.stores.Reopen == nil {
		k.Skip("the store is not durable: Stores.Reopen is nil")
	}
	var want []mcptask.Record
	for i := range 30 {
		r := newFullRecord(fmt.Sprintf("t%02d", i))
		r.CreatedAt = epoch.Add(time.Duration(i) * time.Microsecond)
		if i%3 == 0 {
			r.Phase, r.Outcome, r.Worker, r.LeaseUntil = mcptask.PhaseRunning, nil, "w1", minutesAfter(i)
		}
		r = k.createRecord(r)
		if i%2 == 0 {
			r = k.updateRecord(r)
		}
		want = append(want, r)
	}
	if err := k.s.Renew(k.ctx, "w1", minutesAfter(40)); err != nil {
		k.Errorf("renew: %v", err)
	}
	for i := 0; i < len(want); i += 3 {
		want[i].LeaseUntil = minutesAfter(40)
	}
	k.deleteRecord("t29")
	want = want[:29]
	for _, s := range []mcptask.Store{k.s, k.other} {
		if err := s.Close(); err != nil {
			k.Fatalf("close: %v", err)
		}
	}
	k.s = k.closeAtEnd(k.stores.Reopen(k, k.s))
	k.other = k.s
	var ids []string
	for _, r := range want {
		ids = append(ids, r.ID)
		k.wantRecord("after the restart", k.getRecord(r.ID), r)
		k.wantCreate("a key after the restart", newKeyedRecord("new", r.Principal, r.Tool, r.IdempotencyKey), mcptask.Quota{}, mcptask.ErrExists)
	}
	if got := k.listIDs("p", 7, nil); !slices.Equal(got, ids) {
		k.Errorf("the list after the restart: %q", got)
	}
	k.wantAbsent("t29")
	k.wantCreate("the records count after the restart", newRecord("new", "p", epoch), quotaOf(29, 0), mcptask.ErrQuotaStored)
	k.wantCreate("the unfinished ones count after the restart", newRecord("new", "p", epoch), quotaOf(0, 10), mcptask.ErrQuotaUnfinished)
	var bytes int64
	for _, r := range want {
		bytes += r.Size()
	}
	_, err := k.s.Create(k.ctx, newRecord("new", "q", epoch), mcptask.Quota{Server: mcptask.Usage{Bytes: bytes}})
	k.wantQuotaError("the bytes count after the restart", err, mcptask.ScopeServer, mcptask.ErrQuotaBytes)
	k.takeLeases("w2", minutesAfter(40), minutesAfter(50), 0)
	k.takeLeases("w2", minutesAfter(41), minutesAfter(50), 10)
	k.expireRecords(minutesAfter(200), 100, 29)
}
