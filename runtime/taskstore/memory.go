package taskstore

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/account"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/feed"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/index"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Memory is a [Store] that lives as long as the process, and an [Inspector].
type Memory struct {
	clock func() time.Time // tells when something begins
	past  *steady.Clock    // decides which records and leases have ended
	feed  feed.Feed[Change]

	mu            sync.Mutex // guards the fields below
	closed        bool
	entries       index.Map[string, *Record]
	steps         index.Map[string, map[string]Step] // by ID and name
	keys          index.Map[[3]string, *Record]      // by principal, tool and key
	counts        index.Map[string, Usage]           // by account, and by address
	all           Quota                              // of the other scopes, all accounts together
	lists         *index.Sorted[*Record]             // by principal, in the order of List
	working       *index.Sorted[*Record]             // the unfinished by worker
	waiting       *index.Sorted[*Record]             // those of them without a worker, by tool and account
	expiry        *index.Sorted[*Record]
	failed        *index.Sorted[*Record] // by the time of their ends
	leases        map[string]time.Time   // the ends of leases, by worker
	tombstones    index.Map[string, tombstone]
	oldTombstones []tombstone // all of them, oldest first
}

// tombstone is the rest of an expired record.
type tombstone struct {
	id, principal string
	until         time.Time
}

// NewMemory makes an empty Memory.
func NewMemory() *Memory { return NewMemoryAt(time.Now) }

// NewMemoryAt makes an empty Memory with a clock of its own, for tests. The clock must be safe for concurrent use.
func NewMemoryAt(clock func() time.Time) *Memory {
	return &Memory{
		clock:   clock,
		past:    steady.New(clock),
		lists:   index.NewSorted(compareByPrincipal),
		working: index.NewSorted(compareByWorker),
		waiting: index.NewSorted(compareByTurn),
		expiry:  index.NewSorted(compareByExpiry),
		failed:  index.NewSorted(compareByEnd),
		leases:  map[string]time.Time{},
	}
}

// Position returns the place of the record in the list of its principal.
func (r *Record) Position() Position { return Position{r.CreatedAt, r.ID} }
func (r *Record) idempotencyIndex() [3]string {
	return [3]string{r.Principal, r.Tool, r.IdempotencyKey}
}

func (p Position) compare(q Position) int {
	return cmp.Or(p.CreatedAt.Compare(q.CreatedAt), cmp.Compare(p.ID, q.ID))
}

func compareByPrincipal(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.Principal, b.Principal), a.Position().compare(b.Position()))
}

func compareByWorker(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.Claim.Worker, b.Claim.Worker), a.Position().compare(b.Position()))
}

func compareByTurn(a, b *Record) int {
	return cmp.Or(cmp.Compare(a.Tool, b.Tool), cmp.Compare(a.Account, b.Account), a.Position().compare(b.Position()))
}

func compareByExpiry(a, b *Record) int {
	return cmp.Or(a.ExpiresAt.Compare(b.ExpiresAt), cmp.Compare(a.ID, b.ID))
}

func compareByEnd(a, b *Record) int {
	return cmp.Or(a.TerminalAt.Compare(b.TerminalAt), cmp.Compare(a.ID, b.ID))
}

// Create implements Store.
func (s *Memory) Create(_ context.Context, r Record, quota Quota) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return r, mcptask.ErrServerClosed
	}
	former, ok := s.entries.Get(r.ID)
	if ok && former.Version == 1 && former.isWrittenBy(r.Nonce) {
		return former.Clone(), nil
	}
	if e, ok := s.keys.Get(r.idempotencyIndex()); ok {
		return e.Clone(), ErrExists
	}
	if ok {
		return Record{}, ErrExists
	}
	// s.mu is held, so that no other Create comes between the check and the write (C-96).
	if err := quota.Check(&r, s.readTally(&r), r.Usage()); err != nil {
		return r, err
	}
	copied := r.Clone()
	e := &copied
	e.Version = 1
	s.entries.Set(r.ID, e)
	if r.IdempotencyKey != "" {
		s.keys.Set(r.idempotencyIndex(), e)
	}
	s.lists.Insert(e)
	s.indexRecord(e)
	s.tombstones.Delete(e.ID)
	s.publishChange(e)
	return e.Clone(), nil
}

