package mcptask

import (
	"cmp"
	"context"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/index"
)

// memoryStore is a Store in memory, with an index for each kind of look-up. mu guards
// all of it.
type memoryStore struct {
	mu      sync.Mutex
	closed  bool
	entries index.Map[string, *Record]
	keys    index.Map[[3]string, *Record] // by principal, tool and key
	counts  index.Map[string, Usage]      // by account
	all     Quota                         // of the other scopes, all accounts together
	lists   *index.Sorted[*Record]        // by principal, in the order of List
	leased  *index.Sorted[*Record]        // the unfinished by worker
	expiry  *index.Sorted[*Record]
	changes index.Signals[string] // by ID
}

// NewMemoryStore makes a Store that lives as long as the process. It is the
// default of NewServer.
func NewMemoryStore() Store {
	return &memoryStore{
		lists:  index.NewSorted(compareByPrincipal),
		leased: index.NewSorted(compareByWorker),
		expiry: index.NewSorted(compareByExpiry),
	}
}

func (r *Record) listPosition() Position { return Position{r.CreatedAt, r.ID} }
func (r *Record) idempotencyIndex() [3]string {
	return [3]string{r.Principal, r.Tool, r.IdempotencyKey}
}

func (p Position) compare(q Position) int {
	return cmp.Or(p.CreatedAt.Compare(q.CreatedAt), cmp.Compare(p.ID, q.ID))
}

func compareByPrincipal(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.Principal, b.Principal), a.listPosition().compare(b.listPosition()))
}

func compareByWorker(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.Worker, b.Worker), a.listPosition().compare(b.listPosition()))
}

func compareByExpiry(a, b *Record) int {
	return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID))
}

func (s *memoryStore) Create(_ context.Context, r Record, quota Quota) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return r, ErrServerClosed
	}
	if e, ok := s.keys.Get(r.idempotencyIndex()); ok {
		return copyRecord(*e), ErrExists
	}
	if _, ok := s.entries.Get(r.ID); ok {
		return Record{}, ErrExists
	}
	if err := quota.Check(&r, s.readTally(&r), r.Usage()); err != nil {
		return r, err
	}
	e := new(copyRecord(r))
	e.Version = 1
	s.entries.Set(r.ID, e)
	if r.IdempotencyKey != "" {
		s.keys.Set(r.idempotencyIndex(), e)
	}
	s.lists.Insert(e)
	s.indexRecord(e)
	return copyRecord(*e), nil
}

func (s *memoryStore) Get(_ context.Context, id string) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(id)
	if !ok {
		return Record{}, ErrNoRecord
	}
	return copyRecord(*e), nil
}

func (s *memoryStore) Update(_ context.Context, r Record, quota Quota) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(r.ID)
	switch {
	case !ok:
		return r, ErrNoRecord
	case e.Version != r.Version:
		return r, ErrConflict
	case e.Worker == r.Worker:
		r.LeaseUntil = e.LeaseUntil
	}
	r.Principal, r.Account, r.Tool = e.Principal, e.Account, e.Tool
	r.IdempotencyKey, r.CreatedAt = e.IdempotencyKey, e.CreatedAt
	if err := quota.Check(e, s.readTally(e), Usage{Bytes: r.Size() - e.Size()}); err != nil {
		return r, err
	}
	return s.replaceRecord(e, copyRecord(r)), nil
}

// replaceRecord stores the next version of a record and returns a copy of it.
func (s *memoryStore) replaceRecord(e *Record, r Record) Record {
	s.unindexRecord(e)
	r.Version++
	*e = r
	s.indexRecord(e)
	return copyRecord(r)
}

// indexRecord enters a record into the indexes of its changing parts.
func (s *memoryStore) indexRecord(e *Record) {
	s.expiry.Insert(e)
	if !e.Done() {
		s.leased.Insert(e)
	}
	s.countRecord(e, 1)
}

// unindexRecord undoes indexRecord before the record changes or is deleted. It wakes
// the calls of Wait for the record.
func (s *memoryStore) unindexRecord(e *Record) {
	s.expiry.Remove(e)
	s.leased.Remove(e)
	s.countRecord(e, -1)
	s.changes.Wake(e.ID)
}

