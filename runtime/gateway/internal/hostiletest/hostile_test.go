package hostiletest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// attack is a server with a victim's tasks, and its state before the attack.
type attack struct {
	t        *testing.T
	url      string
	tasks    *taskserver.Server
	gateway  *gateway.Gateway
	store    taskstore.Store
	revision string
	// The victim's tasks: one works, one asks, one is done.
	victim                *wiretest.Peer
	working, asking, done string
	tasksBefore           int
	before                gateway.Counts
	check                 func() // of goroutines
	leaks                 *leaks
}

// leaks collects the secrets that anyone but the victim received.
type leaks struct {
	mu    sync.Mutex
	found []string
}

// look searches one write for the secret. The SDK and the gateway never split the secret into two writes.
func (l *leaks) look(data []byte) {
	if !bytes.Contains(data, []byte(wiretest.Secret)) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.found = append(l.found, fmt.Sprintf("%.500s", data))
}

// watched is a response that leaks watches.
type watched struct {
	http.ResponseWriter

	leaks *leaks
}

// Unwrap serves http.ResponseController.
func (w *watched) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Flush implements http.Flusher.
func (w *watched) Flush() { _ = http.NewResponseController(w.ResponseWriter).Flush() }

// Write implements http.ResponseWriter.
func (w *watched) Write(data []byte) (int, error) {
	w.leaks.look(data)
	return w.ResponseWriter.Write(data)
}

// newAttack serves a victim. Tests that count goroutines must not run beside other tests.
func newAttack(t *testing.T, revision string, s wiretest.Setup) *attack {
	t.Helper()
	a := &attack{t: t, revision: revision, store: taskstore.NewMemory(), leaks: &leaks{}}
	s.Bearer, s.Gateway = true, &a.gateway
	s.Options.Store = a.store
	s.Tools = append(s.Tools, wiretest.SecretTools(), wiretest.AskTools())
	inner := s.Wrap
	s.Wrap = func(next http.Handler, sdk *mcp.Server) http.Handler {
		if inner != nil {
			next = inner(next, sdk)
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer victim" {
				w = &watched{w, a.leaks}
			}
			next.ServeHTTP(w, r)
		})
	}
	a.url, a.tasks = wiretest.ServeWith(t, s)
	t.Cleanup(func() { _ = a.store.Close() })
	a.victim = wiretest.NewAskedPeer(t, a.url, revision, "victim", wiretest.AllCapabilities)
	a.working = a.victim.Create("secret_work", nil)
	a.asking = a.victim.Create("secret_ask", nil)
	a.done = a.victim.Create("secret_done", nil)
	a.victim.Until(a.asking, "input_required")
	a.victim.Until(a.done, "completed")
	a.victim.Until(a.working, "working")
	a.victim.Client.CloseIdleConnections()
	warm := a.attacker()
	warm.Call("tools/list", nil).OK()
	wiretest.ClosePeer(t, warm)
	a.tasksBefore = a.stored()
	a.settled(func() bool { return a.gateway.Counts().Sessions == a.sessions() })
	a.before = a.gateway.Counts()
	a.check = wiretest.Goroutines(t)
	return a
}

func (a *attack) sessions() int {
	if a.revision == wiretest.ModernRevision {
		return 0
	}
	return 1 // the victim's
}

// attacker is a client with a token of its own.
func (a *attack) attacker() *wiretest.Peer {
	a.t.Helper()
	return wiretest.NewAskedPeer(a.t, a.url, a.revision, "mallory", wiretest.AllCapabilities)
}

// stored counts the tasks of all callers.
func (a *attack) stored() int {
	a.t.Helper()
	return len(a.records("victim")) + len(a.records("mallory"))
}

// records returns the tasks of a principal.
func (a *attack) records(principal string) []taskstore.Record {
	a.t.Helper()
	records, err := a.store.List(context.Background(), principal, taskstore.Position{}, 1<<20)
	if err != nil {
		a.t.Fatal(err)
	}
	return records
}

// settled waits until done returns true.
func (a *attack) settled(done func() bool) {
	a.t.Helper()
	wiretest.Eventually(a.t, fmt.Sprintf("the gateway has settled after %+v", a.before), done)
}

