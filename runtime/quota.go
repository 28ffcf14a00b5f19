package mcptask

// Scope says whose tasks, calls or requests a bound counts together.
type Scope string

// The scopes, from the narrowest to the widest.
const (
	// ScopeAccount is one account, see [Caller.Account].
	ScopeAccount Scope = "account"
	// ScopeAnonymous is all anonymous callers, whatever sessions they have.
	ScopeAnonymous Scope = "anonymous"
	// ScopeServer is everybody. In a store it is all records, of every process.
	ScopeServer Scope = "server"
)

// Usage is what the records of a scope take: how many there are, how many of them
// have not ended, and their bytes, see [Record.Size]. As a bound 0 means no limit.
type Usage struct {
	Stored, Unfinished int
	Bytes              int64
}

// Quota has a Usage for each scope that a record counts in: those of its account, of
// all records without a principal, and of all records. A Store keeps one as a tally
// of what is there, and gets one that says how much may be.
type Quota struct{ Account, Anonymous, Server Usage }

// QuotaError says which bound a record would go beyond. Test Err with errors.Is.
type QuotaError struct {
	Scope Scope
	// Err is ErrQuotaStored, ErrQuotaUnfinished or ErrQuotaBytes.
	Err error
}

// Error implements error.
func (e *QuotaError) Error() string { return e.Err.Error() + " of the " + string(e.Scope) }

// Unwrap returns what there is too much of.
func (e *QuotaError) Unwrap() error { return e.Err }

// Check returns the *QuotaError for a record whose scopes have the tally, and would
// take more; nil if there is room. If several bounds are in the way, the narrowest
// scope's counts, and in it Stored before Unfinished before Bytes. What does not
// grow is never refused. Stores call Check in the step that writes the record.
func (q Quota) Check(r *Record, tally Quota, more Usage) error {
	for _, s := range [...]struct {
		scope       Scope
		has, bounds Usage
	}{
		{ScopeAccount, tally.Account, q.Account},
		{ScopeAnonymous, tally.Anonymous, q.Anonymous},
		{ScopeServer, tally.Server, q.Server},
	} {
		if s.scope == ScopeAnonymous && r.Principal != "" {
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

// Usage is what the record adds to its scopes.
func (r *Record) Usage() Usage {
	u := Usage{Stored: 1, Bytes: r.Size()}
	if !r.Done() {
		u.Unfinished = 1
	}
	return u
}

// Size is how many bytes count for the record: those of all that a requestor or a
// handler decides the length of. The worker is left out, so that a lease changes no size.
func (r *Record) Size() int64 {
	n := len(r.ID) + len(r.Principal) + len(r.Account) + len(r.Tool) + len(r.Arguments) + len(r.Revision) +
		len(r.IdempotencyKey) + len(r.ExternalID) + len(r.StatusMessage)
	for _, method := range r.CanAsk {
		n += len(method)
	}
	for i := range r.Inputs {
		in := &r.Inputs[i]
		n += len(in.Key) + len(in.Method) + len(in.Params) + len(in.Schema) + len(in.Response) + in.Error.byteSize()
	}
	if r.Outcome != nil {
		n += len(r.Outcome.Result) + r.Outcome.Error.byteSize()
	}
	return int64(n)
}

// size is how many bytes an error has that is stored; nil has none.
func (e *Error) byteSize() int {
	if e == nil {
		return 0
	}
	return len(e.Message) + len(e.Data)
}