// Get implements Store.
func (s *Memory) Get(_ context.Context, id string) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.entries.Get(id); ok {
		return e.Clone(), nil
	}
	if g, ok := s.tombstones.Get(id); ok && s.past.Now().Before(g.until) {
		return Record{ID: id, Principal: g.principal}, ErrRecordExpired
	}
	return Record{}, ErrNoRecord
}

// Update implements Store.
func (s *Memory) Update(_ context.Context, from, to Record, quota Quota, steps ...Step) (Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.entries.Get(from.ID)
	switch {
	case !ok:
		return to, ErrNoRecord
	case e.Version == from.Version+1 && e.CreatedAt.Equal(from.CreatedAt) && e.isWrittenBy(to.Nonce):
		return e.Clone(), nil
	case e.Version != from.Version || e.Nonce != from.Nonce:
		return to, ErrConflict
	}
	to.KeepFixed(e)
	if err := quota.Check(e, s.readTally(e), Usage{Bytes: to.Size() - e.Size()}); err != nil {
		return to, err
	}
	s.putSteps(e.ID, steps)
	return s.replaceRecord(e, to.Clone()), nil
}

// putSteps stores steps of a task.
func (s *Memory) putSteps(id string, steps []Step) {
	if len(steps) == 0 {
		return
	}
	stored, _ := s.steps.Get(id)
	if stored == nil {
		stored = map[string]Step{}
		s.steps.Set(id, stored)
	}
	for _, step := range steps {
		stored[step.Name] = step
	}
}

// Steps implements Store.
func (s *Memory) Steps(_ context.Context, id string) ([]Step, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.entries.Get(id); !ok {
		return nil, ErrNoRecord
	}
	stored, _ := s.steps.Get(id)
	steps := slices.Collect(maps.Values(stored))
	SortSteps(steps)
	return steps, nil
}

// isWrittenBy reports whether the write with a nonce has made this version.
func (r *Record) isWrittenBy(nonce string) bool { return nonce != "" && r.Nonce == nonce }

// replaceRecord stores the next version of a record and returns a copy of it.
func (s *Memory) replaceRecord(e *Record, r Record) Record {
	s.unindexRecord(e)
	r.Version++
	*e = r
	s.indexRecord(e)
	s.publishChange(e)
	return r.Clone()
}

// publishChange tells the feed of a version.
func (s *Memory) publishChange(e *Record) {
	s.feed.Publish(e.Change())
}

// indexRecord enters a record into the indexes of its changing parts.
func (s *Memory) indexRecord(e *Record) {
	s.expiry.Insert(e)
	if !e.Done() {
		s.working.Insert(e)
	}
	if e.IsFree() {
		s.waiting.Insert(e)
	}
	if e.Failed() {
		s.failed.Insert(e)
	}
	s.countRecord(e, 1)
}

// unindexRecord undoes indexRecord before the record changes or is deleted.
func (s *Memory) unindexRecord(e *Record) {
	s.expiry.Remove(e)
	s.working.Remove(e)
	s.waiting.Remove(e)
	s.failed.Remove(e)
	s.countRecord(e, -1)
}

// countRecord adds a record to its scopes if n is 1, and removes it if n is -1.
func (s *Memory) countRecord(r *Record, n int) {
	more, tally := r.Usage(), s.readTally(r)
	tally.Account.add(more, n)
	s.all.Server.add(more, n)
	if r.Principal == "" {
		s.all.Anonymous.add(more, n)
	}
	s.setUsage(r.Account, tally.Account)
	if address := r.Address(); address != "" {
		tally.Address.add(more, n)
		s.setUsage(account.KeyOfAddress(address), tally.Address)
	}
}

func (s *Memory) setUsage(key string, u Usage) {
	if u == (Usage{}) {
		s.counts.Delete(key)
		return
	}
	s.counts.Set(key, u)
}

// readTally returns the usage of a record's scopes.
func (s *Memory) readTally(r *Record) Quota {
	q := s.all
	q.Account, _ = s.counts.Get(r.Account)
	if address := r.Address(); address != "" {
		q.Address, _ = s.counts.Get(account.KeyOfAddress(address))
	}
	return q
}

// add adds more n times.
func (u *Usage) add(more Usage, n int) {
	u.Stored += n * more.Stored
	u.Unfinished += n * more.Unfinished
	u.Bytes += int64(n) * more.Bytes
}

