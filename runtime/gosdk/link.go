package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// link is one session with what was negotiated in it.
type link struct {
	session   *mcp.ClientSession
	wire      *kept
	receiving *receiving
	protocol  protocol.Client
	ended     func() error // see dialed
	listen    func(ctx context.Context, params map[string]any, hear notified) error
	meta      map[string]any // of requests that go beside the session
	// maxMessage is ClientOptions.MaxMessage.
	maxMessage int
	// tasks says whether the server takes task-augmented tool calls (C-08).
	tasks bool

	mu    sync.Mutex
	tools map[string]mcptask.ToolInfo // nil until they were listed
	// awaited are the tasks whose questions a tasks/result waits for.
	awaited map[string]bool
}

// kept is a transport that keeps its connection at hand.
type kept struct {
	mcp.Transport
	connection mcp.Connection
}

// Connect implements mcp.Transport.
func (k *kept) Connect(ctx context.Context) (connection mcp.Connection, err error) {
	k.connection, err = k.Transport.Connect(ctx)
	return k.connection, err
}

// close ends the session with all that is under way in it. The SDK's Close alone
// would wait for that.
func (l *link) close() error {
	l.receiving.end()
	err := l.wire.connection.Close()
	if closed := l.session.Close(); err == nil {
		err = closed
	}
	return err
}

// send sends a request of any shape.
func (l *link) send(ctx context.Context, method string, params any) (json.RawMessage, error) {
	raw, err := newRawParams(params)
	if err != nil {
		return nil, fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	refusal := &refusal{}
	result, err := mcp.CallCustomMethod[*rawParams, *rawResult](context.WithValue(ctx, refusalKey{}, refusal),
		l.session, carriedMethod(method).alias(), raw)
	if err != nil {
		switch err = ourError(err); {
		case refusal.tooLong.Load():
			err = tooLong{l.maxMessage}
		case refusal.after > 0:
			err = retryLater{err, refusal.after}
		case refusal.taken && errors.Is(err, mcp.ErrSessionMissing):
			err = unanswered{err}
		}
		return nil, err
	}
	return result.body, l.protocol.ResultKind(method, result.body)
}

// rejectedCode is the SDK's own, for a request that did not reach the server, or
// not as far as its protocol (see hideCode).
const rejectedCode = -32005

// ourError makes our error of a JSON-RPC error of the SDK's. What looks like one
// and comes of the transport stays what it is: it may pass.
func ourError(err error) error {
	var wire *jsonrpc.Error
	if !errors.As(err, &wire) || wire.Code == rejectedCode || errors.Is(err, mcp.ErrSessionMissing) || errors.Is(err, mcp.ErrConnectionClosed) {
		return plainNames{err}
	}
	return protocol.NormalizeCode(&mcptask.Error{Code: shownCode(wire.Code), Message: wire.Message, Data: wire.Data})
}

// plainNames is an error of the SDK's under the names of the protocol's methods.
type plainNames struct{ error }

func (e plainNames) Error() string { return strings.ReplaceAll(e.error.Error(), aliasPrefix, "") }

func (e plainNames) Unwrap() error { return e.error }

// list reads all pages of tools/list and remembers them.
func (l *link) list(ctx context.Context) ([]mcptask.ToolInfo, error) {
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
			l.remember(tools)
			return slices.Clip(tools), nil
		}
		params["cursor"] = page.NextCursor
	}
	return nil, fmt.Errorf("gosdk: the server's list of tools has more than %d pages", maxPages)
}

// Bounds of a list of tools, which a server could go on with for ever.
const (
	maxPages  = 1000
	maxListed = 4 // messages of the greatest length, in all
)

func (l *link) remember(tools []mcptask.ToolInfo) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = map[string]mcptask.ToolInfo{}
	for _, t := range tools {
		l.tools[t.Name] = t
	}
}

// heedChanges forgets the tools when the server says that they have changed. A
// handler of the SDK's would do the same, but for one it opens a subscription in
// 2026-07-28, where nothing is remembered, and connecting waits for its answer: a
// proxy that holds streams back would hold up Connect.
func (l *link) heedChanges(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if method == "notifications/tools/list_changed" {
			l.mu.Lock()
			l.tools = nil
			l.mu.Unlock()
		}
		return next(ctx, method, req)
	}
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

// await waits for the result of a task that asks, once (C-51): there are
// servers that send a task's questions on that stream only.
func (l *link) await(ctx context.Context, waiter protocol.Waiter, taskID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.awaited[taskID] {
		return
	}
	if l.awaited == nil {
		l.awaited = map[string]bool{}
	}
	l.awaited[taskID] = true
	go func() {
		defer guard.Recover(nil, "the wait for a task")
		// The outcome is read once the task is done, as any other.
		method, params := waiter.Wait(taskID)
		_, _ = l.send(ctx, method, params)
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.awaited, taskID)
	}()
}
