package taskstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"
)

// The errors that the methods of a Store return. Test with errors.Is.
var (
	// ErrNoRecord says that there is no record with that ID.
	ErrNoRecord = errors.New("mcptask: no such record")
	// ErrRecordExpired says that there was a record with that ID, and that it has expired. It
	// is an ErrNoRecord too.
	ErrRecordExpired = expiredRecordError{}
	// ErrUnreadable says that there is a record with that ID, and that the store cannot read it: it
	// is damaged, or a newer version of the program has written it.
	ErrUnreadable = errors.New("mcptask: the record cannot be read")
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

// expiredRecordError is the type of ErrRecordExpired.
type expiredRecordError struct{}

// Error implements error.
func (expiredRecordError) Error() string { return "mcptask: the record has expired" }

// Is makes an expired record one that does not exist.
func (expiredRecordError) Is(target error) bool { return target == ErrNoRecord }

// Position is a place in a principal's list, after the record with this creation
// time and ID. The zero Position is the start of the list.
type Position struct {
	CreatedAt time.Time
	ID        string
}

// TombstoneFor is how long a Store remembers the ID and the principal of a record that
// has expired.
const TombstoneFor = time.Hour

// LastingLease is the shortest lease that outlasts the processes that beat it, such as that of a workflow engine. A
// shorter lease is that of one process: a [Store] that sees this process die may end it at once, as Release does. It may
// then also end the leases of workers that have the same name, followed by a slash and more: they are of the same process.
const LastingLease = time.Hour

// Store keeps the records of tasks. All methods are safe for concurrent use, in one
// process and, for stores that several processes share, across them.
//
// A record is never partly written, and is copied as [Record] says. It comes back as
// it was stored. Strings and bytes keep every byte, whatever they contain. Times are
// the same instant, to the microsecond. nil and zero values stay so, but an empty
// slice may become nil.
//
// A record that the store cannot read does not hold up the others. Get returns ErrUnreadable for it, and so does a
// Create with its idempotency key. List, Lease, and the methods of an Inspector leave it out, and the store logs it.
// Once the record has expired, Expire removes it and returns as much of it as the store can read.
//
// A store has one clock, which all processes share, such as that of its database. Leases and
// expiry follow it, so that the clocks of processes may differ.
//
// A Store may refuse a call whose context has ended, with the context's error. A call
// that fails with any other error than those above may have been carried out. Its caller may make the
// same call again: Create and Update know a record that they have stored by its Nonce. They change
// nothing then, and return the record. A record without a Nonce has no such protection. Package
// storetest tests all of it. A store may also be an [Inspector]. One that survives its process should be a
// [SessionStore] too. A type that embeds a Store hides both: it has to forward their methods.
type Store interface {
	// Create stores a new record as Version 1 and returns it. If the record has an IdempotencyKey, and its principal
	// and tool have a record with that key, Create returns that record and ErrExists. If only the ID is taken, Create
	// returns ErrExists with Version 0. If the record would exceed the quota, Create returns a *QuotaError. The quota
	// holds however many records are created at once. A Create again, with the same ID and Nonce, returns the record
	// and no error, as long as the record has Version 1.
	Create(ctx context.Context, r Record, quota Quota) (Record, error)
	// Get returns the record, or ErrNoRecord. Until TombstoneFor after the record has expired
	// and Expire has removed it, Get returns ErrRecordExpired, and a Record that has nothing but
	// its ID and its Principal. With ErrUnreadable it returns such a Record too.
	Get(ctx context.Context, id string) (Record, error)
	// Update replaces the record from, as the store has returned it, by to, stores that as the
	// next version and returns it. It returns ErrConflict if the stored version is not
	// from.Version or has another Nonce, and ErrNoRecord if the record is gone. The caller changes nothing that is
	// fixed at the creation nor an Outcome: a store need not write them again, and returns them as they were;
	// see [Record.KeepFixed]. If the record grows and its bytes would exceed the quota,
	// Update changes nothing and returns a *QuotaError. It ignores the quota's other bounds. An Update
	// again, from the same version and with the same Nonce, returns the record and no error, as long as
	// no other write has followed. In the same transaction, Update stores the steps. A step replaces the one of the task
	// that has its name.
	Update(ctx context.Context, from, to Record, quota Quota, steps ...Step) (Record, error)
	// Steps returns all steps of a task, oldest first, and those of the same time by name. It returns ErrNoRecord if
	// there is no record. The steps of a task are deleted with it.
	Steps(ctx context.Context, id string) ([]Step, error)
	// List returns up to limit records of a principal after the position: oldest
	// first, and those of the same time by the bytes of their IDs. Their Arguments, Inputs, and
	// results may be missing. Its cost depends on limit, not on the store's size.
	List(ctx context.Context, principal string, after Position, limit int) ([]Record, error)
	// Delete removes the record with r's ID if its Version and CreatedAt are r's. If
	// one of them differs, it returns ErrConflict, since a new record may have got the
	// same ID meanwhile. If there is no record, it returns ErrNoRecord. r is as the store has
	// returned it.
	Delete(ctx context.Context, r Record) error
	// Expire removes up to limit records whose ExpiresAt is not after the store's time and
	// returns them, in any order. Each record is returned to one caller. Their Arguments,
	// Inputs, and results may be missing. A limit of 0 returns no records. The same holds for
	// Lease and List.
	Expire(ctx context.Context, limit int) ([]Record, error)
	// Changes returns the feed of changes, by this process and all others. The first Change
	// has Missed set; from then on the feed has each new version, deletion and expiry of a
	// record, in the order of its versions. A reader that is too slow, or a connection that was
	// cut, costs changes: then the feed has a Change with Missed set instead of them. An error
	// ends the feed. It also ends when ctx ends or the store is closed, without an error.
	Changes(ctx context.Context) iter.Seq2[Change, error]
	// Waiting returns up to limit tasks that wait: the unfinished records of the tools without a worker (""). It takes
	// none of them: a worker does so with an Update. The tasks come in turns: first the oldest of each account, then the
	// second of each, and so on. In each turn come first the accounts behind the given one, in the order of their
	// bytes, and then the others. Tasks of the same time come by the bytes of their IDs. A record that the store cannot
	// read may be among them. The cost depends on limit and on the tools, not on how many tasks wait.
	Waiting(ctx context.Context, tools []string, after string, limit int) ([]Waiting, error)
	// Lease gives up to limit unfinished records, in any order, to the worker, and lets its lease end after the given
	// time at the earliest. It takes records of other workers whose lease has ended or was never begun. It takes only
	// records of the tools. Each gets a new version, so that the former worker's updates conflict. Lease changes only
	// the Version and the Worker of the Claim. If there are no records, Lease need not begin the worker's lease.
	Lease(ctx context.Context, worker string, lease time.Duration, tools []string, limit int) ([]Record, error)
	// Beat begins the worker's lease or renews it: from then on the lease lasts for the given
	// time. It covers all unfinished records that the worker claims, later ones included, and gives
	// them no new version. Beat returns the store's time, and those of the held IDs whose records
	// are no longer unfinished records of the worker. See [LastingLease] for leases that may end early.
	Beat(ctx context.Context, worker string, lease time.Duration, held []string) (Heartbeat, error)
	// Release ends the worker's lease at once. If the worker has unfinished records, the feed has
	// a Change with Free set.
	Release(ctx context.Context, worker string) error
	// Close frees the store's resources. From then on Create fails, and other calls may fail. A
	// second Close does nothing.
	Close() error
}

// Heartbeat is the answer of a store to [Store.Beat].
type Heartbeat struct {
	// Now is the store's time.
	Now time.Time
	// Lost are the IDs of records that the worker has lost.
	Lost []string
}

// Change is one piece of news in the feed of a store. [Record.Change] makes that of a version.
type Change struct {
	// ID is the changed record. It is "" if the news is of no record.
	ID string
	// Version is the record's version; 0 says that the record is gone.
	Version int64
	// Phase is the record's phase in that version.
	Phase Phase
	// Missed says that any record may have changed before this.
	Missed bool
	// Free says that there may be records for Waiting, or, if the news is of no record, for Lease.
	Free bool
}

// Inspector is a view of a store across principals, for its operator. A Store may
// implement it. Its methods are safe for concurrent use.
type Inspector interface {
	// Scan returns up to limit records that the filter admits, in the order of their creation:
	// newest first, unless the filter says otherwise. It begins after the position; the zero
	// position is the start. Their Arguments, Inputs, and results may be missing. A filter that
	// admits few of many records may take long, and ctx ends it.
	Scan(ctx context.Context, filter Filter, after Position, limit int) ([]Record, error)
	// CountUnfinished counts the unfinished records by tool, phase and worker, in any order.
	CountUnfinished(ctx context.Context) ([]Count, error)
	// CountFailed counts by tool, in any order, the records that have failed, see [Record.Failed], and whose TerminalAt is
	// not before since. It counts MaxCountFailed records and no more. So its cost depends neither on the store's size nor
	// on how many have failed. The counts have the phase PhaseDone.
	CountFailed(ctx context.Context, since time.Time) ([]Count, error)
	// Workers returns the leases, and how many unfinished records each worker has, in any order.
	// A lease that has ended may be missing. The unfinished records of workers without a lease, and of no worker,
	// are counted for the worker "".
	Workers(ctx context.Context) ([]WorkerLease, error)
	// ListSteps returns the steps of a task without their values, in any order. It returns ErrNoRecord if there is no
	// record.
	ListSteps(ctx context.Context, id string) ([]StepSummary, error)
}

// MaxCountFailed is how many records [Inspector.CountFailed] counts at most, all tools together.
const MaxCountFailed = 1000

// MinSessionKey is how many bytes a session key has at least.
const MinSessionKey = 32

// SessionStore is a [Store] that lets a session of 2025-11-25 outlive the process that has opened it, so that every
// process with the store serves every session. Its methods are safe for concurrent use.
type SessionStore interface {
	Store
	// SessionKey returns the secret that signs session IDs, of at least [MinSessionKey] random
	// bytes. The first call makes it. From then on each call of each process returns the same one.
	SessionKey(ctx context.Context) ([]byte, error)
	// EndSession remembers that a principal has ended a session, until the given time by the
	// store's clock or longer. If it already remembers most sessions of the principal, it
	// remembers nothing and returns false. Concurrent calls may remember a few more than most.
	EndSession(ctx context.Context, principal, session string, until time.Time, most int) (bool, error)
	// HasEnded reports whether EndSession remembers a session of a principal.
	HasEnded(ctx context.Context, principal, session string) (bool, error)
}

// Filter admits the records of an [Inspector.Scan]. A zero field admits all.
type Filter struct {
	Principal, Tool, Worker string
	// Workers admits the records of these workers, and NotWorkers those of all others. The worker of a record that no
	// worker has is "". A list that is empty and not nil has no worker.
	Workers, NotWorkers []string
	Phase               Phase
	// Waiting admits the records that wait for a worker, see [Record.Waits].
	Waiting bool
	Outcome OutcomeKind
	// IsError admits the records whose outcome has this IsError: true those whose result is an error of the tool.
	IsError *bool
	// Failed admits the records that have failed, see [Record.Failed].
	Failed bool
	// Unfinished admits the records that have no outcome.
	Unfinished bool
	// IDPrefix admits the records whose ID begins with it.
	IDPrefix string
	// Message admits the records whose StatusMessage contains it, byte by byte.
	Message string
	// CreatedFrom and CreatedUntil admit the records that were created in this time, both ends included.
	CreatedFrom, CreatedUntil time.Time
	// EndedFrom admits the records that have an outcome, and whose TerminalAt is not before it.
	EndedFrom time.Time
	// OldestFirst turns the order around. It admits all.
	OldestFirst bool
}

// Admits reports whether the filter admits a record.
func (f Filter) Admits(r *Record) bool {
	return (f.Principal == "" || f.Principal == r.Principal) && (f.Tool == "" || f.Tool == r.Tool) &&
		(f.Worker == "" || f.Worker == r.Claim.Worker) && (f.Workers == nil || slices.Contains(f.Workers, r.Claim.Worker)) &&
		!slices.Contains(f.NotWorkers, r.Claim.Worker) && (f.Phase == "" || f.Phase == r.Phase) && (!f.Waiting || r.Waits()) &&
		(f.Outcome == "" || r.Outcome != nil && f.Outcome == r.Outcome.Kind) &&
		(f.IsError == nil || r.Outcome != nil && *f.IsError == r.Outcome.IsError) && (!f.Failed || r.Failed()) && !(f.Unfinished && r.Done()) &&
		strings.HasPrefix(r.ID, f.IDPrefix) && strings.Contains(r.StatusMessage, f.Message) && (f.CreatedFrom.IsZero() || !r.CreatedAt.Before(f.CreatedFrom)) &&
		(f.CreatedUntil.IsZero() || !r.CreatedAt.After(f.CreatedUntil)) &&
		(f.EndedFrom.IsZero() || r.Outcome != nil && !r.TerminalAt.Before(f.EndedFrom))
}

// WorkerLease is the lease of a worker.
type WorkerLease struct {
	Worker string
	// Until is when the lease ends, by the store's clock. It is zero for the worker "".
	Until time.Time
	// Unfinished is how many unfinished records the worker has.
	Unfinished int
}

// Count is how many records a tool has in a phase, at a worker.
type Count struct {
	Tool  string
	Phase Phase
	// Worker is that of unfinished records. "" means that no worker has them.
	Worker string
	Count  int
}
