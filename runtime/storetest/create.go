package storetest

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

func testCreate(k *kit) {
	want := record("t", "p", epoch)
	given := want
	given.Version = 7 // means nothing
	stored := k.create(given)
	want.Version = 1
	k.same("created", stored, want)
	k.same("got", k.get("t"), want)

	twice, err := k.other.Create(k.ctx, record("t", "somebody else", minutes(1)), mcptask.Quota{})
	k.is("a second record with the ID", err, mcptask.ErrExists)
	if twice.Version != 0 {
		k.Errorf("a record was returned by its ID alone: %s", brief(twice))
	}
	k.same("after a refused create", k.get("t"), want)
	if ids := k.list("somebody else", 10, nil); len(ids) != 0 {
		k.Errorf("a refused record is listed: %q", ids)
	}

	if err := k.s.Delete(k.ctx, mcptask.Record{ID: "t", Version: 1, CreatedAt: epoch}); err != nil {
		k.Fatalf("delete: %v", err)
	}
	k.absent("t")
	k.is("delete what is not there", k.other.Delete(k.ctx, want), mcptask.ErrNoRecord)
	if ids := k.list("p", 10, nil); len(ids) != 0 {
		k.Errorf("a deleted record is listed: %q", ids)
	}
	again := k.create(record("t", "q", minutes(2)))
	if again.Version != 1 || again.Principal != "q" {
		k.Errorf("a new record with the ID of a deleted one: %s", brief(again))
	}
}

// testDelete deletes only what the caller has seen: not a later version, and not
// a new record of the same name, whatever its version.
func testDelete(k *kit) {
	former := k.create(record("t", "p", epoch))
	latest := k.update(former)
	k.is("delete what has changed", k.other.Delete(k.ctx, former), mcptask.ErrConflict)
	k.same("after a refused delete", k.get("t"), latest)
	if err := k.s.Delete(k.ctx, latest); err != nil {
		k.Fatalf("delete: %v", err)
	}
	next := k.create(record("t", "p", minutes(1)))
	k.is("delete a new record by an old one's version", k.other.Delete(k.ctx, former), mcptask.ErrConflict)
	k.same("the new record", k.get("t"), next)
	for range 10 {
		current := k.get("t")
		var won atomic.Int32
		each(20, func(i int) {
			switch err := k.way(i).Delete(k.ctx, current); {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, mcptask.ErrConflict) && !errors.Is(err, mcptask.ErrNoRecord):
				k.Errorf("delete in a race: %v", err)
			}
		})
		if won.Load() != 1 {
			k.Errorf("%d have deleted one record", won.Load())
		}
		k.create(record("t", "p", current.CreatedAt.Add(time.Minute)))
	}
}

// keyed is a record with an idempotency key.
func keyed(id, principal, tool, key string) mcptask.Record {
	r := record(id, principal, epoch)
	r.Tool, r.IdempotencyKey = tool, key
	return r
}

func testKeys(k *kit) {
	first := k.create(keyed("1", "p", "tool", "k"))
	for _, id := range []string{"2", "1"} { // with an ID of its own, and sent again as it was
		got, err := k.other.Create(k.ctx, keyed(id, "p", "tool", "k"), mcptask.Quota{})
		k.is("the same key", err, mcptask.ErrExists)
		k.same("the record of the key", got, first)
	}
	k.absent("2")
	first.Phase = mcptask.PhaseRunning
	first = k.update(first)
	got, err := k.s.Create(k.ctx, keyed("2", "p", "tool", "k"), quotaOf(1, 0))
	k.is("the same key, at the quota", err, mcptask.ErrExists)
	k.same("the record of the key as it is now", got, first)

	// Whatever differs in one of the three is another key, and none is no key.
	for i, r := range []mcptask.Record{
		keyed("", "q", "tool", "k"), keyed("", "p", "other", "k"), keyed("", "p", "tool", "K"), keyed("", "p", "tool", "k "),
		keyed("", "p", "tool", ""), keyed("", "p", "tool", ""), keyed("", "", "tool", "k"), keyed("", "ptool", "", "k"), keyed("", "p", "toolk", "k"),
		keyed("", "p", "tool", "k\x00"), keyed("", "p\x00tool", "", "k"), keyed("", "p", "tool", "\xff"), keyed("", "p", "tool", "\xfe"), keyed("", "p", "tool", "\ufffd"),
	} {
		r.ID = fmt.Sprint("other", i)
		k.create(r)
	}

	k.delete("1")
	k.create(keyed("3", "p", "tool", "k")) // the key went with its record
	if gone, err := k.s.Expire(k.ctx, minutes(60), 100); err != nil || len(gone) != 15 {
		k.Fatalf("%d expired, want 15: %v", len(gone), err)
	}
	k.create(keyed("4", "p", "tool", "k"))
}

