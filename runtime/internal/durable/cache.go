package durable

import (
	"container/list"
	"encoding/json"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// CacheBytes is the bound of a store's Cache, in bytes.
const CacheBytes = 8 << 20

// Cache keeps the arguments and inputs of tasks that have not ended, so that a poll need not read them again.
// It drops a task at its end. It keeps the tasks that were used last, in up to a number of bytes. It is safe for
// concurrent use.
type Cache struct {
	most int64

	mu      sync.Mutex
	size    int64
	entries map[string]*list.Element // by ID, of *cached
	order   list.List                // the last used first
}

// cached is the arguments and the inputs of a record. Its number and creation time are there too: another record may
// get the same ID, since a caller may name its tasks, and a database may lose its last commits or be restored.
type cached struct {
	id        string
	seq       int64
	asked     int64
	created   int64 // see Micros
	arguments json.RawMessage
	inputs    []taskstore.Input // not shared with any record
	size      int64
}

// NewCache makes a Cache of up to about most bytes.
func NewCache(most int64) *Cache { return &Cache{most: most, entries: map[string]*list.Element{}} }

// Usage returns how many tasks the cache holds, and their bytes.
func (c *Cache) Usage() (tasks int, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.entries), c.size
}

// Read returns the record with an ID whole, or none. read reads the record, which has its arguments, its inputs and its
// result only if whole is true. The record of a task that has ended is read once, and not kept.
func (c *Cache) Read(id string, read func(whole bool) ([]Found, error)) ([]Found, error) {
	if c.has(id) {
		found, err := read(false)
		if err != nil || len(found) != 1 || found[0].Err != nil || c.fill(&found[0]) {
			return found, err
		}
	}
	found, err := read(true)
	if err == nil && len(found) == 1 && found[0].Err == nil { // a damaged record must not get into the cache
		c.mu.Lock()
		defer c.mu.Unlock()
		c.keep(found[0].Seq, found[0].Asked, &found[0].Record)
	}
	return found, err
}

// has reports whether the cache has something of the record with an ID.
func (c *Cache) has(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries[id] != nil
}

// fill sets the arguments and the inputs of a record that was read without them. It reports whether the record is whole
// then.
func (c *Cache) fill(f *Found) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[f.Record.ID]
	if !ok {
		return false
	}
	known := e.Value.(*cached)
	switch {
	case f.Record.Outcome != nil: // another process has ended it
		c.remove(e)
		return false
	case known.seq != f.Seq || known.asked != f.Asked || known.created != Micros(f.Record.CreatedAt):
		return false
	}
	c.order.MoveToFront(e)
	f.Record.Arguments, f.Record.Inputs = known.arguments, copyInputs(known.inputs)
	return true
}

// Note takes note of committed writes.
func (c *Cache) Note(writes []Write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range writes {
		w := &writes[i]
		if w.Kind == Insert {
			c.keep(w.Row.Seq, w.Row.Asked, w.Record)
			continue
		}
		e, ok := c.entries[w.Record.ID]
		if !ok {
			continue
		}
		known := e.Value.(*cached)
		isStale := known.seq != w.Row.Seq || !w.Parts.Inputs && known.asked != w.Row.Asked // by a write of another process
		switch {
		case isStale || w.Kind != Update || w.Record.Outcome != nil:
			c.remove(e)
		case w.Parts.Inputs:
			next := *w.Record
			next.Arguments = known.arguments
			c.keep(w.Row.Seq, w.Row.Asked, &next)
		}
	}
}

// keep replaces the entry of a whole record, or removes it if the task has ended. The lock is held.
func (c *Cache) keep(seq, asked int64, r *taskstore.Record) {
	if e, ok := c.entries[r.ID]; ok {
		if known := e.Value.(*cached); known.seq == seq && known.asked > asked {
			return // an older record, read before the newer one was written
		}
		c.remove(e)
	}
	const overhead = 400 // of an entry, about
	k := &cached{
		id: r.ID, seq: seq, asked: asked, created: Micros(r.CreatedAt), arguments: r.Arguments, inputs: copyInputs(r.Inputs),
		size: r.Size() + overhead,
	}
	if r.Outcome != nil || k.size > c.most/8 { // a large one would displace too many
		return
	}
	c.entries[k.id] = c.order.PushFront(k)
	for c.size += k.size; c.size > c.most; {
		c.remove(c.order.Back())
	}
}

func (c *Cache) remove(e *list.Element) {
	k := c.order.Remove(e).(*cached)
	delete(c.entries, k.id)
	c.size -= k.size
}
