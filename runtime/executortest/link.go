package executortest

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// errCut is the error of a server that was killed.
var errCut = errors.New("executortest: the process of this server has ended")

// link is a server's way to the store, which can be cut.
type link struct {
	taskstore.Store
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

// Create implements taskstore.Store.
func (l *link) Create(ctx context.Context, r taskstore.Record, q taskstore.Quota) (taskstore.Record, error) {
	if err := l.err(); err != nil {
		return taskstore.Record{}, err
	}
	return l.Store.Create(ctx, r, q)
}

// Get implements taskstore.Store.
func (l *link) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if err := l.err(); err != nil {
		return taskstore.Record{}, err
	}
	return l.Store.Get(ctx, id)
}

// Update implements taskstore.Store.
func (l *link) Update(ctx context.Context, from, to taskstore.Record, q taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	if err := l.err(); err != nil {
		return taskstore.Record{}, err
	}
	return l.Store.Update(ctx, from, to, q, steps...)
}

// Steps implements taskstore.Store.
func (l *link) Steps(ctx context.Context, id string) ([]taskstore.Step, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.Steps(ctx, id)
}

// List implements taskstore.Store.
func (l *link) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.List(ctx, principal, after, limit)
}

// Delete implements taskstore.Store.
func (l *link) Delete(ctx context.Context, r taskstore.Record) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Store.Delete(ctx, r)
}

// Expire implements taskstore.Store.
func (l *link) Expire(ctx context.Context, limit int) ([]taskstore.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.Expire(ctx, limit)
}

// Changes implements taskstore.Store.
func (l *link) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return func(yield func(taskstore.Change, error) bool) {
		if err := l.err(); err != nil {
			yield(taskstore.Change{}, err)
			return
		}
		for c, err := range l.Store.Changes(ctx) {
			if cut := l.err(); cut != nil {
				yield(taskstore.Change{}, cut)
				return
			}
			if !yield(c, err) {
				return
			}
		}
	}
}

// Waiting implements taskstore.Store.
func (l *link) Waiting(ctx context.Context, tools []string, after string, limit int) ([]taskstore.Waiting, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.Waiting(ctx, tools, after, limit)
}

// Lease implements taskstore.Store.
func (l *link) Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]taskstore.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.Store.Lease(ctx, worker, lease, tools, limit)
}

// Beat implements taskstore.Store.
func (l *link) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	if err := l.err(); err != nil {
		return taskstore.Heartbeat{}, err
	}
	return l.Store.Beat(ctx, worker, lease, held)
}

// Release implements taskstore.Store.
func (l *link) Release(ctx context.Context, worker string) error {
	if err := l.err(); err != nil {
		return err
	}
	return l.Store.Release(ctx, worker)
}

// inspectable is a link to a store that is an Inspector.
type inspectable struct {
	*link
	inspector taskstore.Inspector
}

// Scan implements taskstore.Inspector.
func (l inspectable) Scan(ctx context.Context, filter taskstore.Filter, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.Scan(ctx, filter, after, limit)
}

// CountUnfinished implements taskstore.Inspector.
func (l inspectable) CountUnfinished(ctx context.Context) ([]taskstore.Count, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.CountUnfinished(ctx)
}

// CountFailed implements taskstore.Inspector.
func (l inspectable) CountFailed(ctx context.Context, since time.Time) ([]taskstore.Count, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.CountFailed(ctx, since)
}

// ListSteps implements taskstore.Inspector.
func (l inspectable) ListSteps(ctx context.Context, id string) ([]taskstore.StepSummary, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.ListSteps(ctx, id)
}

// Workers implements taskstore.Inspector.
func (l inspectable) Workers(ctx context.Context) ([]taskstore.WorkerLease, error) {
	if err := l.err(); err != nil {
		return nil, err
	}
	return l.inspector.Workers(ctx)
}