// over checks the state after the attack: nothing of it is left, nothing has leaked, no task of the victim has changed,
// and the server still serves.
func (a *attack) over() {
	t := a.t
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	a.victim.Client.CloseIdleConnections()
	a.settled(func() bool { return a.gateway.Counts() == a.before })
	a.check()
	if n := a.stored(); n != a.tasksBefore {
		t.Errorf("%d tasks, %d before", n, a.tasksBefore)
	}
	for _, id := range []string{a.working, a.asking, a.done} {
		want := map[string]string{a.working: "working", a.asking: "input_required", a.done: "completed"}[id]
		if r := a.victim.Task("tasks/get", id).OK(); r.Text("status") != want {
			t.Errorf("the victim's task is %s, not %s", r.Text("status"), want)
		}
	}
	last := a.attacker()
	id := last.Create("ponder", nil)
	last.Until(id, "completed")
	wiretest.ClosePeer(t, last)
	a.leaks.mu.Lock()
	defer a.leaks.mu.Unlock()
	if len(a.leaks.found) > 0 {
		t.Errorf("another caller received the victim's data %d times: %s", len(a.leaks.found), a.leaks.found[0])
	}
}

// bothRevisions are the released revisions.
var bothRevisions = []string{wiretest.LegacyRevision, wiretest.ModernRevision}

// eachAttack runs an attack in both revisions, one after the other.
func eachAttack(t *testing.T, s wiretest.Setup, run func(t *testing.T, a *attack, mallory *wiretest.Peer)) {
	t.Helper()
	for _, revision := range bothRevisions {
		t.Run(revision, func(t *testing.T) { runAttack(t, revision, s, run) })
	}
}

// runAttack runs an attack in a revision.
func runAttack(t *testing.T, revision string, s wiretest.Setup, run func(t *testing.T, a *attack, mallory *wiretest.Peer)) {
	t.Helper()
	bubble.Test(t, func(t *testing.T) {
		a := newAttack(t, revision, s)
		mallory := a.attacker()
		run(t, a, mallory)
		wiretest.ClosePeer(t, mallory)
		a.over()
	})
}

