package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// Call is a call of a tool with a typed output, finished or not. All methods
// are safe for concurrent use.
type Call[Out any] struct{ p *pending }

// Run calls a tool and waits for its output. Where the waiting ends first, a
// task without an idempotency key is cancelled: nobody could take it up again.
func Run[Out any](ctx context.Context, conn Conn, tool string, in any, opts ...CallOption) (Out, error) {
	call, err := Start[Out](ctx, conn, tool, in, opts...)
	if err != nil {
		var none Out
		return none, err
	}
	out, err := call.Wait(ctx)
	if err != nil && call.p.spec.IdempotencyKey == "" {
		stop, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
		defer cancel()
		// The caller gets the first error; what becomes of the task is best effort.
		_ = call.Cancel(stop)
	}
	return out, err
}

// cancelWithin bounds the cancellation of an abandoned call.
const cancelWithin = 5 * time.Second

// Start calls a tool and returns as soon as there is a task, or the result.
func Start[Out any](ctx context.Context, conn Conn, tool string, in any, opts ...CallOption) (*Call[Out], error) {
	arguments, err := marshal(in)
	if err != nil {
		return nil, fmt.Errorf("mcptask: encode the arguments of %s: %w", tool, err)
	}
	p := newPending(conn, ToolCall{Tool: tool, Arguments: arguments})
	for _, opt := range opts {
		opt(&p.spec)
	}
	if p.last, err = conn.CallTool(ctx, p.spec); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	p.taskID = p.last.TaskID
	p.note(p.last)
	if s := &p.last; s.Done() && s.Status != StatusCancelled && s.TaskID != "" && s.Result == nil && s.Error == nil {
		s.Status, p.due = StatusWorking, time.Time{} // done when created: how it ended is still to be read
	}
	return &Call[Out]{p}, nil
}

// Resume takes a call up again by its token. It does not ask the server: a
// task that is gone shows at the first Wait.
func Resume[Out any](conn Conn, tool string, token Token, opts ...CallOption) (*Call[Out], error) {
	content, err := token.parse(tool)
	if err != nil {
		return nil, err
	}
	p := newPending(conn, ToolCall{Tool: tool})
	p.taskID, p.expires = content.TaskID, content.Expires
	for _, opt := range opts {
		opt(&p.spec)
	}
	return &Call[Out]{p}, nil
}

// Token is what takes the call up again; ok is false where there is no task,
// because the server answered at once.
func (c *Call[Out]) Token() (token Token, ok bool) {
	p := c.p
	if p.taskID == "" {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return newToken(tokenContent{Tool: p.spec.Tool, TaskID: p.taskID, Expires: p.expires}), true
}

// Updates yields the call's state now, each change of it, and at last the
// state that is done. It polls at the server's interval, whatever that becomes
// meanwhile (C-30, E-25), and answers questions. An error ends it.
func (c *Call[Out]) Updates(ctx context.Context) iter.Seq2[Snapshot, error] {
	return func(yield func(Snapshot, error) bool) {
		var shown Snapshot
		for {
			snapshot, err := c.p.step(ctx)
			if err != nil {
				yield(snapshot, err)
				return
			}
			changed := snapshot.Status != shown.Status || snapshot.Message != shown.Message || !snapshot.UpdatedAt.Equal(shown.UpdatedAt)
			if changed { // a resumed call has no state before it is read
				if shown = snapshot; !yield(snapshot, nil) {
					return
				}
			}
			if snapshot.Done() {
				return
			}
			if err := c.p.pause(ctx); err != nil {
				yield(snapshot, err)
				return
			}
		}
	}
}

// Wait returns the output when the call is done. Errors: *ToolError where the
// tool says that it failed, *Error where the server does, ErrCancelled,
// ErrExpired, ErrNotFound, ErrWorkerLost, the context's own, and transport
// errors that outlast several tries.
func (c *Call[Out]) Wait(ctx context.Context) (Out, error) {
	var out Out
	for {
		snapshot, err := c.p.step(ctx)
		if err != nil {
			return out, err
		}
		if snapshot.Done() {
			return decodeOutput[Out](c.p.spec.Tool, snapshot)
		}
		if err := c.p.pause(ctx); err != nil {
			return out, err
		}
	}
}

// Cancel asks the server to cancel the task. It is no error where the call is
// done already. A server of 2026-07-28 may end the task otherwise: Wait tells.
func (c *Call[Out]) Cancel(ctx context.Context) error {
	p := c.p
	p.mu.Lock()
	done := p.last.Done()
	p.mu.Unlock()
	if p.taskID == "" || done {
		return nil
	}
	err := p.conn.CancelTask(ctx, p.taskID)
	if err == nil {
		return nil
	}
	// 2025-11-25 refuses to cancel a task that has ended (C-75).
	if snapshot, readErr := p.conn.Task(ctx, p.taskID); readErr == nil && snapshot.Done() {
		return nil
	}
	return p.explain(err)
}

// pending is the untyped part of a call.
type pending struct {
	conn   Conn
	spec   ToolCall
	taskID string
	// polling is held by the one poll under way, however many wait.
	polling chan struct{}

	// woken ends one pause, because an answer failed.
	woken chan struct{}

	mu       sync.Mutex
	last     Snapshot
	due      time.Time // the next poll is not before this
	failures int
	expires  time.Time
	answers  map[string]context.CancelFunc // of the questions that were taken up, by key
	refused  error                         // of an answer, for who waits next
}

func newPending(conn Conn, spec ToolCall) *pending {
	return &pending{
		conn: conn, spec: spec, polling: make(chan struct{}, 1), woken: make(chan struct{}, 1),
		answers: map[string]context.CancelFunc{},
	}
}

// Tries and pauses of polls that fail below the protocol.
const (
	maxFailures = 6
	maxPause    = 30 * time.Second
)

// step reads the task if its next poll is due, and takes up its questions. A
// transport error counts as no news until there are too many.
func (p *pending) step(ctx context.Context) (Snapshot, error) {
	select {
	case p.polling <- struct{}{}:
		defer func() { <-p.polling }()
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
	p.mu.Lock()
	last, due, refused := p.last, p.due, p.refused
	p.refused = nil
	p.mu.Unlock()
	if refused != nil {
		return last, refused
	}
	if last.Done() || p.taskID == "" || time.Now().Before(due) {
		return last, ctx.Err()
	}
	snapshot, err := p.conn.Task(ctx, p.taskID)
	if err != nil {
		var wire *Error
		if errors.As(err, &wire) || errors.Is(err, ErrDisconnected) || ctx.Err() != nil || p.fail() {
			p.respond(ctx, nil) // nobody is asked for a task that is lost
			return last, p.explain(err)
		}
		return last, nil
	}
	p.note(snapshot)
	p.respond(ctx, snapshot.Questions)
	return snapshot, nil
}

// note keeps what was read, and when to read again: at the server's interval,
// never sooner, and up to a tenth later so that many clients do not poll in
// step (C-30, E-25).
func (p *pending) note(s Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last, p.failures, p.expires = s, 0, expiry(s)
	p.due = p.after(0)
}

// after is the time of the next poll, in a pause or in the server's interval,
// whichever is longer. p.mu is held.
func (p *pending) after(pause time.Duration) time.Time {
	interval := p.last.Poll
	if interval <= 0 {
		interval = DefaultPoll
	}
	interval = min(max(interval, pause), maxDuration)
	return time.Now().Add(interval + rand.N(interval/10+1))
}

// fail counts a failed poll, puts the next one off, twice as long each time,
// and says whether it is time to give up.
func (p *pending) fail() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.due = p.after(min(DefaultPoll<<p.failures, maxPause))
	if p.failures++; p.failures <= maxFailures {
		return false
	}
	p.failures = 0 // who waits again tries as often again
	return true
}

// next is when the next poll is due.
func (p *pending) next() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.due
}

