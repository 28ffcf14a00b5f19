package durable

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The bounds of one transaction: how many ops it has, and how many bytes their records have.
const (
	mostOps   = 256
	mostBytes = 4 << 20
)

// Committer writes records in groups. A commit costs about as much for 256 writes as for one, so
// each transaction takes all writes that wait. A write never waits for more writes to come. It is
// safe for concurrent use.
type Committer struct {
	backend Backend
	logger  *slog.Logger
	leader  sync.WaitGroup // the goroutine that commits; one that is new each time would have to grow its stack
	known   known          // of the leader
	wake    chan struct{}  // has an element if the leader has to look

	mu      sync.Mutex
	closed  bool
	waiting []*op
}

// batch is the ops of one transaction. The Committer's lock guards it.
type batch struct {
	callers int // how many still wait
	cancel  context.CancelFunc
}

// NewCommitter makes a Committer. A nil logger means slog.Default().
func NewCommitter(b Backend, logger *slog.Logger) *Committer {
	c := &Committer{backend: b, logger: logger, wake: make(chan struct{}, 1)}
	c.leader.Go(c.lead)
	return c
}

// Create creates a record as [taskstore.Store] describes. After Close it returns ErrServerClosed.
func (c *Committer) Create(ctx context.Context, r taskstore.Record, quota taskstore.Quota) (taskstore.Record, error) {
	if err := checkRecord(&r); err != nil {
		return r, fmt.Errorf("mcptask: create: %w", err)
	}
	// The record that has the key may go before it is read. Then its key is free, and the next
	// attempt finds out.
	const attempts = 8
	for range attempts {
		o := newInsert(r, quota)
		err := c.run(ctx, o)
		switch {
		case err != nil:
			return r, err
		case o.err == nil:
			return o.record, nil
		case o.existing == "" && errors.Is(o.err, taskstore.ErrExists):
			return taskstore.Record{}, o.err
		case o.existing == "":
			return r, o.err
		}
		former, err := c.backend.Get(ctx, o.existing)
		switch {
		case err == nil && nameOf(&former) == nameOf(&r):
			return former, taskstore.ErrExists
		case err != nil && !errors.Is(err, taskstore.ErrNoRecord):
			return r, err
		}
	}
	return r, fmt.Errorf("mcptask: create task %q: the task with its idempotency key vanished %d times", r.ID, attempts)
}

// Update updates a record as [taskstore.Store] describes. After Close it returns ErrServerClosed.
func (c *Committer) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	if err := checkRecord(&to); err != nil {
		return to, fmt.Errorf("mcptask: update: %w", err)
	}
	o := newUpdate(from, to, quota, steps)
	if err := c.run(ctx, o); err != nil {
		return to, err
	}
	if o.err != nil {
		return to, o.err
	}
	return o.record, nil
}

// Delete deletes a record as [taskstore.Store] describes. After Close it returns ErrServerClosed.
func (c *Committer) Delete(ctx context.Context, r taskstore.Record) error {
	o := &op{kind: Remove, record: copyRecord(&r), counts: true}
	if err := c.run(ctx, o); err != nil {
		return err
	}
	return o.err
}

// Expire removes up to limit expired records, as [taskstore.Store] describes. find returns up to a number
// of expired records, oldest first; their arguments, inputs and results may be missing. Expire calls
// it again until it finds none.
func (c *Committer) Expire(ctx context.Context, limit int, find func(ctx context.Context, limit int) ([]taskstore.Record, error)) ([]taskstore.Record, error) {
	var gone []taskstore.Record
	for len(gone) < limit {
		expired, err := find(ctx, min(mostOps, limit-len(gone)))
		if err == nil && len(expired) == 0 {
			break
		}
		var buried []taskstore.Record
		if err == nil {
			buried, err = c.bury(ctx, expired)
		}
		gone = append(gone, buried...)
		switch {
		case err != nil && len(gone) == 0:
			return nil, err
		case err != nil:
			return gone, nil //nolint:nilerr // the caller must hear of those that are gone; the fault shows again
		}
	}
	return gone, nil
}

