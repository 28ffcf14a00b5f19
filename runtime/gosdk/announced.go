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

// The pace of what is done where a server leaves its client without news.
const (
	// firstLook is how long a call waits for its task to be announced, or to be
	// answered, before it looks whether there is a task; the pauses after that grow
	// up to lastLook.
	firstLook = 5 * time.Second
	lastLook  = 5 * time.Minute
	// searches is how often a task is looked for whose call was cut off, the
	// first pause being searchPause.
	searches    = 5
	searchPause = 500 * time.Millisecond
	// goodbye bounds the cancellation of a call that nobody waits for any longer,
	// and the deletion of a task.
	goodbye = 5 * time.Second
	// hopeless is how long a call stays open once its task was cancelled.
	hopeless = time.Minute
	// maxUnread is how many answers are kept for who reads their tasks next. Of
	// more, the server is asked.
	maxUnread = 1000
)

// announcedClient is the client's side of a revision in which the answer to a call is what its
// task ended with, and a notification says before that there is a task.
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
	// Delete is the request that deletes a task.
	Delete(taskID string) (method string, params any)
}

// announced are the calls of a revision in which the answer to a call is what its
// task ended with, and stays open until then. It is safe for concurrent use.
type announced struct {
	conn     *conn
	protocol announcedClient
	// leaving is what has to get through before the connection is closed, running
	// are the calls.
	leaving, running sync.WaitGroup

	mu     sync.Mutex
	calls  map[string][]*openCall // by the ID of their task
	unread map[string]mcptask.Snapshot
	closed bool
}

func newAnnounced(c *conn, d announcedClient) *announced {
	return &announced{conn: c, protocol: d, calls: map[string][]*openCall{}, unread: map[string]mcptask.Snapshot{}}
}

// openCall is one of the calls.
type openCall struct {
	of     *announced
	link   *link
	call   mcptask.ToolCall
	taskID string
	// hangUp ends the waiting for the answer, without a word to the server.
	hangUp context.CancelFunc
	known  chan struct{} // closed when the task was announced
	done   chan struct{} // closed when the call has ended while its caller waits

	// Under the mutex of announced:
	requestID json.RawMessage // nil before it was sent
	taken     bool            // the server has begun to answer
	detached  bool            // the caller waits no longer
	unwanted  bool            // nobody reads the answer
	silent    bool            // there is nothing more to tell the server
	result    json.RawMessage
	err       error
}

// callKey is the key of the *openCall in the context of its request.
type callKey struct{}

// callOf is the open call that a context is of, nil for any other request.
func callOf(ctx context.Context) *openCall {
	o, _ := ctx.Value(callKey{}).(*openCall)
	return o
}

// sent notes the ID of the request.
func (o *openCall) sent(requestID json.RawMessage) {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.requestID = requestID
}

// begun notes that the server has begun to answer.
func (o *openCall) begun() {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.taken = true
}

// isSilent says whether the SDK is to send no cancellation of its own.
func (o *openCall) isSilent() bool {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	return o.silent
}

// isKnown says whether the task was announced.
func (o *openCall) isKnown() bool {
	select {
	case <-o.known:
		return true
	default:
		return false
	}
}

// take is a taker: it takes the announcements, which the SDK does not know.
func (a *announced) take(message []byte, _ way) bool {
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
		if !o.isKnown() {
			close(o.known)
		}
	}
	return true
}

// start sends a call; what it is answered with comes beside the caller.
func (a *announced) start(ctx context.Context, l *link, call mcptask.ToolCall, params any, taskID string) (*openCall, error) {
	o := &openCall{of: a, link: l, call: call, taskID: taskID, known: make(chan struct{}), done: make(chan struct{})}
	// The call goes on where its caller's context ends: cancel cancels it.
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
		// Who has called waits for this.
		defer guard.Then(a.conn.options.Logger, "a call", func() { o.answered(nil, errors.New("gosdk: the call panicked")) })
		o.answered(l.send(lasting, "tools/call", params))
	})
	return o, nil
}

