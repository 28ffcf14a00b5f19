package chaos

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// patience bounds one request. A stopped process does not answer.
const patience = 3 * time.Second

// recorder has the history that clients write.
type recorder struct {
	mu      sync.Mutex
	history History
}

func (r *recorder) add(o Operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Operations = append(r.history.Operations, o)
}

// disturb notes a harm to a process. It is called just before a harm, and after a start.
func (r *recorder) disturb(process string, h Harm) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.history.Processes = append(r.history.Processes, Disturbance{At: now(), Process: process, Harm: h})
}

// now returns the time as journals have it.
func now() time.Time { return time.Now().Round(0) }

// rpcError is a JSON-RPC error.
type rpcError struct {
	Code    int
	Message string
	Data    struct{ Reason string }
}

// Error implements error.
func (e *rpcError) Error() string { return fmt.Sprintf("%d %s", e.Code, e.Message) }

// errSession says that the server does not know the session. It has carried out nothing.
var errSession = errors.New("no such session")

// link is how a client calls a server in one revision. It reads and writes literal JSON. It is used by one
// goroutine.
type link struct {
	name, revision, principal string
	// choose returns the URL for the next request.
	choose func() string
	// sticky says that sessions live in one process.
	sticky   bool
	http     *http.Client
	sessions map[string]string // by URL, or by "" unless sticky
	record   *recorder
	ids      atomic.Int64
}

// operation begins an operation.
func (l *link) operation(a Action, task string) Operation {
	return Operation{Client: l.name, Revision: l.revision, Principal: l.principal, Action: a, Task: task, Called: now()}
}

// finish completes and records an operation, and returns it.
func (l *link) finish(o Operation, err error) Operation {
	o.Returned = now()
	var refused *rpcError
	switch {
	case err == nil:
		o.Reply = ReplyOK
	case errors.Is(err, errSession):
		o.Reply = ReplyRefused
	case errors.As(err, &refused) && refused.Code == -32602 && (refused.Data.Reason == "expired" || strings.Contains(refused.Message, "there is no task")):
		o.Reply = ReplyMissing
	case errors.As(err, &refused) && refused.Code > -32603 && refused.Code != -32000: // such as invalid params
		o.Reply = ReplyRefused
	default:
		o.Reply = ReplyUnknown
	}
	if err != nil {
		o.Error = err.Error()
		if o.Reply != ReplyOK {
			o.View = nil
		}
	}
	l.record.add(o)
	return o
}

// request sends a request and returns its result. asked is called for each request of the server on the stream.
func (l *link) request(ctx context.Context, method string, params map[string]any, asked func(id, params json.RawMessage)) (json.RawMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	url := l.choose()
	headers := http.Header{"Mcp-Protocol-Version": {l.revision}}
	if l.revision == modern {
		meta, _ := params["_meta"].(map[string]any)
		if meta == nil {
			meta = map[string]any{}
			params["_meta"] = meta
		}
		meta["io.modelcontextprotocol/protocolVersion"] = modern
		meta["io.modelcontextprotocol/clientInfo"] = map[string]any{"name": "chaos", "version": "1"}
		meta["io.modelcontextprotocol/clientCapabilities"] = json.RawMessage(`{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`)
		headers.Set("Mcp-Method", method)
		for _, key := range []string{"name", "taskId"} {
			if name, ok := params[key].(string); ok {
				headers.Set("Mcp-Name", name)
			}
		}
	} else {
		session, err := l.session(ctx, url)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errSession, err)
		}
		headers.Set("Mcp-Session-Id", session)
	}
	id := l.ids.Add(1)
	res, err := l.post(ctx, url, headers, map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound && l.revision == legacy {
		l.forget(url)
		return nil, errSession
	}
	return readAnswer(res, asked)
}

// post sends one message.
func (l *link) post(ctx context.Context, url string, headers http.Header, message any) (*http.Response, error) {
	body, err := json.Marshal(message)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = headers
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer "+l.principal)
	return l.http.Do(r)
}

// sessionKey returns the key of a URL's session.
func (l *link) sessionKey(url string) string {
	if l.sticky {
		return url
	}
	return ""
}

func (l *link) forget(url string) { delete(l.sessions, l.sessionKey(url)) }

