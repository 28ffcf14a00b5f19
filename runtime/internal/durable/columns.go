package durable

import (
	"fmt"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Columns are the values of a task's row that are stored in another form than the record has them.
type Columns struct {
	Phase, Outcome                      int64
	IsError                             bool
	Created, Updated, Terminal, Expires int64
	Terms, Mark                         []byte
	Inputs, Result                      []byte // nil if the row has none, or if they were not read
}

// Decode sets the fields of a record from the columns. The record shares the bytes. If Decode returns an ErrUnreadable,
// it has set the times at least.
func (c *Columns) Decode(r *taskstore.Record) error {
	r.CreatedAt, r.UpdatedAt, r.TerminalAt, r.ExpiresAt = Time(c.Created), Time(c.Updated), Time(c.Terminal), Time(c.Expires)
	for _, t := range []time.Time{r.CreatedAt, r.UpdatedAt, r.TerminalAt, r.ExpiresAt} {
		if !isInJSON(t) {
			return newUnreadable("its times", errCorrupt)
		}
	}
	var err error
	if r.Phase, err = PhaseOf(c.Phase); err != nil {
		return newUnreadable("its phase", err)
	}
	if r.Outcome, err = OutcomeOf(c.Outcome, c.IsError); err != nil {
		return newUnreadable("its outcome", err)
	}
	if r.Done() && r.Outcome == nil {
		return newUnreadable("its outcome", errCorrupt)
	}
	if err := DecodeTerms(c.Terms, r); err != nil {
		return newUnreadable("its terms", err)
	}
	if err := DecodeMark(c.Mark, r); err != nil {
		return newUnreadable("its mark", err)
	}
	if c.Inputs != nil {
		if r.Inputs, err = DecodeInputs(c.Inputs); err != nil {
			return newUnreadable("its questions", err)
		}
	}
	if c.Result != nil && r.Outcome != nil {
		if err := DecodeOutcome(c.Result, r.Outcome); err != nil {
			return newUnreadable("its outcome", err)
		}
	}
	return nil
}

// isInJSON reports whether a time has a form in JSON. A list with another one would fail.
func isInJSON(t time.Time) bool { return t.Year() >= 0 && t.Year() <= 9999 }

// newUnreadable makes the error of a record with a part that cannot be decoded.
func newUnreadable(part string, err error) error {
	return fmt.Errorf("%w: %s: %w", taskstore.ErrUnreadable, part, err)
}
