package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// conn is a mcptask.Conn on the SDK's client. The SDK carries the requests;
// what it cannot express travels as raw params and results (see transport.go).
type conn struct {
	peer    string // for messages
	dial    func(beside) dialed
	options ClientOptions
	named   protocol.Client // of options.Revision; nil where it names none
	release func()          // what Connect has made beside the session
	watches *watches
	// calls are those whose answer is their task's end; nil in revisions without.
	calls *announced
	// receiver runs requests of the server as tasks; nil where none are answered.
	receiver *receiver
	// lasts is over when the connection is closed.
	lasts context.Context
	end   context.CancelFunc
	// opening is held by who opens a session: however long that takes, others
	// are free to give up, and to close the connection.
	opening chan struct{}
	broken  sync.WaitGroup // sessions that are being closed
	// answering has one for each question that is being answered.
	answering chan struct{}

	mu      sync.Mutex
	current *link
}

// connect returns the current link, or opens a new one in the place of broken.
func (c *conn) connect(ctx context.Context, broken *link) (*link, error) {
	if l, err := c.connected(broken); l != nil || err != nil {
		return l, err
	}
	select {
	case c.opening <- struct{}{}:
		defer func() { <-c.opening }()
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-c.lasts.Done():
	}
	if l, err := c.connected(broken); l != nil || err != nil {
		return l, err
	}
	c.drop(broken)
	opening, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(c.lasts, stop)()
	l, err := c.open(opening)
	if err != nil {
		if _, closed := c.connected(broken); closed != nil {
			return nil, closed
		}
		return nil, c.unconnected(err)
	}
	c.mu.Lock()
	closed := c.lasts.Err() != nil
	if !closed {
		c.current = l
	}
	c.mu.Unlock()
	if closed {
		_ = l.close() // nobody has used it
		return nil, errClosed
	}
	c.watches.renew()
	return l, nil
}

// unconnected is the error of a connection that was not made.
func (c *conn) unconnected(err error) error {
	tried, hint := c.options.Revision, ""
	if tried == "" {
		tried = mcptask.Revision20260728 + ", then " + mcptask.Revision20251125
	}
	// The SDK gives the text of the status only.
	if strings.HasSuffix(err.Error(), http.StatusText(http.StatusUnauthorized)) {
		hint = " (ClientOptions.Bearer sends a token, ClientOptions.HTTPClient can add what else the server asks for)"
	}
	return fmt.Errorf("gosdk: connect to %s in %s: %w%s", c.peer, tried, err, hint)
}

// errClosed is the end of every call on a connection that was closed.
var errClosed = fmt.Errorf("gosdk: %w: it was closed here", mcptask.ErrDisconnected)

// connected is the current link, nil where a new one is to be opened.
func (c *conn) connected(broken *link) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.lasts.Err() != nil:
		return nil, errClosed
	case c.current != broken:
		return c.current, nil
	}
	return nil, nil
}

// drop closes a session that is broken: there is nothing more to learn from it,
// and nobody waits for that.
func (c *conn) drop(broken *link) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if broken == nil || c.current != broken || c.lasts.Err() != nil { // it is closed already
		return
	}
	c.current = nil
	c.broken.Go(func() { defer guard.Recover(nil, "the end of a session"); _ = broken.close() })
}

// open makes a session.
func (c *conn) open(ctx context.Context) (opened *link, err error) {
	l := &link{receiving: c.receiver.in(), maxMessage: c.options.MaxMessage}
	defer func() {
		if err != nil {
			l.receiving.end()
		}
	}()
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension(mcptask.ExtensionTasks, nil)
	options := &mcp.ClientOptions{Capabilities: capabilities, Logger: c.options.Logger}
	c.declare(capabilities, options)
	client := mcp.NewClient(c.options.Implementation, options)
	client.AddReceivingMiddleware(c.recovering, related, l.heedChanges)
	for _, method := range carried {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](client, method.alias()); err != nil {
			return nil, err
		}
	}
	for _, root := range c.options.Roots {
		client.AddRoots(&mcp.Root{URI: root.URI, Name: root.Name})
	}
	besides := l.receiving.beside()
	if c.calls != nil {
		receive := besides.take
		besides.take = func(message []byte, from way) bool { return c.calls.take(message, from) || receive(message, from) }
	}
	wire := c.dial(besides)
	l.wire = &kept{Transport: wire.Transport}
	if wire.atEnd != nil {
		wire.atEnd(c.watches.gone)
	}
	var want string
	if c.named != nil {
		want = c.named.Protocol()
	}
	// The SDK asks for a stream in a context of its own.
	defer context.AfterFunc(ctx, l.receiving.end)()
	session, err := client.Connect(ctx, l.wire, &mcp.ClientSessionOptions{ProtocolVersion: want})
	if err != nil {
		return nil, err
	}
	negotiated := session.InitializeResult().ProtocolVersion
	if want != "" && negotiated != want {
		_ = session.Close()
		return nil, fmt.Errorf("the server speaks %s, not %s", negotiated, want)
	}
	l.session, l.ended, l.listen, l.meta = session, wire.ended, wire.listen, c.requestMeta(negotiated)
	switch {
	case negotiated >= mcptask.Revision20260728:
		l.protocol = protocol.Client20260728{Capabilities: c.plainCapabilities()}
	case c.named != nil:
		l.protocol = c.named
	default:
		l.protocol = protocol.Client20251125{}
	}
	l.tasks = negotiated == l.protocol.Protocol() && l.protocol.Takes(wire.capabilities())
	return l, nil
}

