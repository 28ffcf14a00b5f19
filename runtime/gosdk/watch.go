package gosdk

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// These constants pace the opening of subscriptions.
const (
	// streamSize is how many tasks share one subscription.
	streamSize = 1000
	// firstDelay is how long the first subscription waits for more tasks. Tasks that end sooner
	// need no subscription.
	firstDelay = 100 * time.Millisecond
	// regroupDelay is how long a change of the tasks waits for more changes.
	regroupDelay = time.Second
	// acknowledgeWithin is how long a server, or a proxy that holds bytes back, has to acknowledge
	// a subscription.
	acknowledgeWithin = 10 * time.Second
	// provenAfter is how long a subscription must last to count as a success.
	provenAfter = 30 * time.Second
	maxWait     = 5 * time.Minute
)

// errNoSubscriptions means that the server has no subscriptions to tasks.
var errNoSubscriptions = errors.New("the server has no subscriptions to tasks")

// watches subscribes to the tasks that calls wait for. Up to streamSize tasks share a subscription,
// whatever the number of calls. It is safe for concurrent use.
type watches struct {
	// listen runs one subscription until it ends.
	listen func(ctx context.Context, ids []string, s *subscription) error

	mu       sync.Mutex
	tasks    map[string]map[*watch]bool
	refused  map[string]bool // the server does not tell of these tasks
	streams  map[*subscription]bool
	timer    *time.Timer // of the next arrangement, or nil
	off      bool        // the server has no subscriptions
	closed   bool
	failures int       // in a row
	notSoon  time.Time // the earliest time for a new subscription
	running  sync.WaitGroup
}

// watch is one call that hears of its task.
type watch struct {
	heard func(live bool, state *mcptask.Snapshot)
	// ctx lasts as long as the watch.
	ctx context.Context
}

// subscription is one stream from the server.
type subscription struct {
	w        *watches
	ids      []string
	live     map[string]bool // the tasks that the server agreed to tell of and that have not ended; nil until it has agreed
	ended    bool            // a task of live has ended
	began    time.Time       // when it agreed
	cancel   context.CancelCauseFunc
	patience *time.Timer
	next     *generation // the subscriptions that replace this one
	from     *generation // the generation that this one belongs to
}

// generation is a set of subscriptions that replace older ones. The older ones end when all new
// ones are live, so that no change is missed.
type generation struct {
	waiting int
	failed  bool
	old     []*subscription
}

// errUnneeded ends a subscription that is no longer needed.
var errUnneeded = errors.New("no call waits for its tasks")

// addWatch adds a watch of a task; see mcptask.Watcher.
func (w *watches) addWatch(taskID string, heard func(bool, *mcptask.Snapshot)) (live bool, stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	own := &watch{heard, ctx}
	if w.tasks[taskID] == nil {
		w.tasks[taskID] = map[*watch]bool{}
	}
	w.tasks[taskID][own] = true
	w.scheduleArrange()
	return w.isCovered(taskID), func() {
		cancel()
		w.mu.Lock()
		defer w.mu.Unlock()
		if delete(w.tasks[taskID], own); len(w.tasks[taskID]) == 0 {
			delete(w.tasks, taskID)
			delete(w.refused, taskID)
		}
		w.scheduleArrange()
	}
}

// watchContext returns a context that lasts as long as a watch of the task. Without a watch it
// returns ctx.
func (w *watches) watchContext(ctx context.Context, taskID string) context.Context {
	w.mu.Lock()
	defer w.mu.Unlock()
	for own := range w.tasks[taskID] {
		return own.ctx
	}
	return ctx
}

// isCovered reports whether a subscription covers a task. w.mu is held.
func (w *watches) isCovered(taskID string) bool {
	for s := range w.streams {
		if s.live[taskID] {
			return true
		}
	}
	return false
}

// scheduleArrange schedules arrange. w.mu is held.
func (w *watches) scheduleArrange() {
	if w.off || w.closed || w.timer != nil {
		return
	}
	delay := regroupDelay
	if len(w.streams) == 0 {
		delay = firstDelay
	}
	w.timer = time.AfterFunc(max(delay, time.Until(w.notSoon)), w.arrange)
}

