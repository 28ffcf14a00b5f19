package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// ClientOptions configure a connection. The zero value is ready to use.
type ClientOptions struct {
	// Answer answers the questions of tasks; the zero Answerer declares that
	// nobody can be asked.
	Answer mcptask.Answerer
	// Sample answers a task's requests to a model; nil declares that there is
	// none.
	Sample func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error)
	// Roots are the places that the user has opened; nil declares that none are
	// told.
	Roots []mcptask.Root
	// OpenURL shows a page to the person; nil declares that nobody can. It
	// returns ErrDeclined or ErrDismissed to refuse.
	OpenURL func(context.Context, mcptask.Question) error
	// Revision is the protocol revision to speak; "" tries 2026-07-28, then
	// 2025-11-25.
	Revision string
	// HTTPClient makes the requests; nil is a client without a time limit.
	HTTPClient *http.Client
	// Implementation names the client to the server; nil is this package.
	Implementation *mcp.Implementation
	// Logger takes what the SDK logs; nil discards it.
	Logger *slog.Logger
}

// Connect opens a connection to a server over streamable HTTP. Errors: those of
// the transport, the server's refusal, and a revision that the server does not
// speak. Close the connection when it is no longer needed; its tasks go on.
func Connect(ctx context.Context, url string, options ClientOptions) (mcptask.Conn, error) {
	var own *http.Transport // nil where the connections are the caller's to close
	client := options.HTTPClient
	if client == nil {
		client = &http.Client{}
		if shared, ok := http.DefaultTransport.(*http.Transport); ok {
			own = shared.Clone()
			client.Transport = own
		}
	}
	c, err := connectOver(ctx, url, options, func() dialed {
		wire := &transport{base: client.Transport}
		over := *client
		over.Transport = wire
		return dialed{&mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &over}, wire.takesTasks, nil}
	})
	switch {
	case own == nil:
	case err != nil:
		own.CloseIdleConnections()
	default:
		c.release = own.CloseIdleConnections
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// dialed is a transport of the SDK's with what the SDK does not tell of it.
type dialed struct {
	mcp.Transport
	// takesTasks says, once it is connected, whether the server has declared
	// task-augmented calls (C-08).
	takesTasks func() bool
	// ended says why the peer is gone for ever, nil where it is not; nil itself
	// is for peers that can be connected to anew.
	ended func() error
}

// connectOver opens a connection over any transport of the SDK's.
func connectOver(ctx context.Context, peer string, options ClientOptions, dial func() dialed) (*conn, error) {
	switch options.Revision {
	case "", mcptask.Revision20251125, mcptask.Revision20260728:
	default:
		return nil, fmt.Errorf("gosdk: the revision %q is not supported: leave it empty or use %s or %s",
			options.Revision, mcptask.Revision20251125, mcptask.Revision20260728)
	}
	if options.Implementation == nil {
		options.Implementation = &mcp.Implementation{Name: "mcptaskgen", Version: "1"}
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c := &conn{peer: peer, dial: dial, options: options, release: func() {}}
	if _, err := c.connect(ctx, nil); err != nil {
		return nil, err
	}
	return c, nil
}

// conn is a mcptask.Conn on the SDK's client. The SDK carries the requests;
// what it cannot express travels as raw params and results (see transport.go).
type conn struct {
	peer    string // for messages
	dial    func() dialed
	options ClientOptions
	release func() // what Connect has made beside the session

	mu      sync.Mutex
	current *link
	closed  bool
}

// link is one session with what was negotiated in it.
type link struct {
	session *mcp.ClientSession
	dialect dialect.Client
	ended   func() error // see dialed
	// tasks says whether the server takes task-augmented tool calls (C-08).
	tasks bool

	mu    sync.Mutex
	tools map[string]mcptask.ToolInfo // nil until they were listed
	// listening are the tasks whose questions a tasks/result waits for.
	listening map[string]bool
}

// connect returns the current link, or opens a new one in the place of broken.
func (c *conn) connect(ctx context.Context, broken *link) (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errors.New("gosdk: the connection is closed")
	}
	if c.current != nil && c.current != broken {
		return c.current, nil
	}
	if broken != nil {
		_ = broken.session.Close() // it is broken: nothing more to learn
		c.current = nil
	}
	l, err := c.open(ctx)
	if err != nil {
		return nil, fmt.Errorf("gosdk: connect to %s: %w", c.peer, err)
	}
	c.current = l
	return l, nil
}

// open makes a session.
func (c *conn) open(ctx context.Context) (*link, error) {
	l := &link{}
	capabilities := &mcp.ClientCapabilities{}
	capabilities.AddExtension(mcptask.ExtensionTasks, nil)
	options := &mcp.ClientOptions{
		Capabilities:           capabilities,
		Logger:                 c.options.Logger,
		ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) { l.forgetTools() },
	}
	c.declare(capabilities, options)
	client := mcp.NewClient(c.options.Implementation, options)
	for _, method := range carried {
		if err := mcp.AddSendingCustomMethod[*rawParams, *rawResult](client, method.alias()); err != nil {
			return nil, err
		}
	}
	for _, root := range c.options.Roots {
		client.AddRoots(&mcp.Root{URI: root.URI, Name: root.Name})
	}
	wire := c.dial()
	session, err := client.Connect(ctx, wire.Transport, &mcp.ClientSessionOptions{ProtocolVersion: c.options.Revision})
	if err != nil {
		return nil, err
	}
	negotiated := session.InitializeResult().ProtocolVersion
	if want := c.options.Revision; want != "" && negotiated != want {
		_ = session.Close()
		return nil, fmt.Errorf("the server speaks %s, not %s", negotiated, want)
	}
	l.session, l.ended = session, wire.ended
	l.dialect = dialect.Client20251125{}
	if negotiated >= mcptask.Revision20260728 {
		l.dialect = dialect.Client20260728{Capabilities: c.plainCapabilities()}
	}
	l.tasks = negotiated == mcptask.Revision20251125 && wire.takesTasks()
	return l, nil
}

