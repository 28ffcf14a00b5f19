package mcptask

import (
	"context"
	"errors"
	"time"
)

// The errors of a Store that cannot do as told. Test with errors.Is.
var (
	// ErrNoRecord says that there is no record with that ID.
	ErrNoRecord = errors.New("mcptask: no such record")
	// ErrExists says that there is a record with that ID, or with that principal, tool
	// and idempotency key, already.
	ErrExists = errors.New("mcptask: the record exists")
	// ErrConflict says that the record's version is no longer the given one.
	ErrConflict = errors.New("mcptask: the record has changed meanwhile")
	// ErrQuotaStored says that there are as many records as the quota allows, see
	// [QuotaError].
	ErrQuotaStored = errors.New("mcptask: too many tasks")
	// ErrQuotaUnfinished says that there are as many unfinished records as the quota
	// allows.
	ErrQuotaUnfinished = errors.New("mcptask: too many unfinished tasks")
	// ErrQuotaBytes says that the records would have more bytes than the quota allows.
	ErrQuotaBytes = errors.New("mcptask: too many bytes of tasks")
)

// Position is a place in a principal's list, after the record with this creation
// time and ID. The zero Position is the start of the list.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// Store keeps the records of tasks. All methods are safe for concurrent use, in one
// process and, for stores that several processes share, across them.
//
// A record is never partly written, and is copied as [Record] says. It comes back as
// it was stored. Strings and bytes keep every byte, whatever they contain. Times are
// the same instant, to the microsecond. nil and zero values stay so, but an empty
// slice may become nil.
//
// A Store may refuse a call whose context has ended, with the context's error. A call
// that fails with any other error than those above may have been carried out. Package
// storetest tests all of it.
type Store interface {
	// Create stores a new record as Version 1 and returns it. If the record has an
	// IdempotencyKey, and its principal and tool have a record with that key, Create
	// returns that record and ErrExists. If only the ID is taken, Create returns
	// ErrExists with Version 0. If the record would exceed the quota, Create returns a
	// *QuotaError. The quota holds however many records are created at once (C-96).
	Create(ctx context.Context, r Record, quota Quota) (Record, error)
	// Get returns the record, or ErrNoRecord.
	Get(ctx context.Context, id string) (Record, error)
	// Update replaces the record whose Version is r.Version, stores it as the next
	// version and returns it. It returns ErrConflict if the version is another one, and
	// ErrNoRecord if the record is gone. If the Worker stays the same, the stored lease
	// stays too: an Update does not undo a Renew that it did not see. Principal,
	// Account, Tool, IdempotencyKey and CreatedAt stay, whatever r says. If the record
	// grows and its bytes would exceed the quota, Update changes nothing and returns a
	// *QuotaError. It ignores the quota's other bounds.
	Update(ctx context.Context, r Record, quota Quota) (Record, error)
	// List returns up to limit records of a principal after the position: oldest
	// first, and those of the same time by the bytes of their IDs. Its cost depends on
	// limit, not on the store's size.
	List(ctx context.Context, principal string, after Position, limit int) ([]Record, error)
	// Delete removes the record with r's ID if its Version and CreatedAt are r's. If
	// one of them differs, it returns ErrConflict, since a new record may have got the
	// same ID meanwhile. If there is no record, it returns ErrNoRecord. It ignores the
	// rest of r.
	Delete(ctx context.Context, r Record) error
	// Expire removes up to limit records whose ExpiresAt is not after now and
	// returns them, in any order. A limit of 0 returns no records. The same holds for
	// Lease and List.
	Expire(ctx context.Context, now time.Time, limit int) ([]Record, error)
	// Wait returns the record as soon as its version exceeds the given one, which may
	// be at once. It returns ErrNoRecord if the record is gone, or when it is deleted.
	// It never misses a change between two calls.
	Wait(ctx context.Context, id string, version int64) (Record, error)
	// Lease gives up to limit unfinished records, in any order, to the worker until the
	// given time. It takes records whose lease ended before now, of other workers or of
	// no worker (""). Each gets a new version, so that the former worker's updates
	// conflict.
	Lease(ctx context.Context, worker string, now, until time.Time, limit int) ([]Record, error)
	// Renew extends the leases of all unfinished records of the worker. Neither Renew
	// nor Release makes a new version.
	Renew(ctx context.Context, worker string, until time.Time) error
	// Release ends every lease of the worker at once.
	Release(ctx context.Context, worker string) error
	// Close frees the store's resources. From then on Wait returns ErrServerClosed, also
	// a Wait under way. Create fails, and other calls may fail. A second Close does
	// nothing.
	Close() error
}
