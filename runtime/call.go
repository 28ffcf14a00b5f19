package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pace"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/plain"
	tokens "github.com/mcptaskgen/mcptaskgen/runtime/internal/token"
)

// Call is a call of a tool with a typed output, finished or not. All methods
// are safe for concurrent use.
type Call[Out any] struct{ pending *pendingCall }

// Run calls a tool and waits for its output. Where the waiting ends first, a
// task without an idempotency key is cancelled: nobody could take it up again.
func Run[Out, In any](ctx context.Context, conn Conn, tool string, in In, opts ...CallOption) (Out, error) {
	call, err := Start[Out](ctx, conn, tool, in, opts...)
	if err != nil {
		var none Out
		return none, err
	}
	out, err := call.Wait(ctx)
	if err != nil && call.pending.spec.IdempotencyKey == "" {
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
func Start[Out, In any](ctx context.Context, conn Conn, tool string, in In, opts ...CallOption) (*Call[Out], error) {
	arguments, err := plain.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("mcptask: encode the arguments of %s: %w", tool, err)
	}
	p := newPendingCall(conn, ToolCall{Tool: tool, Arguments: arguments})
	for _, opt := range opts {
		opt(&p.spec)
	}
	if p.last, err = conn.CallTool(ctx, p.spec); err != nil {
		return nil, fmt.Errorf("%s: %w", tool, err)
	}
	p.taskID = p.last.TaskID
	p.noteState(p.last)
	if s := &p.last; s.Done() && s.Status != StatusCancelled && s.TaskID != "" && s.Result == nil && s.Error == nil {
		s.Status, p.pace.Due = StatusWorking, time.Time{} // done when created: how it ended is still to be read
	}
	return &Call[Out]{p}, nil
}

// Resume takes a call up again by its token. It does not ask the server: a task that is
// gone shows at the first Wait. Of several calls of one token each asks the person.
func Resume[Out any](conn Conn, tool string, token Token, opts ...CallOption) (*Call[Out], error) {
	content, err := tokens.Decode(string(token), tool)
	if err != nil {
		return nil, err
	}
	p := newPendingCall(conn, ToolCall{Tool: tool})
	p.taskID, p.expires, p.pace.Last = content.TaskID, content.Expires, content.Expires
	for _, opt := range opts {
		opt(&p.spec)
	}
	return &Call[Out]{p}, nil
}

// Token is what takes the call up again; ok is false where there is no task, because the
// server answered at once. Errors name only the tool: log it beside them to know the task.
func (c *Call[Out]) Token() (token Token, ok bool) {
	p := c.pending
	if p.taskID == "" {
		return "", false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return Token(tokens.Encode(tokens.Content{Tool: p.spec.Tool, TaskID: p.taskID, Expires: p.expires})), true
}

// Updates yields the call's state now, each change of it, and at last the
// state that is done. It polls at the server's interval, whatever that becomes
// meanwhile (C-30, E-25), or is told (see Watcher), and answers questions. An
// error ends it; see Wait.
func (c *Call[Out]) Updates(ctx context.Context) iter.Seq2[Snapshot, error] {
	return func(yield func(Snapshot, error) bool) {
		news := make(chan struct{}, 1)
		defer c.pending.startWaiting(ctx, news)()
		var shown Snapshot
		for {
			snapshot, err := c.pending.pollIfDue(ctx)
			if err != nil {
				yield(snapshot, err)
				return
			}
			if shown.differs(snapshot) { // a resumed call has no state before it is read
				if shown = snapshot; !yield(snapshot, nil) {
					return
				}
			}
			if snapshot.Done() {
				return
			}
			if err := c.pending.waitForNews(ctx, news); err != nil {
				yield(snapshot, err)
				return
			}
		}
	}
}

// Wait returns the output when the call is done. Errors: *ToolError where the
// tool says that it failed, *Error where the server does, ErrCancelled,
// ErrExpired, ErrNotFound, ErrWorkerLost, the context's own, and transport
// errors that outlast several tries. A server that limits polls is polled more
// slowly; one that has said nothing else than "working" since the task's ttl
// passed has lost it: ErrExpired (E-36).
func (c *Call[Out]) Wait(ctx context.Context) (Out, error) {
	var out Out
	for snapshot, err := range c.Updates(ctx) {
		if err != nil {
			return out, err
		}
		if snapshot.Done() {
			return decodeOutput[Out](c.pending.spec.Tool, snapshot)
		}
	}
	return out, ctx.Err() // Updates ends with one of the two
}

// Cancel asks the server to cancel the task. It is no error where the call is
// done already. A server of 2026-07-28 may end the task otherwise, and any may
// forget it at once (C-80): Wait tells.
func (c *Call[Out]) Cancel(ctx context.Context) error {
	p := c.pending
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
	if p.cancelled = p.cancelled || err == nil; ended || err == nil { // it shows now, at the latest (C-77)
		p.pace.PollNow()
		p.bell.Ring()
	}
	if err = p.explainError(err); ended || errors.Is(err, ErrCancelled) {
		return nil
	}
	return err
}

// pending is the untyped part of a call.
type pendingCall struct {
	conn   Conn
	spec   ToolCall
	taskID string
	// polling is held by the one poll under way, however many wait.
	polling chan struct{}

	mu               sync.Mutex
	last             Snapshot
	pace             pace.Pace
	expires          time.Time                     // by the server's clock
	cancelled        bool                          // the server took our cancellation
	overtaken        bool                          // the server told something since the poll under way began
	stopPoll         func()                        // ends that poll
	answers          map[string]context.CancelFunc // of the questions that were taken up, by key
	waitingQuestions []Question                    // those of last that may still be taken up
	answersUnderWay  int                           // answers under way
	refusal          error                         // of an answer, for who waits next
	bell             pace.Bell                     // of who waits
	attended         context.Context               // lasts while anybody waits
	leave            func()                        // ends attended and the watch
}

func newPendingCall(conn Conn, spec ToolCall) *pendingCall {
	return &pendingCall{
		conn: conn, spec: spec, polling: make(chan struct{}, 1), answers: map[string]context.CancelFunc{},
		pace: pace.Pace{Default: DefaultPoll}, stopPoll: func() {},
	}
}

// attend watches the task while anybody waits for it, and has its questions
// answered; news hears of changes.
func (p *pendingCall) startWaiting(ctx context.Context, news chan struct{}) (leave func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bell.Wait(news) {
		p.attended, p.leave = context.WithCancel(context.WithoutCancel(ctx))
		if w, ok := p.conn.(Watcher); ok && p.taskID != "" && !p.last.Done() {
			live, stop := w.Watch(p.taskID, p.receiveUpdate)
			if p.pace.SetLive(live); w.Ended() {
				p.pace.PollNow()
			}
			context.AfterFunc(p.attended, func() {
				defer guard.Recover(nil, "the end of a watch")
				stop()
			})
		}
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.bell.Leave(news) {
			p.leave()
			p.pace.SetLive(false)
		}
	}
}

// heard takes what the server says unasked.
func (p *pendingCall) receiveUpdate(live bool, s *Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bell.Empty() || p.last.Done() || s != nil && !s.Done() && s.UpdatedAt.Before(p.last.UpdatedAt) {
		return
	}
	if p.pace.SetLive(live); s != nil {
		p.overtaken = true
		p.noteState(*s)
	} else if w, ok := p.conn.(Watcher); ok && w.Ended() {
		p.pace.PollNow() // the next poll says why
	}
	if p.last.Done() {
		p.stopPoll() // it may hang
	}
	p.bell.Ring()
}

// step reads the task if its next poll is due, and takes up its questions. A
// transport error counts as no news until there are too many.
func (p *pendingCall) pollIfDue(ctx context.Context) (Snapshot, error) {
	select {
	case p.polling <- struct{}{}:
		defer func() { <-p.polling }()
	case <-ctx.Done():
		return Snapshot{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if refused := p.refusal; refused != nil {
		p.refusal = nil
		return p.last, refused
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
	case p.last.Done(): // it was told meanwhile
	case err == nil && p.overtaken && !snapshot.Done() && !snapshot.UpdatedAt.After(p.last.UpdatedAt):
		p.pace.RestartInterval()
	case err == nil:
		p.pace.CheckTrust(p.last.differs(snapshot))
		p.noteState(snapshot)
	case ctx.Err() != nil || p.noteFailure(err):
		p.updateQuestions(nil) // nobody is asked for a task that is lost
		return p.last, p.explainError(err)
	}
	if !p.last.Done() && p.pace.IsOver() {
		p.updateQuestions(nil)
		return p.last, fmt.Errorf("%s: %w: its ttl has passed without an end", p.spec.Tool, ErrExpired)
	}
	return p.last, nil
}

// read reads the task. It may be called from a goroutine that nobody else recovers.
func (p *pendingCall) readTask(ctx context.Context) (s Snapshot, err error) {
	defer func() {
		if v := recover(); v != nil {
			guard.Log(nil, "the reading of a task", v, "tool", p.spec.Tool)
			err = errors.New("mcptask: reading the task panicked")
		}
	}()
	return p.conn.Task(ctx, p.taskID)
}

// note keeps a state, takes up its questions, and sets when to read again
// (C-30, E-25): rarely where the server tells of changes, which may be lost
// (C-46, E-66), and at most until its ttl has passed (E-17, E-36). p.mu is held.
func (p *pendingCall) noteState(s Snapshot) {
	p.last, p.expires = s, expiresAt(s)
	p.pace.NoteAnswer(s.Poll, s.TTL)
	p.updateQuestions(s.Questions)
}

// fail notes a failed poll and says whether it is time to give up: the server's
// word is final, unless it only limits polls. p.mu is held.
func (p *pendingCall) noteFailure(err error) bool {
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
	return true
}

// next is when there is something to do: the next poll, or what was heard.
func (p *pendingCall) nextDue() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Done() || p.refusal != nil {
		return time.Time{}
	}
	return p.pace.Due
}

// pause waits for news or the next poll, at most until ctx ends.
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

// Bounds of what a task can ask. Its server's are lower, if it is one of ours.
const (
	// answersAtOnce is how many of a task's questions are answered at once.
	answersAtOnce = 16
	// maxQuestions is how many are answered in all.
	maxAnsweredQuestions = 1000
	// maxKey is how many bytes the key of one may have: it is remembered.
	maxQuestionKey = 1 << 10
)

// respond takes up the questions that are new (E-41, E-49, E-96). An answer that is
// no longer asked for is given up, and so are all when nobody waits any longer.
// p.mu is held.
func (p *pendingCall) updateQuestions(questions []Question) {
	still := make(map[string]bool, len(questions))
	for _, q := range questions {
		still[q.Key] = true
	}
	for key, giveUp := range p.answers {
		if !still[key] {
			giveUp()
		}
	}
	p.waitingQuestions = questions
	p.startAnswers()
}

// takeUp has questions answered, as many as there is room for, each in a goroutine
// of its own: a person who thinks must not hide what becomes of the task. p.mu is
// held.
func (p *pendingCall) startAnswers() {
	if p.attended == nil || p.attended.Err() != nil {
		return
	}
	for len(p.waitingQuestions) > 0 && p.answersUnderWay < answersAtOnce {
		q := p.waitingQuestions[0]
		p.waitingQuestions = p.waitingQuestions[1:]
		if p.answers[q.Key] != nil {
			continue
		}
		var err error
		switch {
		case len(q.Key) > maxQuestionKey:
			err = fmt.Errorf("the server sent a question whose key has %d bytes: at most %d are taken", len(q.Key), maxQuestionKey)
		case len(p.answers) >= maxAnsweredQuestions:
			err = fmt.Errorf("the server sent more than %d questions: no more are answered", maxAnsweredQuestions)
		}
		if err != nil {
			p.waitingQuestions = nil
			p.refuseQuestions(err)
			return
		}
		answering, giveUp := context.WithCancel(p.attended)
		p.answers[q.Key] = giveUp
		p.answersUnderWay++
		go p.answerQuestion(answering, q)
	}
}

// refuse tells who waits next of questions that were not answered. p.mu is held.
func (p *pendingCall) refuseQuestions(err error) {
	p.refusal = fmt.Errorf("%s: %w", p.spec.Tool, err)
	p.bell.Ring()
}

// answer answers one question and makes room for the next.
func (p *pendingCall) answerQuestion(ctx context.Context, q Question) {
	defer guard.Recover(nil, "the answer to a question")
	abandoned, err := p.giveAnswer(ctx, q)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answersUnderWay--
	p.answers[q.Key]()
	if err != nil || abandoned {
		delete(p.answers, q.Key) // who waits next may try again
	}
	if err != nil && !abandoned {
		p.refuseQuestions(fmt.Errorf("answer to question %q: %w", q.Key, err))
	}
	p.startAnswers()
}

// give asks for the answer to a question, and sends one that was given also where
// it is given up meanwhile: a key gets one response.
func (p *pendingCall) giveAnswer(ctx context.Context, q Question) (abandoned bool, err error) {
	defer func() {
		if v := recover(); v != nil {
			guard.Log(nil, "an answer", v, "tool", p.spec.Tool, "key", q.Key)
			err = errors.New("mcptask: answering it panicked")
		}
	}()
	response, ok, err := p.conn.Answer(ctx, q)
	if err == nil && !ok {
		response, err = q.Unanswered()
	}
	if ctx.Err() != nil || err != nil {
		return ctx.Err() != nil, err
	}
	sending, stop := context.WithTimeout(context.WithoutCancel(ctx), pace.Margin)
	defer stop()
	return false, pace.Retry(sending, DefaultPoll, isLimited, func() error {
		return p.conn.Respond(sending, p.taskID, map[string]json.RawMessage{q.Key: response})
	})
}

// isLimited says whether the server asks to come back later.
func isLimited(err error) bool {
	var wire *Error
	return errors.As(err, &wire) && wire.Limit() != ""
}

// explain names the tool, and makes ErrExpired, ErrNotFound or ErrCancelled of the
// protocol's one code for all. p.mu is held.
func (p *pendingCall) explainError(err error) error {
	if err == nil {
		return nil
	}
	var wire *Error
	if !errors.As(err, &wire) || wire.Code != CodeInvalidParams {
		return fmt.Errorf("%s: %w", p.spec.Tool, err)
	}
	reason := ErrNotFound
	switch {
	case p.cancelled: // and deleted (C-79)
		reason = ErrCancelled
	case wire.Reason() == reasonExpired || !p.expires.IsZero() && !time.Now().Before(p.expires):
		reason = ErrExpired
	}
	return fmt.Errorf("%s: %w: %w", p.spec.Tool, reason, err)
}

// expiry is when the server may forget the task; zero is never.
func expiresAt(s Snapshot) time.Time {
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
	if err := decodeGuarded(structured, &out); err != nil {
		return out, fmt.Errorf("%s: the result does not fit the output type: %s", tool, plain.Mismatch(err))
	}
	return out, nil
}

// decode decodes what a server sent into a type of the user's, whose own decoding
// may not be ready for it.
func decodeGuarded(data json.RawMessage, into any) (err error) {
	defer func() {
		if v := recover(); v != nil {
			guard.Log(nil, "the decoding of a result", v)
			err = fmt.Errorf("decoding it into a %T panicked", into)
		}
	}()
	return json.Unmarshal(data, into)
}
