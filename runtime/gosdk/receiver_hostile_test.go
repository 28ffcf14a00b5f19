package gosdk

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The client handles a request once, even if it comes again after a stream was resumed.
func TestReceiverReplays(t *testing.T) {
	eachWay(t, nil, func(t *testing.T, a *inquirer) {
		params := elicit("now", `,"task":{}`)
		a.beginAs("77", "elicitation/create", params)
		id := a.reply("77").ok().text("task", "taskId")
		for n := 2; n < 5; n++ {
			// A replay may ask for a shorter ttl.
			a.beginAs("77", "elicitation/create", elicit("now", fmt.Sprintf(`,"task":{"ttl":%d}`, 10000-n)))
			a.until("the reply again", func() bool { return len(a.got["77"]) == n })
		}
		waiting := a.create("wait")
		result := a.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, waiting))
		for range 5 {
			a.beginAs(result, "tasks/result", fmt.Sprintf(`{"taskId":%q}`, waiting))
		}
		a.task("tasks/cancel", waiting).ok()
		a.reply(result)
		a.ask("ping", "").ok()
		a.mu.Lock()
		for _, r := range a.got["77"] {
			if again := r.text("task", "taskId"); again != id {
				t.Errorf("another task: %s, not %s", again, id)
			}
		}
		a.mu.Unlock()
		if n := len(a.list()); n != 2 {
			t.Errorf("%d tasks", n)
		}
		if n := a.replies(result); n != 1 {
			t.Errorf("%d replies to one tasks/result", n)
		}
		// The same ID with another question is another request.
		a.beginAs("77", "elicitation/create", elicit("decline", `,"task":{}`))
		a.until("the reply to another", func() bool { return len(a.got["77"]) == 5 })
	})
}

// The client resumes a stream that the server drops, without losing or repeating messages. If a session is gone, its
// tasks go on in the next.
func TestReceiverOutlivesSession(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		a, o := newInquirer(t, mcptask.Revision20251125)
		o.HTTPClient = &http.Client{Transport: authorized{}}
		a.overHTTP(o)
		id, done := a.create("wait"), a.create("now")
		for range 3 {
			a.drop()
			if status := a.task("tasks/get", id).text("status"); status != "working" {
				t.Errorf("%s", status)
			}
		}
		a.mu.Lock()
		if a.resumed < 3 || a.again > 0 {
			t.Errorf("%d streams were resumed, %d messages came again", a.resumed, a.again)
		}
		for _, header := range a.headers {
			if header.Get("Authorization") != "Bearer mine" || header.Get("Mcp-Session-Id") != "1" || header.Get("Mcp-Protocol-Version") != "2025-11-25" ||
				header.Get("Content-Type") != "application/json" || header.Get("Last-Event-Id") != "" || header.Get("Mcp-Method") != "" {
				t.Errorf("a reply with %v", header)
			}
		}
		a.mu.Unlock()
		result := a.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
		a.task("tasks/get", id).ok()
		a.kill()
		if _, err := a.conn.ListTools(t.Context()); err != nil {
			t.Fatal(err)
		}
		if status := a.task("tasks/get", id).text("status"); status != "working" {
			t.Errorf("after the session: %s", status)
		}
		if r := a.task("tasks/result", done).ok(); r.text("content", "text") != "to now" {
			t.Errorf("%s", r.Result)
		}
		close(a.person.release)
		if r := a.task("tasks/result", id).ok(); r.text("content", "text") != "to wait" {
			t.Errorf("%s", r.Result)
		}
		if n := a.replies(result); n != 0 {
			t.Errorf("%d replies to the session that was gone", n)
		}
		// A new session counts its request IDs from the start.
		a.mu.Lock()
		a.ids = 0
		a.got, a.headers = map[string][]reply{}, nil
		a.mu.Unlock()
		if again := a.create("now"); again == id || again == done {
			t.Errorf("the task of another session: %s", again)
		}
	})
}

// authorized is a transport that the caller provides.
type authorized struct{}

func (authorized) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer mine")
	return memnet.OneOff.RoundTrip(r)
}

// Close ends the prompts and everything that waits for them. In a store that outlives the client, their tasks stay as
// they were.
func TestReceiverCloses(t *testing.T) {
	eachWay(t, func(o *ClientOptions) { o.Tasks.Store = taskstore.NewMemory() }, func(t *testing.T, a *inquirer) {
		var ids []string
		for range 20 {
			ids = append(ids, a.create("wait"))
			<-a.person.begun
		}
		for _, id := range ids {
			a.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id))
		}
		a.ask("ping", "").ok()
		if err := a.conn.Close(); err != nil {
			t.Error(err)
		}
		for range ids {
			if cause := <-a.person.ended; cause == nil {
				t.Error("a prompt ended without a cause")
			}
		}
		c := a.conn.(*conn)
		if s := c.current.inbox; s.busy != 0 || len(s.replies) != 0 || c.receiver.tasks.Closing().Err() == nil {
			t.Errorf("%d replies are under way, the tasks end by %v", s.busy, c.receiver.tasks.Closing().Err())
		}
		if s := c.current.inbox; s.startWork(func() {}) {
			t.Error("a request was accepted after Close")
		}
		store := c.options.Tasks.Store
		for _, id := range ids {
			if r, err := store.Get(t.Context(), id); err != nil || r.Done() {
				t.Errorf("%s, %v", r.Phase, err)
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
		if err := a.conn.Close(); err != nil {
			t.Errorf("closed twice: %v", err)
		}
	})
}

