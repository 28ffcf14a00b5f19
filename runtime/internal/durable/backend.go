// Package durable has the parts that the stores in databases share: group commit, the encoding of records, a cache of
// the fields that never change, and migrations. All decisions about records are made here, in Go, so that they are the
// same in every database.
package durable

import (
	"context"
	"errors"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Backend is a database as a [Committer] uses it.
type Backend interface {
	// Transact runs one transaction. It reads the rows that the keys name, so that nobody else can change them before
	// the end, passes them to decide, writes the plan and commits. After the commit it tells the feed of the plan's
	// changes, in the order of the commits. A plan without writes needs no commit. Transact may call decide again, each
	// time with a new State. It returns the mark of the transaction before this one, and its own.
	//
	// An error means that nothing was written, unless it is InDoubt.
	Transact(ctx context.Context, keys Keys, decide func(*State) *Plan) (before, after Mark, err error)
	// Apply carries out a plan that was decided upon the known state after the last transaction. If there was another
	// one since, or if a record has one of the names, Apply writes nothing and returns ErrStale. It may do so for other
	// reasons too, and return any other error if something in the plan exists already.
	Apply(ctx context.Context, last Mark, names []Name, plan *Plan) (after Mark, err error)
	// Get returns a record as [taskstore.Store] describes.
	Get(ctx context.Context, id string) (taskstore.Record, error)
}

// ErrStale is the error of an Apply that must read.
var ErrStale = errors.New("mcptask: the database has changed meanwhile")

// Mark names a transaction that has written. No two transactions of a database have the same. The
// zero Mark names none.
type Mark struct{ Number, At int64 }

// Keys are the keys of the rows that a transaction reads. Each list is sorted and has no duplicates.
type Keys struct {
	// Accounts are the keys of the usages that may change.
	Accounts []string
	// IDs are those of the records that may be created, changed or removed.
	IDs []string
	// Names are the idempotency keys that must be new.
	Names []Name
}

// Name is an idempotency key with the principal and the tool that it belongs to.
type Name struct{ Principal, Tool, Key string }

// The keys of accounts. An account's own key is [AccountPrefix] and its name, that of an address [AddressPrefix] and
// the address.
const (
	AccountPrefix    = "a"
	AddressPrefix    = "d"
	AnonymousAccount = "n"
	ServerAccount    = "s"
)

// State has the rows that a transaction has read. A missing row has no entry.
type State struct {
	Accounts map[string]taskstore.Usage
	Rows     map[string]*Row // by ID
	Names    map[Name]string // the IDs
}

// NewState returns an empty State.
func NewState() *State {
	return &State{Accounts: map[string]taskstore.Usage{}, Rows: map[string]*Row{}, Names: map[Name]string{}}
}

// Row has the parts of a stored record that a decision needs.
type Row struct {
	// Seq is the record's number. No other record ever has it, whatever its ID. The Backend sets
	// it when it inserts the record.
	Seq int64
	// Version and Created are the record's version and creation time, see [Micros].
	Version, Created int64
	// Bytes is the stored Size of the record.
	Bytes int64
	// Done says that the task has ended.
	Done bool
	// Asked is the version that wrote the inputs, or 0 if there never were any.
	Asked int64
	// Mark is the record's mark, see [EncodeMark].
	Mark []byte
}

// usage returns the usage that the stored record adds to its accounts.
func (r *Row) usage() taskstore.Usage {
	u := taskstore.Usage{Stored: 1, Bytes: r.Bytes}
	if !r.Done {
		u.Unfinished = 1
	}
	return u
}

// Plan has the writes of a transaction.
type Plan struct {
	// Writes are to be carried out in this order. A record may have several.
	Writes []Write
	// Accounts are the new values of usages, sorted by key. One that is zero is to be deleted.
	Accounts []AccountUsage
	// Changes are for the feed.
	Changes []taskstore.Change

	isPartial bool // whether an op writes nothing
}

// AccountUsage is the usage of one account.
type AccountUsage struct {
	Key   string
	Usage taskstore.Usage
}

// Write is the write of one record.
type Write struct {
	Kind WriteKind
	// Record is the record to store, with its new version. To remove one, only its ID, its Principal and the fields
	// from the caller are set.
	Record *taskstore.Record
	// Row is the record's row after this write. All writes of one record share it.
	Row *Row
	// Parts says which columns an Update changes besides the row.
	Parts Parts
	// Steps are the steps that an Update stores, each in the place of the one with its name.
	Steps []taskstore.Step
}

// WriteKind says how a record is written.
type WriteKind int

// The kinds of writes.
const (
	// Insert stores a new record.
	Insert WriteKind = iota
	// Update stores the next version of a record.
	Update
	// Remove removes a record, and its tombstone if there is one.
	Remove
	// Bury removes an expired record and leaves a tombstone.
	Bury
)

// Parts are the parts of a record that an update changes. An update of none of them, or of Inputs
// alone, changes no column that an index has.
type Parts struct {
	// Inputs says that the inputs differ.
	Inputs bool
	// Outcome says that the record gets its outcome.
	Outcome bool
	// Moved says that the phase or the worker differs.
	Moved bool
	// Expiry says that the time of expiry differs.
	Expiry bool
}

// inDoubtError is the error of a commit that may have been carried out.
type inDoubtError struct{ error }

func (e inDoubtError) Unwrap() error { return e.error }

// InDoubt marks the error of a commit that may have been carried out, so that it is not tried
// again. nil stays nil.
func InDoubt(err error) error {
	if err == nil {
		return nil
	}
	return inDoubtError{err}
}

// isInDoubt reports whether InDoubt has marked the error.
func isInDoubt(err error) bool {
	var marked inDoubtError
	return errors.As(err, &marked)
}
