package storetest

import (
	"context"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// testContext makes every call with a context that has ended. Each may say so,
// or do what it is for; nothing in between.
func testContext(k *kit) {
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	refused := func(what string, err error) bool {
		if err != nil && !isContext(err) {
			k.Errorf("%s with an ended context: %v", what, err)
		}
		return err != nil
	}
	r := record("t", "p", epoch)
	r.IdempotencyKey = "k"
	if _, err := k.s.Create(ctx, r, quotaOf(1, 0)); refused("Create", err) {
		k.absent("t")
		if _, err := k.s.Create(k.ctx, r, quotaOf(1, 0)); err != nil {
			k.Fatalf("create after a refusal: %v", err)
		}
	}
	r.Version = 1
	if got, err := k.s.Get(ctx, "t"); !refused("Get", err) {
		k.same("Get", got, r)
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
	k.same("after Update", k.get("t"), r)
	if err := k.s.Renew(ctx, "w1", minutes(5)); !refused("Renew", err) {
		r.LeaseUntil = minutes(5)
	}
	k.same("after Renew", k.get("t"), r)
	if taken, err := k.s.Lease(ctx, "w2", minutes(6), minutes(7), 5); !refused("Lease", err) && len(taken) == 1 {
		r.Worker, r.LeaseUntil, r.Version = "w2", minutes(7), r.Version+1
	}
	k.same("after Lease", k.get("t"), r)
	released := k.s.Release(ctx, r.Worker)
	refused("Release", released)
	if taken, err := k.s.Lease(k.ctx, "w3", epoch, minutes(9), 5); err != nil || (len(taken) == 1) != (released == nil) {
		k.Errorf("Release answered %v, and then %d were taken: %v", released, len(taken), err)
	}
	if gone, err := k.s.Expire(ctx, minutes(60), 5); !refused("Expire", err) != (len(gone) == 1) {
		k.Errorf("Expire: %d records, %v", len(gone), err)
	} else if err != nil {
		if err := k.s.Delete(ctx, r); refused("Delete", err) {
			k.get("t")
			k.delete("t")
		}
	}
	k.absent("t")
	k.create(r)
}