// pause waits for the next poll, at most until ctx ends.
func (p *pending) pause(ctx context.Context) error {
	timer := time.NewTimer(time.Until(p.next()))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-p.woken:
	case <-ctx.Done():
	}
	return ctx.Err()
}

// respond takes up the questions that are new (E-41, E-49, E-96), each in a
// goroutine of its own: a person who thinks must not hide what becomes of the
// task. An answer that is no longer asked for is given up.
func (p *pending) respond(ctx context.Context, questions []Question) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, giveUp := range p.answers {
		if !slices.ContainsFunc(questions, func(q Question) bool { return q.Key == key }) {
			giveUp()
		}
	}
	for _, q := range questions {
		if p.answers[q.Key] == nil {
			answering, giveUp := context.WithCancel(ctx)
			p.answers[q.Key] = giveUp
			go p.answer(answering, q)
		}
	}
}

// answer answers one question.
func (p *pending) answer(ctx context.Context, q Question) {
	response, ok, err := p.conn.Answer(ctx, q)
	if err == nil && !ok {
		response, err = q.Unanswered()
	}
	if err == nil {
		err = p.conn.Respond(ctx, p.taskID, map[string]json.RawMessage{q.Key: response})
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	abandoned := ctx.Err() != nil
	p.answers[q.Key]()
	if err == nil {
		return
	}
	delete(p.answers, q.Key) // who waits next may try again
	if abandoned {
		return
	}
	p.refused = fmt.Errorf("%s: answer to question %q: %w", p.spec.Tool, q.Key, err)
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

// explain makes ErrExpired or ErrNotFound of the protocol's one code for both.
func (p *pending) explain(err error) error {
	var wire *Error
	if !errors.As(err, &wire) || wire.Code != CodeInvalidParams {
		return err
	}
	p.mu.Lock()
	over := !p.expires.IsZero() && !time.Now().Before(p.expires)
	p.mu.Unlock()
	reason := ErrNotFound
	if over || wire.Reason() == reasonExpired {
		reason = ErrExpired
	}
	return fmt.Errorf("%s: %w: %w", p.spec.Tool, reason, err)
}

// expiry is when the server may forget the task; zero is never.
func expiry(s Snapshot) time.Time {
	if s.TTL < 0 || s.CreatedAt.IsZero() {
		return time.Time{}
	}
	return s.CreatedAt.Add(s.TTL)
}

// decodeOutput makes the typed output of a call that is done.
func decodeOutput[Out any](tool string, s Snapshot) (Out, error) {
	var out Out
	switch {
	case s.Error != nil:
		return out, fmt.Errorf("%s: %w", tool, s.Error)
	case s.Status == StatusCancelled:
		return out, fmt.Errorf("%s: %w", tool, ErrCancelled)
	case s.Result == nil:
		return out, fmt.Errorf("%s: the server sent neither a result nor an error", tool)
	case s.Result.IsError:
		return out, &ToolError{Tool: tool, Result: s.Result}
	}
	switch out := any(&out).(type) {
	case *string:
		*out = s.Result.Text()
		return *any(out).(*Out), nil
	case **Result:
		*out = s.Result
		return *any(out).(*Out), nil
	case *struct{}:
		return *any(out).(*Out), nil
	}
	structured := s.Result.Structured
	if len(structured) == 0 { // a server that sends the JSON as text only
		structured = json.RawMessage(s.Result.Text())
	}
	if err := json.Unmarshal(structured, &out); err != nil {
		return out, fmt.Errorf("%s: the result does not fit the output type: %s", tool, decodeMessage(err))
	}
	return out, nil
}