func testKeysRace(k *kit) {
	for round := range 10 {
		key := fmt.Sprint("key", round)
		var mu sync.Mutex
		made, ids := 0, map[string]bool{}
		each(20, func(i int) {
			r, err := k.way(i).Create(k.ctx, keyed(fmt.Sprint(key, "-", i), "p", "tool", key), mcptask.Quota{})
			mu.Lock()
			defer mu.Unlock()
			ids[r.ID] = true
			if err == nil {
				made++
			} else {
				k.is("a key that another has", err, mcptask.ErrExists)
			}
		})
		if made != 1 || len(ids) != 1 {
			k.Errorf("%d records were made for one key, and %d returned", made, len(ids))
		}
		if stored := k.list("p", 100, nil); len(stored) != round+1 {
			k.Errorf("%d records are stored for %d keys", len(stored), round+1)
		}
	}
}

func testQuota(k *kit) {
	quota := quotaOf(4, 2)
	create := func(id string, want error) {
		k.Helper()
		r := record(id, "p", epoch)
		r.IdempotencyKey = "key of " + id
		_, err := k.way(len(id)).Create(k.ctx, r, quota)
		k.is("create "+id, err, want)
		if want != nil {
			k.absent(id)
		}
	}
	create("a", nil)
	create("bb", nil)
	create("c", mcptask.ErrQuotaUnfinished)
	other := record("other", "p", epoch)
	other.Account = "another"
	if _, err := k.s.Create(k.ctx, other, quota); err != nil {
		k.Errorf("another account: %v", err)
	}
	stranger := record("stranger", "q", epoch)
	stranger.Account = "account of p"
	_, err := k.s.Create(k.ctx, stranger, quota)
	k.is("another principal on the account", err, mcptask.ErrQuotaUnfinished)

	a := k.update(done(k.get("a"))) // an end makes room
	create("c", nil)                // which was refused before: neither its ID nor its key is taken
	create("dd", mcptask.ErrQuotaUnfinished)
	k.update(done(k.get("bb")))
	create("dd", nil)
	create("e", mcptask.ErrQuotaStored)
	k.update(done(k.get("c")))
	create("e", mcptask.ErrQuotaStored)
	k.delete("c")
	create("e", nil)
	create("f", mcptask.ErrQuotaStored)
	a.ExpiresAt = minutes(1)
	k.update(a)
	if gone, err := k.other.Expire(k.ctx, minutes(1), 10); err != nil || len(gone) != 1 {
		k.Fatalf("expired: %s, %v", brief(gone...), err)
	}
	create("f", mcptask.ErrQuotaUnfinished)
	k.delete("dd")
	create("f", nil)
	if taken, err := k.s.Lease(k.ctx, "w2", minutes(2), minutes(3), 10); err != nil || len(taken) != 3 { // a new worker is no new task
		k.Fatalf("leased: %v, %v", taken, err)
	}
	create("g", mcptask.ErrQuotaUnfinished)
	if _, err := k.s.Create(k.ctx, record("g", "p", epoch), mcptask.Quota{}); err != nil {
		k.Errorf("without a quota: %v", err)
	}
	if _, err := k.s.Create(k.ctx, record("h", "p", epoch), quotaOf(0, 4)); err != nil {
		k.Errorf("with a quota of one kind: %v", err)
	}
}

func testQuotaRace(k *kit) {
	const workers, rounds, stored, unfinished = 16, 12, 6, 3
	quota := quotaOf(stored, unfinished)
	// Nobody makes room: exactly as many are made as there is room for.
	for round := range rounds {
		var mu sync.Mutex
		var made []mcptask.Record
		each(workers, func(i int) {
			r := record(fmt.Sprintf("%d-%d", round, i), "p", epoch)
			bound := quota
			switch round % 3 {
			case 1:
				r = done(r)
			case 2: // an account each
				r.Account, bound = r.ID, mcptask.Quota{Server: quota.Account}
			}
			r, err := k.way(i).Create(k.ctx, r, bound)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made = append(made, r)
			} else if !isQuota(err) {
				k.Errorf("create: %v", err)
			}
		})
		if want := []int{unfinished, stored, unfinished}[round%3]; len(made) != want || len(k.list("p", workers, nil)) != want {
			k.Errorf("%d records were made where there was room for %d", len(made), want)
		}
		each(len(made), func(i int) {
			if err := k.way(i).Delete(k.ctx, made[i]); err != nil {
				k.Errorf("delete: %v", err)
			}
		})
	}
	// All make room and take it: none is lost, and none is made up.
	each(workers, func(i int) {
		s := k.way(i)
		for n := range rounds {
			r, err := s.Create(k.ctx, record(fmt.Sprintf("%d-%d", i, n), "p", epoch), quota)
			if isQuota(err) {
				continue
			}
			if err == nil && n%2 == 0 {
				r, err = s.Update(k.ctx, done(r), mcptask.Quota{})
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
		if _, err := k.s.Create(k.ctx, record(fmt.Sprint("last", i), "p", epoch), quota); err != nil {
			k.Errorf("after the race: %v", err)
		}
	}
	_, err := k.s.Create(k.ctx, record("beyond", "p", epoch), quota)
	k.is("beyond the quota", err, mcptask.ErrQuotaUnfinished)
}
