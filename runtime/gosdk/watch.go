package gosdk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// How subscriptions are opened.
const (
	// streamSize is how many tasks share one subscription.
	streamSize = 1000
	// gather is how long the first subscription waits for more tasks: what is
	// done sooner needs none.
	gather = 100 * time.Millisecond
	// regroup is how long a change of the tasks waits for more changes.
	regroup = time.Second
	// acknowledgeWithin is how long a server, or a proxy that holds its bytes
	// back, may take to show that it keeps a subscription.
	acknowledgeWithin = 10 * time.Second
	// proven is how long a subscription has to last to be no failure.
	proven  = 30 * time.Second
	maxWait = 5 * time.Minute
)

// errNoSubscriptions says that the server tells nothing of tasks.
var errNoSubscriptions = errors.New("the server has no subscriptions to tasks")

// watches subscribes to the tasks that calls wait for: one subscription for up
// to streamSize tasks, however many calls. It is safe for concurrent use.
type watches struct {
	// listen runs one subscription until it ends.
	listen func(ctx context.Context, ids []string, s *subscription) error

	mu       sync.Mutex
	tasks    map[string]map[*watch]bool
	refused  map[string]bool // tasks that the server does not tell of
	streams  map[*subscription]bool
	timer    *time.Timer // of the next arrangement, nil where none is due
	off      bool        // the server has no subscriptions
	closed   bool
	failures int       // in a row
	notSoon  time.Time // nothing is opened before this
	running  sync.WaitGroup
}

// watch is one call that is told of its task.
type watch struct {
	heard func(live bool, state *mcptask.Snapshot)
	// ctx lasts as long as the watch.
	ctx context.Context
}

// subscription is one stream of the server's.
type subscription struct {
	w        *watches
	ids      []string
	live     map[string]bool // that the server agreed to tell of; nil until it has
	began    time.Time       // when it agreed
	cancel   context.CancelCauseFunc
	patience *time.Timer
	next     *generation // those that take its place
	from     *generation // with which it took the place of others
}

// generation is a set of subscriptions that take the place of older ones: these
// end when all of the new are there, so that nothing is missed in between.
type generation struct {
	waiting int
	failed  bool
	old     []*subscription
}

// errUnneeded is why a subscription is no longer needed.
var errUnneeded = errors.New("nobody waits for it any longer")

// watch begins to tell of a task; see mcptask.Watcher.
func (w *watches) watch(taskID string, heard func(bool, *mcptask.Snapshot)) (live bool, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	own := &watch{heard, ctx}
	if w.tasks[taskID] == nil {
		w.tasks[taskID] = map[*watch]bool{}
	}
	w.tasks[taskID][own] = true
	w.arrangeSoon()
	return w.covered(taskID), func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.tasks[taskID], own); len(w.tasks[taskID]) == 0 {
			delete(w.tasks, taskID)
			delete(w.refused, taskID)
		}
		w.arrangeSoon()
	}
}

// lasting is a context that lasts as long as somebody waits for the task, ctx
// where nobody does.
func (w *watches) lasting(ctx context.Context, taskID string) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	for own := range w.tasks[taskID] {
		return own.ctx
	}
	return ctx
}

// covered says whether the server tells of a task. w.mu is held.
func (w *watches) covered(taskID string) bool {
	for s := range w.streams {
		if s.live[taskID] {
			return true
		}
	}
	return false
}

// arrangeSoon arranges the subscriptions anew in a while. w.mu is held.
func (w *watches) arrangeSoon() {
	if w.off || w.closed || w.timer != nil {
		return
	}
	delay := regroup
	if len(w.streams) == 0 {
		delay = gather
	}
	w.timer = time.AfterFunc(max(delay, time.Until(w.notSoon)), w.arrange)
}

// arrange opens the subscriptions that are missing, and ends those that nobody
// needs.
func (w *watches) arrange() {
	defer guard.Recover(nil, "the arrangement of subscriptions")
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.timer = nil; w.off || w.closed {
		return
	}
	missing := map[string]bool{}
	for id := range w.tasks {
		missing[id] = !w.refused[id]
	}
	var partial []*subscription // with room for more
	for s := range w.streams {
		if s.next != nil {
			continue
		}
		n := 0
		for _, id := range s.ids {
			if w.tasks[id] != nil {
				n++
			}
			delete(missing, id)
		}
		switch {
		case n == 0:
			s.cancel(errUnneeded)
		case n < streamSize:
			partial = append(partial, s)
		}
	}
	maps.DeleteFunc(missing, func(_ string, is bool) bool { return !is })
	if len(missing) == 0 {
		return
	}
	if wait := time.Until(w.notSoon); wait > 0 {
		w.arrangeSoon()
		return
	}
	for _, s := range partial {
		for _, id := range s.ids {
			if w.tasks[id] != nil && !w.refused[id] {
				missing[id] = true
			}
		}
	}
	g := &generation{old: partial}
	for _, s := range partial {
		s.next = g
	}
	for ids := range slices.Chunk(slices.Sorted(maps.Keys(missing)), streamSize) {
		g.waiting++
		w.open(ids, g)
	}
}

