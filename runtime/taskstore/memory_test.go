package taskstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/account"

	"pgregory.net/rapid"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
)

// TestMemoryStoreTally checks that the memory store's tally is that of its records after every
// step, and zero in the end.
func TestMemoryStoreTally(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		start := time.Unix(1_000_000, 0).UTC()
		s := NewMemoryAt(func() time.Time { return start })
		ctx := t.Context()
		quota := Quota{Account: Usage{5, 3, 3000}, Address: Usage{6, 3, 3500}, Anonymous: Usage{6, 4, 4000}, Server: Usage{9, 7, 6000}}
		id := func() string { return fmt.Sprint("task", rapid.IntRange(0, 7).Draw(t, "task")) }
		text := func() string { return strings.Repeat("x", rapid.IntRange(0, 900).Draw(t, "bytes")) }
		check := func() {
			want := map[string]Usage{}
			var all Quota
			add := func(u *Usage, r *Record) { u.add(r.Usage(), 1) }
			for _, e := range s.expiry.Range(math.MaxInt, func(*Record) int { return 0 }) {
				u := want[e.Account]
				add(&u, e)
				want[e.Account] = u
				if address := e.Address(); address != "" {
					u := want[account.KeyOfAddress(address)]
					add(&u, e)
					want[account.KeyOfAddress(address)] = u
				}
				add(&all.Server, e)
				if e.Principal == "" {
					add(&all.Anonymous, e)
				}
			}
			if s.all != all || s.counts.Len() != len(want) {
				t.Fatalf("%+v, want %+v; %d accounts, want %d", s.all, all, s.counts.Len(), len(want))
			}
			for account, u := range want {
				if got, _ := s.counts.Get(account); got != u {
					t.Fatalf("%q: %+v, want %+v", account, got, u)
				}
			}
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			r, err := s.Get(ctx, id())
			found := err == nil
			switch op := rapid.IntRange(0, 7).Draw(t, "op"); {
			case op <= 2:
				c := rapid.SampledFrom([][2]string{{"a", "principal a"}, {"b", "principal b"}, {"", "session s"}, {}}).Draw(t, "owner")
				_, _ = s.Create(ctx, Record{ID: id(), Principal: c[0], Account: c[1], Tool: "t", Phase: PhaseQueued,
					Arguments: json.RawMessage(text()), IdempotencyKey: rapid.SampledFrom([]string{"", "", "k", "l"}).Draw(t, "key"),
					CreatedAt: start, ExpiresAt: start.Add(time.Duration(rapid.IntRange(0, 50).Draw(t, "ttl")) * time.Second), Claim: Claim{Worker: "w"}}, quota)
			case op == 3 && found:
				to := r
				to.StatusMessage, to.Principal, to.Account = text(), "another", "another"
				_, _ = s.Update(ctx, r, to, quota)
			case op == 4 && found && !r.Done():
				to := r
				to.Phase, to.Outcome = PhaseDone, &Outcome{Kind: OutcomeResult, Result: json.RawMessage(`"` + text() + `"`)}
				_, _ = s.Update(ctx, r, to, rapid.SampledFrom([]Quota{quota, {}}).Draw(t, "quota"))
			case op == 5 && found:
				if err := s.Delete(ctx, r); err != nil {
					t.Fatal(err)
				}
			case op == 6:
				start = start.Add(10 * time.Second)
				_, _ = s.Expire(ctx, 3)
			case op == 7:
				_, _ = s.Lease(ctx, fmt.Sprint("w", start.Unix()), time.Second, []string{"t"}, 3)
				_, _ = s.Beat(ctx, "w", time.Minute, nil)
			}
			check()
		}
		start = start.Add(time.Hour)
		for {
			gone, err := s.Expire(ctx, 3)
			if err != nil {
				t.Fatal(err)
			}
			if len(gone) == 0 {
				break
			}
		}
		check()
		if s.all != (Quota{}) || s.keys.Len() != 0 || s.entries.Len() != 0 {
			t.Fatalf("left: %+v, %d keys", s.all, s.keys.Len())
		}
		if _, err := s.Get(ctx, "task1"); !errors.Is(err, ErrNoRecord) {
			t.Fatal(err)
		}
		start = start.Add(TombstoneFor)
		if _, err := s.Expire(ctx, 3); err != nil || s.tombstones.Len() != 0 || len(s.oldTombstones) != 0 {
			t.Fatalf("left: %d tombstones, %v", s.tombstones.Len(), err)
		}
	})
}

// TestMemoryClockJump checks that a clock of the machine that is 25 hours ahead for two seconds deletes no
// task of a memory store, and that one that stays ahead does.
func TestMemoryClockJump(t *testing.T) {
	wall, elapsed := time.Now().Round(0), time.Duration(0)
	s := NewMemoryAt(func() time.Time { return wall })
	s.past = steady.NewReader(func() (time.Time, time.Duration) { return wall, elapsed })
	if _, err := s.Create(t.Context(), Record{ID: "t", CreatedAt: wall, ExpiresAt: wall.Add(24 * time.Hour)}, Quota{}); err != nil {
		t.Fatal(err)
	}
	expired := func(d time.Duration) (n int) {
		for ; d > 0; d -= time.Second {
			wall, elapsed = wall.Add(time.Second), elapsed+time.Second
			gone, err := s.Expire(t.Context(), 10)
			if err != nil {
				t.Fatal(err)
			}
			n += len(gone)
		}
		return n
	}
	wall = wall.Add(25 * time.Hour)
	n := expired(2 * time.Second)
	wall = wall.Add(-25 * time.Hour)
	if n += expired(2 * time.Second); n > 0 {
		t.Errorf("%d tasks have expired in a jump", n)
	}
	wall = wall.Add(25 * time.Hour)
	if n := expired(steady.Hold + 2*time.Second); n != 1 {
		t.Errorf("%d tasks have expired by a clock that has stayed ahead", n)
	}
}