// recovering keeps a panic over a message of the server's within the message.
func (c *conn) recovering(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (result mcp.Result, err error) {
		defer func() {
			if p := recover(); p != nil {
				guard.Log(c.options.Logger, "a message of the server's", p, "method", method)
				result, err = nil, &jsonrpc.Error{Code: mcptask.CodeInternalError, Message: "internal error"}
			}
		}()
		return next(ctx, method, req)
	}
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

// Answer implements mcptask.Conn. A question whose schema is not allowed is
// dismissed: 2026-07-28 has no other word for it.
func (c *conn) Answer(ctx context.Context, q mcptask.Question) (response json.RawMessage, ok bool, err error) {
	if c.checkSchema(q) != nil {
		return mcptask.Agreed(mcptask.ErrDismissed)
	}
	return c.answer(ctx, q)
}

// answer is Answer for a question that was checked. It waits where too many are
// being answered. An answerer that panics has failed.
func (c *conn) answer(ctx context.Context, q mcptask.Question) (response json.RawMessage, ok bool, err error) {
	select {
	case c.answering <- struct{}{}:
		defer func() { <-c.answering }()
	case <-ctx.Done():
		return nil, false, ctx.Err()
	}
	defer func() {
		if p := recover(); p != nil {
			guard.Log(c.options.Logger, "an answerer", p, "method", q.Method, "task", q.TaskID)
			response, ok, err = nil, true, errors.New("gosdk: the answerer panicked")
		}
	}()
	switch {
	case q.Method == "sampling/createMessage" && c.options.Sample != nil:
		var request mcptask.SampleRequest
		if err := json.Unmarshal(q.Params, &request); err != nil {
			return nil, true, fmt.Errorf("gosdk: %s: %w", q.Method, err)
		}
		result, err := c.options.Sample(ctx, request)
		if err != nil {
			return nil, true, err
		}
		response, err := json.Marshal(result)
		return response, true, err
	case q.Method == "roots/list" && c.options.Roots != nil:
		response, err := json.Marshal(map[string]any{"roots": c.options.Roots})
		return response, true, err
	case q.URL != "" && c.options.OpenURL != nil:
		return mcptask.Agreed(c.options.OpenURL(ctx, q))
	}
	return c.options.Answer.Answer(ctx, q)
}

// Close implements mcptask.Conn. What is under way ends, the server's requests
// that run as tasks too; an answerer has to return when its context ends.
func (c *conn) Close() error {
	c.calls.closing()
	c.mu.Lock()
	current, closed := c.current, c.lasts.Err() != nil
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
	c.calls.wait()
	if failed := c.receiver.close(); err == nil {
		err = failed
	}
	return err
}

// do runs work on the current link, and once more on a new one where the
// session is gone: a server that was restarted has forgotten it, but not the
// tasks.
func (c *conn) do(ctx context.Context, work func(*link) error) error {
	l, err := c.connect(ctx, nil)
	if err != nil {
		return err
	}
	err = work(l)
	if err != nil && c.lasts.Err() != nil && ctx.Err() == nil {
		return errClosed
	}
	if err != nil && l.ended != nil {
		if cause := l.ended(); cause != nil {
			return fmt.Errorf("gosdk: %s: %w: %w", c.peer, mcptask.ErrDisconnected, cause)
		}
		return err
	}
	if !errors.Is(err, mcp.ErrSessionMissing) && !errors.Is(err, mcp.ErrConnectionClosed) {
		return err
	}
	if l, err = c.connect(ctx, l); err != nil {
		return err
	}
	return work(l)
}

// ListTools implements mcptask.Conn.
func (c *conn) ListTools(ctx context.Context) (tools []mcptask.ToolInfo, err error) {
	err = c.do(ctx, func(l *link) error {
		tools, err = l.list(ctx)
		return err
	})
	return tools, err
}

// CallTool implements mcptask.Conn.
func (c *conn) CallTool(ctx context.Context, call mcptask.ToolCall) (s mcptask.Snapshot, err error) {
	if call.TTL < 0 {
		return s, fmt.Errorf("gosdk: %s: a ttl of %v is none: leave it to the server with 0", call.Tool, call.TTL)
	}
	err = c.do(ctx, func(l *link) error {
		support, err := l.support(ctx, call.Tool)
		if err != nil {
			return err
		}
		var retry *protocol.Retry
		for range maxRounds {
			params, err := l.protocol.Call(call, support, retry)
			if err != nil {
				return err
			}
			if c.calls != nil {
				if taskID := c.calls.protocol.Expects(params); taskID != "" {
					s, err = c.calls.call(ctx, l, call, params, taskID)
					if err == nil {
						c.logCreated(call, s)
					}
					return err
				}
			}
			raw, err := l.send(ctx, "tools/call", params)
			if lost := (unanswered{}); call.IdempotencyKey == "" && errors.As(err, &lost) {
				return fmt.Errorf("gosdk: %s may have been called, but its session ended before the answer: %v", call.Tool, lost.error) //nolint:errorlint // wrapped, it would have the call made again
			}
			var wire *mcptask.Error
			if call.Plain && errors.As(err, &wire) && wire.Code == mcptask.CodeMissingClientCapability {
				call.Plain = false // the tool does not allow it
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
		return fmt.Errorf("gosdk: the server still asked after %d rounds of answers", maxRounds)
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
const maxRounds = 10

// maxQuestions bounds how many of them there may be in an answer.
const maxQuestions = 1000

// answerAll answers the questions that come before a call.
func (c *conn) answerAll(ctx context.Context, questions []mcptask.Question, responses map[string]json.RawMessage) error {
	if len(questions) > maxQuestions {
		return fmt.Errorf("gosdk: the server answered with %d questions: at most %d are taken", len(questions), maxQuestions)
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
	err = c.do(ctx, func(l *link) error {
		s, err = c.read(ctx, l, taskID)
		if wire := (*mcptask.Error)(nil); errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound { // of a plain call
			err = fmt.Errorf("gosdk: the call goes on as a task, of which the server tells nothing in %s (ClientOptions.Revision can name another): %w",
				l.protocol.Revision(), err)
		}
		if waiter, ok := l.protocol.(protocol.Waiter); ok && err == nil && s.Status == mcptask.StatusInputRequired {
			l.await(c.watches.lasting(ctx, taskID), waiter, taskID)
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

// read reads a task, from the answer to its call where that has come.
func (c *conn) read(ctx context.Context, l *link, taskID string) (s mcptask.Snapshot, err error) {
	if c.calls == nil {
		return l.protocol.Task(ctx, l.send, taskID)
	}
	s, answered := c.calls.answer(taskID)
	if !answered {
		s, err = l.protocol.Task(ctx, l.send, taskID)
	}
	var wire *mcptask.Error
	switch {
	case err == nil && s.Done():
		c.calls.ended(taskID)
		c.deleteRead(ctx, l, taskID)
	case errors.As(err, &wire) && wire.Code == mcptask.CodeInvalidParams: // it is gone
		c.calls.ended(taskID)
	}
	return s, err
}

// deleteRead deletes a task whose end was read, where the options say so.
// The server may refuse that.
func (c *conn) deleteRead(ctx context.Context, l *link, taskID string) {
	d, ok := l.protocol.(deleter)
	if !ok || !c.options.DeleteTasks {
		return
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), goodbye)
	defer stop()
	method, params := d.Delete(taskID)
	if _, err := l.send(ctx, method, params); err != nil {
		c.options.Logger.Info("task not deleted", "task", taskID, "error", err)
		return
	}
	c.options.Logger.Info("task deleted", "task", taskID)
}

// logState logs where a task stands.
func (c *conn) logState(s mcptask.Snapshot) {
	if s.Done() {
		c.options.Logger.Info("task settled", "task", s.TaskID, "status", string(s.Status))
		return
	}
	c.options.Logger.Debug("task goes on", "task", s.TaskID, "status", string(s.Status))
}

// CancelTask implements mcptask.Conn.
func (c *conn) CancelTask(ctx context.Context, taskID string) error {
	err := c.do(ctx, func(l *link) error {
		if c.calls != nil {
			if ok, err := c.calls.cancelTask(ctx, l, taskID); ok {
				return err
			}
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
	return c.do(ctx, func(l *link) error { return l.protocol.Respond(ctx, l.send, taskID, responses) })
}
