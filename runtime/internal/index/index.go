// Package index has containers for entries that come and go in great numbers. Their memory shrinks
// when entries leave.
package index

import (
	"maps"
	"slices"
	"sort"
)

// Map is a map that shrinks. Its zero value is empty and ready to use; it is
// not safe for concurrent use.
type Map[K comparable, V any] struct {
	entries map[K]V
	most    int // the most entries that the built-in map has had: it has room for as many
}

// Get returns the value of a key, or the zero value.
func (m *Map[K, V]) Get(key K) (V, bool) {
	v, ok := m.entries[key]
	return v, ok
}

// Len returns the number of keys.
func (m *Map[K, V]) Len() int { return len(m.entries) }

// Set sets the value of a key.
func (m *Map[K, V]) Set(key K, v V) {
	if m.entries == nil {
		m.entries = map[K]V{}
	}
	m.entries[key] = v
	m.most = max(m.most, len(m.entries))
}

// Delete removes a key. The built-in map keeps the room of deleted entries, so Delete copies a map
// that is nearly empty. That costs the copy of one entry for each three deletions.
func (m *Map[K, V]) Delete(key K) {
	const small = 64
	delete(m.entries, key)
	if n := len(m.entries); m.most > small && n < m.most/4 {
		fresh := make(map[K]V, n)
		maps.Copy(fresh, m.entries)
		m.entries, m.most = fresh, n
	}
}

// blockSize bounds how many elements move when one comes or goes.
const blockSize = 128

// Sorted keeps elements in order, in blocks. So the cost of a change hardly depends on how many
// elements there are, or on their order of arrival. The parts of an element that compare looks at
// must not change while it is in. Sorted is not safe for concurrent use.
type Sorted[E any] struct {
	compare func(a, b E) int
	blocks  [][]E // none is empty
}

// NewSorted makes an empty Sorted. No two of its elements may compare as equal.
func NewSorted[E any](compare func(a, b E) int) *Sorted[E] { return &Sorted[E]{compare: compare} }

// find returns the place of the first element for which before is false.
func (s *Sorted[E]) find(before func(E) bool) (block, place int) {
	block = sort.Search(len(s.blocks), func(i int) bool { return !before(s.blocks[i][len(s.blocks[i])-1]) })
	if block < len(s.blocks) {
		place = sort.Search(len(s.blocks[block]), func(i int) bool { return !before(s.blocks[block][i]) })
	}
	return block, place
}

// Insert adds an element.
func (s *Sorted[E]) Insert(e E) {
	i, place := s.find(func(other E) bool { return s.compare(other, e) < 0 })
	if i == len(s.blocks) { // behind the last; a full one stays full
		if i == 0 || len(s.blocks[i-1]) == blockSize {
			s.blocks = append(s.blocks, []E{e})
			return
		}
		i, place = i-1, len(s.blocks[i-1])
	}
	if block := s.blocks[i]; len(block) == blockSize {
		const half = blockSize / 2
		s.blocks = slices.Insert(s.blocks, i+1, slices.Clone(block[half:]))
		clear(block[half:])
		s.blocks[i] = block[:half]
		if place > half {
			i, place = i+1, place-half
		}
	}
	s.blocks[i] = slices.Insert(s.blocks[i], place, e)
}

// Remove removes an element. It returns false if there is none that compares as equal.
func (s *Sorted[E]) Remove(e E) bool {
	i, place := s.find(func(other E) bool { return s.compare(other, e) < 0 })
	if i == len(s.blocks) || s.compare(s.blocks[i][place], e) != 0 {
		return false
	}
	s.blocks[i] = slices.Delete(s.blocks[i], place, place+1)
	// Neighbors that fit into half a block become one. The other half is room to grow, so that
	// a split does not follow at once.
	for _, left := range []int{i - 1, i} {
		if left >= 0 && left+1 < len(s.blocks) && len(s.blocks[left])+len(s.blocks[left+1]) <= blockSize/2 {
			s.blocks[left] = append(s.blocks[left], s.blocks[left+1]...)
			s.blocks = slices.Delete(s.blocks, left+1, left+2)
			return true
		}
	}
	if len(s.blocks[i]) == 0 {
		s.blocks = slices.Delete(s.blocks, i, i+1)
	}
	if len(s.blocks) == 0 {
		s.blocks = nil
	}
	return true
}

// Range returns up to limit elements for which at is 0, in order. at is negative before them and
// positive after them.
func (s *Sorted[E]) Range(limit int, at func(E) int) []E {
	i, place := s.find(func(e E) bool { return at(e) < 0 })
	var found []E
	for ; i < len(s.blocks); i++ {
		for _, e := range s.blocks[i][place:] {
			if len(found) == limit || at(e) > 0 {
				return found
			}
			found = append(found, e)
		}
		place = 0
	}
	return found
}

// Filter returns up to limit elements for which keep is true, in order. It looks at each element
// on the way.
func (s *Sorted[E]) Filter(limit int, keep func(E) bool) []E {
	var found []E
	for _, block := range s.blocks {
		for _, e := range block {
			if len(found) == limit {
				return found
			}
			if keep(e) {
				found = append(found, e)
			}
		}
	}
	return found
}