// List implements Store.
func (s *Memory) List(_ context.Context, principal string, after Position, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	page := s.lists.Range(limit, func(e *Record) int {
		if e.Principal == principal && e.Position().compare(after) <= 0 {
			return -1
		}
		return cmp.Compare(e.Principal, principal)
	})
	records := make([]Record, len(page))
	for i, e := range page {
		records[i] = e.Clone()
	}
	return records, nil
}

// Delete implements Store.
func (s *Memory) Delete(_ context.Context, r Record) error {
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
func (s *Memory) removeRecord(e *Record) {
	s.unindexRecord(e)
	s.lists.Remove(e)
	s.entries.Delete(e.ID)
	s.steps.Delete(e.ID)
	s.keys.Delete(e.idempotencyIndex())
	s.feed.Publish(Change{ID: e.ID})
}

// Expire implements Store.
func (s *Memory) Expire(_ context.Context, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, past := s.clock(), s.past.Now()
	s.removeTombstones(past)
	var gone []Record
	for _, e := range s.expiry.Range(limit, func(e *Record) int { return max(0, e.ExpiresAt.Compare(past)) }) {
		gone = append(gone, *e)
		g := tombstone{e.ID, e.Principal, now.Add(TombstoneFor)}
		s.tombstones.Set(g.id, g)
		s.oldTombstones = append(s.oldTombstones, g)
		s.removeRecord(e)
	}
	return gone, nil
}

// removeTombstones removes the tombstones whose time is over.
func (s *Memory) removeTombstones(past time.Time) {
	n := 0
	for ; n < len(s.oldTombstones) && !past.Before(s.oldTombstones[n].until); n++ {
		if g, _ := s.tombstones.Get(s.oldTombstones[n].id); g == s.oldTombstones[n] { // unless the ID has expired again
			s.tombstones.Delete(g.id)
		}
	}
	s.oldTombstones = slices.Delete(s.oldTombstones, 0, n)
	if len(s.oldTombstones) == 0 {
		s.oldTombstones = nil
	}
}

// Changes implements Store.
func (s *Memory) Changes(ctx context.Context) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		for c := range s.feed.Read(ctx, Change{Missed: true}) {
			if !yield(c, nil) {
				return
			}
		}
	}
}

// Waiting implements Store.
func (s *Memory) Waiting(_ context.Context, tools []string, after string, limit int) ([]Waiting, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Waiting
	for _, tool := range slices.Compact(slices.Sorted(slices.Values(tools))) {
		for _, isBehind := range []bool{true, false} {
			// next finds the first task of the tool whose account is behind last, on this side of after.
			next := func(last *Record) []*Record {
				return s.waiting.Range(1, func(e *Record) int {
					switch c := cmp.Compare(e.Tool, tool); {
					case c != 0:
						return c
					case last != nil && e.Account <= last.Account, isBehind && e.Account <= after:
						return -1
					case !isBehind && e.Account > after:
						return 1
					}
					return 0
				})
			}
			first := next(nil)
			for accounts := 0; accounts < limit && len(first) > 0; accounts++ {
				e := first[0]
				for _, e := range s.waiting.Range(limit, func(other *Record) int {
					return cmp.Or(cmp.Compare(other.Tool, tool), cmp.Compare(other.Account, e.Account))
				}) {
					found = append(found, Waiting{e.ID, e.Account, e.Principal, e.Tool, e.CreatedAt})
				}
				first = next(e)
			}
		}
	}
	return SortTurns(found, after, limit), nil
}

// Lease implements Store.
func (s *Memory) Lease(_ context.Context, worker string, lease time.Duration, tools []string, limit int) ([]Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.past.Now()
	var taken []Record
	for _, e := range s.working.Filter(limit, func(e *Record) bool {
		return e.Claim.Worker != "" && e.Claim.Worker != worker && !past.Before(s.leases[e.Claim.Worker]) && slices.Contains(tools, e.Tool)
	}) {
		r := *e
		r.Claim.Worker = worker
		taken = append(taken, s.replaceRecord(e, r))
	}
	if end := s.clock().Add(lease); len(taken) > 0 && s.leases[worker].Before(end) {
		s.leases[worker] = end
	}
	return taken, nil
}

