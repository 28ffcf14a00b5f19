package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// These constants pace the requests of a client that hears nothing from its server.
const (
	// firstLookDelay is how long a call waits for an announcement or an answer before it asks for
	// its task. Each further pause doubles, up to maxLookDelay.
	firstLookDelay = 5 * time.Second
	maxLookDelay   = 5 * time.Minute
	// maxSearches is how often a client looks for the task of a call that was cut off. The first
	// pause is searchPause, and each further pause doubles.
	maxSearches = 5
	searchPause = 500 * time.Millisecond
	// cleanupTimeout bounds the cancellation of a call without a caller, and the deletion of a
	// task.
	cleanupTimeout = 5 * time.Second
	// cancelledTimeout is how long a call stays open after its task was cancelled.
	cancelledTimeout = time.Minute
	// maxUnread is how many answers are kept for the next reader of their tasks. The state of any
	// other task is asked of the server.
	maxUnread = 1000
)

// openCalls holds the calls of a revision in which a call stays open until its task has ended, and
// its answer is the task's outcome. It is safe for concurrent use.
type openCalls struct {
	conn     *conn
	protocol announcedClient
	// leaving counts the requests that must be sent before the connection closes. running counts
	// the calls.
	leaving, running sync.WaitGroup

	mu     sync.Mutex
	calls  map[string][]*openCall // by the ID of their task
	unread map[string]mcptask.Snapshot
	closed bool
}

func newOpenCalls(c *conn, d announcedClient) *openCalls {
	return &openCalls{conn: c, protocol: d, calls: map[string][]*openCall{}, unread: map[string]mcptask.Snapshot{}}
}

// openCall is one call that waits for its answer.
type openCall struct {
	owner  *openCalls
	link   *link
	call   mcptask.ToolCall
	taskID string
	// hangUp stops waiting for the answer. It tells the server nothing.
	hangUp    context.CancelFunc
	announced chan struct{} // closed when the task was announced
	done      chan struct{} // closed when the call has ended while its caller waits

	// Under the mutex of announced:
	requestID json.RawMessage // nil until it is sent
	taken     bool            // the server has begun to answer
	detached  bool            // the caller has stopped waiting
	unwanted  bool            // the answer has no reader
	silent    bool            // the server needs no further message
	result    json.RawMessage
	err       error
}

// callKey is the context key of the *openCall of a request.
type callKey struct{}

// openCallFrom returns the open call in the context of its request, or nil for any other request.
func openCallFrom(ctx context.Context) *openCall {
	o, _ := ctx.Value(callKey{}).(*openCall)
	return o
}

// setRequestID records the ID of the request.
func (o *openCall) setRequestID(requestID json.RawMessage) {
	o.owner.mu.Lock()
	defer o.owner.mu.Unlock()
	o.requestID = requestID
}

// markTaken records that the server has begun to answer.
func (o *openCall) markTaken() {
	o.owner.mu.Lock()
	defer o.owner.mu.Unlock()
	o.taken = true
}

// isSilent reports whether the SDK must not send a cancellation of its own.
func (o *openCall) isSilent() bool {
	o.owner.mu.Lock()
	defer o.owner.mu.Unlock()
	return o.silent
}

// isAnnounced reports whether the server has announced the task.
func (o *openCall) isAnnounced() bool {
	select {
	case <-o.announced:
		return true
	default:
		return false
	}
}

// intercept is an interceptor. It takes the announcements, which the SDK does not know.
func (a *openCalls) intercept(message []byte, _ messageSource) bool {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		ID     json.RawMessage `json:"id"`
	}
	if json.Unmarshal(message, &m) != nil || m.ID != nil {
		return false
	}
	taskID, ok := a.protocol.Announced(m.Method, m.Params)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.calls[taskID] {
		if !o.isAnnounced() {
			close(o.announced)
		}
	}
	return true
}