// open opens a subscription. w.mu is held.
func (w *watches) open(ids []string, g *generation) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &subscription{w: w, ids: ids, cancel: cancel, from: g}
	s.patience = time.AfterFunc(acknowledgeWithin, func() {
		defer guard.Recover(nil, "the end of patience")
		cancel(errors.New("the server has not acknowledged the subscription"))
	})
	w.streams[s] = true
	w.running.Go(func() {
		defer guard.Recover(nil, "a subscription")
		defer cancel(nil)
		err := w.listen(ctx, ids, s)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		w.ended(s, err)
	})
}

// agreed takes the server's word on which tasks it tells of; there is none in
// taskIDs where it does not know of tasks.
func (s *subscription) agreed(taskIDs []string, tasks bool) {
	w := s.w
	if !tasks {
		s.cancel(errNoSubscriptions)
		return
	}
	w.mu.Lock()
	s.patience.Stop()
	if s.live != nil {
		w.mu.Unlock()
		return
	}
	s.live, s.began = map[string]bool{}, time.Now()
	asked := map[string]bool{}
	for _, id := range s.ids {
		asked[id] = true
	}
	for _, id := range taskIDs { // as many as the server likes
		if asked[id] {
			s.live[id] = true
		}
	}
	var up []*watch
	for _, id := range s.ids {
		if s.live[id] {
			up = slices.AppendSeq(up, maps.Keys(w.tasks[id]))
		} else if w.tasks[id] != nil {
			w.refused[id] = true
		}
	}
	s.from.arrived(nil)
	w.mu.Unlock()
	for _, own := range up {
		own.heard(true, nil)
	}
}

// arrived notes that one of a generation is there, or is not to come. The mutex
// of watches is held.
func (g *generation) arrived(err error) {
	g.waiting--
	g.failed = g.failed || err != nil
	if g.waiting > 0 {
		return
	}
	for _, s := range g.old {
		if g.failed { // it goes on
			s.next = nil
		} else {
			s.cancel(errUnneeded)
		}
	}
}

// told passes a state on.
func (s *subscription) told(state mcptask.Snapshot) {
	w := s.w
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.tasks[state.TaskID]))
	w.mu.Unlock()
	for _, own := range all {
		own.heard(true, &state)
	}
}

// tell passes a state on that came otherwise, to whoever waits for the task; false
// is nobody.
func (w *watches) tell(state mcptask.Snapshot) bool {
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.tasks[state.TaskID]))
	w.mu.Unlock()
	for _, own := range all {
		own.heard(false, &state)
	}
	return len(all) > 0
}

// ended notes the end of a subscription: what no other tells of is polled.
func (w *watches) ended(s *subscription, err error) {
	w.mu.Lock()
	delete(w.streams, s)
	s.patience.Stop()
	if s.live == nil {
		s.from.arrived(err)
	}
	var down []*watch
	for _, id := range s.ids {
		if s.live[id] && !w.covered(id) {
			down = slices.AppendSeq(down, maps.Keys(w.tasks[id]))
		}
	}
	var wire *mcptask.Error
	switch {
	case errors.Is(err, errUnneeded):
	case errors.Is(err, errNoSubscriptions),
		errors.As(err, &wire) && (wire.Code == mcptask.CodeMethodNotFound || wire.Code == mcptask.CodeMissingClientCapability):
		w.off = true
	default:
		if w.failures++; s.live != nil && time.Since(s.began) >= proven {
			w.failures = 0
		}
		w.notSoon = time.Now().Add(min(regroup<<min(w.failures, 10), maxWait))
		w.arrangeSoon()
	}
	w.mu.Unlock()
	for _, own := range down {
		own.heard(false, nil)
	}
}

// renew tries again with a server that was connected to anew.
func (w *watches) renew() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off, w.failures, w.notSoon = false, 0, time.Time{}
	clear(w.refused)
	if len(w.tasks) > 0 {
		w.arrangeSoon()
	}
}

// gone tells all calls that the connection has ended.
func (w *watches) gone() {
	w.mu.Lock()
	var all []*watch
	for _, of := range w.tasks {
		all = slices.AppendSeq(all, maps.Keys(of))
	}
	w.mu.Unlock()
	for _, own := range all {
		own.heard(false, nil)
	}
}

// close ends all subscriptions.
func (w *watches) close() {
	defer w.gone()
	w.mu.Lock()
	w.closed = true
	if w.timer != nil {
		w.timer.Stop()
	}
	for s := range w.streams {
		s.cancel(errUnneeded)
	}
	w.mu.Unlock()
	w.running.Wait()
}
