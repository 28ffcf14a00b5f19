package durable

import (
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Columns are the values of a task's row that are stored in another form than the record has them.
type Columns struct {
	Phase, Outcome                      int64
	IsError                             bool
	Created, Updated, Terminal, Expires int64
	Terms                               []byte
	Inputs, Result                      []byte // nil if the row has none, or if they were not read
}

// Decode sets in a record what the columns have. The record has its ID, and shares the bytes.
func (c *Columns) Decode(r *mcptask.Record) error {
	r.CreatedAt, r.UpdatedAt, r.TerminalAt, r.ExpiresAt = Time(c.Created), Time(c.Updated), Time(c.Terminal), Time(c.Expires)
	var err error
	if r.Phase, err = PhaseOf(c.Phase); err != nil {
		return fmt.Errorf("task %q: %w", r.ID, err)
	}
	if r.Outcome, err = OutcomeOf(c.Outcome, c.IsError); err != nil {
		return fmt.Errorf("task %q: %w", r.ID, err)
	}
	if err := DecodeTerms(c.Terms, r); err != nil {
		return fmt.Errorf("the terms of task %q: %w", r.ID, err)
	}
	if c.Inputs != nil {
		if r.Inputs, err = DecodeInputs(c.Inputs); err != nil {
			return fmt.Errorf("the inputs of task %q: %w", r.ID, err)
		}
	}
	if c.Result != nil && r.Outcome != nil {
		if err := DecodeOutcome(c.Result, r.Outcome); err != nil {
			return fmt.Errorf("the outcome of task %q: %w", r.ID, err)
		}
	}
	return nil
}