// startCall sends a call. A goroutine of its own accepts the answer.
func (a *openCalls) startCall(ctx context.Context, l *link, call mcptask.ToolCall, params any, taskID string) (*openCall, error) {
	o := &openCall{owner: a, link: l, call: call, taskID: taskID, announced: make(chan struct{}), done: make(chan struct{})}
	// The call must outlive its caller's context. Only sendCancel cancels it.
	lasting, hangUp := context.WithCancel(context.WithValue(context.WithoutCancel(ctx), callKey{}, o))
	o.hangUp = hangUp
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		hangUp()
		return nil, errClosed
	}
	a.calls[taskID] = append(a.calls[taskID], o)
	a.running.Go(func() {
		defer guard.Recover(nil, "a call")
		defer hangUp()
		// The caller waits for acceptAnswer.
		defer guard.Then(a.conn.options.Logger, "a call", func() { o.acceptAnswer(nil, errors.New("gosdk: the call panicked")) })
		o.acceptAnswer(l.send(lasting, "tools/call", params))
	})
	return o, nil
}

// callTool calls a tool. It returns when the task is announced or the call is answered, whichever
// is first.
func (a *openCalls) callTool(ctx context.Context, l *link, call mcptask.ToolCall, params any, taskID string) (mcptask.Snapshot, error) {
	o, err := a.startCall(ctx, l, call, params, taskID)
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	found := make(chan mcptask.Snapshot, 1)
	go o.pollForTask(looking, found)
	s := a.protocol.Begun(taskID)
	select {
	case <-o.done:
	case s = <-found:
	case <-o.announced:
	case <-ctx.Done():
		o.abandon(ctx)
		return s, ctx.Err()
	}
	if !o.detach() {
		return o.takeOutcome(ctx)
	}
	if s.Done() {
		a.forgetTask(taskID)
		a.conn.deleteFinished(ctx, l, taskID)
	}
	return s, nil
}

// detach lets the call go on without its caller. It returns false if the call has already ended.
func (o *openCall) detach() bool {
	o.owner.mu.Lock()
	defer o.owner.mu.Unlock()
	select {
	case <-o.done:
		return false
	default:
		o.detached = true
		return true
	}
}

// markDetached detaches a call that was cut off.
func (o *openCall) markDetached() {
	o.owner.mu.Lock()
	defer o.owner.mu.Unlock()
	o.detached = true
}

// pollForTask asks for the task of a silent call, with growing pauses, until the server knows it
// . It is needed because a proxy may hold the announcement back.
func (o *openCall) pollForTask(ctx context.Context, found chan<- mcptask.Snapshot) {
	defer guard.Recover(nil, "the search for a task")
	for pause := firstLookDelay; ; pause = min(2*pause, maxLookDelay) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		s, err := o.owner.protocol.Task(ctx, o.link.send, o.taskID)
		var wire *mcptask.Error
		switch {
		case err == nil:
			found <- s
			return
		case errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound:
			return // the server has no tasks: only the answer will come
		}
	}
}

