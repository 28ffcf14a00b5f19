package taskserver

import (
	"context"
	"iter"
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// tap acts around one call of a tapStore. do carries the call out. r is the record that the call is
// given or returns, and nil for a call with none or several.
type tap func(ctx context.Context, method string, r *taskstore.Record, do func() error) error

// before returns a tap that runs first ahead of the calls of some methods. If first returns an
// error, the call fails with it and is not carried out.
func before(first func(context.Context) error, methods ...string) tap {
	return func(ctx context.Context, method string, _ *taskstore.Record, do func() error) error {
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
	taskstore.Store
	mu  sync.Mutex
	tap tap // nil carries each call out
}

// set replaces the tap for later calls.
func (s *tapStore) set(tap tap) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tap = tap
}

func (s *tapStore) call(ctx context.Context, method string, r *taskstore.Record, do func() error) error {
	s.mu.Lock()
	tap := s.tap
	s.mu.Unlock()
	if tap == nil {
		return do()
	}
	return tap(ctx, method, r, do)
}

func (s *tapStore) Create(ctx context.Context, r taskstore.Record, q taskstore.Quota) (taskstore.Record, error) {
	err := s.call(ctx, "Create", &r, func() (err error) { r, err = s.Store.Create(ctx, r, q); return err })
	return r, err
}

func (s *tapStore) Get(ctx context.Context, id string) (r taskstore.Record, err error) {
	err = s.call(ctx, "Get", &r, func() (err error) { r, err = s.Store.Get(ctx, id); return err })
	return r, err
}

func (s *tapStore) Update(ctx context.Context, from, to taskstore.Record, q taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	err := s.call(ctx, "Update", &to, func() (err error) { to, err = s.Store.Update(ctx, from, to, q, steps...); return err })
	return to, err
}

func (s *tapStore) List(ctx context.Context, principal string, after taskstore.Position, limit int) (page []taskstore.Record, err error) {
	err = s.call(ctx, "List", nil, func() (err error) { page, err = s.Store.List(ctx, principal, after, limit); return err })
	return page, err
}

func (s *tapStore) Delete(ctx context.Context, r taskstore.Record) error {
	return s.call(ctx, "Delete", &r, func() error { return s.Store.Delete(ctx, r) })
}

func (s *tapStore) Expire(ctx context.Context, limit int) (gone []taskstore.Record, err error) {
	err = s.call(ctx, "Expire", nil, func() (err error) { gone, err = s.Store.Expire(ctx, limit); return err })
	return gone, err
}

// Changes makes one call for the feed, and one of method "Change" for each item: an item whose call fails
// is not passed on.
func (s *tapStore) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return func(yield func(taskstore.Change, error) bool) {
		if err := s.call(ctx, "Changes", nil, func() error { return nil }); err != nil {
			yield(taskstore.Change{}, err)
			return
		}
		for c, err := range s.Store.Changes(ctx) {
			more := true
			_ = s.call(ctx, "Change", &taskstore.Record{ID: c.ID, Version: c.Version}, func() error { more = yield(c, err); return nil })
			if !more {
				return
			}
		}
	}
}

func (s *tapStore) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) (taken []taskstore.Record, err error) {
	err = s.call(ctx, "Lease", nil, func() (err error) { taken, err = s.Store.Lease(ctx, worker, lease, tools, limit); return err })
	return taken, err
}

func (s *tapStore) Waiting(ctx context.Context, tools []string, after string, limit int) (waiting []taskstore.Waiting, err error) {
	err = s.call(ctx, "Waiting", nil, func() (err error) { waiting, err = s.Store.Waiting(ctx, tools, after, limit); return err })
	return waiting, err
}

func (s *tapStore) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (beat taskstore.Heartbeat, err error) {
	err = s.call(ctx, "Beat", nil, func() (err error) { beat, err = s.Store.Beat(ctx, worker, lease, held); return err })
	return beat, err
}

func (s *tapStore) Release(ctx context.Context, worker string) error {
	return s.call(ctx, "Release", nil, func() error { return s.Store.Release(ctx, worker) })
}
