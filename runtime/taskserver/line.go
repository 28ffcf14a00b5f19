package taskserver

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/account"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A task that finds no free slot waits in the store and belongs to nobody. Any server with a free slot and the tool
// takes it: it reads whose turn it is, reserves a slot, and stores that the run has begun. Only one server succeeds with
// that. Servers look when a task begins to wait, when a slot becomes free, and now and then.

const (
	// mostHeads bounds how many waiting tasks a look reads at once. spareHeads of them are beyond the free slots, since
	// some may not start now: their accounts have all that they may have.
	mostHeads  = 64
	spareHeads = 16
	// mostPages bounds how often a look that can start nothing goes on to further accounts. It reads pageHeads tasks then.
	mostPages = 8
	pageHeads = 256
	// startPatience is how long a look waits for runs to begin. The store may be slow with the task of one of them.
	startPatience = time.Second
	// mostDelay is the longest pause before a server looks for a task that another one tells of. The pause is random, so
	// that servers do not all reach for the same task.
	mostDelay = 50 * time.Millisecond
	// orphansFirst is how long a new server leaves waiting tasks alone if other workers have tasks, unless it finds orphans
	// before. Otherwise work that a dead process had begun would wait behind work that has not begun.
	orphansFirst = time.Second
)

// line is the local executor: it runs handlers in the slots of this process. The tasks that wait are in the store.
type line struct {
	*pool.Pool
	backend *Backend
	now     chan struct{} // has an element if there may be something to start
	// known counts the signs that tasks wait, and seen is its value at the beginning of the last look that has left
	// nothing to start. Each sign stands for at most one task, and those who wait come before new tasks, see mayReserve.
	known, seen atomic.Int64
	// isLeft says that there may be tasks that start when a slot becomes free: a look goes on, or has left some.
	isLeft atomic.Bool
	// isDelayed says that a look begins within mostDelay, and isHeld that the first one has not begun, see orphansFirst.
	isDelayed, isHeld atomic.Bool

	// Only the goroutine that looks uses these.

	turn    string               // the account that has had the last turn, or has been looked at last
	refused map[string]time.Time // when tasks could not be started; they are left alone for a while

	places places
}

// newLine makes the local executor.
func newLine(b *Backend, slots int) *line {
	x := &line{backend: b, now: make(chan struct{}, 1), refused: map[string]time.Time{}}
	x.Pool = pool.New(slots, func() {
		if x.isLeft.Load() {
			x.known.Add(1) // the slot is for a task that was left
		}
		if !x.isEmpty() {
			b.kick(x.now)
		}
	})
	if !b.ownStore {
		x.isHeld.Store(true)
		time.AfterFunc(orphansFirst, func() {
			defer guard.Recover(b.logger, "waiting tasks")
			x.open()
		})
	}
	return x
}

// expectsOrphans reports whether other workers have tasks: one of them may be the former process of this server.
func (b *Backend) expectsOrphans() bool {
	inspector, ok := b.store.(taskstore.Inspector)
	if !ok {
		return true
	}
	workers, err := callOnce(b.closing, b.newTaskRetry(), "Workers", inspector.Workers)
	return err != nil || slices.ContainsFunc(workers, func(w taskstore.WorkerLease) bool { return w.Worker != "" && w.Worker != b.worker && w.Unfinished > 0 })
}

// open lets the looks begin.
func (x *line) open() {
	if x.isHeld.CompareAndSwap(true, false) {
		x.backend.kick(x.now)
	}
}

// Submit implements Executor. It is for a run that is stored as begun: the store's answer to its creation was lost.
func (x *line) Submit(_ context.Context, task Submission) error {
	return x.Run(x.place(task.Account, task.Principal, task.Tool), func(life context.Context) { x.backend.runTask(life, task.TaskID) })
}

// Release implements Slots.
func (x *line) Release(task Submission) {
	x.Pool.Release(x.place(task.Account, task.Principal, task.Tool))
}

// Acquire implements Slots.
func (x *line) Acquire(ctx context.Context, task Submission) {
	x.Pool.Acquire(ctx, x.place(task.Account, task.Principal, task.Tool))
}

// place returns what a handler's slot counts for.
func (x *line) place(of, principal, tool string) pool.Place {
	return pool.Place{Tool: x.backend.catalog.currentName(tool), Most: x.backend.mostRuns(tool), Shares: listShares(of, principal)}
}

// listShares returns the path to an account's group in the pool. All accounts of anonymous callers lie in one group, and
// in it all those of one address in another, so that opening more sessions brings no more slots. The only client of the
// process may have all slots.
func listShares(of, principal string) []pool.Share {
	own := pool.Share{Key: of, All: strings.HasPrefix(of, account.Local)}
	if principal != "" || own.All {
		return []pool.Share{own}
	}
	anonymous := pool.Share{Key: string(taskstore.ScopeAnonymous)}
	if address, _ := account.CutAddress(of); address != "" {
		return []pool.Share{anonymous, {Key: account.Address + address}, own}
	}
	return []pool.Share{anonymous, own}
}

