package gosdk_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// status reads a message that is the status of a task.
func (m wireMessage) status(t testing.TB) (task map[string]any) {
	t.Helper()
	var n struct {
		Method string
		Params map[string]any
	}
	if err := json.Unmarshal([]byte(m.text), &n); err != nil || n.Method != "notifications/tasks/status" {
		t.Fatalf("no status: %v: %s", err, m.text)
	}
	return n.Params
}

// watcher is a client whose streams bring the status notifications too.
func watcher(t testing.TB, url, revision, token string) *peer {
	t.Helper()
	p := newAsked(t, url, revision, token, `{"elicitation":{}}`)
	p.statuses = true
	return p
}

func TestStatusNotifications(t *testing.T) {
	rules.Covers(t, "C-44", "C-45", "C-48")
	checkStatusNotifications(t, legacyRevision)
}

func TestCandidateStatusNotifications(t *testing.T) {
	rules.Covers(t, "B-41", "B-42", "B-45")
	checkStatusNotifications(t, candidateRevision)
}

func checkStatusNotifications(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d driven
		url := serveAsk(t, setup{revision: revision, bearer: true, tools: []mcptask.Tools{d.tools()}})
		p := watcher(t, url, revision, "a")
		f := p.get()
		id := p.create("driven", nil)
		p.task("tasks/get", id).ok() // the client has the ID
		same := func(want string, members ...string) map[string]any {
			t.Helper()
			m := f.next()
			task := m.status(t)
			r := p.task("tasks/get", id).ok()
			if got := r.get().(map[string]any); task["status"] != want || fmt.Sprint(got) != fmt.Sprint(numbers(t, m.text)) {
				t.Errorf("%s\nwant %s and %v", m.text, want, got)
			}
			if strings.Contains(m.text, "_meta") || strings.Contains(m.text, `"id"`) && !strings.Contains(m.text, "taskId") {
				t.Errorf("%s", m.text)
			}
			return task
		}
		d.say(id, "one")
		if task := same("working"); task["statusMessage"] != "one" {
			t.Errorf("%v", task)
		}
		d.say(id, "one") // nothing that can be seen
		f.silent()
		d.say(id, "ask")
		var question wireMessage
		if m := f.next(); m.Method == "elicitation/create" { // the question and the status come in any order
			question = m
			same("input_required")
		} else {
			if m.status(t)["status"] != "input_required" {
				t.Errorf("%s", m.text)
			}
			question = f.question(id)
		}
		p.respond(question.ID, note("yes"))
		same("working")
		d.say(id, "done")
		same("completed")
		f.silent()

		failed := p.create("driven", nil)
		p.task("tasks/get", failed).ok()
		d.say(failed, "fail")
		if task := f.next().status(t); task["status"] != "failed" || task["statusMessage"] != "failed as told" {
			t.Errorf("%v", task)
		}
		cancelled := p.create("driven", nil)
		p.task("tasks/cancel", cancelled).ok()
		if task := f.next().status(t); task["status"] != "cancelled" || task["taskId"] != cancelled {
			t.Errorf("%v", task)
		}
		f.silent()
	})
}

// numbers are the params of a message, with the numbers as they came.
func numbers(t testing.TB, text string) map[string]any {
	t.Helper()
	var n struct{ Params map[string]any }
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&n); err != nil {
		t.Fatal(err)
	}
	return n.Params
}

// Only the sessions of the owner that know a task hear of it, and only on their
// own stream.
func TestStatusNotificationsOfOthers(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "C-44")
	bubble.Test(t, func(t *testing.T) {
		var d driven
		url := serveAsk(t, setup{bearer: true, tools: []mcptask.Tools{d.tools()}})
		owner, unaware, named, stranger := watcher(t, url, legacyRevision, "a"), watcher(t, url, legacyRevision, "a"), watcher(t, url, legacyRevision, "a"), watcher(t, url, legacyRevision, "b")
		id := owner.create("driven", nil)
		for _, p := range []*peer{owner, named} {
			p.task("tasks/get", id).ok()
		}
		stranger.task("tasks/get", id).want(http.StatusOK, invalidParams)
		theirs := map[string]*feed{"owner": owner.get(), "unaware": unaware.get(), "named": named.get(), "stranger": stranger.get()}
		result := owner.result(id)
		d.say(id, "one", "done")
		for _, name := range []string{"owner", "named"} {
			last := ""
			for last != "completed" { // the one before may be left out
				last, _ = theirs[name].next().status(t)["status"].(string)
			}
		}
		if m := result.next(); m.Method != "" {
			t.Errorf("a status where the result was asked for: %s", m.text)
		}
		for _, f := range theirs {
			f.silent()
		}
	})
}

