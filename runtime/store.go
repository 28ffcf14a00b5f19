package mcptask

import (
	"context"
	"errors"
	"time"
)

// What a Store answers when it cannot do as told. Test with errors.Is.
var (
	// ErrNoRecord says that there is no record with that ID.
	ErrNoRecord = errors.New("mcptask: no such record")
	// ErrExists says that a record with that ID, or with that principal, tool
	// and idempotency key, is there already.
	ErrExists = errors.New("mcptask: the record exists")
	// ErrConflict says that the record's version is no longer the given one.
	ErrConflict = errors.New("mcptask: the record has changed meanwhile")
)

// Position is a place in a principal's list: after the record with this
// creation time and ID. The zero Position is the start.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// Store keeps the records of tasks. All methods are safe for concurrent use,
// in one process and, for stores that several share, across processes. A
// record is never partly written, and a record handed out is the caller's.
type Store interface {
	// Create stores a new record as Version 1 and returns it. Where the record
	// has an IdempotencyKey and its principal and tool have a record with that
	// key, that one is returned together with ErrExists.
	Create(ctx context.Context, r Record) (Record, error)
	// Get returns the record, or ErrNoRecord.
	Get(ctx context.Context, id string) (Record, error)
	// Update replaces the record whose Version is r.Version, stores it as the
	// next version and returns it; ErrConflict if the version is another one,
	// ErrNoRecord if it is gone. The lease is the store's where the Worker stays
	// the same: an Update does not undo a Renew that it did not see. ID, Principal,
	// Tool, IdempotencyKey and CreatedAt never change.
	Update(ctx context.Context, r Record) (Record, error)
	// List returns up to limit records of a principal that stand after the
	// position, oldest first. Its cost depends on limit, not on the store's size.
	List(ctx context.Context, principal string, after Position, limit int) ([]Record, error)
	// Delete removes the record; ErrNoRecord if it is not there.
	Delete(ctx context.Context, id string) error
	// Expire removes up to limit records whose ExpiresAt is not after now and
	// returns them.
	Expire(ctx context.Context, now time.Time, limit int) ([]Record, error)
	// Wait returns the record as soon as its version exceeds the given one, at
	// once if it does already; ErrNoRecord when it is gone or goes. A change
	// between two calls is never missed.
	Wait(ctx context.Context, id string, version int64) (Record, error)
	// Lease hands up to limit unfinished records of other workers whose lease
	// ended before now to the worker until the given time. Each gets a new version, so that the
	// former worker's updates conflict.
	Lease(ctx context.Context, worker string, now, until time.Time, limit int) ([]Record, error)
	// Renew prolongs every lease that the worker holds.
	Renew(ctx context.Context, worker string, until time.Time) error
	// Release ends every lease of the worker at once.
	Release(ctx context.Context, worker string) error
	// Close frees what the store holds; waiting calls return ErrServerClosed.
	Close() error
}
