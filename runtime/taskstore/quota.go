package taskstore

import (
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Scope says whose tasks, calls or requests count together against a bound.
type Scope string

// The scopes, from the narrowest to the widest.
const (
	// ScopeAccount is one account, see taskserver.Caller.Account.
	ScopeAccount Scope = "account"
	// ScopeAddress is all anonymous callers of one network address, see taskserver.Caller.Address.
	ScopeAddress Scope = "address"
	// ScopeAnonymous is all anonymous callers, whatever sessions they have.
	ScopeAnonymous Scope = "anonymous"
	// ScopeServer is all callers. In a store it is all records, of every process.
	ScopeServer Scope = "server"
)

// Usage counts the records of a scope: all of them, those that have not ended, and
// their bytes (see [Record.Size]). In a bound, 0 means no limit.
type Usage struct {
	Stored, Unfinished int
	Bytes              int64
}

// Quota has a Usage for each scope that a record counts in: the record's account, all
// records of its [Record.Address] if it has one, all records without a principal, and all
// records. A Store keeps one as the tally of its
// records, and gets another one with the bounds.
type Quota struct{ Account, Address, Anonymous, Server Usage }

// QuotaError says which bound a record would exceed. Test Err with errors.Is.
type QuotaError struct {
	Scope Scope
	// Err is ErrQuotaStored, ErrQuotaUnfinished or ErrQuotaBytes.
	Err error
}

// Error implements error.
func (e *QuotaError) Error() string { return e.Err.Error() + " of the " + string(e.Scope) }

// Unwrap returns Err.
func (e *QuotaError) Unwrap() error { return e.Err }

// Check returns a *QuotaError if a record would exceed the quota, and nil if there is room. tally has the usage of the
// record's scopes now, and more is the usage that the record would add. If several bounds are exceeded, the error names
// the narrowest scope, and in it Stored before Unfinished before Bytes. Check never refuses a usage that does not grow.
// Stores call Check in the step that writes the record.
func (q Quota) Check(r *Record, tally Quota, more Usage) error {
	for _, s := range [...]struct {
		scope       Scope
		has, bounds Usage
	}{
		{ScopeAccount, tally.Account, q.Account},
		{ScopeAddress, tally.Address, q.Address},
		{ScopeAnonymous, tally.Anonymous, q.Anonymous},
		{ScopeServer, tally.Server, q.Server},
	} {
		if s.scope == ScopeAnonymous && r.Principal != "" || s.scope == ScopeAddress && r.Address() == "" {
			continue
		}
		switch {
		case more.Stored > 0 && s.bounds.Stored > 0 && s.has.Stored+more.Stored > s.bounds.Stored:
			return &QuotaError{s.scope, ErrQuotaStored}
		case more.Unfinished > 0 && s.bounds.Unfinished > 0 && s.has.Unfinished+more.Unfinished > s.bounds.Unfinished:
			return &QuotaError{s.scope, ErrQuotaUnfinished}
		case more.Bytes > 0 && s.bounds.Bytes > 0 && s.has.Bytes+more.Bytes > s.bounds.Bytes:
			return &QuotaError{s.scope, ErrQuotaBytes}
		}
	}
	return nil
}

// Usage returns the usage that the record adds to its scopes.
func (r *Record) Usage() Usage {
	u := Usage{Stored: 1, Bytes: r.Size()}
	if !r.Done() {
		u.Unfinished = 1
	}
	return u
}

// messageBlock is the unit in which the bytes of a status message count. So most reports
// change no size, and a store need not count them.
const messageBlock = 256

// Size returns how many bytes count for the record: those of all fields whose length
// a requestor or a handler decides. It leaves the worker out, so that a lease changes
// no size.
func (r *Record) Size() int64 {
	n := len(r.ID) + len(r.Principal) + len(r.Account) + len(r.Tool) + len(r.Arguments) + len(r.Revision) +
		len(r.IdempotencyKey) + len(r.ExternalID) + len(r.Trace) +
		(len(r.StatusMessage)+messageBlock-1)/messageBlock*messageBlock
	for _, method := range r.CanAsk {
		n += len(method)
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		n += len(in.Key) + len(in.Method) + len(in.Params) + len(in.Schema) + len(in.Response) + errorSize(in.Error)
	}
	if r.Outcome != nil {
		n += r.Outcome.Size()
	}
	return int64(n) + r.StepBytes
}

// Size returns how many bytes of the outcome count, in [Record.Size].
func (o *Outcome) Size() int { return len(o.Result) + errorSize(o.Error) }

// errorSize returns how many bytes a stored error has; nil has none.
func errorSize(e *mcptask.Error) int {
	if e == nil {
		return 0
	}
	return len(e.Message) + len(e.Data)
}