// arrange opens the missing subscriptions, and ends those that no call needs.
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
		w.scheduleArrange()
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
		w.openSubscription(ids, g)
	}
}

// openSubscription opens a subscription. w.mu is held.
func (w *watches) openSubscription(ids []string, g *generation) {
	ctx, cancel := context.WithCancelCause(context.Background())
	s := &subscription{w: w, ids: ids, cancel: cancel, from: g}
	s.patience = time.AfterFunc(acknowledgeWithin, guard.Func(nil, "the end of patience", func() {
		cancel(errors.New("the server has not acknowledged the subscription"))
	}))
	w.streams[s] = true
	w.running.Go(guard.Func(nil, "a subscription", func() {
		defer cancel(nil)
		err := w.listen(ctx, ids, s)
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		w.recordEnd(s, err)
	}))
}

// recordAgreed records which tasks the server agrees to tell of. tasks is false if the server does
// not know subscriptions to tasks.
func (s *subscription) recordAgreed(taskIDs []string, tasks bool) {
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
	for _, id := range taskIDs { // the server may name any number
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
	s.from.countArrival(nil)
	w.mu.Unlock()
	for _, own := range up {
		own.heard(true, nil)
	}
}

// recordState records a state that the server told of.
func (s *subscription) recordState(state mcptask.Snapshot) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if state.Done() && s.live[state.TaskID] {
		delete(s.live, state.TaskID)
		s.ended = true
	}
}

// countArrival counts a subscription of the generation that is live or has failed. The mutex of
// watches is held.
func (g *generation) countArrival(err error) {
	g.waiting--
	g.failed = g.failed || err != nil
	if g.waiting > 0 {
		return
	}
	for _, s := range g.old {
		if g.failed { // the old one goes on
			s.next = nil
		} else {
			s.cancel(errUnneeded)
		}
	}
}

// deliverState passes on a state to the calls that wait for the task. live reports whether it came with a
// subscription. deliverState reports whether there are any such calls.
func (w *watches) deliverState(live bool, state mcptask.Snapshot) bool {
	w.mu.Lock()
	all := slices.Collect(maps.Keys(w.tasks[state.TaskID]))
	w.mu.Unlock()
	for _, own := range all {
		own.heard(live, &state)
	}
	return len(all) > 0
}

// recordEnd records the end of a subscription. Tasks that no other subscription covers are polled.
func (w *watches) recordEnd(s *subscription, err error) {
	w.mu.Lock()
	delete(w.streams, s)
	s.patience.Stop()
	if s.live == nil {
		s.from.countArrival(err)
	}
	var down []*watch
	for _, id := range s.ids {
		if s.live[id] && !w.isCovered(id) {
			down = slices.AppendSeq(down, maps.Keys(w.tasks[id]))
		}
	}
	var wire *mcptask.Error
	switch {
	case errors.Is(err, errUnneeded):
	case err == nil && s.ended && len(s.live) == 0: // a server ends it with its last task
		w.failures = 0
	case errors.Is(err, errNoSubscriptions),
		errors.As(err, &wire) && (wire.Code == mcptask.CodeMethodNotFound || wire.Code == spec.CodeMissingClientCapability):
		w.off = true
	default:
		if w.failures++; s.live != nil && time.Since(s.began) >= provenAfter {
			w.failures = 0
		}
		w.notSoon = time.Now().Add(min(regroupDelay<<min(w.failures, 10), maxWait))
		w.scheduleArrange()
	}
	w.mu.Unlock()
	for _, own := range down {
		own.heard(false, nil)
	}
}

// reset allows new attempts after the server was connected to anew.
func (w *watches) reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.off, w.failures, w.notSoon = false, 0, time.Time{}
	clear(w.refused)
	if len(w.tasks) > 0 {
		w.scheduleArrange()
	}
}

// reportDisconnect tells all calls that the connection has ended.
func (w *watches) reportDisconnect() {
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
	defer w.reportDisconnect()
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
