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
	// ErrQuotaStored says that there are as many records as may be, see [QuotaError].
	ErrQuotaStored = errors.New("mcptask: too many tasks")
	// ErrQuotaUnfinished says that as many of them are unfinished as may be.
	ErrQuotaUnfinished = errors.New("mcptask: too many unfinished tasks")
	// ErrQuotaBytes says that they would have more bytes than they may.
	ErrQuotaBytes = errors.New("mcptask: too many bytes of tasks")
)

// Position is a place in a principal's list: after the record with this
// creation time and ID. The zero Position is the start.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// Store keeps the records of tasks. All methods are safe for concurrent use,
// in one process and, for stores that several share, across processes. A
// record is never partly written, and is copied as [Record] says. It comes
// back as it was stored: strings and bytes byte for byte, whatever they
// hold; times as the same instant, to the microsecond; what is nil or zero as
// such, while an empty slice may become nil. A call whose context had ended
// before may be refused with the context's error; one that fails otherwise, with
// none of the errors above, may have been carried out. Package storetest tests
// all of it.
type Store interface {
	// Create stores a new record as Version 1 and returns it. If the record has an
	// IdempotencyKey, and its principal and tool have a record with that key, Create
	// returns that one and ErrExists. If only its ID is taken, it returns ErrExists
	// with Version 0. Else, if the record goes beyond the quota, it returns a
	// *QuotaError. The quota holds however many records are created at once (C-96).
	Create(ctx context.Context, r Record, quota Quota) (Record, error)
	// Get returns the record, or ErrNoRecord.
	Get(ctx context.Context, id string) (Record, error)
	// Update replaces the record whose Version is r.Version, stores it as the
	// next version and returns it; ErrConflict if the version is another one,
	// ErrNoRecord if it is gone. The lease is the store's where the Worker stays
	// the same: an Update does not undo a Renew that it did not see. Principal,
	// Account, Tool, IdempotencyKey and CreatedAt stay, whatever r says. If the record
	// grows, and its bytes go beyond the quota, Update changes nothing and returns a
	// *QuotaError. The quota's other bounds do not matter here.
	Update(ctx context.Context, r Record, quota Quota) (Record, error)
	// List returns up to limit records of a principal that stand after the
	// position, oldest first, those of one time by ID, byte by byte. Its cost
	// depends on limit, not on the store's size.
	List(ctx context.Context, principal string, after Position, limit int) ([]Record, error)
	// Delete removes the record with r's ID if its Version and CreatedAt are r's;
	// ErrConflict if one of them is another, since a name may have been given to a
	// new record meanwhile; ErrNoRecord if there is no record. The rest of r does
	// not matter.
	Delete(ctx context.Context, r Record) error
	// Expire removes up to limit records whose ExpiresAt is not after now and
	// returns them, in any order. A limit of 0 returns no records. The same holds for
	// Lease and List.
	Expire(ctx context.Context, now time.Time, limit int) ([]Record, error)
	// Wait returns the record as soon as its version exceeds the given one, at
	// once if it does already; ErrNoRecord when it is gone or goes. A change
	// between two calls is never missed.
	Wait(ctx context.Context, id string, version int64) (Record, error)
	// Lease hands up to limit unfinished records, in any order, of other workers or
	// of none ("") whose lease ended before now to the worker until the given time.
	// Each gets a new version: the former worker's updates conflict.
	Lease(ctx context.Context, worker string, now, until time.Time, limit int) ([]Record, error)
	// Renew prolongs the leases of all unfinished records of the worker. Neither
	// it nor Release makes a new version.
	Renew(ctx context.Context, worker string, until time.Time) error
	// Release ends every lease of the worker at once.
	Release(ctx context.Context, worker string) error
	// Close frees what the store holds. From then on Wait, also one under way, returns
	// ErrServerClosed, and Create fails; others may. A second Close does nothing.
	Close() error
}
