package durable

import (
	"maps"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// known caches the rows that the last transactions of this process have read and written, so that a transaction need
// not read them. It is true as long as no other transaction was committed since. Most of the time a process is alone,
// or the only one that writes at that moment; then the cache spares the read. It is not safe for concurrent use.
type known struct {
	last     Mark // the last transaction; zero if nothing is known
	accounts map[string]taskstore.Usage
	rows     map[string]*Row // of tasks that have not ended

	// reads is how many of the next transactions read, after one that did not and was refuted. pause
	// was its first value.
	pause, reads int
}

const (
	// mostKnown bounds the entries of a known.
	mostKnown = 20_000
	// longestPause is how many transactions read before one tries again not to.
	longestPause = 64
)

// state returns the rows that the keys name, or nil if they have to be read. A new record is taken to have a new ID and
// a new idempotency key: if not, storing it fails.
func (k *known) state(ops []*op, keys Keys) *State {
	if k.last == (Mark{}) {
		return nil
	}
	if k.reads > 0 {
		k.reads--
		return nil
	}
	s := NewState()
	for _, key := range keys.Accounts {
		usage, ok := k.accounts[key]
		if !ok {
			return nil
		}
		s.Accounts[key] = usage
	}
	created := map[string]bool{}
	for _, o := range ops {
		id := o.record.ID
		row, ok := k.rows[id]
		switch {
		case ok:
			copied := *row
			s.Rows[id] = &copied
		case o.kind == Insert:
			created[id] = true
		case !created[id]:
			return nil
		}
	}
	return s
}

// note takes note of a transaction, and of the one before it.
func (k *known) note(before, after Mark, s *State, p *Plan) {
	if k.last == (Mark{}) || k.last != before || len(k.accounts)+len(k.rows) > mostKnown {
		k.accounts, k.rows = map[string]taskstore.Usage{}, map[string]*Row{}
	}
	k.last = after
	maps.Copy(k.accounts, s.Accounts)
	for _, w := range p.Writes {
		if row := s.Rows[w.Record.ID]; row != nil && !row.Done {
			k.rows[w.Record.ID] = row
		} else {
			delete(k.rows, w.Record.ID)
		}
	}
}

// confirm notes that the cache was true.
func (k *known) confirm() { k.pause = 0 }

// refute notes that the cache was wrong, or lacked a row.
func (k *known) refute() {
	k.last = Mark{}
	k.pause = min(2*k.pause+1, longestPause)
	k.reads = k.pause
}
