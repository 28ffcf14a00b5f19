package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// conn is an mcptask.Conn. It opens a new session if the server has lost the current one.
type conn struct {
	peer    string // for messages
	dial    func(c *conn, inbox *inbox) (transport, error)
	options ClientOptions
	chosen  protocol.Client // of options.Revision, nil if that is ""
	release func()          // closes the HTTP connections that Connect made
	watches *watches
	// open translates calls and polls in sep-1686. It is nil in any other revision.
	open *openCalls
	// receiver answers the server's requests, and runs some as tasks.
	receiver *receiver
	// lifetime ends when the connection is closed.
	lifetime context.Context
	end      context.CancelFunc
	// opening is held while a session is opened. It is a channel so that waiters can give up or
	// close the connection meanwhile.
	opening chan struct{}
	broken  sync.WaitGroup // counts the sessions that are being closed
	// answering has one element for each question that is being answered.
	answering chan struct{}

	mu      sync.Mutex
	current *link
}

// connect returns the current link. If that is the broken one, it opens a new link.
func (c *conn) connect(ctx context.Context, broken *link) (*link, error) {
	if l, err := c.currentLink(broken); l != nil || err != nil {
		return l, err
	}
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.lifetime.Done():
	}
	if l, err := c.currentLink(broken); l != nil || err != nil {
		return l, err
	}
	c.dropLink(broken)
	opening, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.lifetime, stop)()
	l, err := c.openLink(opening)
	if err != nil {
		if _, closed := c.currentLink(broken); closed != nil {
			return nil, closed
		}
		return nil, c.connectError(err)
	}
	c.mu.Lock()
	closed := c.lifetime.Err() != nil
	if !closed {
		c.current = l
	}
	c.mu.Unlock()
	if closed {
		_ = l.close() // nothing has used it
		return nil, errClosed
	}
	c.watches.reset()
	return l, nil
}

// connectError returns the error of a connection that could not be opened.
func (c *conn) connectError(err error) error {
	tried, hint, status := c.options.Revision, "", statusError(0)
	if tried == "" {
		tried = mcptask.Revision20260728 + ", then " + mcptask.Revision20251125
	}
	if errors.As(err, &status) && status == http.StatusUnauthorized {
		hint = " (ClientOptions.Bearer sends a token, ClientOptions.HTTPClient can add what else the server asks for)"
	}
	return fmt.Errorf("gosdk: connect to %s in %s: %w%s", c.peer, tried, err, hint)
}

// errClosed fails every call on a closed connection.
var errClosed = fmt.Errorf("gosdk: %w: the client closed the connection", mcptask.ErrDisconnected)

// currentLink returns the current link, or nil if a new one must be opened.
func (c *conn) currentLink(broken *link) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lifetime.Err() != nil:
		return nil, errClosed
	case c.current != broken:
		return c.current, nil
	}
	return nil, nil
}

// dropLink closes a broken session. No caller waits for that.
func (c *conn) dropLink(broken *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if broken == nil || c.current != broken || c.lifetime.Err() != nil { // already dropped or closed
		return
	}
	c.current = nil
	c.broken.Go(func() { defer guard.Recover(nil, "the end of a session"); _ = broken.close() })
}

// openLink opens a session. If the options name no revision, and the server speaks 2026-07-28 but
// has no tasks there, openLink tries 2025-11-25 too. A pipe has only one session, so there it
// tries nothing else.
func (c *conn) openLink(ctx context.Context) (*link, error) {
	l, err := c.openLinkIn(ctx, c.chosen)
	if err != nil || c.chosen != nil || l.isPipe || l.extension || l.protocol.Revision() != mcptask.Revision20260728 {
		return l, err
	}
	older, err := c.openLinkIn(ctx, protocol.Client20251125{})
	if err != nil {
		return l, nil //nolint:nilerr // the server does not speak it, and the first session is whole
	}
	unused := older
	if older.tasks {
		unused, l = l, older
	}
	_ = unused.close()
	return l, nil
}

// openLinkIn opens a session in a revision, or in the newest that the server speaks if chosen is
// nil.
func (c *conn) openLinkIn(ctx context.Context, chosen protocol.Client) (*link, error) {
	l := &link{options: &c.options, peer: c.peer}
	l.inbox = c.receiver.newInbox(func(method string, params json.RawMessage) {
		if method == "notifications/tools/list_changed" {
			l.forgetTools()
		}
		c.open.noteAnnouncement(method, params)
	})
	over, err := c.dial(c, l.inbox)
	if err != nil {
		return nil, err
	}
	_, l.isPipe = over.(*lineTransport)
	l.transport, l.inbox.transport = over, over
	if err := l.negotiate(ctx, c, chosen); err != nil {
		_ = l.close() // nothing has used it
		return nil, err
	}
	return l, nil
}

// Revision implements mcptask.Conn.
func (c *conn) Revision() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return c.options.Revision
	}
	return c.current.protocol.Revision()
}