// Beat implements Store.
func (s *Memory) Beat(_ context.Context, worker string, lease time.Duration, held []string) (Heartbeat, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	beat, past := Heartbeat{Now: s.clock()}, s.past.Now()
	for name, end := range s.leases {
		if !past.Before(end) {
			delete(s.leases, name)
		}
	}
	s.leases[worker] = beat.Now.Add(lease)
	for _, id := range held {
		if e, ok := s.entries.Get(id); !ok || e.Done() || e.Claim.Worker != worker {
			beat.Lost = append(beat.Lost, id)
		}
	}
	return beat, nil
}

// Release implements Store.
func (s *Memory) Release(_ context.Context, worker string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.leases, worker)
	if len(s.working.Range(1, func(e *Record) int { return cmp.Compare(e.Claim.Worker, worker) })) > 0 {
		s.feed.Publish(Change{Free: true})
	}
	return nil
}

// Close implements Store.
func (s *Memory) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	s.feed.Close()
	return nil
}

// Scan implements Inspector. It looks at every record, and keeps only as many as it returns: all others wait meanwhile.
func (s *Memory) Scan(_ context.Context, filter Filter, after Position, limit int) ([]Record, error) {
	if limit <= 0 {
		return nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	compare := func(a, b *Record) int { return b.Position().compare(a.Position()) }
	if filter.OldestFirst {
		compare = func(a, b *Record) int { return a.Position().compare(b.Position()) }
	}
	var first []*Record
	var last *Record // a record after it is not among the first
	cut := func() {
		slices.SortFunc(first, compare)
		if len(first) >= limit {
			first, last = first[:limit], first[limit-1]
		}
	}
	start := &Record{ID: after.ID, CreatedAt: after.CreatedAt}
	s.lists.Filter(math.MaxInt, func(e *Record) bool {
		if filter.Admits(e) && (after == Position{} || compare(e, start) > 0) && (last == nil || compare(e, last) < 0) {
			if first = append(first, e); len(first)/2 >= limit {
				cut()
			}
		}
		return false
	})
	cut()
	records := make([]Record, 0, len(first))
	for _, e := range first {
		records = append(records, e.Clone())
	}
	return records, nil
}

// CountUnfinished implements Inspector.
func (s *Memory) CountUnfinished(context.Context) ([]Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[Count]int{}
	for _, e := range s.working.Filter(math.MaxInt, func(*Record) bool { return true }) {
		counts[Count{Tool: e.Tool, Phase: e.Phase, Worker: e.Claim.Worker}]++
	}
	return listCounts(counts), nil
}

// listCounts returns counts as a list.
func listCounts(counts map[Count]int) []Count {
	var list []Count
	for c, n := range counts {
		c.Count = n
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b Count) int {
		return cmp.Or(strings.Compare(a.Tool, b.Tool), cmp.Compare(a.Phase, b.Phase), strings.Compare(a.Worker, b.Worker))
	})
	return list
}

// CountFailed implements Inspector.
func (s *Memory) CountFailed(_ context.Context, since time.Time) ([]Count, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[Count]int{}
	for _, e := range s.failed.Range(MaxCountFailed, func(e *Record) int { return min(e.TerminalAt.Compare(since), 0) }) {
		counts[Count{Tool: e.Tool, Phase: PhaseDone}]++
	}
	return listCounts(counts), nil
}

// ListSteps implements Inspector.
func (s *Memory) ListSteps(ctx context.Context, id string) ([]StepSummary, error) {
	steps, err := s.Steps(ctx, id)
	return SummarizeSteps(steps), err
}

// Workers implements Inspector.
func (s *Memory) Workers(context.Context) ([]WorkerLease, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	past := s.past.Now()
	leases := map[string]*WorkerLease{"": {}}
	for worker, until := range s.leases {
		if past.Before(until) {
			leases[worker] = &WorkerLease{Worker: worker, Until: until}
		}
	}
	for _, e := range s.working.Filter(math.MaxInt, func(*Record) bool { return true }) {
		lease := leases[e.Claim.Worker]
		if lease == nil {
			lease = leases[""]
		}
		lease.Unfinished++
	}
	var list []WorkerLease
	for worker, lease := range leases {
		if worker != "" || lease.Unfinished > 0 {
			list = append(list, *lease)
		}
	}
	return list, nil
}