// Revision implements mcptask.Conn.
func (c *conn) Revision() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.current == nil {
		return c.options.Revision
	}
	return c.current.session.InitializeResult().ProtocolVersion
}

// Answer implements mcptask.Conn.
func (c *conn) Answer(ctx context.Context, q mcptask.Question) (json.RawMessage, bool, error) {
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

// Close implements mcptask.Conn.
func (c *conn) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil
	}
	c.closed = true
	defer c.release()
	if c.current == nil {
		return nil
	}
	return c.current.session.Close()
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

// send sends a request of any shape.
func (l *link) send(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := newRawParams(params)
	if err != nil {
		return nil, fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	result, err := mcp.CallCustomMethod[*rawParams, *rawResult](ctx, l.session, carriedMethod(method).alias(), raw)
	if err != nil {
		return nil, ourError(err)
	}
	return result.body, nil
}

// ourError makes our error of a JSON-RPC error of the SDK's.
func ourError(err error) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed) {
		return plainNames{err}
	}
	return &mcptask.Error{Code: int(wire.Code), Message: wire.Message, Data: wire.Data}
}

// plainNames is an error of the SDK's under the names of the protocol's methods.
type plainNames struct{ error }

func (e plainNames) Error() string { return strings.ReplaceAll(e.error.Error(), aliasPrefix, "") }
func (e plainNames) Unwrap() error { return e.error }

// ListTools implements mcptask.Conn.
func (c *conn) ListTools(ctx context.Context) (tools []mcptask.ToolInfo, err error) {
	err = c.do(ctx, func(l *link) error {
		tools, err = l.list(ctx)
		return err
	})
	return tools, err
}