// countRecord adds a record to its scopes if n is 1, and removes it if n is -1.
func (s *memoryStore) countRecord(r *Record, n int) {
	more, tally := r.Usage(), s.readTally(r)
	tally.Account.add(more, n)
	s.all.Server.add(more, n)
	if r.Principal == "" {
		s.all.Anonymous.add(more, n)
	}
	s.counts.Set(r.Account, tally.Account)
	if tally.Account == (Usage{}) {
		s.counts.Delete(r.Account)
	}
}

// readTally returns the usage of a record's scopes.
func (s *memoryStore) readTally(r *Record) Quota {
	q := s.all
	q.Account, _ = s.counts.Get(r.Account)
	return q
}

// add adds more n times.
func (u *Usage) add(more Usage, n int) {
	u.Stored += n * more.Stored
	u.Unfinished += n * more.Unfinished
	u.Bytes += int64(n) * more.Bytes
}

func (s *memoryStore) List(_ context.Context, principal string, after Position, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := s.lists.Range(limit, func(e *Record) int {
		if e.Principal == principal && e.listPosition().compare(after) <= 0 {
			return -1
		}
		return cmp.Compare(e.Principal, principal)
	})
	records := make([]Record, len(page))
	for i, e := range page {
		records[i] = copyRecord(*e)
	}
	return records, nil
}

func (s *memoryStore) Delete(_ context.Context, r Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(r.ID)
	switch {
	case !ok:
		return ErrNoRecord
	case e.Version != r.Version || !e.CreatedAt.Equal(r.CreatedAt):
		return ErrConflict
	}
	s.removeRecord(e)
	return nil
}

// removeRecord removes a record from all indexes.
func (s *memoryStore) removeRecord(e *Record) {
	s.unindexRecord(e)
	s.lists.Remove(e)
	s.entries.Delete(e.ID)
	s.keys.Delete(e.idempotencyIndex())
}

func (s *memoryStore) Expire(_ context.Context, now time.Time, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var gone []Record
	for _, e := range s.expiry.Range(limit, func(e *Record) int { return max(0, e.ExpiresAt.Compare(now)) }) {
		gone = append(gone, *e)
		s.removeRecord(e)
	}
	return gone, nil
}

func (s *memoryStore) Wait(ctx context.Context, id string, version int64) (Record, error) {
	for {
		r, changed, err := s.getOrWatch(id, version)
		if err != nil || changed == nil {
			return r, err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return Record{}, ctx.Err()
		}
	}
}

// getOrWatch returns the record, or a channel that is closed when it changes. It
// does both under one lock, so that it misses no change.
func (s *memoryStore) getOrWatch(id string, version int64) (Record, <-chan struct{}, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(id)
	switch {
	case s.closed:
		return Record{}, nil, ErrServerClosed
	case !ok:
		return Record{}, nil, ErrNoRecord
	case e.Version > version:
		return copyRecord(*e), nil, nil
	}
	return Record{}, s.changes.Next(id), nil
}

func (s *memoryStore) Lease(_ context.Context, worker string, now, until time.Time, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var taken []Record
	for _, e := range s.leased.Filter(limit, func(e *Record) bool { return e.Worker != worker && e.LeaseUntil.Before(now) }) {
		r := *e
		r.Worker, r.LeaseUntil = worker, until
		taken = append(taken, s.replaceRecord(e, r))
	}
	return taken, nil
}

// Renew does not change versions, since only workers look at leases.
func (s *memoryStore) Renew(_ context.Context, worker string, until time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.leased.Range(math.MaxInt, func(e *Record) int { return cmp.Compare(e.Worker, worker) }) {
		e.LeaseUntil = until
	}
	return nil
}

func (s *memoryStore) Release(ctx context.Context, worker string) error {
	return s.Renew(ctx, worker, time.Time{})
}

func (s *memoryStore) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.changes.WakeAll()
	return nil
}

// copyRecord copies a record, except for bytes, which never change.
func copyRecord(r Record) Record {
	r.Inputs, r.CanAsk = slices.Clone(r.Inputs), slices.Clone(r.CanAsk)
	for i := range r.Inputs {
		r.Inputs[i].Error = clonePointer(r.Inputs[i].Error)
	}
	if r.Outcome = clonePointer(r.Outcome); r.Outcome != nil {
		r.Outcome.Error = clonePointer(r.Outcome.Error)
	}
	return r
}

func clonePointer[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return new(*p)
}
