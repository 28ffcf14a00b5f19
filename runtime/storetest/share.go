package storetest

import (
	"fmt"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// testShared needs two handles; that all other promises hold across them, their
// tests have seen, since these take now the one and now the other.
func testShared(k *kit) {
	if k.stores.Share == nil {
		k.Skip("the store is of one process: Stores.Share is nil")
	}
	first := k.create(keyed("t", "p", "tool", "k"))
	if err := k.other.Renew(k.ctx, "w1", minutes(30)); err != nil {
		k.Errorf("renew: %v", err)
	}
	first.LeaseUntil = minutes(30)
	k.same("seen by both", k.get("t"), first)
	third := k.closed(k.stores.Share(k, k.s))
	each(3, func(i int) {
		switch i {
		case 0:
			got, err := third.Wait(k.ctx, "t", 1)
			if err != nil || got.Version != 2 {
				k.Errorf("waited for version %d: %v", got.Version, err)
			}
		case 1:
			_, err := k.other.Wait(k.ctx, "t", 2)
			k.is("the waiter's own handle closed", err, mcptask.ErrServerClosed)
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
	k.other = third // nobody else minds that a handle is closed
	k.update(k.get("t"))
	if got := k.get("t"); got.Version != 3 {
		k.Errorf("version %d after another handle was closed", got.Version)
	}
}

func testReopened(k *kit) {
	if k.stores.Reopen == nil {
		k.Skip("the store keeps nothing: Stores.Reopen is nil")
	}
	var want []mcptask.Record
	for i := range 30 {
		r := full(fmt.Sprintf("t%02d", i))
		r.CreatedAt = epoch.Add(time.Duration(i) * time.Microsecond)
		if i%3 == 0 {
			r.Phase, r.Outcome, r.Worker, r.LeaseUntil = mcptask.PhaseRunning, nil, "w1", minutes(i)
		}
		r = k.create(r)
		if i%2 == 0 {
			r = k.update(r)
		}
		want = append(want, r)
	}
	if err := k.s.Renew(k.ctx, "w1", minutes(40)); err != nil {
		k.Errorf("renew: %v", err)
	}
	for i := 0; i < len(want); i += 3 {
		want[i].LeaseUntil = minutes(40)
	}
	k.delete("t29")
	want = want[:29]
	for _, s := range []mcptask.Store{k.s, k.other} {
		if err := s.Close(); err != nil {
			k.Fatalf("close: %v", err)
		}
	}
	k.s = k.closed(k.stores.Reopen(k, k.s))
	k.other = k.s
	var ids []string
	for _, r := range want {
		ids = append(ids, r.ID)
		k.same("after the restart", k.get(r.ID), r)
		_, err := k.s.Create(k.ctx, keyed("new", r.Principal, r.Tool, r.IdempotencyKey), mcptask.Quota{})
		k.is("a key after the restart", err, mcptask.ErrExists)
	}
	if got := k.list("p", 7, nil); !slices.Equal(got, ids) {
		k.Errorf("the list after the restart: %q", got)
	}
	k.absent("t29")
	_, err := k.s.Create(k.ctx, record("new", "p", epoch), quotaOf(29, 0))
	k.is("the records count after the restart", err, mcptask.ErrQuotaStored)
	_, err = k.s.Create(k.ctx, record("new", "p", epoch), quotaOf(0, 10))
	k.is("the unfinished ones count after the restart", err, mcptask.ErrQuotaUnfinished)
	var bytes int64
	for _, r := range want {
		bytes += r.Size()
	}
	_, err = k.s.Create(k.ctx, record("new", "q", epoch), mcptask.Quota{Server: mcptask.Usage{Bytes: bytes}})
	k.full("the bytes count after the restart", err, mcptask.ScopeServer, mcptask.ErrQuotaBytes)
	k.leases("w2", minutes(40), minutes(50), 0)
	k.leases("w2", minutes(41), minutes(50), 10)
	if gone, err := k.s.Expire(k.ctx, minutes(200), 100); err != nil || len(gone) != 29 {
		k.Errorf("%d expired after the restart: %v", len(gone), err)
	}
}
