package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func testCreate(k *kit) {
	want := k.newRecord("t", "p", k.epoch)
	given := want
	given.Version = 7 // ignored
	stored := k.createRecord(given)
	want.Version = 1
	k.wantRecord("created", stored, want)
	k.wantRecord("got", k.getRecord("t"), want)

	twice, err := k.other.Create(k.ctx, k.newRecord("t", "somebody else", k.minutesAfter(1)), taskstore.Quota{})
	k.wantError("a second record with the ID", err, taskstore.ErrExists)
	if twice.Version != 0 {
		k.Errorf("the ID of another record returned it: %s", describeRecords(twice))
	}
	k.wantRecord("after a refused create", k.getRecord("t"), want)
	if ids := k.listIDs("somebody else", 10, nil); len(ids) != 0 {
		k.Errorf("a refused record is listed: %q", ids)
	}

	if err := k.s.Delete(k.ctx, taskstore.Record{ID: "t", Version: 1, CreatedAt: k.epoch}); err != nil {
		k.Fatalf("delete: %v", err)
	}
	k.wantAbsent("t")
	k.wantError("delete what is not there", k.other.Delete(k.ctx, want), taskstore.ErrNoRecord)
	if ids := k.listIDs("p", 10, nil); len(ids) != 0 {
		k.Errorf("a deleted record is listed: %q", ids)
	}
	again := k.createRecord(k.newRecord("t", "q", k.minutesAfter(2)))
	if again.Version != 1 || again.Principal != "q" {
		k.Errorf("a new record with the ID of a deleted one: %s", describeRecords(again))
	}
}

// testDelete checks that Delete only removes the version that the caller has read: not a later
// version, and not a new record with the same ID.
func testDelete(k *kit) {
	former := k.createRecord(k.newRecord("t", "p", k.epoch))
	latest := k.updateRecord(former, former)
	k.wantError("delete what has changed", k.other.Delete(k.ctx, former), taskstore.ErrConflict)
	k.wantRecord("after a refused delete", k.getRecord("t"), latest)
	if err := k.s.Delete(k.ctx, latest); err != nil {
		k.Fatalf("delete: %v", err)
	}
	next := k.createRecord(k.newRecord("t", "p", k.minutesAfter(1)))
	k.wantError("delete a new record by an old one's version", k.other.Delete(k.ctx, former), taskstore.ErrConflict)
	k.wantRecord("the new record", k.getRecord("t"), next)
	for range 10 {
		current := k.getRecord("t")
		var won atomic.Int32
		runConcurrently(20, func(i int) {
			switch err := k.pickStore(i).Delete(k.ctx, current); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, taskstore.ErrConflict) && !errors.Is(err, taskstore.ErrNoRecord):
				k.Errorf("delete in a race: %v", err)
			}
		})
		if won.Load() != 1 {
			k.Errorf("%d have deleted one record", won.Load())
		}
		k.createRecord(k.newRecord("t", "p", current.CreatedAt.Add(time.Minute)))
	}
}

// newKeyedRecord returns a record with an idempotency key.
func (k *kit) newKeyedRecord(id, principal, tool, key string) taskstore.Record {
	r := k.newRecord(id, principal, k.epoch)
	r.Tool, r.IdempotencyKey = tool, key
	return r
}

func testKeys(k *kit) {
	first := k.createRecord(k.newKeyedRecord("1", "p", "tool", "k"))
	for _, id := range []string{"2", "1"} { // a new ID, and the same record again
		got, err := k.other.Create(k.ctx, k.newKeyedRecord(id, "p", "tool", "k"), taskstore.Quota{})
		k.wantError("the same key", err, taskstore.ErrExists)
		k.wantRecord("the record of the key", got, first)
	}
	k.wantAbsent("2")
	running := first
	running.Phase = taskstore.PhaseRunning
	first = k.updateRecord(first, running)
	got, err := k.s.Create(k.ctx, k.newKeyedRecord("2", "p", "tool", "k"), quotaOf(1, 0))
	k.wantError("the same key, at the quota", err, taskstore.ErrExists)
	k.wantRecord("the record of the key as it is now", got, first)

	// A difference in any of the three makes another key. An empty key is not a key.
	for i, r := range []taskstore.Record{
		k.newKeyedRecord("", "q", "tool", "k"), k.newKeyedRecord("", "p", "other", "k"), k.newKeyedRecord("", "p", "tool", "K"), k.newKeyedRecord("", "p", "tool", "k "),
		k.newKeyedRecord("", "p", "tool", ""), k.newKeyedRecord("", "p", "tool", ""), k.newKeyedRecord("", "", "tool", "k"), k.newKeyedRecord("", "ptool", "", "k"), k.newKeyedRecord("", "p", "toolk", "k"),
		k.newKeyedRecord("", "p", "tool", "k\x00"), k.newKeyedRecord("", "p\x00tool", "", "k"), k.newKeyedRecord("", "p", "tool", "\xff"), k.newKeyedRecord("", "p", "tool", "\xfe"), k.newKeyedRecord("", "p", "tool", "\ufffd"),
	} {
		r.ID = fmt.Sprint("other", i)
		k.createRecord(r)
	}

	k.deleteRecord("1")
	r := k.newKeyedRecord("3", "p", "tool", "k")
	r.ExpiresAt = k.minutesAfter(-1)
	k.createRecord(r) // the key was deleted with its record
	k.expireRecords(100, 1)
	k.createRecord(k.newKeyedRecord("4", "p", "tool", "k"))
}