// Answer implements mcptask.Conn. It dismisses a question with a schema that is not allowed,
// because 2026-07-28 has no other refusal.
func (c *conn) Answer(ctx context.Context, q mcptask.Question) (response json.RawMessage, ok bool, err error) {
	if c.checkSchema(q) != nil {
		return mcptask.Agreed(mcptask.ErrDismissed)
	}
	return c.answerQuestion(ctx, q)
}

// answerQuestion answers a question with a checked schema. It waits while too many others are being
// answered. If an answerer panics, it returns an error.
func (c *conn) answerQuestion(ctx context.Context, q mcptask.Question) (response json.RawMessage, ok bool, err error) {
	select {
	case c.answering <- struct{}{}:
		defer func() { <-c.answering }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer guard.Then(c.options.Logger, "an answerer", func() {
		response, ok, err = nil, true, errors.New("gosdk: the answerer panicked")
	}, "method", q.Method, "task", q.TaskID)
	switch {
	case q.Method == spec.Sample && c.options.Sample != nil:
		var request mcptask.SampleRequest
		if err := json.Unmarshal(q.Params, &request); err != nil {
			return nil, true, fmt.Errorf("gosdk: %s: %w", q.Method, err)
		}
		result, err := c.options.Sample(ctx, request)
		if err != nil {
			return nil, true, err
		}
		if revision := c.Revision(); result != nil && len(result.Content) > 1 && spec.HasSingleBlocks(revision) {
			return nil, true, fmt.Errorf("gosdk: ClientOptions.Sample returned %d blocks, but a message has one block in %s: return one", len(result.Content), revision)
		}
		if response, err = json.Marshal(result); err != nil {
			err = fmt.Errorf("gosdk: the answer of ClientOptions.Sample: %w", err)
		}
		return response, true, err
	case q.Method == spec.Roots && c.options.Roots != nil:
		return encodeRoots(c.options.Roots), true, nil
	case q.URL != "" && c.options.OpenURL != nil:
		return mcptask.Agreed(c.options.OpenURL(ctx, q))
	}
	if response, ok, err = c.options.Answer.Answer(ctx, q); !ok && err == nil {
		c.options.Logger.Warn("a question was not answered: no answerer in ClientOptions fits it",
			"method", q.Method, "input", q.Input, "message", q.Message, "task", q.TaskID, "key", q.Key)
	}
	return response, ok, err
}

// Close implements mcptask.Conn. It ends the calls under way and the server's requests that run as
// tasks. An answerer must return when its context ends.
func (c *conn) Close() error {
	c.open.close()
	c.mu.Lock()
	current, closed := c.current, c.lifetime.Err() != nil
	c.end()
	c.mu.Unlock() // an answerer may use the connection while it ends
	c.watches.close()
	if closed {
		return nil
	}
	defer c.release()
	var err error
	if current != nil {
		err = current.close()
	}
	c.broken.Wait()
	c.open.wait()
	if failed := c.receiver.close(); err == nil {
		err = failed
	}
	return err
}

// withLink runs work on the current link. If the session is gone, it runs work once more on a new
// link: a restarted server forgets its sessions but not its tasks.
func (c *conn) withLink(ctx context.Context, work func(*link) error) error {
	l, err := c.connect(ctx, nil)
	if err != nil {
		return err
	}
	err = work(l)
	if err != nil && c.lifetime.Err() != nil && ctx.Err() == nil {
		return errClosed
	}
	if cause := l.transport.endCause(); err != nil && cause != nil {
		return fmt.Errorf("gosdk: %s: %w: %w", c.peer, mcptask.ErrDisconnected, cause)
	}
	if l.isPipe || !errors.Is(err, errSessionLost) {
		return err
	}
	if l, err = c.connect(ctx, l); err != nil {
		return err
	}
	return work(l)
}

// ListTools implements mcptask.Conn.
func (c *conn) ListTools(ctx context.Context) (tools []mcptask.ToolInfo, err error) {
	err = c.withLink(ctx, func(l *link) error {
		tools, err = l.listTools(ctx)
		return err
	})
	return tools, err
}

// ListTasks implements mcptask.Lister.
func (c *conn) ListTasks(ctx context.Context) (tasks []mcptask.Snapshot, err error) {
	err = c.withLink(ctx, func(l *link) error {
		tasks, err = l.listTasks(ctx)
		return err
	})
	return tasks, err
}

// CallTool implements mcptask.Conn.
func (c *conn) CallTool(ctx context.Context, call mcptask.ToolCall) (s mcptask.Snapshot, err error) {
	if call.TTL < 0 {
		return s, fmt.Errorf("the TTL is %v: give a positive duration, or 0 to leave it to the server", call.TTL)
	}
	err = c.withLink(ctx, func(l *link) error {
		support, isKnown, err := l.taskSupport(ctx, call.Tool)
		if err != nil {
			return err
		}
		var retry *protocol.Retry
		for range maxRounds {
			params, err := l.protocol.Call(call, support, retry)
			if err != nil {
				return err
			}
			if c.open != nil {
				if taskID := c.open.protocol.Expects(params); taskID != "" {
					s, err = c.open.callTool(ctx, l, call, params, taskID)
					if err == nil {
						c.logCreated(call, s)
					}
					return err
				}
			}
			raw, err := l.send(ctx, "tools/call", params)
			if call.IdempotencyKey == "" && errors.Is(err, errUnanswered) { // wrapped, it would have the call made again
				return fmt.Errorf("gosdk: %s may have been called, but its session ended before the answer", call.Tool)
			}
			var wire *mcptask.Error
			if call.Plain && errors.As(err, &wire) && wire.Code == spec.CodeMissingClientCapability {
				call.Plain = false // the tool requires a task
				continue
			}
			if !isKnown && errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound {
				support, isKnown = mcptask.TaskRequired, true // as it may be of a former name, which no list has
				continue
			}
			if err != nil {
				return err
			}
			if s, retry, err = l.protocol.Started(raw); err != nil || retry == nil {
				if err == nil {
					c.logCreated(call, s)
				}
				return err
			}
			if err := c.answerAll(ctx, s.Questions, retry.Responses); err != nil {
				return err
			}
		}
		return fmt.Errorf("gosdk: the server still asks after %d rounds of answers", maxRounds)
	})
	return s, err
}

// logCreated logs that a call has become a task.
func (c *conn) logCreated(call mcptask.ToolCall, s mcptask.Snapshot) {
	if s.TaskID != "" {
		c.options.Logger.Info("task created", "task", s.TaskID, "tool", call.Tool, "ttl", s.TTL)
	}
}

// maxRounds bounds how often a server may answer a call with questions.
const maxRounds = 100

// maxQuestions bounds the questions in one answer.
const maxQuestions = 1000

// answerAll answers the questions that the server asks before it runs a call.
func (c *conn) answerAll(ctx context.Context, questions []mcptask.Question, responses map[string]json.RawMessage) error {
	if len(questions) > maxQuestions {
		return fmt.Errorf("gosdk: the server asks %d questions at once: the limit is %d", len(questions), maxQuestions)
	}
	for _, q := range questions {
		response, ok, err := c.Answer(ctx, q)
		if err != nil {
			return fmt.Errorf("gosdk: answer to question %q: %w", q.Key, err)
		}
		if !ok {
			if response, err = q.Unanswered(); err != nil {
				return fmt.Errorf("gosdk: question %q: %w", q.Key, err)
			}
		}
		responses[q.Key] = response
	}
	return nil
}

// Task implements mcptask.Conn.
func (c *conn) Task(ctx context.Context, taskID string) (s mcptask.Snapshot, err error) {
	err = c.withLink(ctx, func(l *link) error {
		if c.open != nil {
			s, err = c.open.readTask(ctx, l, taskID)
		} else {
			s, err = l.protocol.Task(ctx, l.send, taskID)
		}
		if wire := (*mcptask.Error)(nil); errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound { // of a plain call
			err = fmt.Errorf("gosdk: the call goes on as a task, but the server cannot report tasks in %s (ClientOptions.Revision can name another): %w",
				l.protocol.Revision(), err)
		}
		if waiter, ok := l.protocol.(protocol.Waiter); ok && err == nil && s.Status == mcptask.StatusInputRequired {
			l.awaitResult(c.watches.watchContext(ctx, taskID), waiter, taskID)
		}
		return err
	})
	switch {
	case err == nil:
		c.logState(s)
	case ctx.Err() == nil:
		c.options.Logger.Debug("task not read", "task", taskID, "error", err)
	}
	return s, err
}

// logState logs the state of a task.
func (c *conn) logState(s mcptask.Snapshot) {
	if s.Done() {
		c.options.Logger.Info("task settled", "task", s.TaskID, "status", string(s.Status))
		return
	}
	c.options.Logger.Debug("task goes on", "task", s.TaskID, "status", string(s.Status))
}

// CancelTask implements mcptask.Conn.
func (c *conn) CancelTask(ctx context.Context, taskID string) error {
	err := c.withLink(ctx, func(l *link) error {
		if c.open != nil {
			return c.open.cancelTask(ctx, l, taskID)
		}
		return l.protocol.Cancel(ctx, l.send, taskID)
	})
	if err != nil {
		c.options.Logger.Info("task not cancelled", "task", taskID, "error", err)
		return err
	}
	c.options.Logger.Info("task cancelled", "task", taskID)
	return nil
}

// Respond implements mcptask.Conn.
func (c *conn) Respond(ctx context.Context, taskID string, responses map[string]json.RawMessage) error {
	return c.withLink(ctx, func(l *link) error { return l.protocol.Respond(ctx, l.send, taskID, responses) })
}
