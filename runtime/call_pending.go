package mcptask

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pace"
)

// pendingCall is the untyped part of a Call.
type pendingCall struct {
	conn   Conn
	spec   ToolCall
	taskID string
	// polling is held by the one poll under way, however many wait.
	polling chan struct{}

	mu        sync.Mutex
	last      Snapshot
	pace      pace.Pace
	expires   time.Time       // by the server's clock
	cancelled bool            // the server took our cancellation
	overtaken bool            // the server sent a state since the poll under way began
	stopPoll  func()          // ends that poll
	bell      pace.Bell       // wakes those that wait
	attended  context.Context // lasts while anyone waits
	leave     func()          // ends attended and the watch

	answers          map[string]context.CancelFunc // of the questions that have been started, by key
	waitingQuestions []Question                    // those of last that are not started yet
	answersUnderWay  int
	refusal          error // of an answer, for the next caller that waits
}

func newPendingCall(conn Conn, spec ToolCall, opts []CallOption) *pendingCall {
	for _, opt := range opts {
		opt(&spec)
	}
	return &pendingCall{
		conn:     conn,
		spec:     spec,
		polling:  make(chan struct{}, 1),
		pace:     pace.Pace{Default: DefaultPoll},
		stopPoll: func() {},
		answers:  map[string]context.CancelFunc{},
	}
}

// subject names the call in errors.
func (p *pendingCall) subject() string { return cmp.Or(p.spec.Tool, "the task") }

// callTool sends the call and keeps the server's answer.
func (p *pendingCall) callTool(ctx context.Context) error {
	snapshot, err := p.conn.CallTool(ctx, p.spec)
	if err != nil {
		return err
	}
	p.taskID = snapshot.TaskID
	p.noteState(snapshot)
	noOutcome := snapshot.Result == nil && snapshot.Error == nil && snapshot.Status != StatusCancelled
	if snapshot.Done() && p.taskID != "" && noOutcome {
		// The task was done when it was created. A poll reads how it ended.
		p.last.Status, p.pace.Due = StatusWorking, time.Time{}
	}
	return nil
}

// startWaiting watches the task and answers its questions while anyone waits for it.
// It sends on news when something changes. leave ends the wait.
func (p *pendingCall) startWaiting(ctx context.Context, news chan struct{}) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if first := p.bell.Wait(news); first {
		p.attended, p.leave = context.WithCancel(context.WithoutCancel(ctx))
		p.startWatch()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if last := p.bell.Leave(news); last {
			p.leave()
			p.pace.SetLive(false)
		}
	}
}

// startWatch watches the task until attended ends, if the connection can. p.mu is
// held.
func (p *pendingCall) startWatch() {
	watcher, ok := p.conn.(Watcher)
	if !ok || p.taskID == "" || p.last.Done() {
		return
	}
	live, stop := watcher.Watch(p.taskID, p.receiveUpdate)
	p.pace.SetLive(live)
	if watcher.Ended() {
		p.pace.PollNow()
	}
	context.AfterFunc(p.attended, guard.Func(nil, "the end of a watch", stop))
}

// receiveUpdate takes a state that the server sends.
func (p *pendingCall) receiveUpdate(live bool, s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	outdated := s != nil && !s.Done() && s.UpdatedAt.Before(p.last.UpdatedAt)
	if p.bell.Empty() || p.last.Done() || outdated {
		return
	}
	p.pace.SetLive(live)
	if s != nil {
		p.overtaken = true
		p.noteState(*s)
	} else if watcher, ok := p.conn.(Watcher); ok && watcher.Ended() {
		p.pace.PollNow() // the poll returns the reason
	}
	if p.last.Done() {
		p.stopPoll() // it may hang
	}
	p.bell.Ring()
}