// session returns the session for a URL, and opens it if needed.
func (l *link) session(ctx context.Context, url string) (string, error) {
	if id := l.sessions[l.sessionKey(url)]; id != "" {
		return id, nil
	}
	res, err := l.post(ctx, url, http.Header{}, map[string]any{"jsonrpc": "2.0", "id": l.ids.Add(1), "method": "initialize", "params": map[string]any{
		"protocolVersion": legacy, "capabilities": map[string]any{"elicitation": map[string]any{}}, "clientInfo": map[string]any{"name": "chaos", "version": "1"},
	}})
	if err != nil {
		return "", err
	}
	_, err = readAnswer(res, nil)
	res.Body.Close()
	id := res.Header.Get("Mcp-Session-Id")
	if err != nil || id == "" {
		return "", fmt.Errorf("initialize: HTTP %d, session %q: %w", res.StatusCode, id, err)
	}
	headers := http.Header{"Mcp-Protocol-Version": {legacy}, "Mcp-Session-Id": {id}}
	res, err = l.post(ctx, url, headers, map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	if err != nil {
		return "", err
	}
	res.Body.Close()
	if res.StatusCode != http.StatusAccepted {
		return "", fmt.Errorf("notifications/initialized: HTTP %d", res.StatusCode)
	}
	l.sessions[l.sessionKey(url)] = id
	return id, nil
}

// readAnswer reads the answer to a request, from JSON or from a stream.
func readAnswer(res *http.Response, asked func(id, params json.RawMessage)) (json.RawMessage, error) {
	media, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if media != "text/event-stream" {
		data, err := io.ReadAll(res.Body)
		if err != nil {
			return nil, err
		}
		result, _, err := readMessage(data, nil)
		if err == nil && result == nil {
			err = fmt.Errorf("HTTP %d: %.200s", res.StatusCode, data)
		}
		return result, err
	}
	for lines := bufio.NewReader(res.Body); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("the stream has ended without the answer: %w", err)
		}
		data, ok := bytes.CutPrefix(line, []byte("data:"))
		if !ok || len(bytes.TrimSpace(data)) == 0 {
			continue
		}
		if result, done, err := readMessage(data, asked); done {
			return result, err
		}
	}
}

// readMessage reads a message. done reports whether it is the answer.
func readMessage(data []byte, asked func(id, params json.RawMessage)) (result json.RawMessage, done bool, err error) {
	var m struct {
		ID, Result, Params json.RawMessage
		Method             string
		Error              *rpcError
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return nil, true, fmt.Errorf("%.200s: %w", data, err)
	}
	switch {
	case m.Error != nil:
		return nil, true, m.Error
	case m.Method != "":
		if len(m.ID) > 0 && asked != nil {
			asked(m.ID, m.Params)
		}
		return nil, false, nil
	}
	return m.Result, true, nil
}

// wireTask is a task in any answer of both revisions.
type wireTask struct {
	TaskID        string
	Status        Status
	StatusMessage string
	LastUpdatedAt time.Time
	InputRequests map[string]json.RawMessage
	Result        *wireResult
	Error         *rpcError
}

// wireResult is the result of a tool.
type wireResult struct{ Content []struct{ Text string } }

func (r *wireResult) text() string {
	if r == nil || len(r.Content) == 0 {
		return "(no text)"
	}
	return r.Content[0].Text
}

// view returns the state that a client sees.
func (t wireTask) view() *View {
	v := &View{Status: t.Status, Updated: t.LastUpdatedAt, Message: t.StatusMessage}
	for step := range t.InputRequests {
		v.Open = append(v.Open, step)
	}
	switch {
	case t.Result != nil:
		v.Value = t.Result.text()
	case t.Error != nil:
		v.Value = t.Error.Error()
	}
	return v
}

// errAtOnce says that a call with a key got the result of the task that it had made before.
var errAtOnce = errors.New("answered at once")

// create calls a tool as a task. If the client knows the task of the key, it may get its result.
func (l *link) create(ctx context.Context, tool Tool, in workInput, key, known string) Operation {
	o := l.operation(ActionCreate, "")
	o.Tool, o.Nonce, o.Key = tool, in.Nonce, key
	params := map[string]any{"name": string(tool), "arguments": in}
	if key != "" {
		params["_meta"] = map[string]any{"io.github.mcptaskgen/idempotency-key": key}
	}
	if l.revision == legacy {
		params["task"] = map[string]any{}
	}
	result, err := l.request(ctx, "tools/call", params, nil)
	if err == nil {
		var made struct {
			wireTask
			wireResult
			Task *wireTask
		}
		if err = json.Unmarshal(result, &made); err == nil {
			if made.Task != nil {
				made.wireTask = *made.Task
			}
			o.Task, o.View = made.TaskID, made.view()
			if o.Task == "" && known != "" {
				o.Action, o.Task, o.View = ActionRead, known, &View{Status: StatusCompleted, Value: made.text()}
			} else if o.Task == "" {
				err = fmt.Errorf("%w: %s", errAtOnce, result)
			}
		}
	}
	return l.finish(o, err)
}

