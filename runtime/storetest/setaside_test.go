package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// setAside is a memory store with records that it cannot read. It keeps them aside.
type setAside struct {
	taskstore.Store
	mu    sync.Mutex
	aside map[string]taskstore.Record
}

// damage makes a record one that the store cannot read.
func (s *setAside) damage(t testing.TB, id string) (undo func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.Store.Get(t.Context(), id)
	if err == nil {
		err = s.Store.Delete(t.Context(), r)
	}
	if err != nil {
		t.Fatal(err)
	}
	s.aside[id] = r
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.aside, id)
		if _, err := s.Store.Create(t.Context(), r, taskstore.Quota{}); err != nil {
			t.Error(err)
		}
	}
}

func (s *setAside) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, other := range s.aside {
		switch {
		case r.IdempotencyKey != "" && other.IdempotencyKey == r.IdempotencyKey && other.Tool == r.Tool && other.Principal == r.Principal:
			return r, taskstore.ErrUnreadable
		case id == r.ID:
			return taskstore.Record{}, taskstore.ErrExists
		}
	}
	if quota.Account.Stored > 0 {
		quota.Account.Stored -= len(s.aside)
	}
	return s.Store.Create(ctx, r, quota)
}

func (s *setAside) Get(ctx context.Context, id string) (taskstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.aside[id]; ok {
		return taskstore.Record{ID: id, Principal: r.Principal}, taskstore.ErrUnreadable
	}
	return s.Store.Get(ctx, id)
}

// Expire puts a record back that has expired.
func (s *setAside) Expire(ctx context.Context, limit int) ([]taskstore.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.aside {
		if !time.Now().Before(r.ExpiresAt) {
			delete(s.aside, id)
			if _, err := s.Store.Create(ctx, r, taskstore.Quota{}); err != nil {
				return nil, err
			}
		}
	}
	return s.Store.Expire(ctx, limit)
}

// listAside returns a page in which the records that are aside have their places.
func (s *setAside) listAside(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	page, err := s.List(ctx, principal, after, limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.aside {
		if r.Principal == principal && r.CreatedAt.After(after.CreatedAt) {
			page = append(page, r)
		}
	}
	slices.SortFunc(page, func(a, b taskstore.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return page[:min(limit, len(page))], err
}