// mostRuns returns how many handlers of a tool may run at once in this process. 0 means no bound.
func (b *Backend) mostRuns(tool string) int {
	t, ok := b.catalog.findTool(tool)
	if !ok {
		return 0
	}
	return t.Spec.Policy.Concurrency
}

// isEmpty reports whether nothing waits that could start, as far as this server knows.
func (x *line) isEmpty() bool { return x.known.Load() == x.seen.Load() }

// mayReserve reports whether a new task may take a free slot: there are more of them than tasks that may wait for one.
// If its tool has a bound, those tasks may be the tool's, so there must be none.
func (x *line) mayReserve(place pool.Place) bool {
	return x.isEmpty() || place.Most == 0 && int64(x.Free()) > x.known.Load()-x.seen.Load()
}

// noteWaiting lets the server look for waiting tasks, at once.
func (b *Backend) noteWaiting() {
	b.line.known.Add(1)
	b.kick(b.line.now)
}

// noteFree lets the server look for waiting tasks soon: the feed tells of one.
func (b *Backend) noteFree() {
	x := b.line
	if x == nil {
		b.kick(b.adoptNow)
		return
	}
	x.known.Add(1)
	if x.Free() > 0 && x.isDelayed.CompareAndSwap(false, true) { // otherwise the next free slot brings a look
		time.AfterFunc(rand.N(mostDelay), func() {
			defer guard.Recover(b.logger, "waiting tasks")
			x.isDelayed.Store(false)
			b.kick(x.now)
		})
	}
}

// startWaiting starts as many waiting tasks as find a slot. It returns how long to wait until the next regular look.
func (x *line) startWaiting() (next time.Duration) {
	b := x.backend
	next = b.renewEvery()
	for again := true; again && b.closing.Err() == nil; {
		var err error
		if again, err = x.look(); err != nil {
			next = b.renewAgain()
		}
	}
	maps.DeleteFunc(x.refused, func(_ string, at time.Time) bool { return time.Since(at) >= b.renewEvery() })
	x.places.setTurn(x.turn)
	x.places.warn(b)
	return next
}

// look reads whose turn it is, and starts what finds a slot. It reports whether another look may start more.
func (x *line) look() (again bool, err error) {
	b, known, after := x.backend, x.known.Load(), x.turn
	x.isLeft.Store(true) // a slot that becomes free from now on brings another look
	if x.isHeld.Load() {
		return false, nil
	}
	accounts := map[string]bool{}
	for page := range mostPages {
		free := x.Free()
		if free == 0 {
			return false, nil
		}
		tools, areAll := x.listTools()
		limit := min(free+spareHeads, mostHeads)
		if page > 0 {
			limit = pageHeads
		}
		heads, err := b.readWaiting(tools, after, limit)
		if err != nil {
			return false, err
		}
		started, err := x.startAll(heads)
		if err != nil {
			return false, err
		}
		former := len(accounts)
		for _, head := range heads {
			accounts[head.Account] = true
		}
		switch {
		case len(heads) == limit && started > 0:
			return true, nil
		case len(accounts)-former < limit: // it has seen all accounts
			x.isLeft.Store(started < len(heads) || page > 0 || !areAll)
			if x.Free() > 0 {
				x.seen.Store(known)
			}
			return false, nil
		}
		after = heads[limit-1].Account
	}
	x.turn = after
	return false, nil
}

// listTools returns the tools whose tasks may start, and whether these are all.
func (x *line) listTools() (tools []string, areAll bool) {
	all := x.backend.catalog.listNames()
	tools = slices.DeleteFunc(slices.Clone(all), func(tool string) bool {
		return x.IsFull(x.backend.catalog.currentName(tool), x.backend.mostRuns(tool))
	})
	return tools, len(tools) == len(all)
}

// readWaiting reads waiting tasks.
func (b *Backend) readWaiting(tools []string, after string, limit int) ([]taskstore.Waiting, error) {
	heads, err := callOnce(b.closing, b.newTaskRetry(), "Waiting", func(ctx context.Context) ([]taskstore.Waiting, error) {
		return b.store.Waiting(ctx, tools, after, limit)
	})
	if err != nil && b.closing.Err() == nil {
		b.logger.Error("waiting tasks not read", "error", err)
	}
	return heads, err
}

