package pushtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

func listening(t testing.TB, s wiretest.Setup) (url string, d *wiretest.Driven) {
	t.Helper()
	d = new(wiretest.Driven)
	s.Tools = append(s.Tools, d.Tools())
	return wiretest.ServeAsk(t, s), d
}

// newListener returns an anonymous client of 2026-07-28 that cannot be asked.
func newListener(t *testing.T) (p *wiretest.Peer, d *wiretest.Driven) {
	t.Helper()
	url, d := listening(t, wiretest.Setup{})
	return modernPeer(t, url), d
}

// subscribe opens a subscription. It fails the test unless the server agrees to the filter that format and ids print.
func subscribe(p *wiretest.Peer, filter map[string]any, format string, ids ...any) *wiretest.Feed {
	p.T.Helper()
	f, agreed := p.Subscribe(filter)
	if want := fmt.Sprintf("map["+format+"]", ids...); fmt.Sprint(agreed) != want {
		p.T.Errorf("agreed to %v, want %s", agreed, want)
	}
	return f
}

// filterOf returns the filter of a subscription to a task. With others, the filter also names notifications of the SDK.
func filterOf(task string, others bool) map[string]any {
	filter := map[string]any{"taskIds": []string{task}}
	if others {
		filter["toolsListChanged"] = true
	}
	return filter
}

// untilTask returns the first task that has the member, and skips the task's other states before it.
func untilTask(f *wiretest.Feed, id, member, value string) map[string]any {
	f.T.Helper()
	for {
		task := f.NextTask()
		if task["taskId"] != id {
			f.T.Errorf("not a state of %s: %v", id, task)
		}
		if task[member] == value {
			return task
		}
	}
}

func TestListen(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-61", "E-62", "E-63", "E-65", "E-68")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, wiretest.Setup{})
		p := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "", `{"elicitation":{}}`)
		id := p.Create("driven", nil)
		f := p.SubscribeTasks(id)
		same := func(status string) map[string]any {
			t.Helper()
			task := f.NextTask()
			r := p.Task("tasks/get", id).OK()
			want := r.Get().(map[string]any)
			delete(want, "resultType")
			delete(want, "_meta") // names the server
			if !reflect.DeepEqual(task, want) || task["status"] != status {
				t.Errorf("%v\nnot %s: %v", task, status, want)
			}
			return task
		}
		wantTask(f, "working") // the current state, although nothing changes
		d.Tell(id, "one")
		untilTask(f, id, "statusMessage", "one") // the handler's start may be a separate change
		d.Tell(id, "two")
		if task := same("working"); task["statusMessage"] != "two" {
			t.Errorf("%v", task)
		}
		d.Tell(id, "ask")
		if task := same("input_required"); len(task["inputRequests"].(map[string]any)) != 1 {
			t.Errorf("%v", task)
		}
		p.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"note": map[string]any{"action": "decline"}}}).OK()
		same("working")
		d.Tell(id, "done")
		if task := same("completed"); task["result"] == nil {
			t.Errorf("%v", task)
		}
		f.WantEnd()

		f = p.SubscribeTasks(id) // a task that has ended already
		same("completed")
		f.WantEnd()

		failed := p.Create("driven", nil)
		f = p.SubscribeTasks(failed)
		d.Tell(failed, "fail")
		if task := untilTask(f, failed, "status", "failed"); task["error"] == nil {
			t.Errorf("%v", task)
		}
		f.WantEnd()
	})
}

