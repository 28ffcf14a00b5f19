package storetest

import (
	"context"
	"fmt"
	"sync/atomic"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func testUpdate(k *kit) {
	first := k.createRecord(k.newRecord("t", "p", k.epoch))
	change := first
	change.Phase, change.StatusMessage, change.UpdatedAt = taskstore.PhaseRunning, "one", k.minutesAfter(1)
	change.ExpiresAt, change.Attempt, change.Progress = k.minutesAfter(90), 1, taskstore.Progress{Done: 1, Total: 3}
	second := k.updateRecord(first, change)
	want := change
	want.Version = 2
	k.wantRecord("updated", second, want)
	k.wantRecord("got", k.getRecord("t"), want)
	for _, version := range []int64{0, 1, 3, -1} {
		from := second
		from.Version = version
		late := from
		late.StatusMessage = "late"
		_, err := k.other.Update(k.ctx, from, late, taskstore.Quota{})
		k.wantError(fmt.Sprintf("version %d instead of 2", version), err, taskstore.ErrConflict)
	}
	k.wantRecord("after refused updates", k.getRecord("t"), want)
	third := k.updateRecord(second, second) // no change, but a new version
	if third.Version != 3 {
		k.Errorf("version %d follows 2", third.Version)
	}
	if ended := k.updateRecord(third, finishRecord(third)); ended.Version != 4 || ended.Outcome == nil {
		k.Errorf("ended: %s", describeRecords(ended))
	}
	missing := k.newRecord("missing", "p", k.epoch)
	missing.Version = 1
	_, err := k.s.Update(k.ctx, missing, missing, taskstore.Quota{})
	k.wantError("update what is not there", err, taskstore.ErrNoRecord)
	k.wantAbsent("missing")
	k.deleteRecord("t")
	_, err = k.s.Update(k.ctx, third, third, taskstore.Quota{})
	k.wantError("update what was deleted", err, taskstore.ErrNoRecord)
	k.wantAbsent("t")
}

func testUpdateKeeps(k *kit) {
	r := k.newRecord("t", "p", k.epoch)
	r.IdempotencyKey = "k"
	stored := k.createRecord(r)
	change := k.newFullRecord("other")
	change.Principal, change.Account, change.Tool, change.Arguments, change.Revision = "q", "other", "other", []byte(`{}`), "other"
	change.IdempotencyKey, change.CreatedAt = "other", k.minutesAfter(-1)
	change.Phase, change.Outcome = taskstore.PhaseRunning, nil
	updated := k.updateRecord(stored, change)
	want := keepFixed(change, stored)
	want.Version = 2
	k.wantRecord("updated", updated, want)
	k.wantRecord("got", k.getRecord("t"), want)
	if ids := k.listIDs("q", 5, nil); len(ids) != 0 {
		k.Errorf("listed for another principal: %q", ids)
	}
	if ids := k.listIDs("p", 5, nil); len(ids) != 1 {
		k.Errorf("the principal's list: %q", ids)
	}
	k.wantCreate("its key", k.newKeyedRecord("2", "p", "tool", "k"), taskstore.Quota{}, taskstore.ErrExists)
	k.createRecord(k.newKeyedRecord("3", "q", "other", "other"))
	k.wantCreate("its account", k.newRecord("4", "p", k.epoch), quotaOf(0, 1), taskstore.ErrQuotaUnfinished)
	ended := k.updateRecord(updated, finishRecord(updated))
	for _, outcome := range []*taskstore.Outcome{nil, {Kind: taskstore.OutcomeError, Error: &mcptask.Error{Code: -1}}, {Kind: taskstore.OutcomeResult, Result: []byte(`{"late":true}`)}} {
		change := ended
		change.Outcome, change.StatusMessage = outcome, "after the end"
		want := change
		want.Outcome, want.Version = ended.Outcome, ended.Version+1
		ended = k.updateRecord(ended, change)
		k.wantRecord("the outcome is written once", ended, want)
		k.wantRecord("the outcome is stored once", k.getRecord("t"), want)
	}
	k.deleteRecord("t")
	if ids := k.listIDs("p", 5, nil); len(ids) != 0 {
		k.Errorf("listed after its deletion: %q", ids)
	}
}

func testOneWinner(k *kit) {
	const rounds, writers = 20, 30
	k.createRecord(k.newRecord("t", "p", k.epoch))
	for round := range rounds {
		current := k.getRecord("t")
		var won, lost atomic.Int32
		var winner atomic.Value
		runConcurrently(writers, func(i int) {
			mine := current
			mine.StatusMessage = fmt.Sprintf("%d of round %d", i, round)
			got, err := k.pickStore(i).Update(k.ctx, current, mine, taskstore.Quota{})
			if err != nil {
				k.wantError("an update that lost", err, taskstore.ErrConflict)
				lost.Add(1)
				return
			}
			won.Add(1)
			winner.Store(mine.StatusMessage)
			mine.Version++
			k.wantRecord("the update that won", got, mine)
		})
		if won.Load() != 1 || lost.Load() != writers-1 {
			k.Fatalf("%d updates won, %d lost", won.Load(), lost.Load())
		}
		if got := k.getRecord("t"); got.StatusMessage != winner.Load() || got.Version != int64(round)+2 {
			k.Errorf("version %d is %q, %q had won", got.Version, got.StatusMessage, winner.Load())
		}
	}
}

// testWhole has a writer that writes the same number into every part of a record. Readers check
// that all parts match.
func testWhole(k *kit) {
	const versions = 150 // as fast as it goes, and as many with a read before each
	write := func(r taskstore.Record, n int) taskstore.Record {
		text := fmt.Sprint(n)
		r.StatusMessage, r.Attempt, r.UpdatedAt, r.ExpiresAt = text, n, k.minutesAfter(n), k.minutesAfter(60+n)
		r.Progress, r.Tries, r.Claim.Worker = taskstore.Progress{Done: float64(n)}, n, text
		r.Inputs = []taskstore.Input{{Request: mcptask.Request{Key: text}, Response: []byte(text)}}
		return r
	}
	whole := func(what string, r taskstore.Record) {
		want := write(r, r.Attempt)
		if what == "List" {
			r, want = trimRecord(r), trimRecord(want)
		}
		if d := diffRecords(r, want); d != "" || int64(r.Attempt) != r.Version {
			k.Errorf("%s saw parts of two: version %d, %s", what, r.Version, d)
		}
	}
	k.createRecord(write(k.newRecord("t", "p", k.epoch), 1))
	reading, stop := context.WithCancel(k.ctx) // ends after the last write, or if a reader gives up
	read := make(chan struct{}, 1)             // a reader has read
	runConcurrently(8, func(i int) {
		defer stop()
		s := k.pickStore(i)
		if i == 0 {
			r, err := s.Get(k.ctx, "t")
			for err == nil && reading.Err() == nil && r.Version < 2*versions {
				if r.Version >= versions {
					select {
					case <-read:
					case <-reading.Done():
					}
				}
				r, err = s.Update(k.ctx, r, write(r, int(r.Version)+1), taskstore.Quota{})
			}
			if err != nil {
				k.Errorf("update: %v", err)
			}
			return
		}
		for version := int64(0); reading.Err() == nil; {
			r, err := s.Get(k.ctx, "t")
			if i%3 == 2 {
				var page []taskstore.Record
				if page, err = s.List(k.ctx, "p", taskstore.Position{}, 1); err == nil && len(page) == 1 {
					r = page[0]
				}
			}
			if err != nil {
				if reading.Err() == nil {
					k.Errorf("read: %v", err)
				}
				return
			}
			if r.Version < version {
				k.Errorf("version %d after %d", r.Version, version)
			}
			whole([]string{"Get", "Get", "List"}[i%3], r)
			version = r.Version
			select {
			case read <- struct{}{}:
			default:
			}
		}
	})
}