// startAll starts the tasks that find a slot, waits until their runs have begun, or will not begin, and returns how
// many have begun.
func (x *line) startAll(heads []taskstore.Waiting) (started int, err error) {
	b := x.backend
	if len(heads) == 0 {
		return 0, nil
	}
	if err := b.ensureLease(b.closing); err != nil {
		return 0, err
	}
	type begun struct {
		*run
		id  string
		end RunEnd
	}
	var runs []*begun
	for _, head := range heads {
		place := x.place(head.Account, head.Principal, head.Tool)
		if _, isRefused := x.refused[head.ID]; isRefused || b.isStarting(head.ID) || !x.Reserve(place) {
			continue
		}
		r, leave := b.enterRun(head.ID, time.Time{})
		of := &begun{r, head.ID, RunLeft}
		err := x.Start(place, func(life context.Context) {
			defer guard.Recover(b.logger, "task")
			defer leave()
			of.end = b.runEntered(life, of.id, r)
		})
		if err != nil { // the server closes
			leave()
			x.Pool.Release(place)
			return 0, err
		}
		runs, x.turn = append(runs, of), head.Account
	}
	late := time.After(startPatience)
	for _, r := range runs {
		select {
		case <-r.decided:
		case <-late: // they keep their slots, and the others go on
			return started, nil
		case <-b.closing.Done():
			return started, nil
		}
		switch {
		case b.hasStarted(r.run):
			started++
		case r.end == RunLeft: // otherwise another server has it, or it has ended
			x.refused[r.id] = time.Now()
		}
	}
	return started, nil
}

// takeWaiting takes waiting tasks for an executor that has its own line, and submits them.
func (b *Backend) takeWaiting() {
	for after := ""; b.closing.Err() == nil; {
		heads, err := b.readWaiting(b.catalog.listNames(), after, mostHeads)
		if err != nil {
			return
		}
		var found []taskstore.Record
		for _, head := range heads {
			if r, err := b.getRecord(b.closing, b.newRequestRetry(), head.ID); err == nil && r.IsFree() {
				found = append(found, r)
			}
		}
		if taken := b.adoptAll(found); len(heads) < mostHeads || !slices.Contains(taken, true) {
			return
		}
		after = heads[mostHeads-1].Account
	}
}

// waitsForSlot is the status message of a task that waits for a slot.
const waitsForSlot = "Waits for a free slot."

const (
	// mostPlaces bounds how many places in line are known.
	mostPlaces = 1000
	// placesAge is how old they may be.
	placesAge = time.Second
	// warnEvery is how often the log is told that tasks wait, and warnAge how long one must have waited.
	warnEvery = time.Minute
	warnAge   = 5 * time.Second
)

// places are the places of waiting tasks in line, as of a while ago.
type places struct {
	mu     sync.Mutex
	isRead bool // whether a goroutine reads them
	at     time.Time
	after  string // the account that has had the last turn
	byID   map[string]place
	warned time.Time
}

// place is the place of a task in line.
type place struct {
	number int
	since  time.Time // when the task was first seen in line
}

// read returns the places, at most placesAge old, unless another goroutine reads them.
func (p *places) read(b *Backend) (byID map[string]place) {
	p.mu.Lock()
	if p.isRead || time.Since(p.at) < placesAge {
		defer p.mu.Unlock()
		return p.byID
	}
	p.isRead = true
	former, after := p.byID, p.after
	if time.Since(p.at) > 2*warnEvery { // while tasks wait, places are read more often, so none has waited since
		former = nil
	}
	p.mu.Unlock()
	waiting, err := b.readWaiting(b.catalog.listNames(), after, mostPlaces)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isRead, p.at = false, time.Now() // a store that fails is not asked by each request
	if err == nil {
		p.byID = make(map[string]place, len(waiting))
		for i, w := range waiting {
			since := p.at
			if f, ok := former[w.ID]; ok {
				since = f.since
			}
			p.byID[w.ID] = place{i, since}
		}
	}
	return p.byID
}

// setTurn notes which account has had the last turn.
func (p *places) setTurn(account string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.after = account
}

// warn tells the log once a minute that tasks wait.
func (p *places) warn(b *Backend) {
	if b.line.isEmpty() && !b.line.isLeft.Load() || time.Since(p.warned) < warnEvery {
		return
	}
	var longest time.Duration
	waiting := 0
	for id, at := range p.read(b) {
		if _, isLeft := b.leftUntil(id); !isLeft {
			waiting++
			longest = max(longest, time.Since(at.since))
		}
	}
	if longest >= warnAge {
		p.warned = time.Now()
		b.logger.Warn("tasks wait for a free slot: see Options.Concurrency, and concurrency of their tools", "waiting", waiting, "longest", longest.Round(time.Second), "free", b.line.Free())
	}
}

// ShowPlace sets the status message of a task that waits for a slot: it says how many tasks are before it, or that the task
// is left to other servers. The caller shows the record, and does not store it.
func (b *Backend) ShowPlace(r *taskstore.Record) {
	if b.line == nil || !r.IsFree() {
		return
	}
	if until, isLeft := b.leftUntil(r.ID); isLeft {
		r.StatusMessage = "Left to other servers until " + until.UTC().Format(time.RFC3339) + ": the arguments do not fit the tool of this server."
		return
	}
	r.StatusMessage = waitsForSlot
	byID := b.line.places.read(b)
	switch at, ok := byID[r.ID]; {
	case ok && at.number == 0:
		r.StatusMessage = "Waits for a free slot, next in line."
	case ok:
		r.StatusMessage = fmt.Sprintf("Waits for a free slot, %d before it.", at.number)
	case len(byID) == mostPlaces:
		r.StatusMessage = fmt.Sprintf("Waits for a free slot, more than %d before it.", mostPlaces)
	}
}
