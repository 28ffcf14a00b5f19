package wiretest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
)

// CallTool calls a tool plainly.
func (p *Peer) CallTool(name string, arguments map[string]any) *Response {
	p.T.Helper()
	return p.Call("tools/call", map[string]any{"name": name, "arguments": arguments})
}

// Content returns the text of a tool's result.
func (r *Response) Content() string {
	r.T.Helper()
	var result mcptask.Result
	if err := json.Unmarshal(r.OK().Result, &result); err != nil {
		r.T.Fatal(err)
	}
	return result.Text()
}

// WantTask fails the test unless the result reports a task with a status. It returns the task's ID.
func (r *Response) WantTask(status string) string {
	r.T.Helper()
	id := r.Text("structuredContent", "task")
	text := r.Content()
	if id == "" || r.Get("isError") != nil || r.Text("structuredContent", "status") != status || fmt.Sprint(r.Get("structuredContent", "pollIntervalMs")) != "50" {
		r.T.Fatalf("%s, want a task that is %s", r.Body, status)
	}
	if !strings.Contains(text, `slow_task_result with {"task":"`+id+`"}`) || strings.Contains(text, "%!") {
		r.T.Errorf("the text does not say how to go on: %s", text)
	}
	return id
}

// WantText fails the test unless the result contains a text and has this isError.
func (r *Response) WantText(isError bool, want string) {
	r.T.Helper()
	if text := r.Content(); !strings.Contains(text, want) || (r.Get("isError") == true) != isError {
		r.T.Errorf("isError %v: %s; want %v: %s", r.Get("isError"), text, isError, want)
	}
}

// SendTooBig sends a request that the server refuses before it reads the body. The server closes
// the connection with the refusal. So a client that is still writing may see the end first, and
// net/http then drops the refusal. SendTooBig therefore tries several times.
func (p *Peer) SendTooBig(request func() *http.Request) *http.Response {
	p.T.Helper()
	for try := 1; ; try++ {
		res, err := p.Client.Do(request())
		if err == nil {
			return res
		}
		if try == 10 {
			p.T.Fatal(err)
		}
	}
}

// WrapCalls returns middleware around tools/call.
func WrapCalls(f func(next func() (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error)) mcp.Middleware {
	return func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			call, ok := req.(*mcp.CallToolRequest)
			if !ok {
				return next(ctx, method, req)
			}
			return f(func() (mcp.Result, error) { return next(ctx, method, req) }, call)
		}
	}
}

// ListTasks lists the tasks of the peer's principal, through a session of its own.
func ListTasks(t *testing.T, p *Peer) []map[string]any {
	t.Helper()
	var tasks []map[string]any
	if p.Revision != CandidateRevision {
		p = NewPeer(t, p.URL, LegacyRevision, p.Token)
	}
	for _, task := range p.Call("tasks/list", nil).OK().Get("tasks").([]any) {
		tasks = append(tasks, task.(map[string]any))
	}
	return tasks
}

// ListPages reads all pages of a tasks/list. It fails the test if a task is on them twice.
func ListPages(t testing.TB, list func(params map[string]any) *Response) (tasks []map[string]any, cursors []string) {
	t.Helper()
	seen := map[any]bool{}
	for params := map[string]any(nil); len(cursors) < 10; params = map[string]any{"cursor": cursors[len(cursors)-1]} {
		r := list(params).OK()
		for _, one := range r.Get("tasks").([]any) {
			task := one.(map[string]any)
			if seen[task["taskId"]] {
				t.Fatalf("%v is listed twice", task["taskId"])
			}
			seen[task["taskId"]] = true
			tasks = append(tasks, task)
		}
		cursor, more := r.Get("nextCursor").(string)
		if !more {
			return tasks, cursors
		}
		cursors = append(cursors, cursor)
	}
	t.Fatal("the list does not end")
	return nil, nil
}

