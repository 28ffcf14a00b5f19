package storetest

import (
	"cmp"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// model is a minimal store for one goroutine. Random programs compare a store with it.
type model map[string]mcptask.Record

func (m model) create(r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	for _, other := range m {
		if r.IdempotencyKey != "" && other.IdempotencyKey == r.IdempotencyKey && other.Principal == r.Principal && other.Tool == r.Tool {
			return other, mcptask.ErrExists
		}
	}
	if _, ok := m[r.ID]; ok {
		return mcptask.Record{}, mcptask.ErrExists
	}
	if err := m.checkQuota(r, quota, true); err != nil {
		return mcptask.Record{}, err
	}
	r.Version = 1
	m[r.ID] = r
	return r, nil
}

func (m model) get(id string) (mcptask.Record, error) {
	r, ok := m[id]
	if !ok {
		return r, mcptask.ErrNoRecord
	}
	return r, nil
}

// checkQuota counts the records, with r replacing the record with its ID.
func (m model) checkQuota(r mcptask.Record, quota mcptask.Quota, created bool) error {
	scopes := []struct {
		bound mcptask.Usage
		fits  func(mcptask.Record) bool
	}{
		{quota.Account, func(other mcptask.Record) bool { return other.Account == r.Account }},
		{quota.Anonymous, func(other mcptask.Record) bool { return other.Principal == "" }},
		{quota.Server, func(mcptask.Record) bool { return true }},
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
			return mcptask.ErrQuotaStored
		case created && !r.Done() && s.bound.Unfinished > 0 && unfinished > s.bound.Unfinished:
			return mcptask.ErrQuotaUnfinished
		case s.bound.Bytes > 0 && bytes > s.bound.Bytes && r.Size() > m.storedSize(r.ID):
			return mcptask.ErrQuotaBytes
		}
	}
	return nil
}

// storedSize returns the size of the stored record, or 0.
func (m model) storedSize(id string) int64 {
	r, ok := m[id]
	if !ok {
		return 0
	}
	return r.Size()
}

func (m model) update(r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	old, ok := m[r.ID]
	if !ok {
		return r, mcptask.ErrNoRecord
	}
	if r.Version != old.Version {
		return r, mcptask.ErrConflict
	}
	if r.Worker == old.Worker {
		r.LeaseUntil = old.LeaseUntil
	}
	r.Principal, r.Account, r.Tool, r.IdempotencyKey, r.CreatedAt = old.Principal, old.Account, old.Tool, old.IdempotencyKey, old.CreatedAt
	if err := m.checkQuota(r, quota, false); err != nil {
		return r, err
	}
	r.Version++
	m[r.ID] = r
	return r, nil
}

func (m model) delete(r mcptask.Record) error {
	old, ok := m[r.ID]
	switch {
	case !ok:
		return mcptask.ErrNoRecord
	case old.Version != r.Version || !old.CreatedAt.Equal(r.CreatedAt):
		return mcptask.ErrConflict
	}
	delete(m, r.ID)
	return nil
}

func (m model) list(principal string, after mcptask.Position, limit int) []mcptask.Record {
	place := func(r mcptask.Record, p mcptask.Position) int {
		return cmp.Or(r.CreatedAt.Compare(p.CreatedAt), cmp.Compare(r.ID, p.ID))
	}
	page := m.filter(func(r mcptask.Record) bool { return r.Principal == principal && place(r, after) > 0 })
	slices.SortFunc(page, func(a, b mcptask.Record) int {
		return place(a, mcptask.Position{CreatedAt: b.CreatedAt, ID: b.ID})
	})
	return page[:min(len(page), limit)]
}

// expired returns the records that Expire may delete.
func (m model) expired(now time.Time) []mcptask.Record {
	return m.filter(func(r mcptask.Record) bool { return !r.ExpiresAt.After(now) })
}

// orphans returns the records that Lease may give to a worker.
func (m model) orphans(worker string, now time.Time) []mcptask.Record {
	return m.filter(func(r mcptask.Record) bool { return !r.Done() && r.Worker != worker && r.LeaseUntil.Before(now) })
}

// setLeases implements Renew, and Release with the zero time.
func (m model) setLeases(worker string, until time.Time) {
	for id, r := range m {
		if !r.Done() && r.Worker == worker {
			r.LeaseUntil = until
			m[id] = r
		}
	}
}

func (m model) filter(fits func(mcptask.Record) bool) []mcptask.Record {
	var records []mcptask.Record
	for _, r := range m {
		if fits(r) {
			records = append(records, r)
		}
	}
	return records
}
