package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// link is one session with its negotiated revision and capabilities.
type link struct {
	transport transport
	inbox     *inbox
	protocol  protocol.Client
	isPipe    bool
	// meta is in the _meta of each request.
	meta     map[string]any
	requests atomic.Int64 // counts those that were made
	options  *ClientOptions
	peer     string // for hooks
	// tasks reports whether the server accepts task-augmented tool calls (C-08).
	tasks bool
	// extension reports whether the server declares the extension of 2026-07-28.
	extension bool

	mu    sync.Mutex
	tools map[string]mcptask.ToolInfo // nil until they are listed
	// awaited has the tasks for whose questions a tasks/result is open.
	awaited map[string]bool
}

// earlier are the protocol versions before 2026-07-28 that the client speaks, most of them without tasks.
var earlier = []string{mcptask.Revision20251125, "2025-06-18", "2025-03-26", "2024-11-05"}

// negotiate opens the session in a revision, or in the newest that the server speaks if chosen is nil.
func (l *link) negotiate(ctx context.Context, c *conn, chosen protocol.Client) error {
	if chosen == nil || chosen.Protocol() == mcptask.Revision20260728 {
		if err := l.discover(ctx, c); err == nil {
			return nil
		} else if chosen != nil {
			return err
		}
	}
	return l.initialize(ctx, c, chosen)
}

// discover opens a session of 2026-07-28.
func (l *link) discover(ctx context.Context, c *conn) error {
	l.protocol = protocol.Client20260728{Capabilities: c.capabilities()}
	l.transport.setVersion(mcptask.Revision20260728)
	l.meta = map[string]any{
		mcp.MetaKeyProtocolVersion:  mcptask.Revision20260728,
		mcp.MetaKeyClientInfo:       c.options.Implementation,
		spec.MetaClientCapabilities: c.declaredCapabilities(),
	}
	data, err := l.send(ctx, spec.Discover, struct{}{})
	if err != nil {
		return err
	}
	var result struct {
		SupportedVersions []string
		Capabilities      struct{ Extensions map[string]json.RawMessage }
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return protocol.NewMalformedError(spec.Discover, err)
	}
	if !slices.Contains(result.SupportedVersions, mcptask.Revision20260728) {
		return fmt.Errorf("the server speaks %s, not %s", strings.Join(result.SupportedVersions, ", "), mcptask.Revision20260728)
	}
	_, l.extension = result.Capabilities.Extensions[spec.ExtensionTasks]
	return nil
}

// initialize opens a session of an earlier revision.
func (l *link) initialize(ctx context.Context, c *conn, chosen protocol.Client) error {
	if l.protocol = chosen; chosen == nil {
		l.protocol = protocol.Client20251125{}
	}
	l.transport.setVersion("")
	l.meta = nil
	params, err := json.Marshal(map[string]any{
		"protocolVersion": l.protocol.Protocol(), "clientInfo": c.options.Implementation, "capabilities": c.declaredCapabilities(),
	})
	if err == nil && c.receiver.capabilities != nil {
		params, err = c.receiver.protocol.Declare(params, c.receiver.capabilities)
	}
	if err != nil {
		return err
	}
	data, err := l.send(ctx, "initialize", json.RawMessage(params))
	if err != nil {
		return err
	}
	var result struct {
		ProtocolVersion string
		Capabilities    json.RawMessage
	}
	if err := json.Unmarshal(data, &result); err != nil {
		return protocol.NewMalformedError("initialize", err)
	}
	version := result.ProtocolVersion
	if isWanted := chosen == nil || version == chosen.Protocol(); !isWanted || !slices.Contains(earlier, version) {
		return fmt.Errorf("the server speaks %s, not %s", version, l.protocol.Protocol())
	}
	l.tasks = version == l.protocol.Protocol() && l.protocol.Takes(result.Capabilities)
	l.transport.setVersion(version)
	l.inbox.setVersion(version)
	if err := l.notify(ctx, "notifications/initialized", struct{}{}); err != nil {
		return err
	}
	if over, ok := l.transport.(*httpTransport); ok {
		over.startListening(ctx)
	}
	return nil
}

