package storetest

import (
	"context"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
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
	r := k.newRecord("t", "p", k.epoch)
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
	if page, err := k.s.List(ctx, "p", taskstore.Position{}, 5); !refused("List", err) && len(page) != 1 {
		k.Errorf("List: %d records", len(page))
	}
	change := r
	change.StatusMessage = "new"
	var steps []taskstore.Step
	if _, err := k.s.Update(ctx, r, change, taskstore.Quota{}, k.newStep("a", "1", 0)); !refused("Update", err) {
		r, steps = change, []taskstore.Step{k.newStep("a", "1", 0)}
		r.Version++
	}
	k.wantRecord("after Update", k.getRecord("t"), r)
	k.wantSteps("after Update", "t", steps...)
	if got, err := k.s.Steps(ctx, "t"); !refused("Steps", err) && len(got) != len(steps) {
		k.Errorf("Steps: %d", len(got))
	}
	if list, err := k.s.Waiting(ctx, []string{"tool"}, "", 5); !refused("Waiting", err) && len(list) > 0 {
		k.Errorf("Waiting: %+v", list)
	}
	if taken, err := k.s.Lease(ctx, "w2", leaseTime, []string{"tool"}, 5); !refused("Lease", err) && len(taken) == 1 {
		r.Claim.Worker, r.Version = "w2", r.Version+1
	}
	k.wantRecord("after Lease", k.getRecord("t"), r)
	_, err := k.s.Beat(ctx, r.Claim.Worker, leaseTime, nil)
	begun := !refused("Beat", err)
	if taken, err := k.s.Lease(k.ctx, "w3", leaseTime, []string{"tool"}, 5); err != nil || begun && len(taken) > 0 {
		k.Errorf("a lease was begun: %v. Then %d were taken: %v", begun, len(taken), err)
	}
	worker := k.getRecord("t").Claim.Worker
	k.beat(k.s, worker)
	released := !refused("Release", k.s.Release(ctx, worker))
	if taken, err := k.s.Lease(k.ctx, "w4", leaseTime, []string{"tool"}, 5); err != nil || released != (len(taken) == 1) {
		k.Errorf("a lease was released: %v. Then %d were taken: %v", released, len(taken), err)
	}
	r = k.getRecord("t")
	change = r
	change.ExpiresAt = k.minutesAfter(-1)
	r = k.updateRecord(r, change)
	if gone, err := k.s.Expire(ctx, 5); !refused("Expire", err) != (len(gone) == 1) {
		k.Errorf("Expire: %d records, %v", len(gone), err)
	} else if err != nil {
		if err := k.s.Delete(ctx, r); refused("Delete", err) {
			k.deleteRecord("t")
		}
	}
	for c, err := range k.s.Changes(ctx) {
		if err != nil {
			refused("Changes", err)
		} else if !c.Missed {
			k.Errorf("Changes: %+v", c)
		}
	}
	k.wantAbsent("t")
	k.createRecord(r)
}
