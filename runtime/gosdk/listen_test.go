package gosdk_test

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
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// checkStreamed holds what comes on the stream of a request against the schema.
func (p *peer) checkStreamed(c *wirecheck.Checker, request string, m wireMessage, data []byte) error {
	var sent struct {
		ID     json.RawMessage
		Method string
	}
	_ = json.Unmarshal([]byte(request), &sent) // a GET has none
	switch {
	case sent.Method != "subscriptions/listen" && m.Method == "":
		return nil // whoever asked knows what it is the answer to
	case sent.Method != "subscriptions/listen":
		return c.Message(p.schema(), data)
	case m.Method == "" && string(m.ID) != string(sent.ID):
		return fmt.Errorf("the answer to another request: %s", data)
	case m.Method == "":
		return c.Response(modernRevision, sent.Method, data)
	case m.Method == "notifications/progress" || m.Method == "notifications/message":
		return fmt.Errorf("not for a subscription: %s", data) // E-67
	case string(m.Params.Meta.Subscription) != string(sent.ID): // E-68
		return fmt.Errorf("of another subscription: %s", data)
	}
	return c.Message(modernRevision, data)
}

// subscribe opens a subscription and reads its acknowledgement.
func (p *peer) subscribe(filter map[string]any) (f *feed, agreed map[string]any) {
	p.t.Helper()
	f = p.send("subscriptions/listen", map[string]any{"notifications": filter})
	return f, f.acknowledged()
}

func (f *feed) acknowledged() map[string]any {
	f.t.Helper()
	m := f.next()
	if m.Method != "notifications/subscriptions/acknowledged" {
		f.t.Fatalf("no acknowledgement: %s", m.text)
	}
	return numbers(f.t, m.text)["notifications"].(map[string]any)
}

// follow is subscribe to tasks, all of which have to be agreed to.
func (p *peer) follow(tasks ...string) *feed {
	p.t.Helper()
	f, agreed := p.subscribe(map[string]any{"taskIds": tasks})
	if want := fmt.Sprint(map[string]any{"taskIds": tasks}); fmt.Sprint(agreed) != want {
		p.t.Errorf("agreed to %v, not to %v", agreed, want)
	}
	return f
}

// task is the next message, which is the state of a task.
func (f *feed) task() map[string]any {
	f.t.Helper()
	m := f.next()
	if m.Method != "notifications/tasks" {
		f.t.Fatalf("no task: %s", m.text)
	}
	task := numbers(f.t, m.text)
	delete(task, "_meta")
	return task
}

// ends fails unless the answer to the request comes next, and nothing else.
func (f *feed) ends() {
	f.t.Helper()
	if m := f.next(); m.Result == nil || m.Method != "" {
		f.t.Errorf("no end: %s", m.text)
	}
	select {
	case m, ok := <-f.messages:
		if ok {
			f.t.Errorf("after the end: %s", m.text)
		}
	case <-time.After(patience):
		f.t.Error("the stream stays open")
	}
}

func listening(t testing.TB, s setup) (url string, d *driven) {
	t.Helper()
	d = new(driven)
	s.tools = append(s.tools, d.tools())
	return serveAsk(t, s), d
}

func TestListen(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-61", "E-62", "E-63", "E-65", "E-68")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, setup{})
		p := newAsked(t, url, modernRevision, "", `{"elicitation":{}}`)
		id := p.create("driven", nil)
		f := p.follow(id)
		same := func(status string) map[string]any {
			t.Helper()
			task := f.task()
			r := p.task("tasks/get", id).ok()
			want := r.get().(map[string]any)
			delete(want, "resultType")
			if !reflect.DeepEqual(task, want) || task["status"] != status {
				t.Errorf("%v\nnot %s: %v", task, status, want)
			}
			return task
		}
		if f.task()["status"] != "working" { // as it is, though nothing changes
			t.Error("not working")
		}
		d.say(id, "one")
		for { // the start of the handler may be a change of its own
			if task := f.task(); task["statusMessage"] == "one" {
				break
			}
		}
		d.say(id, "two")
		if task := same("working"); task["statusMessage"] != "two" {
			t.Errorf("%v", task)
		}
		d.say(id, "ask")
		if task := same("input_required"); len(task["inputRequests"].(map[string]any)) != 1 {
			t.Errorf("%v", task)
		}
		p.call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"note": map[string]any{"action": "decline"}}}).ok()
		same("working")
		d.say(id, "done")
		if task := same("completed"); task["result"] == nil {
			t.Errorf("%v", task)
		}
		f.ends()

		f = p.follow(id) // which has ended already
		same("completed")
		f.ends()

		failed := p.create("driven", nil)
		f = p.follow(failed)
		d.say(failed, "fail")
		for {
			if task := f.task(); task["status"] == "failed" {
				if task["error"] == nil {
					t.Errorf("%v", task)
				}
				break
			}
		}
		f.ends()
	})
}

