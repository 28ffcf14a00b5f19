package mcptask

import (
	"cmp"
	"container/heap"
	"context"
	"slices"
	"sync"
	"time"
)

// NewMemoryStore makes a Store that lives as long as the process. It is the
// default of NewServer.
func NewMemoryStore() Store {
	return &memoryStore{
		entries: map[string]*memoryEntry{},
		keys:    map[idempotency]string{},
		lists:   map[string][]Position{},
		leased:  map[string]map[string]bool{},
	}
}

type memoryStore struct {
	mu      sync.Mutex
	closed  bool
	entries map[string]*memoryEntry
	keys    map[idempotency]string
	lists   map[string][]Position      // by principal, in the order of List
	leased  map[string]map[string]bool // by worker, the IDs of its unfinished records
	expiry  expiryHeap
}

type memoryEntry struct {
	record  Record
	changed chan struct{} // closed when the record changes or goes
	place   int           // in the expiry heap
}

type idempotency struct{ principal, tool, key string }

func (s *memoryStore) Create(_ context.Context, r Record) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return r, ErrServerClosed
	}
	if _, ok := s.entries[r.ID]; ok {
		return r, ErrExists
	}
	key := idempotency{r.Principal, r.Tool, r.IdempotencyKey}
	if r.IdempotencyKey != "" {
		if id, ok := s.keys[key]; ok {
			return copyRecord(s.entries[id].record), ErrExists
		}
		s.keys[key] = r.ID
	}
	r = copyRecord(r)
	r.Version = 1
	e := &memoryEntry{record: r, changed: make(chan struct{})}
	s.entries[r.ID] = e
	heap.Push(&s.expiry, e)
	s.lease(r)
	list, pos := s.lists[r.Principal], Position{r.CreatedAt, r.ID}
	i, _ := slices.BinarySearchFunc(list, pos, comparePositions)
	s.lists[r.Principal] = slices.Insert(list, i, pos)
	return copyRecord(r), nil
}

func (s *memoryStore) Get(_ context.Context, id string) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return Record{}, ErrNoRecord
	}
	return copyRecord(e.record), nil
}

func (s *memoryStore) Update(_ context.Context, r Record) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[r.ID]
	if !ok {
		return r, ErrNoRecord
	}
	if e.record.Version != r.Version {
		return r, ErrConflict
	}
	r = copyRecord(r)
	if r.Worker == e.record.Worker {
		r.LeaseUntil = e.record.LeaseUntil
	}
	return copyRecord(s.replace(e, r)), nil
}

// replace stores the next version of a record and wakes who waits for it.
func (s *memoryStore) replace(e *memoryEntry, r Record) Record {
	s.unlease(e.record)
	r.Version = e.record.Version + 1
	e.record = r
	heap.Fix(&s.expiry, e.place)
	s.lease(r)
	close(e.changed)
	e.changed = make(chan struct{})
	return r
}

func (s *memoryStore) lease(r Record) {
	if r.Done() {
		return
	}
	if s.leased[r.Worker] == nil {
		s.leased[r.Worker] = map[string]bool{}
	}
	s.leased[r.Worker][r.ID] = true
}

func (s *memoryStore) unlease(r Record) {
	delete(s.leased[r.Worker], r.ID)
	if len(s.leased[r.Worker]) == 0 {
		delete(s.leased, r.Worker)
	}
}

func (s *memoryStore) List(_ context.Context, principal string, after Position, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.lists[principal]
	i, found := slices.BinarySearchFunc(list, after, comparePositions)
	if found {
		i++
	}
	list = list[i:min(len(list), i+limit)]
	records := make([]Record, len(list))
	for j, pos := range list {
		records[j] = copyRecord(s.entries[pos.ID].record)
	}
	return records, nil
}

func (s *memoryStore) Delete(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries[id]
	if !ok {
		return ErrNoRecord
	}
	s.remove(e)
	return nil
}

