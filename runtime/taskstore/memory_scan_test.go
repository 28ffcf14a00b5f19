package taskstore

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestMemoryScanKeepsTheFirst compares pages of Scan, which keeps few records while it looks at all, with all records
// in order.
func TestMemoryScanKeepsTheFirst(t *testing.T) {
	s := NewMemory()
	defer s.Close() //nolint:errcheck // nothing is lost
	unbounded := Usage{1 << 30, 1 << 30, 1 << 30}
	now := time.Now()
	var all []Position
	for i := range 500 {
		p := Position{now.Add(time.Duration(rand.IntN(100)) * time.Microsecond), "task" + strconv.Itoa(i)}
		r := Record{ID: p.ID, Principal: strconv.Itoa(i % 7), Phase: PhaseRunning, CreatedAt: p.CreatedAt, ExpiresAt: now.Add(time.Hour)}
		if _, err := s.Create(t.Context(), r, Quota{Account: unbounded, Anonymous: unbounded, Server: unbounded}); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for _, isOldestFirst := range []bool{false, true} {
		slices.SortFunc(all, func(a, b Position) int {
			order := cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
			if isOldestFirst {
				return order
			}
			return -order
		})
		for _, limit := range []int{1, 2, 51, 250, 499, 500, 1 << 62} {
			for i, after := range append([]Position{{}}, all...) {
				records, err := s.Scan(t.Context(), Filter{OldestFirst: isOldestFirst}, after, limit)
				var got []Position
				for _, r := range records {
					got = append(got, r.Position())
				}
				if want := all[i:min(len(all), i+min(limit, len(all)))]; err != nil || !slices.Equal(got, want) {
					t.Fatalf("%d after %v, oldest first %v: %d records, want %d, %v", limit, after, isOldestFirst, len(got), len(want), err)
				}
			}
		}
	}
	for _, limit := range []int{0, -1} {
		if none, err := s.Scan(t.Context(), Filter{}, Position{}, limit); err != nil || len(none) > 0 {
			t.Errorf("limit %d: %d records, %v", limit, len(none), err)
		}
	}
}

func BenchmarkMemoryScan(b *testing.B) {
	s := NewMemory()
	defer s.Close() //nolint:errcheck // nothing is lost
	unbounded := Usage{1 << 30, 1 << 30, 1 << 30}
	now := time.Now()
	for i := range 100_000 {
		r := Record{ID: strconv.Itoa(i), Principal: strconv.Itoa(i % 1000), Phase: PhaseRunning, CreatedAt: now.Add(time.Duration(i) * time.Millisecond), ExpiresAt: now.Add(time.Hour)}
		if _, err := s.Create(b.Context(), r, Quota{Account: unbounded, Anonymous: unbounded, Server: unbounded}); err != nil {
			b.Fatal(err)
		}
	}
	for b.Loop() {
		if _, err := s.Scan(b.Context(), Filter{}, Position{}, 51); err != nil {
			b.Fatal(err)
		}
	}
}