// ClosePeer closes a peer's session and connections.
func ClosePeer(t *testing.T, p *Peer) {
	t.Helper()
	if p.Session != "" {
		res, err := p.Client.Do(p.NewRequest(context.Background(), http.MethodDelete, ""))
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
	}
	p.Client.CloseIdleConnections()
}

// WantLimit fails the test unless the response is the refusal of a limit, with an HTTP status.
func (r *Response) WantLimit(status int, name string, most int) *Response {
	r.T.Helper()
	r.Want(status, InternalError)
	if want := fmt.Sprintf(`{"limit":%q,"max":%d}`, name, most); r.Error != nil && string(r.Error.Data) != want {
		r.T.Errorf("%s, want data %s", r.Body, want)
	}
	if retry := r.Header.Get("Retry-After"); (retry == "1") != (status == http.StatusTooManyRequests) {
		r.T.Errorf("HTTP %d with Retry-After %q", status, retry)
	}
	return r
}

// Flood repeats a request, several at once, until it is refused. It returns the refusal.
func Flood(t *testing.T, once func() *Response) *Response {
	t.Helper()
	return FloodUntil(t, once, func(r *Response) bool { return r.Status == http.StatusTooManyRequests })
}

// FloodUntil is Flood with another test of the refusal.
func FloodUntil(t *testing.T, once func() *Response, refused func(*Response) bool) *Response {
	t.Helper()
	const atOnce = 10
	for range 20 {
		answers := make(chan *Response, atOnce)
		var all sync.WaitGroup
		for range atOnce {
			all.Go(func() { answers <- once() })
		}
		all.Wait()
		close(answers)
		for r := range answers {
			if refused(r) {
				return r
			}
		}
	}
	t.Fatal("never refused")
	return nil
}

// NewestTask returns the stored ID of the caller's newest task, as 2025-11-25 lists it.
func (p *Peer) NewestTask() string {
	p.T.Helper()
	list, _ := p.Call("tasks/list", nil).OK().Get("tasks").([]any)
	if len(list) == 0 {
		p.T.Fatal("no tasks")
	}
	id, _ := list[len(list)-1].(map[string]any)["taskId"].(string)
	return id
}

const (
	// These are the questions that the FirstAsker's tool asks, with answers.
	SureKey  = "before/Sure"
	WhichKey = "before/Which"
	SureYes  = `{"action":"accept","content":{"yes":true}}`
	WhichA   = `{"action":"accept","content":{"one":"a","many":["b"],"when":"2026-01-02T03:04:05Z"}}`
)

// InputResponses returns inputResponses of keys and values in turn.
func InputResponses(pairs ...string) map[string]any {
	responses := map[string]any{}
	for pair := range slices.Chunk(pairs, 2) {
		responses[pair[0]] = json.RawMessage(pair[1])
	}
	return responses
}

// HTTPOptions returns the options of a handler that replies with JSON or with streams.
func HTTPOptions(jsonReplies bool) *mcp.StreamableHTTPOptions {
	return &mcp.StreamableHTTPOptions{JSONResponse: jsonReplies}
}

// RunTogether calls run n times, a few at once.
func RunTogether(n int, run func(i int)) {
	const atOnce = 16
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for i := worker; i < n; i += atOnce {
				run(i)
			}
		})
	}
	all.Wait()
}

// SameJSON reports whether two JSON texts have the same value, with numbers as they are written.
func SameJSON(a, b string) bool {
	if !json.Valid([]byte(a)) || !json.Valid([]byte(b)) {
		return false
	}
	return reflect.DeepEqual(readValue([]byte(a)), readValue([]byte(b)))
}

// WithTimeout returns the test's context with a time limit.
func WithTimeout(t testing.TB, limit time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(t.Context(), limit)
}

// AwaitWaiter waits until a request waits for the end of a task.
func AwaitWaiter(t *testing.T, g *gateway.Gateway) {
	t.Helper()
	Await(t, func() (missing string) {
		if g.Counts().Waiting == 0 {
			return "nothing waits"
		}
		return ""
	})
}
