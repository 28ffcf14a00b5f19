package durable

import (
	"log/slog"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Found is a record as a query has found it.
type Found struct {
	// Seq and Asked are those of the record's [Row].
	Seq, Asked int64
	Record     taskstore.Record
	// Err is an ErrUnreadable if the record cannot be read. Then Record has its ID, its times, and the
	// parts that could be decoded.
	Err error
}

// Sieve keeps the records that can be read, and logs each of the others once. It is safe for concurrent
// use.
type Sieve struct {
	logger *slog.Logger

	mu     sync.Mutex
	logged map[int64]bool // by Row.Seq
}

// mostLogged bounds how many records a Sieve logs and remembers.
const mostLogged = 1000

// NewSieve makes a Sieve. A nil logger means slog.Default().
func NewSieve(logger *slog.Logger) *Sieve {
	if logger == nil {
		logger = slog.Default() //nolint:forbidigo // a record that is left out is never silent
	}
	return &Sieve{logger: logger, logged: map[int64]bool{}}
}

// Log logs a record that cannot be read, once.
func (s *Sieve) Log(f *Found) {
	s.mu.Lock()
	n, known := len(s.logged), s.logged[f.Seq]
	if !known && n < mostLogged {
		s.logged[f.Seq] = true
	}
	s.mu.Unlock()
	if known || n == mostLogged {
		return
	}
	s.logger.Error("stored task cannot be read, and is left out until it expires", "task", taskstore.LogID(f.Record.Principal, f.Record.ID),
		"tool", f.Record.Tool, "expires", f.Record.ExpiresAt, "error", f.Err)
	if n+1 == mostLogged {
		s.logger.Error("more stored tasks that cannot be read are not logged", "logged", mostLogged)
	}
}

// Keep returns the records that can be read.
func (s *Sieve) Keep(found []Found) []taskstore.Record {
	records := make([]taskstore.Record, 0, len(found))
	for i := range found {
		if f := &found[i]; f.Err != nil {
			s.Log(f)
		} else {
			records = append(records, f.Record)
		}
	}
	return records
}

// KeepAll returns all records. Those that cannot be read have the parts that could be decoded.
func (s *Sieve) KeepAll(found []Found) []taskstore.Record {
	records := make([]taskstore.Record, len(found))
	for i := range found {
		if found[i].Err != nil {
			s.Log(&found[i])
		}
		records[i] = found[i].Record
	}
	return records
}

// Page returns up to limit records that can be read. find returns up to limit records after a position,
// in the order of the page.
func (s *Sieve) Page(after taskstore.Position, limit int, find func(after taskstore.Position) ([]Found, error)) ([]taskstore.Record, error) {
	var page []taskstore.Record
	for {
		found, err := find(after)
		if err != nil {
			return nil, err
		}
		page = append(page, s.Keep(found)...)
		// A short page would say that the list ends.
		if len(found) < limit || len(page) >= limit {
			return page[:min(len(page), limit)], nil
		}
		last := found[len(found)-1].Record
		after = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
	}
}
