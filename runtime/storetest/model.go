package storetest

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// model is a minimal store for one goroutine. Random programs compare a store with it.
type model struct {
	now     time.Time
	records map[string]taskstore.Record
	steps   map[string]map[string]taskstore.Step // by ID and name
	// tombstones has the principals and ends of tombstones, by ID.
	tombstones map[string]tombstone
	leases     map[string]time.Time // the ends, by worker
	// changes has the changes that a feed must have, by ID, in order.
	changes map[string][]taskstore.Change
}

type tombstone struct {
	principal string
	until     time.Time
}

func newModel(now time.Time) *model {
	return &model{
		now: now, records: map[string]taskstore.Record{}, steps: map[string]map[string]taskstore.Step{}, tombstones: map[string]tombstone{},
		leases: map[string]time.Time{}, changes: map[string][]taskstore.Change{},
	}
}

// put stores a version.
func (m *model) put(r taskstore.Record) taskstore.Record {
	r.Version++
	m.records[r.ID] = r
	m.changes[r.ID] = append(m.changes[r.ID], changeTo(r))
	return r
}

// remove removes a record.
func (m *model) remove(id string) {
	delete(m.records, id)
	delete(m.steps, id)
	m.changes[id] = append(m.changes[id], taskstore.Change{ID: id})
}

func (m *model) create(r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	for _, other := range m.records {
		if r.IdempotencyKey != "" && other.IdempotencyKey == r.IdempotencyKey && other.Principal == r.Principal && other.Tool == r.Tool {
			return other, taskstore.ErrExists
		}
	}
	if _, ok := m.records[r.ID]; ok {
		return taskstore.Record{}, taskstore.ErrExists
	}
	if err := m.checkQuota(r, quota, true); err != nil {
		return taskstore.Record{}, err
	}
	r.Version = 0
	delete(m.tombstones, r.ID)
	return m.put(r), nil
}

func (m *model) get(id string) (taskstore.Record, error) {
	if r, ok := m.records[id]; ok {
		return r, nil
	}
	if g, ok := m.tombstones[id]; ok && m.now.Before(g.until) {
		return taskstore.Record{ID: id, Principal: g.principal}, taskstore.ErrRecordExpired
	}
	return taskstore.Record{}, taskstore.ErrNoRecord
}

// checkQuota counts the records, with r replacing the record with its ID.
func (m *model) checkQuota(r taskstore.Record, quota taskstore.Quota, created bool) error {
	scopes := []struct {
		bound taskstore.Usage
		fits  func(taskstore.Record) bool
	}{
		{quota.Account, func(other taskstore.Record) bool { return other.Account == r.Account }},
		{quota.Address, func(other taskstore.Record) bool { return r.Address() != "" && other.Address() == r.Address() }},
		{quota.Anonymous, func(other taskstore.Record) bool { return other.Principal == "" }},
		{quota.Server, func(taskstore.Record) bool { return true }},
	}
	for _, s := range scopes {
		if !s.fits(r) {
			continue
		}
		stored, unfinished, bytes := 1, 0, r.Size()
		if !r.Done() {
			unfinished++
		}
		for _, other := range m.filter(s.fits) {
			if other.ID == r.ID {
				continue
			}
			stored, bytes = stored+1, bytes+other.Size()
			if !other.Done() {
				unfinished++
			}
		}
		switch {
		case created && s.bound.Stored > 0 && stored > s.bound.Stored:
			return taskstore.ErrQuotaStored
		case created && !r.Done() && s.bound.Unfinished > 0 && unfinished > s.bound.Unfinished:
			return taskstore.ErrQuotaUnfinished
		case s.bound.Bytes > 0 && bytes > s.bound.Bytes && r.Size() > m.storedSize(r.ID):
			return taskstore.ErrQuotaBytes
		}
	}
	return nil
}

// storedSize returns the size of the stored record, or 0.
func (m *model) storedSize(id string) int64 {
	r, ok := m.records[id]
	if !ok {
		return 0
	}
	return r.Size()
}

func (m *model) update(from, to taskstore.Record, quota taskstore.Quota, steps []taskstore.Step) (taskstore.Record, error) {
	old, ok := m.records[from.ID]
	if !ok {
		return to, taskstore.ErrNoRecord
	}
	if from.Version != old.Version {
		return to, taskstore.ErrConflict
	}
	to = keepFixed(to, old)
	if old.Outcome != nil {
		to.Outcome = old.Outcome
	}
	if err := m.checkQuota(to, quota, false); err != nil {
		return to, err
	}
	for _, step := range steps {
		if m.steps[to.ID] == nil {
			m.steps[to.ID] = map[string]taskstore.Step{}
		}
		m.steps[to.ID][step.Name] = step
	}
	return m.put(to), nil
}

// stepsOf returns what Steps must return.
func (m *model) stepsOf(id string) ([]taskstore.Step, error) {
	if _, ok := m.records[id]; !ok {
		return nil, taskstore.ErrNoRecord
	}
	steps := slices.Collect(maps.Values(m.steps[id]))
	taskstore.SortSteps(steps)
	return steps, nil
}

func (m *model) delete(r taskstore.Record) error {
	old, ok := m.records[r.ID]
	switch {
	case !ok:
		return taskstore.ErrNoRecord
	case old.Version != r.Version || !old.CreatedAt.Equal(r.CreatedAt):
		return taskstore.ErrConflict
	}
	m.remove(r.ID)
	return nil
}

func (m *model) list(principal string, after taskstore.Position, limit int) []taskstore.Record {
	place := func(r taskstore.Record, p taskstore.Position) int {
		return cmp.Or(r.CreatedAt.Compare(p.CreatedAt), cmp.Compare(r.ID, p.ID))
	}
	page := m.filter(func(r taskstore.Record) bool { return r.Principal == principal && place(r, after) > 0 })
	slices.SortFunc(page, func(a, b taskstore.Record) int {
		return place(a, taskstore.Position{CreatedAt: b.CreatedAt, ID: b.ID})
	})
	return page[:min(len(page), limit)]
}

// expired returns the records that Expire may delete.
func (m *model) expired() []taskstore.Record {
	return m.filter(func(r taskstore.Record) bool { return !r.ExpiresAt.After(m.now) })
}

// expire deletes a record that Expire has returned.
func (m *model) expire(r taskstore.Record) {
	m.remove(r.ID)
	m.tombstones[r.ID] = tombstone{r.Principal, m.now.Add(taskstore.TombstoneFor)}
}

// waiting returns what Waiting must return.
func (m *model) waiting(tools []string, after string, limit int) []taskstore.Waiting {
	return waitingOf(slices.Collect(maps.Values(m.records)), tools, after, limit)
}

// orphans returns the records that Lease may give to a worker.
func (m *model) orphans(worker string, tools []string) []taskstore.Record {
	return m.filter(func(r taskstore.Record) bool {
		return !r.Done() && r.Claim.Worker != "" && r.Claim.Worker != worker && !m.now.Before(m.leases[r.Claim.Worker]) && slices.Contains(tools, r.Tool)
	})
}

// lost returns the held IDs that Beat must return, sorted.
func (m *model) lost(worker string, held []string) []string {
	var lost []string
	for _, id := range held {
		if r, ok := m.records[id]; !ok || r.Done() || r.Claim.Worker != worker {
			lost = append(lost, id)
		}
	}
	slices.Sort(lost)
	return lost
}

func (m *model) filter(fits func(taskstore.Record) bool) []taskstore.Record {
	var records []taskstore.Record
	for _, r := range m.records {
		if fits(r) {
			records = append(records, r)
		}
	}
	return records
}
