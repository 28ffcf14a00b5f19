package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// link is one session and what was negotiated in it.
type link struct {
	session   *mcp.ClientSession
	wire      *connKeeper
	receiving *receiving
	protocol  protocol.Client
	endCause  func() error // see dialed
	listen    func(ctx context.Context, params map[string]any, hear notificationFunc) error
	meta      map[string]any // for requests outside the session
	// poller polls tasks beside the session. It is nil if only the session can. pollMeta is the _meta
	// of its requests, or nil.
	poller   *poller
	pollMeta json.RawMessage
	// over is set when the session has ended. What polls beside it would not notice that.
	over atomic.Bool
	// maxMessage is ClientOptions.MaxMessage.
	maxMessage int
	hooks      []taskserver.Hooks
	logger     *slog.Logger
	peer       string // for hooks
	// tasks reports whether the server accepts task-augmented tool calls (C-08).
	tasks bool
	// extension reports whether the server declares the extension of 2026-07-28.
	extension bool

	mu    sync.Mutex
	tools map[string]mcptask.ToolInfo // nil until they are listed
	// awaited has the tasks for whose questions a tasks/result is open.
	awaited map[string]bool
}

// connKeeper is a transport that remembers its connection.
type connKeeper struct {
	mcp.Transport
	connection mcp.Connection
}

// Connect implements mcp.Transport.
func (k *connKeeper) Connect(ctx context.Context) (connection mcp.Connection, err error) {
	k.connection, err = k.Transport.Connect(ctx)
	return k.connection, err
}

// awaitEnd notes the end of the session.
func (l *link) awaitEnd() {
	defer guard.Recover(nil, "the wait for the end of a session")
	_ = l.session.Wait() // the next request returns the reason
	l.over.Store(true)
}

// close ends the session with all its requests. The SDK's Close alone would wait for them.
func (l *link) close() error {
	l.receiving.end()
	err := l.wire.connection.Close()
	if closed := l.session.Close(); err == nil {
		err = closed
	}
	return err
}

// send sends a request of any shape and returns its result.
func (l *link) send(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, end := l.begin(ctx, method, params)
	result, err := l.sendNoting(ctx, method, params, &refusal{})
	end(result, err)
	return result, err
}

// sendNoting is send with a note of what HTTP says about the request.
func (l *link) sendNoting(ctx context.Context, method string, params any, refusal *refusal) (json.RawMessage, error) {
	raw, err := newRawParams(params)
	if err != nil {
		return nil, fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	raw.addTrace(ctx)
	result, err := mcp.CallCustomMethod[*rawParams, *rawResult](context.WithValue(ctx, refusalKey{}, refusal),
		l.session, carriedMethod(method).alias(), raw)
	if err != nil {
		switch err = fromSDKError(err); {
		case refusal.tooLong.Load():
			err = tooLongError{l.maxMessage}
		case refusal.after > 0:
			err = retryLaterError{err, refusal.after}
		case refusal.taken && errors.Is(err, mcp.ErrSessionMissing):
			err = unansweredError{err}
		}
		return nil, err
	}
	return result.body, l.protocol.ResultKind(method, result.body)
}

// rejectedCode is the SDK's code for a request that never reached the server's protocol (see
// hideCode).
const rejectedCode = -32005

// fromSDKError converts a JSON-RPC error of the SDK to ours. An error that only looks like one and
// comes from the transport stays as it is, because it may be temporary.
func fromSDKError(err error) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code == rejectedCode || errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed) {
		return unaliasedError{err}
	}
	return protocol.NormalizeCode(&mcptask.Error{Code: restoreCode(wire.Code), Message: wire.Message, Data: wire.Data})
}

// unaliasedError is an SDK error that shows the protocol's names of the methods.
type unaliasedError struct{ error }

func (e unaliasedError) Error() string { return strings.ReplaceAll(e.error.Error(), aliasPrefix, "") }

func (e unaliasedError) Unwrap() error { return e.error }

