package executortest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// errCut is the error of a server that was killed.
var errCut = errors.New("executortest: the process of this server has ended")

// link is a server's way to the store, which can be cut.
type link struct {
	mcptask.Store
	mu    sync.Mutex
	isCut bool
}

// cut cuts the link, or mends it.
func (l *link) cut(isCut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.isCut = isCut
}

// err returns errCut if the link is cut.
func (l *link) err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.isCut {
		return errCut
	}
	return nil
}

// Create implements mcptask.Store.
func (l *link) Create(ctx context.Context, r mcptask.Record, q mcptask.Quota) (mcptask.Record, error) {
	if err := l.err(); err != nil {
		return mcptask.Record{}, err
	}
	return l.Store.Create(ctx, r, q)
}

// Get implements mcptask.Store.
func (l *link) Get(ctx context.Context, id string) (mcptask.Record, error) {
	if err := l.err(); err != nil {
		return mcptask.Record{}, err
	}
	return l.Store.Get(ctx, id)
}

// Update implements mcptask.Store.
func (l *link) Update(ctx context.Context, from, to mcptask.Record, q mcptask.Quota) (mcptask.Record, error) {
	if err := l.err(); err != nil {
		return mcptask.Record{}, err
	}
	return l.Store.Update(ctx, from, to, q)
}

// List implements mcptask.Store.
func (l *link) List(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.List(ctx, principal, after, limit)
}

// Delete implements mcptask.Store.
func (l *link) Delete(ctx context.Context, r mcptask.Record) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Store.Delete(ctx, r)
}

// Expire implements mcptask.Store.
func (l *link) Expire(ctx context.Context, limit int) ([]mcptask.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.Expire(ctx, limit)
}

// Changes implements mcptask.Store.
func (l *link) Changes(ctx context.Context) iter.Seq2[mcptask.Change, error] {
	return func(yield func(mcptask.Change, error) bool) {
		if err := l.err(); err != nil {
			yield(mcptask.Change{}, err)
			return
		}
		for c, err := range l.Store.Changes(ctx) {
			if cut := l.err(); cut != nil {
				yield(mcptask.Change{}, cut)
				return
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Lease implements mcptask.Store.
func (l *link) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]mcptask.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.Lease(ctx, worker, lease, tools, limit)
}

// Beat implements mcptask.Store.
func (l *link) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (mcptask.Heartbeat, error) {
	if err := l.err(); err != nil {
		return mcptask.Heartbeat{}, err
	}
	return l.Store.Beat(ctx, worker, lease, held)
}

// Release implements mcptask.Store.
func (l *link) Release(ctx context.Context, worker string) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Store.Release(ctx, worker)
}

// inspectable is a link to a store that is an Inspector.
type inspectable struct {
	*link
	inspector mcptask.Inspector
}

// Scan implements mcptask.Inspector.
func (l inspectable) Scan(ctx context.Context, filter mcptask.Filter, after mcptask.Position, limit int) ([]mcptask.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.Scan(ctx, filter, after, limit)
}

// CountUnfinished implements mcptask.Inspector.
func (l inspectable) CountUnfinished(ctx context.Context) ([]mcptask.Count, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.CountUnfinished(ctx)
}

// Workers implements mcptask.Inspector.
func (l inspectable) Workers(ctx context.Context) ([]mcptask.WorkerLease, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.Workers(ctx)
}
