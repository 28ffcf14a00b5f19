package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
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

// openCalls lets a connection of sep-1686 work like one of 2025-11-25. In sep-1686 a call stays open until its task has
// ended, and a notification announces the task before. openCalls answers a call when its task is announced, and keeps
// the server's answer for the next poll of the task. It is safe for concurrent use.
type openCalls struct {
	conn     *conn
	protocol unofficial.ClientSEP1686
	running  sync.WaitGroup // counts the calls

	mu     sync.Mutex
	calls  map[string]*openCall // by the ID of their task
	closed bool
}

// openCall is one call that the server has yet to answer, or whose answer has yet to be read.
type openCall struct {
	link    *link
	request *request
	taskID  string
	// hangUp stops waiting for the answer. It tells the server nothing if the request is silent.
	hangUp              context.CancelFunc
	announced, answered chan struct{}
	// result and err are the answer. They are set when answered is closed.
	result json.RawMessage
	err    error
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// get returns the call of a task, or nil.
func (h *openCalls) get(taskID string) *openCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.calls[taskID]
}

// forget hangs up the call of a task that has ended or is gone.
func (h *openCalls) forget(taskID string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.calls[taskID]; o != nil {
		o.request.isSilent.Store(true)
		o.hangUp()
		delete(h.calls, taskID)
	}
}

// noteAnnouncement notes that the server announces a task.
func (h *openCalls) noteAnnouncement(method string, params json.RawMessage) {
	if h == nil {
		return
	}
	taskID, _ := h.protocol.Announced(method, params)
	h.mu.Lock()
	defer h.mu.Unlock()
	if o := h.calls[taskID]; o != nil && !isClosed(o.announced) {
		close(o.announced)
	}
}

// start sends a call. A call with the idempotency key of an open one joins that one.
func (h *openCalls) start(ctx context.Context, l *link, params any, taskID string) (*openCall, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if o := h.calls[taskID]; o != nil && o.link == l && !isClosed(o.answered) {
		return o, nil
	}
	// The call must outlive its caller's context. Only cancel cancels it.
	ctx, hangUp := context.WithCancel(context.WithoutCancel(ctx))
	ctx, end := l.begin(ctx, "tools/call", params)
	r, err := l.newRequest(ctx, "tools/call", params)
	if err != nil {
		hangUp()
		end(nil, err)
		return nil, err
	}
	o := &openCall{link: l, request: r, taskID: taskID, hangUp: hangUp, announced: make(chan struct{}), answered: make(chan struct{})}
	h.calls[taskID] = o
	h.running.Go(func() {
		defer guard.Recover(nil, "a call")
		defer o.hangUp()
		o.err = errors.New("gosdk: the call panicked")
		defer h.keepAnswer(o)
		o.result, o.err = l.sendRequest(ctx, r)
		end(o.result, o.err)
	})
	return o, nil
}