// get reads the state of a task.
func (l *link) get(ctx context.Context, task string) Operation {
	o := l.operation(ActionRead, task)
	result, err := l.request(ctx, "tasks/get", map[string]any{"taskId": task}, nil)
	var got wireTask
	if err == nil {
		err = json.Unmarshal(result, &got)
	}
	o.View = got.view()
	return l.finish(o, err)
}

// await waits for the result of a task, in a session. It answers the questions that come meanwhile by reply, which
// returns the answer to a step.
func (l *link) await(ctx context.Context, task string, reply func(step string) string) Operation {
	o := l.operation(ActionRead, task)
	result, err := l.request(ctx, "tasks/result", map[string]any{"taskId": task}, func(id, params json.RawMessage) {
		var p struct{ Message string }
		if err := json.Unmarshal(params, &p); err != nil {
			panic(err)
		}
		step, ok := strings.CutPrefix(p.Message, stepMessage)
		if !ok {
			return
		}
		asked := l.operation(ActionAsked, task)
		asked.Called, asked.View = o.Called, &View{Status: StatusAsking, Open: []string{step}}
		l.finish(asked, nil)
		l.respond(ctx, task, step, reply(step), id)
	})
	var refused *rpcError
	switch {
	case err == nil:
		var r wireResult
		err = json.Unmarshal(result, &r)
		o.View = &View{Status: StatusCompleted, Value: r.text()}
	case errors.As(err, &refused) && refused.Data.Reason == "cancelled":
		err, o.View = nil, &View{Status: StatusCancelled}
	case errors.As(err, &refused) && refused.Data.Reason == "worker_lost":
		err, o.View = nil, &View{Status: StatusFailed, Value: refused.Error()}
	}
	return l.finish(o, err)
}

// answerOf returns the answer of a person to a question.
func answerOf(value string) map[string]any {
	return map[string]any{"action": "accept", "content": word{value}}
}

// respond answers a request of the server, in a session.
func (l *link) respond(ctx context.Context, task, step, value string, id json.RawMessage) {
	o := l.operation(ActionAnswer, task)
	o.Step, o.Value = step, value
	url := l.choose()
	headers := http.Header{"Mcp-Protocol-Version": {legacy}, "Mcp-Session-Id": {l.sessions[l.sessionKey(url)]}}
	res, err := l.post(ctx, url, headers, map[string]any{"jsonrpc": "2.0", "id": id, "result": answerOf(value)})
	if err == nil {
		_ = res.Body.Close()
		if res.StatusCode != http.StatusAccepted {
			err = fmt.Errorf("the answer was not taken: HTTP %d", res.StatusCode)
		}
	}
	l.finish(o, err)
}

// update answers a question of a task, without a session.
func (l *link) update(ctx context.Context, task, step, value string) {
	o := l.operation(ActionAnswer, task)
	o.Step, o.Value = step, value
	_, err := l.request(ctx, "tasks/update", map[string]any{"taskId": task, "inputResponses": map[string]any{step: answerOf(value)}}, nil)
	l.finish(o, err)
}

// cancel cancels a task.
func (l *link) cancel(ctx context.Context, task string) {
	o := l.operation(ActionCancel, task)
	result, err := l.request(ctx, "tasks/cancel", map[string]any{"taskId": task}, nil)
	if err == nil && l.revision == legacy {
		var got wireTask
		err = json.Unmarshal(result, &got)
		o.View = got.view()
	}
	l.finish(o, err)
}

// list lists all tasks of the principal, in a session.
func (l *link) list(ctx context.Context) Operation {
	o := l.operation(ActionList, "")
	params := map[string]any{}
	for {
		result, err := l.request(ctx, "tasks/list", params, nil)
		var page struct {
			Tasks      []wireTask
			NextCursor string
		}
		if err == nil {
			err = json.Unmarshal(result, &page)
		}
		for _, t := range page.Tasks {
			o.Listed = append(o.Listed, t.TaskID)
		}
		if err != nil || page.NextCursor == "" {
			return l.finish(o, err)
		}
		params = map[string]any{"cursor": page.NextCursor}
	}
}
