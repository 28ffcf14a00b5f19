package index

import (
	"cmp"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var m Map[int, int]
		want := map[int]int{}
		for range rapid.IntRange(0, 2000).Draw(t, "steps") {
			key := rapid.IntRange(0, 300).Draw(t, "key")
			if rapid.IntRange(0, 2).Draw(t, "delete") > 0 {
				m.Delete(key)
				delete(want, key)
			} else {
				m.Set(key, -key)
				want[key] = -key
			}
			_, known := want[key]
			if v, ok := m.Get(key); ok != known || v != want[key] || m.Len() != len(want) {
				t.Fatalf("%d, %v under %d of %d keys, want %v", v, ok, key, m.Len(), want)
			}
		}
		if !maps.Equal(m.entries, want) {
			t.Fatalf("%v, want %v", m.entries, want)
		}
	})
}

// check compares a Sorted with a sorted slice, and looks at its blocks.
func check(t interface{ Fatalf(string, ...any) }, s *Sorted[int], want []int) {
	if got := s.Filter(1<<30, func(int) bool { return true }); !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	for i, block := range s.blocks {
		if len(block) == 0 || len(block) > blockSize || i > 0 && len(block)+len(s.blocks[i-1]) <= blockSize/2 {
			t.Fatalf("block %d of %d has %d elements", i, len(s.blocks), len(block))
		}
	}
}

func TestSorted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := NewSorted(cmp.Compare[int])
		var want []int
		for range rapid.IntRange(0, 30).Draw(t, "runs") { // rise, fall or jump, from somewhere on
			from, step := rapid.IntRange(0, 2000).Draw(t, "from"), rapid.SampledFrom([]int{-1, 1, 7, 613}).Draw(t, "step")
			remove := rapid.Bool().Draw(t, "remove")
			for k := range rapid.IntRange(1, 400).Draw(t, "elements") {
				e := ((from+k*step)%2000 + 2000) % 2000
				i, found := slices.BinarySearch(want, e)
				switch {
				case remove:
					if s.Remove(e) != found {
						t.Fatalf("removed %d: %v", e, !found)
					}
					if found {
						want = slices.Delete(want, i, i+1)
					}
				case !found:
					s.Insert(e)
					want = slices.Insert(want, i, e)
				}
			}
			check(t, s, want)
			i, _ := slices.BinarySearch(want, from)
			j, _ := slices.BinarySearch(want, from+5)
			limit := rapid.IntRange(1, 6).Draw(t, "limit")
			at := func(e int) int {
				switch {
				case e < from:
					return -1
				case e >= from+5:
					return 1
				}
				return 0
			}
			if got := s.Range(limit, at); !slices.Equal(got, want[i:min(j, i+limit)]) {
				t.Fatalf("%d from %d on: %v, want %v", limit, from, got, want[i:j])
			}
			var even []int
			for _, e := range want {
				if e%2 == 0 && len(even) < limit {
					even = append(even, e)
				}
			}
			if got := s.Filter(limit, func(e int) bool { return e%2 == 0 }); !slices.Equal(got, even) {
				t.Fatalf("the first %d even ones: %v, want %v", limit, got, even)
			}
		}
	})
}

// TestGivesBack checks that neither container keeps the memory of a hundred thousand elements that
// are gone.
func TestGivesBack(t *testing.T) {
	heap := func() int64 {
		runtime.GC()
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return int64(stats.HeapAlloc)
	}
	const n = 100_000
	before := heap()
	var m Map[int, int]
	s := NewSorted(cmp.Compare[int])
	for i := range n {
		m.Set(i, i)
		s.Insert(i)
	}
	full := heap() - before
	for i := range n {
		if i%1000 != 0 { // the keys that stay lie far apart
			m.Delete(i)
			s.Remove(i)
		}
	}
	if kept := heap() - before; m.Len() != n/1000 || full < n*16 || kept > full/50 {
		t.Errorf("%d bytes of %d stay for %d elements", kept, full, m.Len())
	}
	runtime.KeepAlive(s)
}

// BenchmarkSorted: the cost of an element that comes or goes hardly depends on how many
// there are, and not on their order.
func BenchmarkSorted(b *testing.B) {
	for _, size := range []int{1000, 100_000} {
		for _, order := range []struct {
			name string
			step int
		}{{"rising", 1}, {"falling", size - 1}, {"mixed", 7919}} {
			b.Run(fmt.Sprintf("%s/%d", order.name, size), func(b *testing.B) {
				for b.Loop() {
					s := NewSorted(cmp.Compare[int])
					for i := range size {
						s.Insert(i * order.step % size)
					}
					for i := range size {
						s.Remove(i * order.step % size)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*2*size), "ns/element")
			})
		}
	}
}