// The subscription is called by the request's ID, whatever it looks like.
func TestListenIDs(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-68")
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		done := p.create("raw", map[string]any{})
		p.until(done, "completed")
		for _, id := range []string{`0`, `-1`, `9007199254740991`, `"a"`, `"1"`, `"a b \" é"`, `""`} {
			body, edits := p.request("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{done, done}}})
			var message map[string]json.RawMessage
			if err := json.Unmarshal([]byte(body), &message); err != nil {
				t.Fatal(err)
			}
			before, after, _ := strings.Cut(body, `"id":`+string(message["id"]))
			f := p.open(http.MethodPost, before+`"id":`+id+after, edits...)
			if agreed := f.acknowledged()["taskIds"]; len(agreed.([]any)) != 1 {
				t.Errorf("%v", agreed)
			}
			if f.task()["status"] != "completed" {
				t.Error("not completed")
			}
			f.ends()
		}
	})
}

// E-64 comes before everything that the request names; headers and metadata are
// checked as for any other method.
func TestListenRefused(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-64", "E-72", "E-73")
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("raw", map[string]any{})
		listen := func(ids any, edits ...edit) *response {
			return p.call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": ids}}, edits...)
		}
		for _, caps := range []string{`{}`, `{"tasks":{}}`, `{"extensions":{"io.modelcontextprotocol/tasks":null}}`} {
			p.caps = caps
			for _, ids := range []any{[]string{id}, []string{"made-up"}, []string{}, []any{5}, "x"} {
				r := listen(ids).want(http.StatusBadRequest, missingCapability)
				if want := `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`; r.Error != nil && string(r.Error.Data) != want {
					t.Errorf("data %s", r.Error.Data)
				}
			}
			r := p.call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}, "toolsListChanged": true}})
			r.want(http.StatusBadRequest, missingCapability)
		}
		p.caps = tasksExtension
		for _, ids := range []any{"x", 5, []any{5}, []any{nil, []string{}}, map[string]any{}} {
			listen(ids).want(http.StatusBadRequest, invalidParams)
		}
		many := make([]string, 1001)
		for i := range many {
			many[i] = fmt.Sprint("task", i)
		}
		listen(many).want(http.StatusBadRequest, invalidParams)
		listen([]string{id}, withHeader("Mcp-Method", "")).want(http.StatusBadRequest, headerMismatch)
		listen([]string{id}, withHeader("Mcp-Method", "tasks/get")).want(http.StatusBadRequest, headerMismatch)
		listen([]string{id}, withHeader("MCP-Protocol-Version", "2025-11-25")).want(http.StatusBadRequest, headerMismatch)
		version, capabilities := `"io.modelcontextprotocol/protocolVersion":"2026-07-28"`, `"io.modelcontextprotocol/clientCapabilities":`+tasksExtension
		for _, meta := range []string{``, version, capabilities} {
			p.post(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"_meta":{`+meta+`},"notifications":{"taskIds":["x"]}}}`,
				withHeader("Mcp-Method", "subscriptions/listen")).want(http.StatusBadRequest, invalidParams)
		}
		// Nobody asks for tasks: the SDK's alone to answer.
		p.caps = `{}`
		f, agreed := p.subscribe(map[string]any{"toolsListChanged": true})
		if len(agreed) != 1 || agreed["toolsListChanged"] != true {
			t.Errorf("%v", agreed)
		}
		f.silent()
	})
}

// Somebody else's task is left out like one that is not there.
func TestListenToOthers(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-63", "E-87")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, setup{bearer: true})
		a, b := newPeer(t, url, modernRevision, "a"), newPeer(t, url, modernRevision, "b")
		mine, theirs, short := a.create("driven", nil), b.create("driven", nil), a.create("short_driven", nil)
		a.untilGone(short)
		f, agreed := a.subscribe(map[string]any{"taskIds": []string{theirs, "made-up", mine, short, "", mine}})
		if fmt.Sprint(agreed) != fmt.Sprintf("map[taskIds:[%s]]", mine) {
			t.Errorf("agreed to %v", agreed)
		}
		d.say(theirs, "secret", "done")
		d.say(mine, "open", "done")
		for {
			task := f.task()
			if task["taskId"] != mine {
				t.Errorf("%v", task)
			}
			if task["status"] == "completed" {
				break
			}
		}
		f.ends()
		for _, ids := range [][]string{{mine}, {"made-up"}, {}} {
			f, agreed := b.subscribe(map[string]any{"taskIds": ids})
			if fmt.Sprint(agreed) != "map[taskIds:[]]" {
				t.Errorf("agreed to %v", agreed)
			}
			f.ends() // nothing can come
		}
	})
}

// A listener gets the questions that it answers, and nothing but its tasks.
func TestListenersDiffer(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-65", "E-67")
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, setup{})
		asked, mute := newAsked(t, url, modernRevision, "", `{"elicitation":{}}`), newPeer(t, url, modernRevision, "")
		id := asked.create("driven", nil)
		d.say(id, "ask")
		asked.until(id, "input_required")
		for p, want := range map[*peer]int{asked: 1, mute: 0} {
			f := p.follow(id)
			task, got := f.task(), p.task("tasks/get", id).ok()
			if len(task["inputRequests"].(map[string]any)) != want || !reflect.DeepEqual(task["inputRequests"], got.get("inputRequests")) {
				t.Errorf("%v", task)
			}
			f.silent()
		}
		// Whatever else comes, such as the progress that was asked for, fails the check
		// of the stream.
		r := asked.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 300}, "_meta": map[string]any{
			"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"}}).ok()
		f := asked.follow(r.text("taskId"))
		for f.task()["status"] != "completed" {
		}
		f.ends()
	})
}

// A subscriber may leave at any time: its task goes on, and nothing of it stays.
func TestListenDropped(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := d.begin(p)
		p.follow(id).stop()
		p.client.CloseIdleConnections()
		before := leak.Now()
		for read := range 4 {
			for _, others := range []bool{false, true} {
				filter := map[string]any{"taskIds": []string{id}}
				if others {
					filter["toolsListChanged"] = true
				}
				f := p.send("subscriptions/listen", map[string]any{"notifications": filter})
				for i := range read {
					if i > 1 {
						d.say(id, fmt.Sprint(read, others))
					}
					f.next()
				}
				f.stop()
			}
		}
		p.client.CloseIdleConnections()
		before.NoneLeft(t)
		d.say(id, "done")
		p.until(id, "completed")
	})
}

// A subscriber that does not read finds the present, in order, and the end.
func TestListenFlood(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, d := listening(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		id := p.create("driven", nil)
		body, edits := p.request("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{id}}})
		res, err := (&http.Client{Transport: p.client.Transport}).Do(p.start(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		d.flood(p, id)
		seen, last, completed, ended := 0, "", false, false
		for data := range events(res.Body) {
			m := wireMessage{text: string(data)}
			if ended {
				t.Errorf("after the end: %.200s", data)
			}
			if ended = bytes.Contains(data, []byte(`"result":{"_meta"`)); ended || seen == 0 {
				seen++ // the acknowledgement, and the answer
				continue
			}
			seen++
			task := numbers(t, m.text)
			message, _ := task["statusMessage"].(string)
			if completed || message != "" && message <= last {
				t.Errorf("%.6s after %.6s", message, last)
			}
			last, completed = message, task["status"] == "completed"
		}
		if !completed || !ended || seen > changes*3/4 {
			t.Errorf("%d of %d changes, completed %v, ended %v", seen, changes, completed, ended)
		}
	})
}

// The server's end answers the request; a task that goes is no more to hear of.
func TestListenEnds(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-68")
	t.Run("with the server", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			for _, filter := range []string{`{"taskIds":[%q]}`, `{"taskIds":[%q],"toolsListChanged":true}`, `{"taskIds":[%q],"promptsListChanged":true}`} {
				var d driven
				url, tasks := serveWith(t, setup{tools: []mcptask.Tools{d.tools()}})
				p := newPeer(t, url, modernRevision, "")
				f, _ := p.subscribe(map[string]any{"taskIds": []string{}, "toolsListChanged": true})
				f.stop()
				id := d.begin(p)
				var notifications map[string]any
				if err := json.Unmarshal(fmt.Appendf(nil, filter, id), &notifications); err != nil {
					t.Fatal(err)
				}
				f, _ = p.subscribe(notifications)
				f.task()
				begin := time.Now()
				if err := tasks.Close(); err != nil {
					t.Error(err)
				}
				for {
					if m := f.next(); m.Method == "" {
						break
					}
				}
				if took := time.Since(begin); took > patience {
					t.Errorf("it took %v", took)
				}
			}
		})
	})
	t.Run("with its tasks", func(t *testing.T) {
		t.Parallel()
		bubble.Test(t, func(t *testing.T) {
			url, d := listening(t, setup{})
			p := newPeer(t, url, modernRevision, "")
			var short, other string
			var f *feed
			for late := true; late; { // once more, where one is gone before it could be followed
				began := time.Now()
				short, other = p.create("short_driven", nil), p.create("driven", nil)
				var agreed map[string]any
				f, agreed = p.subscribe(map[string]any{"taskIds": []string{short, other}})
				if late = time.Since(began) >= shortTTL; !late && fmt.Sprint(agreed) != fmt.Sprintf("map[taskIds:[%s %s]]", short, other) {
					t.Errorf("agreed to %v", agreed)
				}
			}
			p.untilGone(short)
			d.say(other, "done")
			for {
				task := f.task()
				if task["taskId"] == other && task["status"] == "completed" {
					break
				}
			}
			f.ends()
		})
	})
}

// untilGone polls until the task's ttl is over.
func (p *peer) untilGone(id string) {
	p.t.Helper()
	for end := time.Now().Add(patience); p.task("tasks/get", id).Error == nil; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatal("the task stays")
		}
	}
}

// brittle is a store whose waiting fails.
type brittle struct {
	mcptask.Store
	fail func() error
}

// Wait implements mcptask.Store.
func (s brittle) Wait(context.Context, string, int64) (mcptask.Record, error) {
	return mcptask.Record{}, s.fail()
}

// A panic inside ends the one subscription, with an error. A store that fails does not: it
// costs time.
func TestListenBroken(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func() error{
		"panic": func() error { panic("as told") },
		"error": func() error { return errors.New("as told") },
	} {
		for _, others := range []bool{false, true} {
			t.Run(fmt.Sprint(name, others), func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					var d driven
					url, _ := serveWith(t, setup{panics: true, tools: []mcptask.Tools{d.tools()},
						options: mcptask.Options{Store: brittle{mcptask.NewMemoryStore(), fail}}})
					p := newPeer(t, url, modernRevision, "")
					id := d.begin(p)
					filter := map[string]any{"taskIds": []string{id}}
					if others {
						filter["toolsListChanged"] = true
					}
					f, _ := p.subscribe(filter)
					f.task()
					if name == "panic" {
						if m := f.next(); !strings.Contains(string(m.Error), "-32603") || strings.Contains(m.text, "as told") {
							t.Errorf("%s", m.text)
						}
					}
					d.say(id, "done")
					p.until(id, "completed")
					if name == "error" {
						if task := f.task(); task["status"] != "completed" {
							t.Errorf("%v", task)
						}
					}
				})
			})
		}
	}
}

// Every followed task is counted, for each principal apart.
func TestListenLimit(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, setup{bearer: true})
		a, b := newPeer(t, url, modernRevision, "a"), newPeer(t, url, modernRevision, "b")
		full := func(p *peer) map[string]any {
			ids := []string{p.create("driven", nil)}
			for i := len(ids); i < 999; i++ { // with the request itself 1,000
				ids = append(ids, fmt.Sprint("task", i))
			}
			return map[string]any{"taskIds": ids}
		}
		filter := full(a)
		var open []*feed
		for range 10 {
			f, _ := a.subscribe(filter)
			open = append(open, f)
		}
		r := a.call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{}}})
		r.want(http.StatusOK, internalError)
		if r.Error != nil && string(r.Error.Data) != `{"limit":"followed","max":10000}` {
			t.Errorf("%s", r.Error.Data)
		}
		f, _ := b.subscribe(full(b))
		f.task()
		open[0].stop()
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			r := a.call("subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": []string{}}})
			if r.Error == nil {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("it is not freed: %s", r.body)
			}
		}
	})
}

// A change that another process makes is seen: the store is followed.
func TestListenAcrossServers(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "E-65")
	bubble.Test(t, func(t *testing.T) {
		store := mcptask.NewMemoryStore()
		var d driven
		options := mcptask.Options{Store: store}
		here, _ := serveWith(t, setup{options: options, tools: []mcptask.Tools{d.tools()}})
		there, _ := serveWith(t, setup{options: options, tools: []mcptask.Tools{d.tools()}})
		p, q := newPeer(t, here, modernRevision, ""), newPeer(t, there, modernRevision, "")
		id := p.create("driven", nil)
		f := q.follow(id)
		d.say(id, "from afar")
		for f.task()["statusMessage"] != "from afar" {
		}
		d.say(id, "done")
		for f.task()["status"] != "completed" {
		}
		f.ends()
	})
}

// TestListenToMany follows as many tasks as one may name.
func TestListenToMany(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := listening(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		ids := make([]string, 200)
		for i := range ids {
			ids[i] = p.create("ponder", map[string]any{"ms": 40 * (i % 5)})
		}
		f := p.follow(ids...)
		left := slices.Clone(ids)
		last := map[string]string{}
		for len(left) > 0 {
			task := f.task()
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
		f.ends()
	})
}