// TestListenIDs checks that a subscription is named by its request's ID, whatever form the ID has.
func TestListenIDs(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-68")
	bubble.Test(t, func(t *testing.T) {
		p, _ := newListener(t)
		done := p.Create("raw", map[string]any{})
		p.Until(done, "completed")
		for _, id := range []string{`0`, `-1`, `9007199254740991`, `"a"`, `"1"`, `"a b \" é"`, `""`} {
			body, edits := p.Request("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{done, done}}})
			var message map[string]json.RawMessage
			if err := json.Unmarshal([]byte(body), &message); err != nil {
				t.Fatal(err)
			}
			before, after, _ := strings.Cut(body, `"id":`+string(message["id"]))
			f := p.Open(http.MethodPost, before+`"id":`+id+after, edits...)
			if agreed := f.NextAcknowledgement()["taskIds"]; len(agreed.([]any)) != 1 {
				t.Errorf("%v", agreed)
			}
			wantTask(f, "completed")
			f.WantEnd()
		}
	})
}

// TestListenRefused checks that E-64 precedes everything that the request names, and that headers
// and metadata are checked as for any other method.
func TestListenRefused(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-64", "E-72", "E-73")
	bubble.Test(t, func(t *testing.T) {
		p, _ := newListener(t)
		id := p.Create("raw", map[string]any{})
		listen := func(ids any, edits ...wiretest.Edit) *wiretest.Response {
			return p.Call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": ids}}, edits...)
		}
		for _, caps := range []string{`{}`, `{"tasks":{}}`, `{"extensions":{"io.modelcontextprotocol/tasks":null}}`} {
			p.Caps = caps
			for _, ids := range []any{[]string{id}, []string{"made-up"}, []string{}, []any{5}, "x"} {
				r := listen(ids).Want(http.StatusBadRequest, wiretest.MissingCapability)
				if want := `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`; r.Error != nil && string(r.Error.Data) != want {
					t.Errorf("data %s", r.Error.Data)
				}
			}
			r := p.Call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}, "toolsListChanged": true}})
			r.Want(http.StatusBadRequest, wiretest.MissingCapability)
		}
		p.Caps = wiretest.TasksExtension
		for _, ids := range []any{"x", 5, []any{5}, []any{nil, []string{}}, map[string]any{}} {
			listen(ids).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		many := make([]string, 1001)
		for i := range many {
			many[i] = fmt.Sprint("task", i)
		}
		listen(many).Want(http.StatusBadRequest, wiretest.InvalidParams)
		listen([]string{id}, wiretest.WithHeader("Mcp-Method", "")).Want(http.StatusBadRequest, wiretest.HeaderMismatch)
		listen([]string{id}, wiretest.WithHeader("Mcp-Method", "tasks/get")).Want(http.StatusBadRequest, wiretest.HeaderMismatch)
		listen([]string{id}, wiretest.WithHeader("MCP-Protocol-Version", "2025-11-25")).Want(http.StatusBadRequest, wiretest.HeaderMismatch)
		version, capabilities := `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":`+wiretest.TasksExtension
		for _, meta := range []string{``, version, capabilities} {
			p.Post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{`+meta+`},"notifications":{"taskIds":["x"]}}}`,
				wiretest.WithHeader("Mcp-Method", "subscriptions/listen")).Want(http.StatusBadRequest, wiretest.InvalidParams)
		}
		// Without tasks, only the SDK answers.
		p.Caps = `{}`
		subscribe(p, map[string]any{"toolsListChanged": true}, "toolsListChanged:true").WantSilence()
	})
}

// TestListenToOthers checks that another caller's task is omitted like a task that does not exist.
func TestListenToOthers(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-63", "E-87")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, wiretest.Setup{Bearer: true})
		a, b := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "b")
		mine, theirs, short := a.Create("driven", nil), b.Create("driven", nil), a.Create("short_driven", nil)
		a.UntilGone(short)
		f := subscribe(a, map[string]any{"taskIds": []string{theirs, "made-up", mine, short, "", mine}}, "taskIds:[%s]", mine)
		d.Tell(theirs, "secret", "done")
		d.Tell(mine, "open", "done")
		untilTask(f, mine, "status", "completed")
		f.WantEnd()
		for _, ids := range [][]string{{mine}, {"made-up"}, {}} {
			subscribe(b, map[string]any{"taskIds": ids}, "taskIds:[]").WantEnd() // no message can come
		}
	})
}

// TestListenersDiffer checks that a listener gets only the questions that it can answer, and only
// its own tasks. To a client that can answer none, the task is working, and its message says what
// it waits for.
func TestListenersDiffer(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-30", "E-65", "E-67")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, wiretest.Setup{})
		asked, mute := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "", `{"elicitation":{}}`), modernPeer(t, url)
		id := asked.Create("driven", nil)
		d.Tell(id, "ask")
		asked.Until(id, "input_required")
		for p, want := range map[*wiretest.Peer]string{asked: "input_required 1", mute: "working 0"} {
			f := p.SubscribeTasks(id)
			task, got := f.NextTask(), p.Task("tasks/get", id).OK()
			requests, _ := task["inputRequests"].(map[string]any)
			if fmt.Sprint(task["status"], " ", len(requests)) != want || task["statusMessage"] != "A note?" {
				t.Errorf("%v, want %s", task, want)
			}
			for _, member := range []string{"status", "statusMessage", "inputRequests"} {
				if !reflect.DeepEqual(task[member], got.Get(member)) {
					t.Errorf("%v, tasks/get has %s", task, got.Body)
				}
			}
			f.WantSilence()
		}
		// The tap finds any other message, such as the progress that was asked for.
		r := asked.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 300}, "_meta": map[string]any{
			"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}}).OK()
		f := asked.SubscribeTasks(r.Text("taskId"))
		untilTask(f, r.Text("taskId"), "status", "completed")
		f.WantEnd()
	})
}

// TestListenDropped checks that a subscriber may disconnect at any time. Its task continues, and
// nothing is left behind.
func TestListenDropped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p, d := newListener(t)
		id := d.StartTask(p)
		p.SubscribeTasks(id).Stop()
		p.Client.CloseIdleConnections()
		before := leak.Now()
		for read := range 4 {
			for _, others := range []bool{false, true} {
				f := p.Send("subscriptions/listen", map[string]any{"notifications": filterOf(id, others)})
				for i := range read {
					if i > 1 {
						d.Tell(id, fmt.Sprint(read, others))
					}
					f.Next()
				}
				f.Stop()
			}
		}
		p.Client.CloseIdleConnections()
		before.NoneLeft(t)
		d.Tell(id, "done")
		p.Until(id, "completed")
	})
}

// TestListenFlood checks that a subscriber that reads late gets current states, in order, and the
// end.
func TestListenFlood(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p, d := newListener(t)
		id := p.Create("driven", nil)
		body, edits := p.Request("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}}})
		res, err := (&http.Client{Transport: p.Client.Transport}).Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		d.Flood(p, id)
		seen, last, completed, ended := 0, "", false, false
		for data := range wiretest.Events(res.Body) {
			m := wiretest.WireMessage{Text: string(data)}
			if ended {
				t.Errorf("after the end: %.200s", data)
			}
			if ended = bytes.Contains(data, []byte(`"result":{"_meta"`)); ended || seen == 0 {
				seen++ // the acknowledgement, and the answer
				continue
			}
			seen++
			task := wiretest.DecodeParams(t, m.Text)
			message, _ := task["statusMessage"].(string)
			if completed || message != "" && message <= last {
				t.Errorf("%.6s after %.6s", message, last)
			}
			last, completed = message, task["status"] == "completed"
		}
		if !completed || !ended || seen > wiretest.FloodChanges*3/4 {
			t.Errorf("%d of %d changes, completed %v, ended %v", seen, wiretest.FloodChanges, completed, ended)
		}
	})
}

// TestListenEnds checks that closing the server answers the request. A task that disappears causes
// no notification.
func TestListenEnds(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-68")
	inBubble(t, "with the server", func(t *testing.T) {
		for _, others := range []string{"", "toolsListChanged", "promptsListChanged"} {
			var d wiretest.Driven
			url, tasks := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{d.Tools()}})
			p := modernPeer(t, url)
			f, _ := p.Subscribe(map[string]any{"taskIds": []string{}, "toolsListChanged": true})
			f.Stop()
			id := d.StartTask(p)
			filter := filterOf(id, false)
			if others != "" {
				filter[others] = true
			}
			f, _ = p.Subscribe(filter)
			f.NextTask()
			begin := time.Now()
			if err := tasks.Close(); err != nil {
				t.Error(err)
			}
			for f.Next().Method != "" {
			}
			if took := time.Since(begin); took > wiretest.Patience {
				t.Errorf("it took %v", took)
			}
		}
	})
	inBubble(t, "with its tasks", func(t *testing.T) {
		p, d := newListener(t)
		short, other := p.Create("short_driven", nil), p.Create("driven", nil)
		f := p.SubscribeTasks(short, other)
		p.UntilGone(short)
		d.Tell(other, "done")
		for {
			task := f.NextTask()
			if task["taskId"] == other && task["status"] == "completed" {
				break
			}
		}
		f.WantEnd()
	})
}

// brittle is a store whose next reads fail.
type brittle struct {
	taskstore.Store
	fail func() error
	next *atomic.Int32 // how many
}

// Get implements taskstore.Store.
func (s brittle) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if s.next.Add(-1) >= 0 {
		return taskstore.Record{}, s.fail()
	}
	return s.Store.Get(ctx, id)
}

// TestListenBroken checks that a store that fails or panics ends no subscription; it only costs time.
func TestListenBroken(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"panic": func() error { panic("as told") },
		"error": func() error { return errors.New("as told") },
	} {
		for _, others := range []bool{false, true} {
			inBubble(t, fmt.Sprint(name, others), func(t *testing.T) {
				var d wiretest.Driven
				var next atomic.Int32
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Panics: true, Tools: []mcptask.Tools{d.Tools()},
					Options: taskserver.Options{Store: brittle{taskstore.NewMemory(), fail, &next}}})
				p := modernPeer(t, url)
				id := d.StartTask(p)
				f, _ := p.Subscribe(filterOf(id, others))
				f.NextTask()
				next.Store(3)
				d.Tell(id, "done")
				p.Until(id, "completed")
				wantTask(f, "completed")
				if left := next.Load(); left >= 0 {
					t.Errorf("%d reads have not failed", left)
				}
			})
		}
	}
}

// TestListenLimit checks that every followed task counts, separately for each principal.
func TestListenLimit(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, wiretest.Setup{Bearer: true})
		a, b := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "b")
		full := func(p *wiretest.Peer) map[string]any {
			ids := []string{p.Create("driven", nil)}
			for i := len(ids); i < 999; i++ { // with the request itself 1,000
				ids = append(ids, fmt.Sprint("task", i))
			}
			return map[string]any{"taskIds": ids}
		}
		filter := full(a)
		var open []*wiretest.Feed
		for range 20 {
			f, _ := a.Subscribe(filter)
			open = append(open, f)
		}
		r := a.Call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{}}})
		r.Want(http.StatusOK, wiretest.InternalError)
		if r.Error != nil && string(r.Error.Data) != `{"limit":"followed","max":20000}` {
			t.Errorf("%s", r.Error.Data)
		}
		f, _ := b.Subscribe(full(b))
		f.NextTask()
		open[0].Stop()
		for end := time.Now().Add(wiretest.Patience); ; time.Sleep(5 * time.Millisecond) {
			r := a.Call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{}}})
			if r.Error == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("it is not freed: %s", r.Body)
			}
		}
	})
}

// TestListenAcrossServers checks that a subscriber sees changes by another process, because the
// gateway follows the store.
func TestListenAcrossServers(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-65")
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var d wiretest.Driven
		options := taskserver.Options{Store: store}
		here, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Tools: []mcptask.Tools{d.Tools()}})
		there, _ := wiretest.ServeWith(t, wiretest.Setup{Options: options, Tools: []mcptask.Tools{d.Tools()}})
		p, q := modernPeer(t, here), modernPeer(t, there)
		id := p.Create("driven", nil)
		f := q.SubscribeTasks(id)
		d.Tell(id, "from afar")
		untilTask(f, id, "statusMessage", "from afar")
		d.Tell(id, "done")
		untilTask(f, id, "status", "completed")
		f.WantEnd()
	})
}

// TestListenToMany follows as many tasks as a subscription may name.
func TestListenToMany(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		p, _ := newListener(t)
		ids := make([]string, 100)
		for i := range ids {
			ids[i] = p.Create("ponder", map[string]any{"ms": 40 * (i % 5)})
		}
		f := p.SubscribeTasks(ids...)
		left := slices.Clone(ids)
		last := map[string]string{}
		for len(left) > 0 {
			task := f.NextTask()
			id, updated := task["taskId"].(string), task["lastUpdatedAt"].(string)
			was, err := time.Parse(time.RFC3339Nano, last[id])
			is, _ := time.Parse(time.RFC3339Nano, updated)
			if err == nil && is.Before(was) {
				t.Errorf("%s after %s", updated, last[id])
			}
			last[id] = updated
			if task["status"] == "completed" {
				i := slices.Index(left, id)
				if i < 0 {
					t.Fatalf("%s has ended twice", id)
				}
				left = slices.Delete(left, i, i+1)
			}
		}
		f.WantEnd()
	})
}