// pollIfDue reads the task if its next poll is due, and starts answers to its
// questions. A transport error or an internal one counts as no news until there are
// too many.
func (p *pendingCall) pollIfDue(ctx context.Context) (Snapshot, error) {
	select {
	case p.polling <- struct{}{}:
		defer func() { <-p.polling }()
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if refusal := p.refusal; refusal != nil {
		p.refusal = nil
		return p.last, refusal
	}
	if p.last.Done() || p.taskID == "" || time.Now().Before(p.pace.Due) {
		return p.last, ctx.Err()
	}
	reading, stop := p.pace.Bound(ctx)
	defer stop()
	p.overtaken, p.stopPoll = false, stop
	p.mu.Unlock()
	snapshot, err := p.readTask(reading)
	p.mu.Lock()
	switch {
	case p.last.Done(): // the server sent the end meanwhile
	case err == nil && p.overtaken && !snapshot.Done() && !snapshot.UpdatedAt.After(p.last.UpdatedAt):
		p.pace.RestartInterval()
	case err == nil:
		p.pace.CheckTrust(p.last.differs(snapshot))
		p.noteState(snapshot)
	case ctx.Err() != nil || p.noteFailure(err):
		p.updateQuestions(nil) // ask nothing for a task that is lost
		return p.last, p.explainError(err)
	}
	if !p.last.Done() && p.pace.IsOver() { // the server has lost the task (E-36)
		p.updateQuestions(nil)
		return p.last, fmt.Errorf("%s: %w: its ttl is over, and it has not ended", p.subject(), ErrExpired)
	}
	return p.last, nil
}

// maxRead bounds one read of a task. A read without an answer would hold up those of other tasks.
const maxRead = time.Minute

// readTask reads the task. It recovers, since it may run in a goroutine that does not.
func (p *pendingCall) readTask(ctx context.Context) (s Snapshot, err error) {
	ctx, stop := context.WithTimeout(ctx, maxRead)
	defer stop()
	defer guard.Then(nil, "the reading of a task", func() {
		err = errors.New("mcptask: reading the task panicked")
	}, "tool", p.spec.Tool)
	return p.conn.Task(ctx, p.taskID)
}

// noteState keeps a state, starts answers to its questions, and sets the next poll
// (C-30, E-25). It polls rarely while the server sends changes, which may be lost
// (C-46, E-66), and at most until the ttl has passed (E-17, E-36). p.mu is held.
func (p *pendingCall) noteState(s Snapshot) {
	p.last, p.expires = s, expiresAt(s)
	p.pace.NoteAnswer(s.Poll, s.TTL)
	p.updateQuestions(s.Questions)
}

// expiresAt returns when the server may forget the task. Zero means never.
func expiresAt(s Snapshot) time.Time {
	if s.TTL < 0 || s.CreatedAt.IsZero() {
		return time.Time{}
	}
	return s.CreatedAt.Add(s.TTL)
}

// noteFailure notes a poll that failed and reports whether to give up. An error of
// the server is final, unless it limits polls or is internal: a store that is away, or
// a bridge whose server starts again, may come back. p.mu is held.
func (p *pendingCall) noteFailure(err error) (giveUp bool) {
	var pause time.Duration
	var wait interface{ RetryAfter() time.Duration }
	if errors.As(err, &wait) {
		pause = wait.RetryAfter()
	}
	var final interface{ Permanent() bool }
	var wire *Error
	switch {
	case errors.As(err, &final) && final.Permanent():
		return true
	case !errors.As(err, &wire):
		return errors.Is(err, ErrDisconnected) || p.pace.NoteFailure(pause)
	case wire.Limit() != "":
		p.pace.NoteLimit(pause)
		return false
	}
	return wire.Code != CodeInternalError || p.pace.NoteFailure(pause)
}

// explainError names the tool. The protocol has one code for all that can happen to a
// task, so explainError finds out whether the error is ErrExpired, ErrNotFound or
// ErrCancelled. p.mu is held.
func (p *pendingCall) explainError(err error) error {
	if err == nil {
		return nil
	}
	var wire *Error
	if !errors.As(err, &wire) || wire.Code != CodeInvalidParams {
		return fmt.Errorf("%s: %w", p.subject(), err)
	}
	ttlPassed := !p.expires.IsZero() && !time.Now().Before(p.expires)
	switch {
	case p.cancelled: // a server may delete a cancelled task at once (C-79, C-80)
		return &lostTaskError{p.subject() + ": " + ErrCancelled.Error(), ErrCancelled, err}
	case wire.Reason() == cause.Expired: // the server's words say it
		return &lostTaskError{fmt.Sprintf("%s: %v", p.subject(), err), ErrExpired, err}
	case ttlPassed:
		return fmt.Errorf("%s: %w: %w", p.subject(), ErrExpired, err)
	case p.last.CreatedAt.IsZero(): // a call resumed from a token, which has seen nothing of its task
		return &lostTaskError{fmt.Sprintf("%s: %v", p.subject(), err), ErrNotFound, err}
	}
	return &lostTaskError{fmt.Sprintf("%s: the server no longer has the task: %v", p.subject(), err), ErrNotFound, err}
}

// lostTaskError is the error of a task that the server does not have. It wraps two errors that say
// the same, so it has a text of its own.
type lostTaskError struct {
	text          string
	reason, cause error
}

// Error implements error.
func (e *lostTaskError) Error() string { return e.text }

// Unwrap returns ErrCancelled, ErrExpired or ErrNotFound, and the server's error.
func (e *lostTaskError) Unwrap() []error { return []error{e.reason, e.cause} }

// nextDue returns when pollIfDue has something to do next.
func (p *pendingCall) nextDue() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Done() || p.refusal != nil {
		return time.Time{}
	}
	return p.pace.Due
}

// waitForNews waits for news or the next poll, at most until ctx ends.
func (p *pendingCall) waitForNews(ctx context.Context, news <-chan struct{}) error {
	timer := time.NewTimer(time.Until(p.nextDue()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-news:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// cancel is Call.Cancel.
func (p *pendingCall) cancel(ctx context.Context) error {
	p.mu.Lock()
	done := p.last.Done()
	p.mu.Unlock()
	if p.taskID == "" || done {
		return nil
	}
	err := p.conn.CancelTask(ctx, p.taskID)
	ended := false
	if err != nil { // 2025-11-25 refuses to cancel a task that has ended (C-75)
		snapshot, readErr := p.conn.Task(ctx, p.taskID)
		ended = readErr == nil && snapshot.Done()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cancelled = p.cancelled || err == nil
	if ended || err == nil { // a poll shows it now (C-77)
		p.pace.PollNow()
		p.bell.Ring()
	}
	err = p.explainError(err)
	if ended || errors.Is(err, ErrCancelled) {
		return nil
	}
	return err
}