func (s *memoryStore) remove(e *memoryEntry) {
	r := e.record
	delete(s.entries, r.ID)
	heap.Remove(&s.expiry, e.place)
	if r.IdempotencyKey != "" {
		delete(s.keys, idempotency{r.Principal, r.Tool, r.IdempotencyKey})
	}
	s.unlease(r)
	list := s.lists[r.Principal]
	if i, ok := slices.BinarySearchFunc(list, Position{r.CreatedAt, r.ID}, comparePositions); ok {
		list = slices.Delete(list, i, i+1)
	}
	if len(list) == 0 {
		delete(s.lists, r.Principal)
	} else {
		s.lists[r.Principal] = list
	}
	close(e.changed)
}

func (s *memoryStore) Expire(_ context.Context, now time.Time, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []Record
	for len(s.expiry) > 0 && len(gone) < limit && s.expiry[0].record.expired(now) {
		gone = append(gone, s.expiry[0].record)
		s.remove(s.expiry[0])
	}
	return gone, nil
}

func (s *memoryStore) Wait(ctx context.Context, id string, version int64) (Record, error) {
	for {
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return Record{}, ErrServerClosed
		}
		e, ok := s.entries[id]
		if !ok {
			s.mu.Unlock()
			return Record{}, ErrNoRecord
		}
		if e.record.Version > version {
			r := copyRecord(e.record)
			s.mu.Unlock()
			return r, nil
		}
		changed := e.changed // taken under the lock: no change can slip between
		s.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return Record{}, ctx.Err()
		}
	}
}

func (s *memoryStore) Lease(_ context.Context, worker string, now, until time.Time, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var orphans []*memoryEntry
	for holder, ids := range s.leased {
		if holder == worker {
			continue
		}
		for id := range ids {
			if e := s.entries[id]; e.record.LeaseUntil.Before(now) {
				orphans = append(orphans, e)
			}
		}
	}
	slices.SortFunc(orphans, func(a, b *memoryEntry) int {
		return comparePositions(Position{a.record.CreatedAt, a.record.ID}, Position{b.record.CreatedAt, b.record.ID})
	})
	var taken []Record
	for _, e := range orphans[:min(len(orphans), limit)] {
		r := e.record
		r.Worker, r.LeaseUntil = worker, until
		taken = append(taken, copyRecord(s.replace(e, r)))
	}
	return taken, nil
}

func (s *memoryStore) Renew(_ context.Context, worker string, until time.Time) error {
	return s.setLeases(worker, until)
}

func (s *memoryStore) Release(_ context.Context, worker string) error {
	return s.setLeases(worker, time.Time{})
}

// setLeases changes no version: nobody but a worker looks at a lease.
func (s *memoryStore) setLeases(worker string, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.leased[worker] {
		s.entries[id].record.LeaseUntil = until
	}
	return nil
}

func (s *memoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.closed = true
		for _, e := range s.entries {
			close(e.changed)
			e.changed = make(chan struct{})
		}
	}
	return nil
}

// copyRecord gives the copy everything of its own but bytes, which are never
// changed.
func copyRecord(r Record) Record {
	r.Inputs, r.CanAsk = slices.Clone(r.Inputs), slices.Clone(r.CanAsk)
	if r.Outcome != nil {
		outcome := *r.Outcome
		if outcome.Error != nil {
			wire := *outcome.Error
			outcome.Error = &wire
		}
		r.Outcome = &outcome
	}
	return r
}

func comparePositions(a, b Position) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
}

// expiryHeap has the entry that expires first at its head.
type expiryHeap []*memoryEntry

func (h expiryHeap) Len() int           { return len(h) }
func (h expiryHeap) Less(i, j int) bool { return h[i].record.ExpiresAt.Before(h[j].record.ExpiresAt) }
func (h expiryHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].place, h[j].place = i, j
}

// Push implements heap.Interface.
func (h *expiryHeap) Push(x any) {
	e := x.(*memoryEntry)
	e.place = len(*h)
	*h = append(*h, e)
}

// Pop implements heap.Interface.
func (h *expiryHeap) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return last
}
