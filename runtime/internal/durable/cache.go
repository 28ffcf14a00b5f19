package durable

import (
	"container/list"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Cache keeps what rarely or never changes of records that were read or written lately, so that a
// poll need not read arguments and results again. The number of bytes is bounded. It is safe for
// concurrent use.
type Cache struct {
	most int64

	mu      sync.Mutex
	size    int64
	entries map[int64]*list.Element // by Row.Seq, of *cached
	order   list.List               // the last used first
}

// cached is the arguments, the inputs and the outcome of a record. Its ID and CreatedAt are there too: a
// database that has lost its last commits, or was restored, may give another record the same seq.
type cached struct {
	seq, asked int64
	record     mcptask.Record // a copy, as copyRecord makes it
	size       int64
}

// NewCache makes a Cache of up to about most bytes.
func NewCache(most int64) *Cache { return &Cache{most: most, entries: map[int64]*list.Element{}} }

// Fill sets the arguments, the inputs and the outcome's content of a record that was read without
// them. It reports whether it has all of them. asked is that of the record's row.
func (c *Cache) Fill(seq, asked int64, r *mcptask.Record) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[seq]
	if !ok {
		return false
	}
	known := e.Value.(*cached)
	if known.asked != asked || known.record.ID != r.ID || !known.record.CreatedAt.Equal(r.CreatedAt) || r.Outcome != nil && known.record.Outcome == nil {
		return false
	}
	c.order.MoveToFront(e)
	from := copyRecord(&known.record)
	r.Arguments, r.Inputs = from.Arguments, from.Inputs
	if r.Outcome != nil {
		r.Outcome = from.Outcome
	}
	return true
}

// Keep keeps a whole record that was read.
func (c *Cache) Keep(seq, asked int64, r *mcptask.Record) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.keep(seq, asked, r)
}

// Note takes note of what was committed.
func (c *Cache) Note(writes []Write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range writes {
		w := &writes[i]
		e, ok := c.entries[w.Row.Seq]
		switch {
		case w.Kind == Insert:
			c.keep(w.Row.Seq, w.Row.Asked, w.Record)
		case !ok:
		case w.Kind != Update, !w.Parts.Inputs && e.Value.(*cached).asked != w.Row.Asked: // gone, or another process asked
			c.remove(e)
		case w.Parts.Inputs || w.Parts.Outcome:
			next := *e.Value.(*cached)
			if w.Parts.Inputs {
				next.record.Inputs = w.Record.Inputs
			}
			next.record.Outcome = w.Record.Outcome
			c.keep(next.seq, w.Row.Asked, &next.record)
		}
	}
}

// keep replaces the entry of a record. The lock is held.
func (c *Cache) keep(seq, asked int64, r *mcptask.Record) {
	if e, ok := c.entries[seq]; ok {
		if e.Value.(*cached).asked > asked {
			return // an older record, read before the newer one was written
		}
		c.remove(e)
	}
	const overhead = 512 // of an entry, about
	k := &cached{seq: seq, asked: asked, size: r.Size() + overhead}
	if k.size > c.most/8 {
		return // it would displace too many
	}
	from := copyRecord(r)
	k.record.ID, k.record.CreatedAt = from.ID, from.CreatedAt
	k.record.Arguments, k.record.Inputs, k.record.Outcome = from.Arguments, from.Inputs, from.Outcome
	c.entries[seq] = c.order.PushFront(k)
	for c.size += k.size; c.size > c.most; {
		c.remove(c.order.Back())
	}
}

func (c *Cache) remove(e *list.Element) {
	k := c.order.Remove(e).(*cached)
	delete(c.entries, k.seq)
	c.size -= k.size
}