// bury removes expired records and leaves a tombstone of each. It returns those that it has
// removed, and leaves out those that have changed meanwhile.
func (c *Committer) bury(ctx context.Context, expired []taskstore.Record) ([]taskstore.Record, error) {
	ops := make([]*op, len(expired))
	for i := range expired {
		ops[i] = &op{kind: Bury, record: copyRecord(&expired[i]), counts: true}
	}
	if err := c.run(ctx, ops...); err != nil {
		return nil, err
	}
	var gone []taskstore.Record
	var failed error
	for i, o := range ops {
		switch {
		case o.err == nil:
			gone = append(gone, expired[i])
		case !errors.Is(o.err, taskstore.ErrNoRecord) && !errors.Is(o.err, taskstore.ErrConflict):
			failed = o.err
		}
	}
	if len(gone) > 0 {
		return gone, nil // their caller must hear of them; the fault shows again
	}
	return nil, failed
}

// Close lets the writes that wait end, and refuses others.
func (c *Committer) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.poke()
	c.leader.Wait()
}

// poke lets the leader look.
func (c *Committer) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// run hands over ops and waits for their answers. It returns an error if there are none: the context has
// ended, or the Committer is closed.
func (c *Committer) run(ctx context.Context, ops ...*op) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return mcptask.ErrServerClosed
	}
	for _, o := range ops {
		o.done = make(chan struct{})
	}
	c.waiting = append(c.waiting, ops...)
	c.mu.Unlock()
	c.poke()
	for i, o := range ops {
		select {
		case <-o.done:
		case <-ctx.Done():
			c.leave(ops[i:])
			return ctx.Err()
		}
	}
	return nil
}

// leave notes that the caller of ops has stopped waiting. It ends a transaction without callers.
func (c *Committer) leave(ops []*op) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range ops {
		o.left = true
		if o.batch == nil {
			continue
		}
		if o.batch.callers--; o.batch.callers == 0 {
			o.batch.cancel()
		}
	}
}

// lead commits the ops that wait, until the Committer is closed and none waits.
func (c *Committer) lead() {
	defer guard.Recover(c.logger, "group commit")
	for {
		ops, closed := c.takeWaiting()
		switch {
		case len(ops) > 1:
			c.commit(ops)
			runtime.Gosched() // those who have their answers may have more writes for the next transaction
		case len(ops) == 1:
			c.commit(ops)
		case closed:
			return
		default:
			<-c.wake
		}
	}
}

// takeWaiting takes the ops of the next transaction.
func (c *Committer) takeWaiting() (ops []*op, closed bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var size int64
	n := 0
	for ; n < len(c.waiting) && len(ops) < mostOps && size < mostBytes; n++ {
		if o := c.waiting[n]; !o.left {
			ops = append(ops, o)
			size += o.size()
		}
	}
	clear(c.waiting[:n])
	if c.waiting = c.waiting[n:]; len(c.waiting) == 0 {
		c.waiting = nil
	}
	return ops, c.closed
}

// commit carries out ops in one transaction and answers them. If it fails, each op gets a
// transaction of its own, so that one op's fault is not the others'.
func (c *Committer) commit(ops []*op) {
	err := c.transact(ops)
	if err != nil && len(ops) > 1 && !isInDoubt(err) && !errors.Is(err, context.Canceled) {
		for _, o := range ops {
			c.commit([]*op{o})
		}
		return
	}
	for _, o := range ops {
		if err != nil {
			o.err = err
		}
		close(o.done)
	}
}

// transact carries out ops in one transaction.
func (c *Committer) transact(ops []*op) (err error) {
	defer guard.Then(c.logger, "group commit", func() {
		err = InDoubt(errors.New("mcptask: the write panicked; see the log"))
	})
	ctx, end := c.begin(ops)
	defer end()
	if err := ctx.Err(); err != nil {
		return err
	}
	keys := collectKeys(ops)
	if state := c.known.state(ops, keys); state != nil {
		if plan := decide(ops, state); !plan.isPartial {
			after, err := c.backend.Apply(ctx, c.known.last, keys.Names, plan)
			if err == nil {
				c.known.confirm()
				c.known.note(c.known.last, after, state, plan)
				return nil
			}
			c.known.refute()
			if isInDoubt(err) || ctx.Err() != nil {
				return err
			}
			// Nothing was written: the next transaction reads.
		}
	}
	var state *State
	var plan *Plan
	before, after, err := c.backend.Transact(ctx, keys, func(s *State) *Plan {
		state = s
		plan = decide(ops, s)
		return plan
	})
	if err == nil && after != (Mark{}) {
		c.known.note(before, after, state, plan)
	}
	return err
}

// begin returns the context of a transaction. It ends when no caller waits for it.
func (c *Committer) begin(ops []*op) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	b := &batch{cancel: cancel}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, o := range ops {
		if o.batch = b; !o.left {
			b.callers++
		}
	}
	if b.callers == 0 {
		cancel()
	}
	return ctx, cancel
}