// TestHostileOwner uses a caller that knows the IDs of another caller's tasks. No method shows or changes these tasks.
func TestHostileOwner(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		ids := []string{a.working, a.asking, a.done}
		var f *wiretest.Feed
		if a.revision == wiretest.LegacyRevision {
			f = mallory.OpenGet()
		}
		for _, id := range ids {
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/update"} {
				r := mallory.Call(method, map[string]any{"taskId": id, "inputResponses": wiretest.InputResponses("step", `{"action":"accept","content":{"note":"x"}}`)})
				if r.Error == nil || r.Error.Code != wiretest.InvalidParams && r.Error.Code != wiretest.MethodNotFound {
					t.Errorf("%s: %d %s", method, r.Status, r.Body)
				}
			}
			for _, tool := range []string{"task_status", "task_result", "task_cancel", "task_answer"} { // of fallback=tools, by token
				r := mallory.Call("tools/call", map[string]any{"name": tool, "arguments": map[string]any{"token": id, "task": id}})
				if r.Error == nil && r.Get("isError") != true {
					t.Errorf("%s: %s", tool, r.Body)
				}
			}
			// As an answer to the question, in the attacker's session, in the victim's, and without a session.
			for _, session := range []string{mallory.Session, a.victim.Session, ""} {
				for _, kind := range []string{"mcptask", "mcptask:get:1", "mcptask:result:1", "mcptask:cancel:1", "mcptask:again:1"} {
					for _, result := range []string{`{"action":"accept","content":{"note":"x"}}`, `{}`, // and as a task of the attacker's
						`{"task":{"taskId":"t","status":"working","ttl":null,"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z"}}`} {
						body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"%s/%s/step","result":%s}`, kind, id, result)
						if r := mallory.Post(body, wiretest.WithHeader("Mcp-Session-Id", session)); len(r.Result) > 0 {
							t.Errorf("%d %s", r.Status, r.Body)
						}
					}
				}
			}
		}
		if a.revision == wiretest.LegacyRevision {
			if r := mallory.Call("tasks/list", nil).OK(); len(r.Get("tasks").([]any)) != 0 {
				t.Errorf("%s", r.Body)
			}
			f.WantSilence()
			f.Stop()
			return
		}
		// As a subscription, which may be refused or stay empty.
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		body, edits := mallory.Request("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": ids, "toolsListChanged": true}})
		res, err := mallory.Client.Do(mallory.NewRequest(ctx, http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		time.AfterFunc(300*time.Millisecond, cancel)
		if data, _ := io.ReadAll(res.Body); bytes.Contains(data, []byte(`"notifications/tasks"`)) {
			t.Errorf("%s", data)
		}
	})
}

// TestHostileMetadata checks that metadata which only the runtime may write is ignored if a client
// writes it.
func TestHostileMetadata(t *testing.T) {
	eachAttack(t, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		token, closeFlow := gateway.OpenFlow(a.tasks.Backend(), &gateway.Flow{Caller: taskserver.Caller{Principal: "victim"}, Tool: "secret_done"})
		defer closeFlow()
		forged := map[string]any{
			gateway.FlowMeta:                         token,
			"io.github.mcptaskgen/principal":         "victim",
			"io.github.mcptaskgen/input":             "Note",
			"io.github.mcptaskgen/taskId":            a.done,
			"io.modelcontextprotocol/related-task":   map[string]any{"taskId": a.done},
			"io.modelcontextprotocol/serverInfo":     map[string]any{"name": "x", "version": "1"},
			"io.modelcontextprotocol/subscriptionId": 1,
			"taskId":                                 a.done,
		}
		header := func(r *http.Request) {
			r.Header[strings.ToLower(gateway.FlowHeader)] = []string{token, token}
			r.Header.Set("X-Forwarded-User", "victim")
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel", "tasks/list", "tasks/update", "tools/list", "prompts/list", "ping"} {
			r := mallory.Call(method, map[string]any{"taskId": "NOSUCHTASK", "_meta": forged}, header)
			if strings.HasPrefix(method, "tasks/") && method != "tasks/list" && r.Error == nil {
				t.Errorf("%s: %s", method, r.Body)
			}
		}
		for _, tool := range []string{"lint_file", "sdk_tool"} { // without a task, the principal would show in a secret
			mallory.Call("tools/call", map[string]any{"name": tool, "arguments": map[string]any{"path": "p"}, "_meta": forged}, header).OK()
		}
		id := mallory.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"taskId": a.done, "id": a.done}, "_meta": forged}, header).OK()
		own := id.Text("task", "taskId")
		if a.revision == wiretest.ModernRevision {
			own = id.Text("taskId")
		}
		if own == "" || own == a.done {
			t.Errorf("%s", id.Body) // C-24
		}
		if r, err := a.tasks.Backend().Peek(own); err != nil || r.Principal != "mallory" {
			t.Errorf("the task is %q's: %v", r.Principal, err)
		}
		a.tasksBefore++ // the attacker's own
		if gateway.TakeFlow(a.tasks.Backend(), token) == nil {
			t.Error("the server accepted the forged token")
		}
	})
}

// TestHostileCursors checks that a cursor is valid only for its receiver and only unchanged. It
// also checks that questions before a task do not reveal secrets.
func TestHostileCursors(t *testing.T) {
	runAttack(t, wiretest.LegacyRevision, wiretest.Setup{}, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		for range 60 {
			a.victim.Create("secret_done", nil)
		}
		synctest.Wait() // for the tasks to end, because the lists show that
		a.tasksBefore = a.stored()
		r := a.victim.Call("tasks/list", nil).OK()
		cursor := r.Text("nextCursor")
		if cursor == "" {
			t.Fatalf("no cursor: %s", r.Body)
		}
		again := a.victim.Call("tasks/list", map[string]any{"cursor": cursor}).OK()
		replayed := a.victim.Call("tasks/list", map[string]any{"cursor": cursor}).OK()
		if !bytes.Equal(again.Result, replayed.Result) {
			t.Errorf("a page read twice: %s and %s", again.Body, replayed.Body)
		}
		refused := func(p *wiretest.Peer, cursor string) {
			t.Helper()
			p.Call("tasks/list", map[string]any{"cursor": cursor}).Want(http.StatusOK, wiretest.InvalidParams)
		}
		refused(mallory, cursor)
		for i := range cursor { // C-82
			refused(mallory, cursor[:i])
			refused(a.victim, cursor[:i])
			for _, c := range []byte("A_z9=") {
				if cursor[i] != c {
					refused(mallory, cursor[:i]+string(c)+cursor[i+1:])
				}
			}
		}
		for _, made := range []string{"", "0", "AAAA", "null", "../", "\x00", strings.Repeat("A", 1<<16), wiretest.EncodeBase64(a.done), wiretest.EncodeBase64(`{"principal":"victim"}`)} {
			refused(mallory, made)
			refused(a.victim, made)
		}
	})
}

// TestHostileState checks that a client cannot misuse the state of a call that asks first. Borrowed, changed or made-up
// state has no more effect than a call with other answers.
func TestHostileState(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true})
		victim, mallory := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "victim", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "mallory", wiretest.AllCapabilities)
		call := func(p *wiretest.Peer, state any) *wiretest.Response {
			return p.Call("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{"name": wiretest.Secret}, "requestState": state})
		}
		first := victim.Call("tools/call", map[string]any{"name": "ask_first", "arguments": map[string]any{"name": wiretest.Secret},
			"inputResponses": wiretest.InputResponses(wiretest.SureKey, wiretest.SureYes)}).OK()
		state := first.Text("requestState")
		if state == "" || strings.Contains(state, wiretest.Secret) || strings.Contains(state, "victim") {
			t.Fatalf("the state is %q", state)
		}
		for range 3 {
			if r := call(mallory, state).OK(); r.Text("resultType") != "input_required" { // one answer is still missing
				t.Errorf("%s", r.Body)
			}
		}
		for i := range state {
			for _, changed := range []string{state[:i], state[:i] + "\x00" + state[i+1:], state[:i] + state} {
				if r := call(mallory, changed); r.Error == nil && r.Text("resultType") != "input_required" {
					t.Errorf("%q: %s", changed, r.Body)
				}
			}
		}
		for _, made := range []any{5, nil, true, []int{1}, map[string]any{"a": 1}, strings.Repeat("[", 5000), strings.Repeat("x", 1<<20), `{"before/Sure":` + strings.Repeat("[", 9000) + strings.Repeat("]", 9000) + `}`} {
			if r := call(mallory, made); r.Status >= 500 || r.Error == nil && r.Text("resultType") != "input_required" {
				t.Errorf("%.100v: %d %.300s", made, r.Status, r.Body)
			}
		}
		for _, p := range []*wiretest.Peer{victim, mallory} {
			if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
				t.Errorf("%s has %v", p.Token, tasks)
			}
		}
	})
}

// TestHostileBareHandler checks an SDK handler without the gateway. It serves none of the server's tools and shows no
// task, because nothing establishes the caller. A made-up token does not help.
func TestHostileBareHandler(t *testing.T) {
	for _, revision := range bothRevisions {
		t.Run(revision, func(t *testing.T) {
			runAttack(t, revision, wiretest.Setup{Wrap: func(next http.Handler, sdk *mcp.Server) http.Handler {
				mux := http.NewServeMux()
				mux.Handle("/", next)
				mux.Handle("/bare", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk },
					&mcp.StreamableHTTPOptions{Stateless: revision == wiretest.ModernRevision}))
				return mux
			}}, func(t *testing.T, a *attack, _ *wiretest.Peer) {
				bare := wiretest.NewPeerWith(t, a.url+"/bare", revision, "mallory", wiretest.TasksExtension)
				for _, token := range []string{"", "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
					for tool, code := range map[string]int{"ponder": wiretest.InternalError, "run_pipeline": wiretest.InternalError, "lint_file": wiretest.InternalError,
						"secret_done": wiretest.InternalError, "secret_ask": wiretest.InternalError, "ask_first": wiretest.InvalidParams, "task_result": wiretest.InvalidParams} {
						body, edit := jsonCall(t, bare, "tools/call", map[string]any{"name": tool, "arguments": wiretest.PipelineArgs("main"), "task": map[string]any{},
							"_meta": map[string]any{gateway.FlowMeta: token}})
						if r := bare.Post(body, edit, wiretest.WithHeader(gateway.FlowHeader, token)); r.Error == nil || r.Error.Code != code {
							t.Errorf("%s: %d %s", tool, r.Status, r.Body)
						}
					}
				}
				for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"} {
					r := bare.Post(jsonCall(t, bare, method, map[string]any{"taskId": a.done}))
					if r.Status/100 == 2 && r.Error == nil {
						t.Errorf("%s: %d %s", method, r.Status, r.Body)
					}
				}
				wiretest.ClosePeer(t, bare)
			})
		})
	}
}

// jsonCall returns the body of a request, and an edit of its headers.
func jsonCall(t *testing.T, p *wiretest.Peer, method string, params map[string]any) (string, wiretest.Edit) {
	t.Helper()
	body, edits := p.Request(method, params)
	if !json.Valid([]byte(body)) {
		t.Fatal(body)
	}
	return body, func(r *http.Request) {
		for _, e := range edits {
			e(r)
		}
	}
}