func testKeysRace(k *kit) {
	for round := range 10 {
		key := fmt.Sprint("key", round)
		var mu sync.Mutex
		made, ids := 0, map[string]bool{}
		runConcurrently(20, func(i int) {
			r, err := k.pickStore(i).Create(k.ctx, k.newKeyedRecord(fmt.Sprint(key, "-", i), "p", "tool", key), taskstore.Quota{})
			mu.Lock()
			defer mu.Unlock()
			ids[r.ID] = true
			if err == nil {
				made++
			} else {
				k.wantError("a key that another has", err, taskstore.ErrExists)
			}
		})
		if made != 1 || len(ids) != 1 {
			k.Errorf("%d records were made for one key, and %d returned", made, len(ids))
		}
		if stored := k.listIDs("p", 100, nil); len(stored) != round+1 {
			k.Errorf("%d records are stored for %d keys", len(stored), round+1)
		}
	}
}

func testQuota(k *kit) {
	quota := quotaOf(4, 2)
	create := func(id string, want error) {
		k.Helper()
		r := k.newRecord(id, "p", k.epoch)
		r.IdempotencyKey = "key of " + id
		_, err := k.pickStore(len(id)).Create(k.ctx, r, quota)
		k.wantError("create "+id, err, want)
		if want != nil {
			k.wantAbsent(id)
		}
	}
	create("a", nil)
	create("bb", nil)
	create("c", taskstore.ErrQuotaUnfinished)
	other := k.newRecord("other", "p", k.epoch)
	other.Account = "another"
	k.wantCreate("another account", other, quota, nil)
	stranger := k.newRecord("stranger", "q", k.epoch)
	stranger.Account = "account of p"
	k.wantCreate("another principal on the account", stranger, quota, taskstore.ErrQuotaUnfinished)

	end := func(id string) taskstore.Record {
		r := k.getRecord(id)
		return k.updateRecord(r, finishRecord(r))
	}
	a := end("a")    // an end makes room
	create("c", nil) // the refused create took neither the ID nor the key
	create("dd", taskstore.ErrQuotaUnfinished)
	end("bb")
	create("dd", nil)
	create("e", taskstore.ErrQuotaStored)
	end("c")
	create("e", taskstore.ErrQuotaStored)
	k.deleteRecord("c")
	create("e", nil)
	create("f", taskstore.ErrQuotaStored)
	expired := a
	expired.ExpiresAt = k.minutesAfter(-1)
	k.updateRecord(a, expired)
	k.expireRecords(10, 1)
	create("f", taskstore.ErrQuotaUnfinished)
	k.deleteRecord("dd")
	create("f", nil)
	k.takeLeases("w2", "e", "f", "other") // a new worker is not a new task
	create("g", taskstore.ErrQuotaUnfinished)
	k.wantCreate("without a quota", k.newRecord("g", "p", k.epoch), taskstore.Quota{}, nil)
	k.wantCreate("with a quota of one kind", k.newRecord("h", "p", k.epoch), quotaOf(0, 4), nil)
}

func testQuotaRace(k *kit) {
	const workers, rounds, stored, unfinished = 16, 12, 6, 3
	quota := quotaOf(stored, unfinished)
	// Nothing makes room, so exactly as many creates succeed as there is room for.
	for round := range rounds {
		var mu sync.Mutex
		var made []taskstore.Record
		runConcurrently(workers, func(i int) {
			r := k.newRecord(fmt.Sprintf("%d-%d", round, i), "p", k.epoch)
			bound := quota
			switch round % 3 {
			case 1:
				r = finishRecord(r)
			case 2: // an account each
				r.Account, bound = r.ID, taskstore.Quota{Server: quota.Account}
			}
			r, err := k.pickStore(i).Create(k.ctx, r, bound)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made = append(made, r)
			} else if !isQuota(err) {
				k.Errorf("create: %v", err)
			}
		})
		if want := []int{unfinished, stored, unfinished}[round%3]; len(made) != want || len(k.listIDs("p", workers, nil)) != want {
			k.Errorf("%d records were made with room for %d", len(made), want)
		}
		runConcurrently(len(made), func(i int) {
			if err := k.pickStore(i).Delete(k.ctx, made[i]); err != nil {
				k.Errorf("delete: %v", err)
			}
		})
	}
	// All make room and use it. No room may get lost or be invented.
	runConcurrently(workers, func(i int) {
		s := k.pickStore(i)
		for n := range rounds {
			r, err := s.Create(k.ctx, k.newRecord(fmt.Sprintf("%d-%d", i, n), "p", k.epoch), quota)
			if isQuota(err) {
				continue
			}
			if err == nil && n%2 == 0 {
				r, err = s.Update(k.ctx, r, finishRecord(r), taskstore.Quota{})
			}
			if err == nil {
				err = s.Delete(k.ctx, r)
			}
			if err != nil {
				k.Errorf("create, end and delete: %v", err)
			}
		}
	})
	for i := range unfinished {
		k.wantCreate("after the race", k.newRecord(fmt.Sprint("last", i), "p", k.epoch), quota, nil)
	}
	k.wantCreate("beyond the quota", k.newRecord("beyond", "p", k.epoch), quota, taskstore.ErrQuotaUnfinished)
}
