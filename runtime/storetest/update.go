package storetest

import (
	"context"
	"fmt"
	"sync/atomic"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func testUpdate(k *kit) {
	first := k.createRecord(newRecord("t", "p", epoch))
	change := first
	change.Phase, change.StatusMessage, change.UpdatedAt = mcptask.PhaseRunning, "one", minutesAfter(1)
	change.Poll, change.ExpiresAt, change.Attempt = 0, minutesAfter(90), 1
	second := k.updateRecord(change)
	want := change
	want.Version = 2
	k.wantRecord("updated", second, want)
	k.wantRecord("got", k.getRecord("t"), want)
	late := change
	for _, version := range []int64{0, 1, 3, -1} {
		late.Version, late.StatusMessage = version, "late"
		_, err := k.other.Update(k.ctx, late, mcptask.Quota{})
		k.wantError(fmt.Sprintf("version %d instead of 2", version), err, mcptask.ErrConflict)
	}
	k.wantRecord("after refused updates", k.getRecord("t"), want)
	third := k.updateRecord(second) // no change, but a new version
	if third.Version != 3 {
		k.Errorf("version %d follows 2", third.Version)
	}
	if ended := k.updateRecord(finishRecord(third)); ended.Version != 4 || ended.Outcome == nil {
		k.Errorf("ended: %s", describeRecords(ended))
	}
	missing := newRecord("missing", "p", epoch)
	missing.Version = 1
	_, err := k.s.Update(k.ctx, missing, mcptask.Quota{})
	k.wantError("update what is not there", err, mcptask.ErrNoRecord)
	k.wantAbsent("missing")
	k.deleteRecord("t")
	_, err = k.s.Update(k.ctx, third, mcptask.Quota{})
	k.wantError("update what was deleted", err, mcptask.ErrNoRecord)
	k.wantAbsent("t")
}

func testUpdateKeeps(k *kit) {
	r := newRecord("t", "p", epoch)
	r.IdempotencyKey = "k"
	stored := k.createRecord(r)
	change := stored
	change.Principal, change.Account, change.Tool, change.IdempotencyKey, change.CreatedAt = "q", "other", "other", "other", minutesAfter(-1)
	change.StatusMessage = "new"
	updated := k.updateRecord(change)
	want := stored
	want.Version, want.StatusMessage = 2, "new"
	k.wantRecord("updated", updated, want)
	k.wantRecord("got", k.getRecord("t"), want)
	if ids := k.listIDs("q", 5, nil); len(ids) != 0 {
		k.Errorf("listed for another principal: %q", ids)
	}
	if ids := k.listIDs("p", 5, nil); len(ids) != 1 {
		k.Errorf("the principal's list: %q", ids)
	}
	k.wantCreate("its key", newKeyedRecord("2", "p", "tool", "k"), mcptask.Quota{}, mcptask.ErrExists)
	k.createRecord(newKeyedRecord("3", "q", "other", "other"))
	k.wantCreate("its account", newRecord("4", "p", epoch), quotaOf(0, 1), mcptask.ErrQuotaUnfinished)
	k.deleteRecord("t")
	if ids := k.listIDs("p", 5, nil); len(ids) != 0 {
		k.Errorf("listed after its deletion: %q", ids)
	}
}

func testOneWinner(k *kit) {
	const rounds, writers = 20, 30
	k.createRecord(newRecord("t", "p", epoch))
	for round := range rounds {
		current := k.getRecord("t")
		var won, lost atomic.Int32
		var winner atomic.Value
		runConcurrently(writers, func(i int) {
			mine := current
			mine.StatusMessage = fmt.Sprintf("%d of round %d", i, round)
			got, err := k.pickStore(i).Update(k.ctx, mine, mcptask.Quota{})
			if err != nil {
				k.wantError("an update that lost", err, mcptask.ErrConflict)
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
	const versions, most = 150, 5000 // until the readers have read as often, within limits
	write := func(r mcptask.Record, n int) mcptask.Record {
		text := fmt.Sprint(n)
		r.StatusMessage, r.Attempt, r.UpdatedAt = text, n, minutesAfter(n)
		r.Inputs = []mcptask.Input{{Key: text, Response: []byte(text)}}
		r.Outcome = &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: []byte(text)}
		r.CanAsk = []string{text}
		return r
	}
	whole := func(what string, r mcptask.Record) {
		if d := diffRecords(r, write(r, r.Attempt)); d != "" || int64(r.Attempt) != r.Version {
			k.Errorf("%s saw parts of two: version %d, %s", what, r.Version, d)
		}
	}
	k.createRecord(write(newRecord("t", "p", epoch), 1))
	reading, stop := context.WithCancel(k.ctx) // ends after the last write
	var reads atomic.Int64
	runConcurrently(8, func(i int) {
		s := k.pickStore(i)
		if i == 0 {
			defer stop()
			r, err := s.Get(k.ctx, "t")
			for err == nil && r.Version < most && (r.Version < versions || reads.Load() < versions) {
				r, err = s.Update(k.ctx, write(r, int(r.Version)+1), mcptask.Quota{})
			}
			if err != nil {
				k.Errorf("update: %v", err)
			}
			return
		}
		for version := int64(0); reading.Err() == nil; reads.Add(1) {
			r, err := s.Get(k.ctx, "t")
			switch i % 3 {
			case 1:
				r, err = s.Wait(reading, "t", version)
			case 2:
				var page []mcptask.Record
				if page, err = s.List(k.ctx, "p", mcptask.Position{}, 1); err == nil && len(page) == 1 {
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
			whole([]string{"Get", "Wait", "List"}[i%3], r)
			version = r.Version
		}
	})
}
