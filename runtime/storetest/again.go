package storetest

import (
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// testCreateAgain repeats a Create as a caller does that has not got the answer.
func testCreateAgain(k *kit) {
	quota := quotaOf(3, 3)
	create := func(what string, r taskstore.Record, want error) taskstore.Record {
		k.Helper()
		got, err := k.other.Create(k.ctx, r, quota)
		k.wantError(what, err, want)
		return got
	}
	keyed, plain, unnamed := k.newKeyedRecord("keyed", "p", "tool", "k"), k.newRecord("plain", "p", k.epoch), k.newRecord("unnamed", "p", k.epoch)
	keyed.Nonce, plain.Nonce = "n1", "n2"
	for _, r := range []*taskstore.Record{&keyed, &plain, &unnamed} {
		*r = k.createRecord(*r)
	}
	for _, r := range []taskstore.Record{keyed, plain} { // at the quota
		k.wantRecord(r.ID+", created again", create(r.ID+" again", r, nil), r)
		other := r
		other.Nonce = "n3"
		create(r.ID+" by another write", other, taskstore.ErrExists)
		other.Nonce = ""
		create(r.ID+" by a write without a name", other, taskstore.ErrExists)
		k.wantRecord(r.ID+", in the end", k.getRecord(r.ID), r)
	}
	create("a write without a name", unnamed, taskstore.ErrExists)
	if ids := k.listIDs("p", 10, nil); len(ids) != 3 {
		k.Errorf("listed: %q", ids)
	}
	quota = quotaOf(4, 4)
	create("a fourth record", k.newRecord("fourth", "p", k.epoch), nil)
	create("a fifth record", k.newRecord("fifth", "p", k.epoch), taskstore.ErrQuotaStored)
	change := keyed
	change.Nonce = "n4"
	changed := k.updateRecord(keyed, change)
	k.wantRecord("by the key", create("what has changed since", keyed, taskstore.ErrExists), changed)
	k.updateRecord(plain, plain)
	create("what has changed since", plain, taskstore.ErrExists)
	k.deleteRecord("keyed")
	create("what was deleted", keyed, nil)
}

// testUpdateAgain repeats an Update as a caller does that has not got the answer.
func testUpdateAgain(k *kit) {
	update := func(what string, from, to taskstore.Record, quota taskstore.Quota, want error) taskstore.Record {
		k.Helper()
		got, err := k.other.Update(k.ctx, from, to, quota)
		k.wantError(what, err, want)
		return got
	}
	first := k.newRecord("t", "p", k.epoch)
	first.Nonce = "n1"
	first = k.createRecord(first)
	change := first
	change.Nonce, change.StatusMessage, change.Claim.State, change.Claim.Nonce = "n2", "longer", taskstore.ClaimRunning, "n2"
	second := k.updateRecord(first, change)
	full := taskstore.Quota{Account: taskstore.Usage{Bytes: 1}}
	for range 2 {
		k.wantRecord("updated again", update("again", first, change, full, nil), second)
	}
	k.wantRecord("in the end", k.getRecord("t"), second)
	for _, nonce := range []string{"", "n1", "n3"} {
		other := change
		other.Nonce = nonce
		update("from the same version by "+nonce, first, other, taskstore.Quota{}, taskstore.ErrConflict)
	}
	wrong := second
	wrong.Nonce = "n1"
	update("from a version that is another's", wrong, second, taskstore.Quota{}, taskstore.ErrConflict)
	if taken := k.takeLeases("w2", "t"); len(taken) == 1 {
		want := second
		want.Version, want.Claim.Worker = 3, "w2"
		k.wantRecord("leased", taken[0], want)
	}
	update("what was leased since", first, change, taskstore.Quota{}, taskstore.ErrConflict)
	end := finishRecord(k.getRecord("t"))
	end.Nonce, end.Claim = "n4", taskstore.Claim{}
	ended := k.updateRecord(k.getRecord("t"), end)
	k.wantRecord("ended again", update("the end again", end, end, taskstore.Quota{}, nil), ended)
	k.deleteRecord("t")
	update("what was deleted", first, change, taskstore.Quota{}, taskstore.ErrNoRecord)
}

// testLostAnswers makes each write until it is answered, with a store that refuses calls and loses answers. Each write
// counts once.
func testLostAnswers(k *kit) {
	const writers, writes = 6, 12
	faults := Faults{Refuse: 0.2, Lose: 0.3}
	stores := []*Faulty{NewFaulty(k.s, faults, 1), NewFaulty(k.other, faults, 2)}
	runConcurrently(writers, func(i int) {
		s := stores[i%2]
		until := func(call func() (taskstore.Record, error)) taskstore.Record {
			for {
				r, err := call()
				if err == nil {
					return r
				}
				if !errors.Is(err, ErrFault) {
					k.Errorf("a write again: %v", err)
					return r
				}
			}
		}
		fresh := k.newRecord(fmt.Sprint("t", i), "p", k.epoch)
		fresh.Nonce = fmt.Sprint(i, " created")
		r := until(func() (taskstore.Record, error) { return s.Create(k.ctx, fresh, quotaOf(writers, writers)) })
		for n := range writes {
			next := r
			next.Nonce, next.StatusMessage = fmt.Sprint(i, " ", n), fmt.Sprint(r.StatusMessage, n)
			next.Tries++
			r = until(func() (taskstore.Record, error) { return s.Update(k.ctx, r, next, taskstore.Quota{}) })
		}
		if got := k.getRecord(fresh.ID); got.Version != writes+1 || got.Tries != writes || diffRecords(got, r) != "" {
			k.Errorf("%d writes have made %s", writes, describeRecords(got))
		}
	})
	k.wantCreate("beyond the quota", k.newRecord("more", "p", k.epoch), quotaOf(writers, writers), taskstore.ErrQuotaStored)
}
