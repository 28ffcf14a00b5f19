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

// NewMemoryStore makes a Store that lives as long as the process. It is the
// default of NewServer.
func NewMemoryStore() Store {
	return &memoryStore{
		lists:  index.NewSorted(compareByPrincipal),
		leased: index.NewSorted(compareByWorker),
		expiry: index.NewSorted(compareByExpiry),
	}
}

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

// replace stores the next version of a record and returns a copy of it.
func (s *memoryStore) replaceRecord(e *Record, r Record) Record {
	s.unindexRecord(e)
	r.Version++
	*e = r
	s.indexRecord(e)
	return copyRecord(r)
}

// enter puts an entry where its record's changing parts say.
func (s *memoryStore) indexRecord(e *Record) {
	s.expiry.Insert(e)
	if !e.Done() {
		s.leased.Insert(e)
	}
	s.countRecord(e, 1)
}

// leave undoes enter before the record changes or goes, and wakes who waits
// for that.
func (s *memoryStore) unindexRecord(e *Record) {
	s.expiry.Remove(e)
	s.leased.Remove(e)
	s.countRecord(e, -1)
	s.changes.Wake(e.ID)
}

// count adds a record to its scopes, or takes it away.
func (s *memoryStore) countRecord(r *Record, n int) {
	more, tally := r.Usage(), s.readTally(r)
	tally.Account.add(more, n)
	if s.all.Server.add(more, n); r.Principal == "" {
		s.all.Anonymous.add(more, n)
	}
	if s.counts.Set(r.Account, tally.Account); tally.Account == (Usage{}) {
		s.counts.Delete(r.Account)
	}
}

// tally is what the scopes of a record have.
func (s *memoryStore) readTally(r *Record) Quota {
	q := s.all
	q.Account, _ = s.counts.Get(r.Account)
	return q
}

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

// next returns the record, or what ends when it changes: both are looked at
// under one lock, so that no change can slip between.
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

// Renew changes no version: nobody but a worker looks at a lease.
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

// copyRecord gives the copy everything of its own but bytes, which are never
// changed.
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