// close ends the session with all its requests.
func (l *link) close() error {
	l.inbox.end()
	return l.transport.close()
}

// newRequest returns a request with params of any shape.
func (l *link) newRequest(ctx context.Context, method string, params any) (*request, error) {
	data, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	add := traceMeta(ctx)
	meta := wire.NewObject(data).Object("_meta")
	for key, value := range l.meta {
		if meta == nil || !meta.Has(key) {
			add[key] = value
		}
	}
	if data, err = protocol.WithMeta(data, add); err != nil {
		return nil, fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	return &request{id: strconv.AppendInt(nil, l.requests.Add(1), 10), method: method, params: data}, nil
}

// send sends a request of any shape and returns its result.
func (l *link) send(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, end := l.begin(ctx, method, params)
	r, err := l.newRequest(ctx, method, params)
	var result json.RawMessage
	if err == nil {
		result, err = l.sendRequest(ctx, r)
	}
	end(result, err)
	return result, err
}

// sendRequest sends a request and returns its result. If ctx ends before, it cancels the request.
func (l *link) sendRequest(ctx context.Context, r *request) (json.RawMessage, error) {
	m, err := l.transport.roundTrip(ctx, r)
	switch {
	case err != nil && ctx.Err() != nil:
		l.cancelRequest(r)
		return nil, fmt.Errorf("%s: %w", r.method, ctx.Err())
	case err != nil:
		return nil, err
	case m.Error != nil:
		return nil, protocol.NormalizeCode(m.Error)
	}
	return m.Result, l.protocol.ResultKind(r.method, m.Result)
}

// cancelRequest tells the server that the client no longer waits for a request. It does not wait. A subscription over
// HTTP ends with its stream.
func (l *link) cancelRequest(r *request) {
	if r.isSilent.Load() || !r.isSent.Load() || r.method == protocol.Listen && !l.isPipe {
		return
	}
	l.inbox.startWork(func() {
		ctx, stop := context.WithTimeout(l.inbox.ctx, endTimeout)
		defer stop()
		_ = l.notify(ctx, "notifications/cancelled", map[string]any{"requestId": r.id, "reason": "the caller no longer waits"})
	})
}

// notify sends a notification.
func (l *link) notify(ctx context.Context, method string, params any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	return l.transport.send(ctx, method, fmt.Appendf(nil, `{"jsonrpc":"2.0","method":%q,"params":%s}`, method, data))
}

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
		if size += len(raw); size/maxListed > l.options.MaxMessage {
			return nil, fmt.Errorf("gosdk: the server's list of tools has more than %d bytes (%d times ClientOptions.MaxMessage)",
				maxListed*l.options.MaxMessage, maxListed)
		}
		var page struct {
			Tools      []json.RawMessage `json:"tools"`
			NextCursor string            `json:"nextCursor"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			return nil, fmt.Errorf("gosdk: the server's answer to tools/list is malformed: %w", err)
		}
		for _, entry := range page.Tools {
			var t mcptask.ToolInfo
			if err := json.Unmarshal(entry, &t); err != nil {
				return nil, fmt.Errorf("gosdk: the server's answer to tools/list is malformed: %w", err)
			}
			t.TaskSupport = l.protocol.Support(entry, l.tasks)
			tools = append(tools, t)
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

// forgetTools forgets the tools, because the server has changed them.
func (l *link) forgetTools() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = nil
}

// taskSupport returns a tool's task support. It lists the tools once. isKnown is false if the server takes calls as tasks, and
// its list does not have the tool.
func (l *link) taskSupport(ctx context.Context, tool string) (support mcptask.TaskSupport, isKnown bool, err error) {
	if !l.tasks {
		return "", true, nil
	}
	l.mu.Lock()
	info, isKnown := l.tools[tool]
	l.mu.Unlock()
	if isKnown {
		return info.TaskSupport, true, nil
	}
	if _, err := l.listTools(ctx); err != nil {
		return "", false, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	info, isKnown = l.tools[tool]
	return info.TaskSupport, isKnown, nil
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