// keepAnswer keeps the answer to a call for its caller or the next poll. A caller that waits for the task gets a result
// at once, unless its reader has to delete the task.
func (h *openCalls) keepAnswer(o *openCall) {
	close(o.answered)
	isRead := false
	if o.err == nil && !h.conn.options.DeleteTasks {
		s, err := h.readResult(o)
		if isRead = err == nil && h.conn.watches.deliverState(false, s); isRead {
			h.conn.logState(s)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.calls[o.taskID] == o && (isRead || len(h.calls) > maxUnread) {
		delete(h.calls, o.taskID)
	}
}

// readResult returns the state of a task whose call was answered with a result.
func (h *openCalls) readResult(o *openCall) (mcptask.Snapshot, error) {
	s, _, err := h.protocol.Started(o.result)
	s.TaskID = o.taskID
	return s, err
}

// callTool calls a tool. It returns when the task is announced or the call is answered, whichever
// is first. A proxy may hold the announcement back, so it also asks for the task of a silent call, with
// growing pauses, until the server knows it.
func (h *openCalls) callTool(ctx context.Context, l *link, call mcptask.ToolCall, params any, taskID string) (mcptask.Snapshot, error) {
	o, err := h.start(ctx, l, params, taskID)
	if err != nil {
		return mcptask.Snapshot{}, err
	}
	pause := firstLookDelay
	look := time.NewTimer(pause)
	defer look.Stop()
	for {
		select {
		case <-o.answered:
			return h.takeAnswer(ctx, o, call)
		case <-o.announced:
			return h.protocol.Begun(taskID), nil
		case <-ctx.Done():
			h.abandon(ctx, o, call)
			return mcptask.Snapshot{}, ctx.Err()
		case <-look.C:
		}
		s, err := h.look(ctx, l, o)
		var wire *mcptask.Error
		switch {
		case err == nil:
			if s.Done() {
				h.forget(taskID)
				h.deleteTask(ctx, l, taskID)
			}
			return s, nil
		case errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound:
			continue // the server has no tasks: only the answer will come
		}
		pause = min(2*pause, maxLookDelay)
		look.Reset(pause)
	}
}

// look reads the task of a call, for as long as the call has neither an answer nor an announcement.
func (h *openCalls) look(ctx context.Context, l *link, o *openCall) (mcptask.Snapshot, error) {
	ctx, stop := context.WithTimeout(ctx, firstLookDelay)
	defer stop()
	guard.Go(h.conn.options.Logger, "a look for a task", func() {
		defer stop()
		select {
		case <-o.answered:
		case <-o.announced:
		case <-ctx.Done():
		}
	})
	return h.protocol.Task(ctx, l.send, o.taskID)
}

// abandon cancels a call whose caller has left before there is a task. A call with an idempotency key goes on, because
// its caller may come back for the task.
func (h *openCalls) abandon(ctx context.Context, o *openCall, call mcptask.ToolCall) {
	if call.IdempotencyKey != "" {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	_ = h.sendCancel(ctx, o) // the caller has left
	h.forget(o.taskID)
}

// takeAnswer returns the state of the task from the answer to the call. If the task is announced, only a result is the
// outcome of the task: a server that stops may refuse all open requests.
func (h *openCalls) takeAnswer(ctx context.Context, o *openCall, call mcptask.ToolCall) (mcptask.Snapshot, error) {
	var wire *mcptask.Error
	isAnnounced := isClosed(o.announced)
	switch {
	case o.err != nil && isAnnounced:
		return h.protocol.Begun(o.taskID), nil
	case o.err == nil && isAnnounced:
		return h.readTask(ctx, o.link, o.taskID)
	case o.err != nil && !errors.As(o.err, &wire):
		return h.findTask(ctx, o, call)
	}
	h.forget(o.taskID)
	if o.err == nil {
		s, _, err := h.protocol.Started(o.result)
		return s, err
	}
	if wire.Code == mcptask.CodeInvalidParams && call.IdempotencyKey != "" { // perhaps a duplicate
		if s, err := h.readTask(ctx, o.link, o.taskID); err == nil {
			return s, nil
		}
	}
	return mcptask.Snapshot{}, o.err
}

// findTask looks for the task of a call that was cut off. A call that is found can still be cancelled.
func (h *openCalls) findTask(ctx context.Context, o *openCall, call mcptask.ToolCall) (mcptask.Snapshot, error) {
	if o.link.isPipe || ctx.Err() != nil || h.conn.lifetime.Err() != nil { // the server or the caller is gone
		h.forget(o.taskID)
		return mcptask.Snapshot{}, o.err
	}
	for pause, n := searchPause, 1; ; pause, n = 2*pause, n+1 {
		s, err := h.conn.Task(ctx, o.taskID)
		if err == nil {
			return s, nil
		}
		var wire *mcptask.Error
		if n == maxSearches || !o.request.isTaken.Load() || errors.As(err, &wire) {
			break
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return mcptask.Snapshot{}, ctx.Err()
		}
	}
	h.forget(o.taskID)
	if o.request.isTaken.Load() && call.IdempotencyKey == "" {
		return mcptask.Snapshot{}, fmt.Errorf("gosdk: %s may have been called, but the connection was lost before the answer: %v", call.Tool, o.err) //nolint:errorlint // wrapped, it would have the call made again
	}
	return mcptask.Snapshot{}, o.err
}

// readTask reads a task. If its call was answered with a result, that is the outcome. If it was answered with an error,
// the error says more than the state of the failed task.
func (h *openCalls) readTask(ctx context.Context, l *link, taskID string) (s mcptask.Snapshot, err error) {
	o := h.get(taskID)
	isAnswered := o != nil && isClosed(o.answered)
	var answer, gone *mcptask.Error
	if isAnswered && o.err == nil {
		s, err = h.readResult(o)
	} else {
		s, err = h.protocol.Task(ctx, l.send, taskID)
	}
	isGone := errors.As(err, &gone) && gone.Code == mcptask.CodeInvalidParams
	if isAnswered && errors.As(o.err, &answer) && (isGone || err == nil && s.Status == mcptask.StatusFailed) {
		s, err = h.protocol.Begun(taskID), nil
		s.Status, s.Error = mcptask.StatusFailed, answer
	}
	if isGone || err == nil && s.Done() {
		h.forget(taskID)
	}
	if err == nil && s.Done() && !isGone {
		h.deleteTask(ctx, l, taskID)
	}
	return s, err
}

// deleteTask deletes a task whose outcome was read, if the options say so. The server
// may refuse.
func (h *openCalls) deleteTask(ctx context.Context, l *link, taskID string) {
	options := h.conn.options
	if !options.DeleteTasks {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
	defer stop()
	method, params := h.protocol.Delete(taskID)
	if _, err := l.send(ctx, method, params); err != nil {
		options.Logger.Info("task not deleted", "task", taskID, "error", err)
		return
	}
	options.Logger.Info("task deleted", "task", taskID)
}

// cancelTask cancels the call that made a task. Only its session can.
func (h *openCalls) cancelTask(ctx context.Context, l *link, taskID string) error {
	if o := h.get(taskID); o != nil && o.link == l {
		return h.sendCancel(ctx, o)
	}
	return h.protocol.Cancel(ctx, l.send, taskID)
}

// sendCancel tells the server that the call is cancelled, even if the stream of its answer
// was cut off. The task's state shows the effect, and an answer that still comes is
// accepted.
func (h *openCalls) sendCancel(ctx context.Context, o *openCall) error {
	if !o.request.isSent.Load() {
		return nil // hanging up is enough
	}
	method, params := h.protocol.Cancelled(o.taskID, o.request.id)
	if err := o.link.notify(ctx, method, params); err != nil {
		return fmt.Errorf("gosdk: cancel the call of the task: %w", err)
	}
	o.request.isSilent.Store(true)
	time.AfterFunc(cancelledTimeout, o.hangUp)
	return nil
}

// close lets no more calls begin. wait waits for the calls, which end with their sessions.
func (h *openCalls) close() {
	if h != nil {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.closed = true
	}
}

func (h *openCalls) wait() {
	if h != nil {
		h.running.Wait()
	}
}