// list reads all pages of tools/list and remembers them.
func (l *link) list(ctx context.Context) ([]mcptask.ToolInfo, error) {
	var tools []mcptask.ToolInfo
	params := map[string]any{}
	for {
		raw, err := l.send(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		var page struct {
			Tools []struct {
				Name         string          `json:"name"`
				Title        string          `json:"title"`
				Description  string          `json:"description"`
				InputSchema  json.RawMessage `json:"inputSchema"`
				OutputSchema json.RawMessage `json:"outputSchema"`
				Execution    struct {
					TaskSupport mcptask.TaskSupport `json:"taskSupport"`
				} `json:"execution"`
			} `json:"tools"`
			NextCursor string `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("gosdk: the server's answer to tools/list is malformed: %w", err)
		}
		for _, t := range page.Tools {
			tools = append(tools, mcptask.ToolInfo{
				Name: t.Name, Title: t.Title, Description: t.Description,
				InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, TaskSupport: t.Execution.TaskSupport,
			})
		}
		if page.NextCursor == "" || page.NextCursor == params["cursor"] {
			break
		}
		params["cursor"] = page.NextCursor
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = map[string]mcptask.ToolInfo{}
	for _, t := range tools {
		l.tools[t.Name] = t
	}
	return slices.Clip(tools), nil
}

func (l *link) forgetTools() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = nil
}

// support is what the server says of a tool; it lists the tools once.
func (l *link) support(ctx context.Context, tool string) (mcptask.TaskSupport, error) {
	if !l.tasks {
		return "", nil
	}
	l.mu.Lock()
	info, known := l.tools[tool]
	l.mu.Unlock()
	if known {
		return info.TaskSupport, nil
	}
	if _, err := l.list(ctx); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools[tool].TaskSupport, nil
}

// CallTool implements mcptask.Conn.
func (c *conn) CallTool(ctx context.Context, call mcptask.ToolCall) (s mcptask.Snapshot, err error) {
	err = c.do(ctx, func(l *link) error {
		support, err := l.support(ctx, call.Tool)
		if err != nil {
			return err
		}
		var retry *dialect.Retry
		for range maxRounds {
			params, err := l.dialect.Call(call, support, retry)
			if err != nil {
				return err
			}
			raw, err := l.send(ctx, "tools/call", params)
			var wire *mcptask.Error
			if call.Plain && errors.As(err, &wire) && wire.Code == mcptask.CodeMissingClientCapability {
				call.Plain = false // the tool does not allow it
				continue
			}
			if err != nil {
				return err
			}
			if s, retry, err = l.dialect.Started(raw); err != nil || retry == nil {
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

// maxRounds bounds how often a server may answer a call with questions.
const maxRounds = 10

// answerAll answers the questions that come before a call.
func (c *conn) answerAll(ctx context.Context, questions []mcptask.Question, responses map[string]json.RawMessage) error {
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
		s, err = l.dialect.Task(ctx, l.send, taskID)
		if err == nil && s.Status == mcptask.StatusInputRequired && l.dialect.Revision() == mcptask.Revision20251125 {
			l.listen(ctx, taskID)
		}
		return err
	})
	return s, err
}

// listen waits for the result of a task that asks, once (C-51): there are
// servers that send a task's questions on that stream only.
func (l *link) listen(ctx context.Context, taskID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listening[taskID] {
		return
	}
	if l.listening == nil {
		l.listening = map[string]bool{}
	}
	l.listening[taskID] = true
	go func() {
		// The outcome is read once the task is done, as any other.
		_, _ = l.send(ctx, "tasks/result", map[string]string{"taskId": taskID})
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.listening, taskID)
	}()
}

// CancelTask implements mcptask.Conn.
func (c *conn) CancelTask(ctx context.Context, taskID string) error {
	return c.do(ctx, func(l *link) error { return l.dialect.Cancel(ctx, l.send, taskID) })
}

// Respond implements mcptask.Conn.
func (c *conn) Respond(ctx context.Context, taskID string, responses map[string]json.RawMessage) error {
	return c.do(ctx, func(l *link) error { return l.dialect.Respond(ctx, l.send, taskID, responses) })
}