// listTasks lists the tasks, from all pages.
func (l *link) listTasks(ctx context.Context) ([]mcptask.Snapshot, error) {
	lister, ok := l.protocol.(protocol.Lister)
	if !ok {
		return nil, mcptask.Errorf(mcptask.CodeMethodNotFound, "no list of tasks in revision %s", l.protocol.Revision())
	}
	var tasks []mcptask.Snapshot
	cursor := ""
	for range maxPages {
		page, next, err := lister.List(ctx, l.send, cursor)
		if err != nil {
			return nil, err
		}
		if tasks = append(tasks, page...); next == "" || next == cursor {
			return tasks, nil
		}
		cursor = next
	}
	return nil, fmt.Errorf("gosdk: the server's list of tasks has more than %d pages", maxPages)
}

// listTools reads all pages of tools/list and remembers the tools.
func (l *link) listTools(ctx context.Context) ([]mcptask.ToolInfo, error) {
	var tools []mcptask.ToolInfo
	params := map[string]any{}
	size := 0
	for range maxPages {
		raw, err := l.send(ctx, "tools/list", params)
		if err != nil {
			return nil, err
		}
		if size += len(raw); size/maxListed > l.maxMessage {
			return nil, fmt.Errorf("gosdk: the server's list of tools has more than %d bytes (%d times ClientOptions.MaxMessage)",
				maxListed*l.maxMessage, maxListed)
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("gosdk: the server's answer to tools/list is malformed: %w", err)
		}
		for _, entry := range page.Tools {
			var t struct {
				Name         string          `json:"name"`
				Title        string          `json:"title"`
				Description  string          `json:"description"`
				InputSchema  json.RawMessage `json:"inputSchema"`
				OutputSchema json.RawMessage `json:"outputSchema"`
			}
			if err := json.Unmarshal(entry, &t); err != nil {
				return nil, fmt.Errorf("gosdk: the server's answer to tools/list is malformed: %w", err)
			}
			tools = append(tools, mcptask.ToolInfo{
				Name: t.Name, Title: t.Title, Description: t.Description,
				InputSchema: t.InputSchema, OutputSchema: t.OutputSchema, TaskSupport: l.protocol.Support(entry, l.tasks),
			})
		}
		if page.NextCursor == "" || page.NextCursor == params["cursor"] {
			l.rememberTools(tools)
			return slices.Clip(tools), nil
		}
		params["cursor"] = page.NextCursor
	}
	return nil, fmt.Errorf("gosdk: the server's list of tools has more than %d pages", maxPages)
}

// These constants bound a list of tools that a server could continue forever.
const (
	maxPages  = 1000
	maxListed = 4 // times ClientOptions.MaxMessage, for all pages
)

func (l *link) rememberTools(tools []mcptask.ToolInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = map[string]mcptask.ToolInfo{}
	for _, t := range tools {
		l.tools[t.Name] = t
	}
}

// forgetChangedTools is middleware that forgets the tools when the server says that they have
// changed. A handler of the SDK could do the same. But in 2026-07-28, which needs no memory of
// tools, the SDK would open a subscription for it and wait for the answer. A proxy that holds
// streams back would then block Connect.
func (l *link) forgetChangedTools(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "notifications/tools/list_changed" {
			l.mu.Lock()
			l.tools = nil
			l.mu.Unlock()
		}
		return next(ctx, method, req)
	}
}

// taskSupport returns a tool's task support. It lists the tools once.
func (l *link) taskSupport(ctx context.Context, tool string) (mcptask.TaskSupport, error) {
	if !l.tasks {
		return "", nil
	}
	l.mu.Lock()
	info, known := l.tools[tool]
	l.mu.Unlock()
	if known {
		return info.TaskSupport, nil
	}
	if _, err := l.listTools(ctx); err != nil {
		return "", err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools[tool].TaskSupport, nil
}

// awaitResult requests the result of a task that asks, once (C-51), because some servers send a
// task's questions only on that stream.
func (l *link) awaitResult(ctx context.Context, waiter protocol.Waiter, taskID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited[taskID] {
		return
	}
	if l.awaited == nil {
		l.awaited = map[string]bool{}
	}
	l.awaited[taskID] = true
	guard.Go(nil, "the wait for a task", func() {
		// The outcome is read, as for any task, when the task is done.
		method, params := waiter.Wait(taskID)
		_, _ = l.send(ctx, method, params)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.awaited, taskID)
	})
}