// call calls a tool and returns as soon as its task is announced or the call is
// answered, whichever is first.
func (a *announced) call(ctx context.Context, l *link, call mcptask.ToolCall, params any, taskID string) (mcptask.Snapshot, error) {
	o, err := a.start(ctx, l, call, params, taskID)
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	found := make(chan mcptask.Snapshot, 1)
	go o.look(looking, found)
	s := a.protocol.Begun(taskID)
	select {
	case <-o.done:
	case s = <-found:
	case <-o.known:
	case <-ctx.Done():
		o.abandon(ctx)
		return s, ctx.Err()
	}
	if !o.detach() {
		return o.outcome(ctx)
	}
	if s.Done() {
		a.ended(taskID)
		a.conn.deleteRead(ctx, l, taskID)
	}
	return s, nil
}

// detach leaves the call to itself; false is too late, it has ended.
func (o *openCall) detach() bool {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	select {
	case <-o.done:
		return false
	default:
		o.detached = true
		return true
	}
}

// leave is detach for a call that was cut off.
func (o *openCall) leave() {
	o.of.mu.Lock()
	defer o.of.mu.Unlock()
	o.detached = true
}

// look asks for the task of a call that has no news, with growing pauses, until
// there is one: a proxy may hold the announcement back.
func (o *openCall) look(ctx context.Context, found chan<- mcptask.Snapshot) {
	defer guard.Recover(nil, "the search for a task")
	for pause := firstLook; ; pause = min(2*pause, lastLook) {
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
		s, err := o.of.protocol.Task(ctx, o.link.send, o.taskID)
		var wire *mcptask.Error
		switch {
		case err == nil:
			found <- s
			return
		case errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound:
			return // the server has no tasks: the answer is to come
		}
	}
}

// abandon cancels a call whose caller has left before there was a task. One with
// an idempotency key goes on: whoever has the key may come back for its task.
func (o *openCall) abandon(ctx context.Context) {
	a := o.of
	if !o.detach() {
		a.drop(o)
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
		sending, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
		defer stop()
		_ = o.cancel(sending) // nobody is left to tell
		o.hangUp()
		a.drop(o)
	})
}

// outcome is what a call ended with while its caller waited.
func (o *openCall) outcome(ctx context.Context) (mcptask.Snapshot, error) {
	a := o.of
	var wire *mcptask.Error
	if o.err != nil && !errors.As(o.err, &wire) {
		s, err := o.search(ctx)
		if err != nil || s.Done() {
			a.drop(o)
		}
		return s, err
	}
	a.drop(o)
	switch {
	case o.err == nil:
		s, _, err := a.protocol.Started(o.result)
		if err == nil && o.isKnown() {
			s.TaskID = o.taskID
			a.conn.deleteRead(ctx, o.link, o.taskID)
		}
		return s, err
	case o.isKnown():
		return o.failed(wire)
	case wire.Code == mcptask.CodeInvalidParams && o.call.IdempotencyKey != "": // perhaps a duplicate
		if s, err := a.conn.read(ctx, o.link, o.taskID); err == nil {
			return s, nil
		}
	}
	return mcptask.Snapshot{}, o.err
}