// abandon cancels a call whose caller left before the task was announced. A call with an
// idempotency key goes on, because its caller may come back for the task.
func (o *openCall) abandon(ctx context.Context) {
	a := o.owner
	if !o.detach() {
		a.forget(o)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	o.unwanted = true
	if a.closed || o.call.IdempotencyKey != "" {
		return
	}
	a.leaving.Go(func() {
		defer guard.Recover(nil, "the end of a call")
		sending, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
		defer stop()
		_ = o.sendCancel(sending) // the caller has left
		o.hangUp()
		a.forget(o)
	})
}

// takeOutcome returns what the call ended with. The caller has waited for it.
func (o *openCall) takeOutcome(ctx context.Context) (mcptask.Snapshot, error) {
	a := o.owner
	var wire *mcptask.Error
	if o.err != nil && !errors.As(o.err, &wire) {
		s, err := o.findTask(ctx)
		if err != nil || s.Done() {
			a.forget(o)
		}
		return s, err
	}
	a.forget(o)
	switch {
	case o.err == nil:
		s, _, err := a.protocol.Started(o.result)
		if err == nil && o.isAnnounced() {
			s.TaskID = o.taskID
			a.conn.deleteFinished(ctx, o.link, o.taskID)
		}
		return s, err
	case o.isAnnounced():
		return o.readFailedTask(wire)
	case wire.Code == mcptask.CodeInvalidParams && o.call.IdempotencyKey != "": // perhaps a duplicate
		if s, err := a.conn.readTask(ctx, o.link, o.taskID); err == nil {
			return s, nil
		}
	}
	return mcptask.Snapshot{}, o.err
}

// findTask looks for the task of a call that was cut off.
func (o *openCall) findTask(ctx context.Context) (mcptask.Snapshot, error) {
	c := o.owner.conn
	if o.link.endCause != nil || ctx.Err() != nil || c.lifetime.Err() != nil { // the server or the caller is gone
		return mcptask.Snapshot{}, o.err
	}
	for pause, n := searchPause, 1; ; pause, n = 2*pause, n+1 {
		s, err := c.Task(ctx, o.taskID)
		if err == nil {
			o.markDetached()
			return s, nil
		}
		var wire *mcptask.Error
		if n == maxSearches || !o.taken || errors.As(err, &wire) {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return mcptask.Snapshot{}, ctx.Err()
		}
	}
	if o.taken && o.call.IdempotencyKey == "" {
		return mcptask.Snapshot{}, fmt.Errorf("gosdk: %s may have been called, but the connection was lost before the answer: %v", o.call.Tool, o.err) //nolint:errorlint // wrapped, it would have the call made again
	}
	return mcptask.Snapshot{}, o.err
}

// acceptAnswer accepts the answer to a call, or the error that ended it.
func (o *openCall) acceptAnswer(result json.RawMessage, err error) {
	a := o.owner
	a.mu.Lock()
	if !o.detached {
		o.result, o.err = result, err
		close(o.done)
		a.mu.Unlock()
		return
	}
	a.mu.Unlock()
	var wire *mcptask.Error
	if err != nil && !errors.As(err, &wire) {
		// The polls go on. The request may still be cancelled (see sendCancel).
		a.conn.options.Logger.Debug("the call of a task was cut off", "task", o.taskID, "error", err)
		return
	}
	var s mcptask.Snapshot
	switch {
	case err == nil:
		s, _, err = a.protocol.Started(result)
	case !a.addLeaving():
		return // the connection is being closed
	default:
		s, err = o.readFailedTask(wire)
		a.leaving.Done()
	}
	if err != nil || !s.Done() {
		a.conn.options.Logger.Debug("the answer to a call was not taken", "task", o.taskID, "status", string(s.Status), "error", err)
		return
	}
	s.TaskID = o.taskID
	a.deliverAnswer(o, s)
}

// readFailedTask returns the state of a task whose call was answered with an error. The task may go
// on: a server that stops may refuse all open requests.
func (o *openCall) readFailedTask(answer *mcptask.Error) (mcptask.Snapshot, error) {
	ctx, stop := context.WithTimeout(context.Background(), cleanupTimeout)
	defer stop()
	s, err := o.owner.protocol.Task(ctx, o.link.send, o.taskID)
	var gone *mcptask.Error
	if errors.As(err, &gone) { // the server has already deleted it
		s, err = o.owner.protocol.Begun(o.taskID), nil
		s.Status = mcptask.StatusFailed
	}
	if err == nil && s.Status == mcptask.StatusFailed {
		s.Error = answer // it says more than the state of the task
	}
	return s, err
}

// deliverAnswer passes a task's outcome to the callers that wait for it, or keeps it for the next
// reader. If tasks are deleted when they are read, only a reader gets it.
func (a *openCalls) deliverAnswer(o *openCall, s mcptask.Snapshot) {
	told := !a.conn.options.DeleteTasks && a.conn.watches.deliverState(false, s)
	if told {
		a.conn.logState(s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeLocked(o)
	if !told && !o.unwanted && len(a.unread) < maxUnread {
		a.unread[s.TaskID] = s
	}
}

// takeUnread returns the answer that was kept for a task, and forgets it.
func (a *openCalls) takeUnread(taskID string) (mcptask.Snapshot, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.unread[taskID]
	delete(a.unread, taskID)
	return s, ok
}

// forgetTask ends the calls of a task that has ended or is gone.
func (a *openCalls) forgetTask(taskID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.calls[taskID] {
		if o.detached {
			o.silent = true
			o.hangUp()
		}
	}
	a.calls[taskID] = slices.DeleteFunc(a.calls[taskID], func(o *openCall) bool { return o.detached })
	a.removeEmpty(taskID)
	delete(a.unread, taskID)
}

// forget removes a call.
func (a *openCalls) forget(o *openCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.removeLocked(o)
}

// removeLocked removes a call. a.mu is held.
func (a *openCalls) removeLocked(o *openCall) {
	a.calls[o.taskID] = slices.DeleteFunc(a.calls[o.taskID], func(other *openCall) bool { return other == o })
	a.removeEmpty(o.taskID)
}

func (a *openCalls) removeEmpty(taskID string) {
	if len(a.calls[taskID]) == 0 {
		delete(a.calls, taskID)
	}
}

// cancelTask cancels the calls of a session that made a task. It returns false if there are none.
func (a *openCalls) cancelTask(ctx context.Context, l *link, taskID string) (ok bool, err error) {
	a.mu.Lock()
	calls := slices.DeleteFunc(slices.Clone(a.calls[taskID]), func(o *openCall) bool { return o.link != l })
	a.mu.Unlock()
	for _, o := range calls {
		if failed := o.sendCancel(ctx); failed != nil && err == nil {
			err = failed
		}
	}
	return len(calls) > 0, err
}

// sendCancel tells the server that the call is cancelled, even if the stream of its answer
// was cut off. The task's state shows the effect, and an answer that still comes is
// accepted.
func (o *openCall) sendCancel(ctx context.Context) error {
	o.owner.mu.Lock()
	id := o.requestID
	o.owner.mu.Unlock()
	if id == nil {
		return nil // not sent yet: hanging up is enough
	}
	method, params := o.owner.protocol.Cancelled(o.taskID, id)
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if err := o.link.wire.connection.Write(ctx, &jsonrpc.Request{Method: method, Params: data}); err != nil {
		return fmt.Errorf("gosdk: cancel the call of the task: %w", unaliasedError{err})
	}
	o.owner.mu.Lock()
	o.silent = true
	o.owner.mu.Unlock()
	time.AfterFunc(cancelledTimeout, o.hangUp)
	return nil
}

// addLeaving counts a request that must end before the connection closes. It returns false if the
// connection is already closing.
func (a *openCalls) addLeaving() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.leaving.Add(1)
	}
	return !a.closed
}

// drain waits for the requests that must end before the connection closes.
func (a *openCalls) drain() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.leaving.Wait()
}

// wait waits for the calls, which end with their sessions.
func (a *openCalls) wait() {
	if a != nil {
		a.running.Wait()
	}
}

// announcedClient is the client's side of a revision in which the answer to a call is what its
// task ended with, and a notification announces the task before.
type announcedClient interface {
	protocol.Client
	// Expects returns the task ID that the params of a call ask for, "" if they ask for none.
	Expects(params any) (taskID string)
	// Announced reads a notification. ok is false for any but that of a new task; taskID is "" if
	// that names none.
	Announced(method string, params json.RawMessage) (taskID string, ok bool)
	// Begun returns the state of a task that was announced.
	Begun(taskID string) mcptask.Snapshot
	// Cancelled makes the notification that cancels a task, by the ID of the request that made it.
	Cancelled(taskID string, requestID json.RawMessage) (method string, params any)
}

// deleter is the client's side of a revision in which a task can be deleted.
type deleter interface {
	// Delete makes the request that deletes a task.
	Delete(taskID string) (method string, params any)
}
