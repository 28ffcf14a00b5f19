package mcptask

import (
	"context"
	"slices"
	"sync"
	"time"
)

// tap acts around one call of a tapStore. do carries the call out. r is the record that the call is
// given or returns, and nil for a call with none or several.
type tap func(ctx context.Context, method string, r *Record, do func() error) error

// before returns a tap that runs first ahead of the calls of some methods. If first returns an
// error, the call fails with it and is not carried out.
func before(first func(context.Context) error, methods ...string) tap {
	return func(ctx context.Context, method string, _ *Record, do func() error) error {
		if slices.Contains(methods, method) {
			if err := first(ctx); err != nil {
				return err
			}
		}
		return do()
	}
}

// tapStore lets a test act around every call of a store except Close.
type tapStore struct {
	Store
	mu  sync.Mutex
	tap tap // nil carries each call out
}

// set replaces the tap for later calls.
func (s *tapStore) set(tap tap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tap = tap
}

func (s *tapStore) call(ctx context.Context, method string, r *Record, do func() error) error {
	s.mu.Lock()
	tap := s.tap
	s.mu.Unlock()
	if tap == nil {
		return do()
	}
	return tap(ctx, method, r, do)
}

func (s *tapStore) Create(ctx context.Context, r Record, q Quota) (Record, error) {
	err := s.call(ctx, "Create", &r, func() (err error) { r, err = s.Store.Create(ctx, r, q); return err })
	return r, err
}

func (s *tapStore) Get(ctx context.Context, id string) (r Record, err error) {
	err = s.call(ctx, "Get", &r, func() (err error) { r, err = s.Store.Get(ctx, id); return err })
	return r, err
}

func (s *tapStore) Update(ctx context.Context, r Record, q Quota) (Record, error) {
	err := s.call(ctx, "Update", &r, func() (err error) { r, err = s.Store.Update(ctx, r, q); return err })
	return r, err
}

func (s *tapStore) List(ctx context.Context, principal string, after Position, limit int) (page []Record, err error) {
	err = s.call(ctx, "List", nil, func() (err error) { page, err = s.Store.List(ctx, principal, after, limit); return err })
	return page, err
}

func (s *tapStore) Delete(ctx context.Context, r Record) error {
	return s.call(ctx, "Delete", &r, func() error { return s.Store.Delete(ctx, r) })
}

func (s *tapStore) Expire(ctx context.Context, now time.Time, limit int) (gone []Record, err error) {
	err = s.call(ctx, "Expire", nil, func() (err error) { gone, err = s.Store.Expire(ctx, now, limit); return err })
	return gone, err
}

func (s *tapStore) Wait(ctx context.Context, id string, version int64) (r Record, err error) {
	err = s.call(ctx, "Wait", &r, func() (err error) { r, err = s.Store.Wait(ctx, id, version); return err })
	return r, err
}

func (s *tapStore) Lease(ctx context.Context, worker string, now, until time.Time, limit int) (taken []Record, err error) {
	err = s.call(ctx, "Lease", nil, func() (err error) { taken, err = s.Store.Lease(ctx, worker, now, until, limit); return err })
	return taken, err
}

func (s *tapStore) Renew(ctx context.Context, worker string, until time.Time) error {
	return s.call(ctx, "Renew", nil, func() error { return s.Store.Renew(ctx, worker, until) })
}

func (s *tapStore) Release(ctx context.Context, worker string) error {
	return s.call(ctx, "Release", nil, func() error { return s.Store.Release(ctx, worker) })
}