// search looks for the task of a call that was cut off.
func (o *openCall) search(ctx context.Context) (mcptask.Snapshot, error) {
	c := o.of.conn
	if o.link.ended != nil || ctx.Err() != nil || c.lasts.Err() != nil { // nobody to ask, or for
		return mcptask.Snapshot{}, o.err
	}
	for pause, n := searchPause, 1; ; pause, n = 2*pause, n+1 {
		s, err := c.Task(ctx, o.taskID)
		if err == nil {
			o.leave()
			return s, nil
		}
		var wire *mcptask.Error
		if n == searches || !o.taken || errors.As(err, &wire) {
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

// answered takes the answer to a call, or how it failed.
func (o *openCall) answered(result json.RawMessage, err error) {
	a := o.of
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
		// The polls go on; the request may still be cancelled (see cancel).
		a.conn.options.Logger.Debug("the call of a task was cut off", "task", o.taskID, "error", err)
		return
	}
	var s mcptask.Snapshot
	switch {
	case err == nil:
		s, _, err = a.protocol.Started(result)
	case !a.asking():
		return // the connection is being closed
	default:
		s, err = o.failed(wire)
		a.leaving.Done()
	}
	if err != nil || !s.Done() {
		a.conn.options.Logger.Debug("the answer to a call was not taken", "task", o.taskID, "status", string(s.Status), "error", err)
		return
	}
	s.TaskID = o.taskID
	a.settle(o, s)
}

// failed is the state of a task whose call was answered with an error. Not every
// such answer is the task's end: a server that stops may refuse what is open.
func (o *openCall) failed(answer *mcptask.Error) (mcptask.Snapshot, error) {
	ctx, stop := context.WithTimeout(context.Background(), goodbye)
	defer stop()
	s, err := o.of.protocol.Task(ctx, o.link.send, o.taskID)
	var gone *mcptask.Error
	if errors.As(err, &gone) { // and deleted already
		s, err = o.of.protocol.Begun(o.taskID), nil
		s.Status = mcptask.StatusFailed
	}
	if err == nil && s.Status == mcptask.StatusFailed {
		s.Error = answer // it says more than the task's state
	}
	return s, err
}

// settle tells who waits what a call was answered with, or keeps it for who reads
// the task next. Where a task is deleted once it was read, its reader has to come.
func (a *announced) settle(o *openCall, s mcptask.Snapshot) {
	told := !a.conn.options.DeleteTasks && a.conn.watches.tell(s)
	if told {
		a.conn.logState(s)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(o)
	if !told && !o.unwanted && len(a.unread) < maxUnread {
		a.unread[s.TaskID] = s
	}
}

// answer is what the call of a task was answered with, once.
func (a *announced) answer(taskID string) (mcptask.Snapshot, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, ok := a.unread[taskID]
	delete(a.unread, taskID)
	return s, ok
}

// ended notes that a task has ended, or is gone: no answer is waited for.
func (a *announced) ended(taskID string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range a.calls[taskID] {
		if o.detached {
			o.silent = true
			o.hangUp()
		}
	}
	a.calls[taskID] = slices.DeleteFunc(a.calls[taskID], func(o *openCall) bool { return o.detached })
	a.tidy(taskID)
	delete(a.unread, taskID)
}

// drop forgets a call.
func (a *announced) drop(o *openCall) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.remove(o)
}

// remove is drop with the mutex held.
func (a *announced) remove(o *openCall) {
	a.calls[o.taskID] = slices.DeleteFunc(a.calls[o.taskID], func(other *openCall) bool { return other == o })
	a.tidy(o.taskID)
}

func (a *announced) tidy(taskID string) {
	if len(a.calls[taskID]) == 0 {
		delete(a.calls, taskID)
	}
}

// cancelTask cancels the calls of a session that made a task; ok is false where
// there is none.
func (a *announced) cancelTask(ctx context.Context, l *link, taskID string) (ok bool, err error) {
	a.mu.Lock()
	calls := slices.DeleteFunc(slices.Clone(a.calls[taskID]), func(o *openCall) bool { return o.link != l })
	a.mu.Unlock()
	for _, o := range calls {
		if failed := o.cancel(ctx); failed != nil && err == nil {
			err = failed
		}
	}
	return len(calls) > 0, err
}

// cancel tells the server that the call is cancelled, also where the stream
// of its answer was cut off. The task's state says what comes of it: an
// answer that still comes is as good as any.
func (o *openCall) cancel(ctx context.Context) error {
	o.of.mu.Lock()
	id := o.requestID
	o.of.mu.Unlock()
	if id == nil {
		return nil // hanging up is enough
	}
	method, params := o.of.protocol.Cancelled(o.taskID, id)
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	if err := o.link.wire.connection.Write(ctx, &jsonrpc.Request{Method: method, Params: data}); err != nil {
		return fmt.Errorf("gosdk: cancel the call of the task: %w", plainNames{err})
	}
	o.of.mu.Lock()
	o.silent = true
	o.of.mu.Unlock()
	time.AfterFunc(hopeless, o.hangUp)
	return nil
}

// asking counts a request that the closing of the connection waits for; false is
// too late for one.
func (a *announced) asking() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.closed {
		a.leaving.Add(1)
	}
	return !a.closed
}

// closing waits for what has to get through before the connection is closed.
func (a *announced) closing() {
	if a == nil {
		return
	}
	a.mu.Lock()
	a.closed = true
	a.mu.Unlock()
	a.leaving.Wait()
}

// wait waits for the calls, which end with their sessions.
func (a *announced) wait() {
	if a != nil {
		a.running.Wait()
	}
}