// The client bounds the work that a server's requests can cause. It refuses or ignores junk.
func TestReceiverBounds(t *testing.T) {
	eachWay(t, nil, func(t *testing.T, a *inquirer) {
		id := a.create("wait")
		var waiting []string
		for range maxReplies + 1 { // the last one or two find no room
			waiting = append(waiting, a.begin("tasks/result", fmt.Sprintf(`{"taskId":%q}`, id)))
		}
		r := a.ask("tasks/get", fmt.Sprintf(`{"taskId":%q}`, id)).want(mcptask.CodeInternalError)
		if string(r.Error.Data) != `{"limit":"requests","max":256}` {
			t.Errorf("%s", r.Error.Data)
		}
		// A request that the server cancels makes room, and the task goes on (C-74).
		for _, request := range waiting[1:] {
			a.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + request + `}}`)
		}
		a.untilRoom(id)
		a.wantStatus(a.create("now"), "completed")
		a.task("tasks/cancel", id).ok()
		a.reply(waiting[0])
		for _, request := range waiting[1 : maxReplies-1] {
			if a.replies(request) != 0 {
				t.Error("a cancelled request was answered")
			}
		}
		for _, junk := range []string{
			`{"jsonrpc":"2.0","method":"tasks/get","params":{"taskId":"x"}}`, `{"jsonrpc":"2.0","method":"tasks/cancel"}`,
			`{"jsonrpc":"2.0","method":"elicitation/create","params":{"message":"now","task":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{}}}`,
			`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"none"}}`,
			`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{"taskId":7}}`, `{"jsonrpc":"2.0","id":"none","result":{}}`,
		} {
			a.say(junk)
		}
		for _, params := range []string{`{"task":{}}`, `{"task":{},"message":7}`, `{"task":{},"message":"x","mode":"url"}`,
			`{"task":{},"message":"x","mode":"url","url":"u","requestedSchema":{}}`, `{"task":{},"message":"x","url":"u"}`,
			`{"task":{},"message":"x","mode":"other"}`, `{"task":{},"message":"x","requestedSchema":7}`} {
			a.ask("elicitation/create", params).want(mcptask.CodeInvalidParams)
		}
		for _, params := range []string{`{"task":{}}`, `{"task":{},"messages":7}`} {
			a.ask("sampling/createMessage", params).want(mcptask.CodeInvalidParams)
		}
		bad := a.ask("elicitation/create", `{"task":{},"message":"now","requestedSchema":{"type":7}}`).ok().text("task", "taskId")
		a.task("tasks/result", bad).want(mcptask.CodeInvalidParams)
		if n := len(a.list()); n != 3 {
			t.Errorf("%d tasks", n)
		}
	})
}

// If a reply cannot be sent, the server may send the request again.
func TestReceiverUnsent(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		a, o := newInquirer(t, mcptask.Revision20251125)
		a.overHTTP(o)
		a.refuse(true)
		params := elicit("now", `,"task":{}`)
		a.beginAs("1000", "elicitation/create", params)
		<-a.person.begun
		a.until("the refusal", func() bool { return a.refused > 0 })
		a.refuse(false)
		a.beginAs("1000", "elicitation/create", params)
		if r := a.reply("1000").ok(); r.text("task", "taskId") == "" {
			t.Errorf("%s", r.Result)
		}
		if n := len(a.list()); n != 1 {
			t.Errorf("%d tasks", n)
		}
	})
}

// In 2026-07-28, the client declares no such capability, and a server has no way to ask.
func TestReceiverNotIn20260728(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var (
			mu     sync.Mutex
			bodies []string
		)
		server := memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			mu.Lock()
			bodies = append(bodies, string(body))
			mu.Unlock()
			var m struct {
				ID json.RawMessage `json:"id"`
			}
			_ = json.Unmarshal(body, &m)
			w.Header().Set("Content-Type", "text/event-stream")
			question := `{"jsonrpc":"2.0","id":1,"method":"elicitation/create","params":` + elicit("now", `,"task":{}`) + `}`
			_, _ = fmt.Fprintf(w, "data: %s\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"resultType\":\"complete\",\"tools\":[],\"ttlMs\":0,\"cacheScope\":\"private\",\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":{}}}\n\n", question, m.ID)
		}), nil)
		defer server.Close()
		p := newPerson()
		o := p.options()
		o.Revision = mcptask.Revision20260728
		c, err := Connect(t.Context(), server.URL, o)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		if _, err := c.ListTools(ctx); err != nil {
			t.Error(err)
		}
		if tasks := c.(*conn).receiver.tasks; tasks != nil {
			t.Error("the client made a store of tasks")
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		server.Close() // by now, the client's last messages have come
		mu.Lock()
		defer mu.Unlock()
		for _, body := range bodies {
			if strings.Contains(body, `"tasks":`) || strings.Contains(body, `"task":`) || strings.Contains(body, "taskId") {
				t.Errorf("%s", body)
			}
		}
		if len(bodies) < 2 {
			t.Errorf("%q", bodies)
		}
	})
}
