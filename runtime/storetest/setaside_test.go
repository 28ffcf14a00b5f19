package storetest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// setAside is a memory store with records that it cannot read. It keeps them aside.
type setAside struct {
	mcptask.Store
	mu    sync.Mutex
	aside map[string]mcptask.Record
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
		if _, err := s.Store.Create(t.Context(), r, mcptask.Quota{}); err != nil {
			t.Error(err)
		}
	}
}

func (s *setAside) Create(ctx context.Context, r mcptask.Record, quota mcptask.Quota) (mcptask.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, other := range s.aside {
		switch {
		case r.IdempotencyKey != "" && other.IdempotencyKey == r.IdempotencyKey && other.Tool == r.Tool && other.Principal == r.Principal:
			return r, mcptask.ErrUnreadable
		case id == r.ID:
			return mcptask.Record{}, mcptask.ErrExists
		}
	}
	if quota.Account.Stored > 0 {
		quota.Account.Stored -= len(s.aside)
	}
	return s.Store.Create(ctx, r, quota)
}

func (s *setAside) Get(ctx context.Context, id string) (mcptask.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r, ok := s.aside[id]; ok {
		return mcptask.Record{ID: id, Principal: r.Principal}, mcptask.ErrUnreadable
	}
	return s.Store.Get(ctx, id)
}

// Expire puts a record back that has expired.
func (s *setAside) Expire(ctx context.Context, limit int) ([]mcptask.Record, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, r := range s.aside {
		if !time.Now().Before(r.ExpiresAt) {
			delete(s.aside, id)
			if _, err := s.Store.Create(ctx, r, mcptask.Quota{}); err != nil {
				return nil, err
			}
		}
	}
	return s.Store.Expire(ctx, limit)
}

// listAside returns a page in which the records that are aside have their places.
func (s *setAside) listAside(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	page, err := s.List(ctx, principal, after, limit)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.aside {
		if r.Principal == principal && r.CreatedAt.After(after.CreatedAt) {
			page = append(page, r)
		}
	}
	slices.SortFunc(page, func(a, b mcptask.Record) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return page[:min(limit, len(page))], err
}