// A task's status must not overtake the reply that tells its ID; the end is told
// all the same.
func TestStatusFollowsTheTask(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"of a client that polls": true, "of one that only listens": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := serveWith(t, setup{})
				p := watcher(t, url, legacyRevision, "")
				f := p.get()
				began := time.Now()
				id := p.create("raw", map[string]any{}) // done at once
				var m wireMessage
				select {
				case m = <-f.messages:
					if time.Since(began) < settling {
						t.Fatalf("at once: %s", m.text)
					}
				case <-time.After(80 * time.Millisecond):
				}
				if m.text == "" && polls { // and is told by the reply, where it is done by then
					if p.task("tasks/get", id).ok().text("status") == "completed" {
						if time.Since(began) < settling {
							f.silent()
						}
						return
					}
				}
				if m.text == "" { // else the reply has taken long
					m = f.next()
				}
				if task := m.status(t); task["status"] != "completed" || task["taskId"] != id {
					t.Errorf("%v", task)
				}
				f.silent()
			})
		})
	}
}

// What changes while a session has no stream, or as it breaks, is told when it
// has one again, as it is then.
func TestStatusAfterAGap(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d driven
		url := serveAsk(t, setup{tools: []mcptask.Tools{d.tools()}})
		p := watcher(t, url, legacyRevision, "")
		id := p.create("driven", nil)
		p.task("tasks/get", id).ok()
		for i := range 3 {
			d.say(id, fmt.Sprint("a", i), fmt.Sprint("b", i))
			p.untilMessage(id, fmt.Sprint("b", i))
			f := p.get()
			if task := f.next().status(t); task["statusMessage"] != fmt.Sprint("b", i) {
				t.Errorf("%v", task)
			}
			f.silent()
			f.stop()
		}
		d.say(id, "done")
		p.until(id, "completed")
		p.get().silent()
	})
}

// untilMessage polls until the task has a status message.
func (p *peer) untilMessage(id, message string) {
	p.t.Helper()
	for end := time.Now().Add(patience); p.task("tasks/get", id).ok().text("statusMessage") != message; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("the task never says %q", message)
		}
	}
}

// A client that does not read is not written to without end: what it finds later
// is the present, in order.
func TestStatusOfAFlood(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d driven
		url := serveAsk(t, setup{tools: []mcptask.Tools{d.tools()}})
		p := watcher(t, url, legacyRevision, "")
		res, err := (&http.Client{Transport: p.client.Transport}).Do(p.start(t.Context(), http.MethodGet, "", withHeader("Accept", "text/event-stream")))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		id := p.create("driven", nil)
		p.task("tasks/get", id).ok()
		d.flood(p, id)
		seen, last := 0, ""
		lines := bufio.NewReader(res.Body)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			task := wireMessage{text: data}.status(t)
			seen++
			if task["status"] == "completed" {
				break
			}
			message, _ := task["statusMessage"].(string)
			if message <= last {
				t.Errorf("%.6s after %.6s", message, last)
			}
			last = message
		}
		if seen > changes*3/4 {
			t.Errorf("%d of %d changes were kept for a client that did not read", seen, changes)
		}
		if t.Failed() || testing.Verbose() {
			t.Logf("%d of %d changes told", seen, changes)
		}
	})
}

// TestStdioStatus: on a pipe there is one stream for everything.
func TestStdioStatus(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "C-44")
	p := newPipes(t)
	defer func() { _ = p.close(); _ = p.wait() }()
	p.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	p.response(1)
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r"},"task":{}}}`)
	id := dig(t, p.response(2), "result", "task", "taskId")
	p.say(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":%q}}`, id)
	status := p.hear(func(m map[string]any) bool {
		return m["method"] == "notifications/tasks/status" && dig(t, m, "params", "status") == "completed"
	})
	p.say(`{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":%q}}`, id)
	if got := dig(t, p.response(4), "result"); !reflect.DeepEqual(got, status["params"]) {
		t.Errorf("%v\nand %v", status, got)
	}
	p.response(3)
}
