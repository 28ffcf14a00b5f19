package storetest

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// testContext makes every call with an ended context. A call may return the context's error, or do
// all its work, but nothing in between.
func testContext(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	refused := func(what string, err error) bool {
		if err != nil && !isContext(err) {
			k.Errorf("%s with an ended context: %v", what, err)
		}
		return err != nil
	}
	r := newRecord("t", "p", epoch)
	r.IdempotencyKey = "k"
	if _, err := k.s.Create(ctx, r, quotaOf(1, 0)); refused("Create", err) {
		k.wantAbsent("t")
		if _, err := k.s.Create(k.ctx, r, quotaOf(1, 0)); err != nil {
			k.Fatalf("create after a refusal: %v", err)
		}
	}
	r.Version = 1
	if got, err := k.s.Get(ctx, "t"); !refused("Get", err) {
		k.wantRecord("Get", got, r)
	}
	if page, err := k.s.List(ctx, "p", mcptask.Position{}, 5); !refused("List", err) && len(page) != 1 {
		k.Errorf("List: %d records", len(page))
	}
	change := r
	change.StatusMessage = "new"
	if _, err := k.s.Update(ctx, change, mcptask.Quota{}); !refused("Update", err) {
		r = change
		r.Version++
	}
	k.wantRecord("after Update", k.getRecord("t"), r)
	if err := k.s.Renew(ctx, "w1", minutesAfter(5)); !refused("Renew", err) {
		r.LeaseUntil = minutesAfter(5)
	}
	k.wantRecord("after Renew", k.getRecord("t"), r)
	if taken, err := k.s.Lease(ctx, "w2", minutesAfter(6), minutesAfter(7), 5); !refused("Lease", err) && len(taken) == 1 {
		r.Worker, r.LeaseUntil, r.Version = "w2", minutesAfter(7), r.Version+1
	}
	k.wantRecord("after Lease", k.getRecord("t"), r)
	released := k.s.Release(ctx, r.Worker)
	refused("Release", released)
	if taken, err := k.s.Lease(k.ctx, "w3", epoch, minutesAfter(9), 5); err != nil || (len(taken) == 1) != (released == nil) {
		k.Errorf("Release answered %v, and then %d were taken: %v", released, len(taken), err)
	}
	if gone, err := k.s.Expire(ctx, minutesAfter(60), 5); !refused("Expire", err) != (len(gone) == 1) {
		k.Errorf("Expire: %d records, %v", len(gone), err)
	} else if err != nil {
		if err := k.s.Delete(ctx, r); refused("Delete", err) {
			k.getRecord("t")
			k.deleteRecord("t")
		}
	}
	k.wantAbsent("t")
	k.createRecord(r)
}
