package pushtest

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// watcher is a client whose streams bring the status notifications too.
func watcher(t testing.TB, url, revision, token string) *wiretest.Peer {
	t.Helper()
	p := wiretest.NewAskedPeer(t, url, revision, token, `{"elicitation":{}}`)
	p.Statuses = true
	return p
}

func TestStatusNotifications(t *testing.T) {
	rules.Covers(t, "C-44", "C-45", "C-48")
	checkStatusNotifications(t, wiretest.LegacyRevision)
}

func checkStatusNotifications(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d wiretest.Driven
		url := wiretest.ServeAsk(t, wiretest.Setup{Revision: revision, Bearer: true, Tools: []mcptask.Tools{d.Tools()}})
		p := watcher(t, url, revision, "a")
		f := p.OpenGet()
		id := p.Create("driven", nil)
		p.Task("tasks/get", id).OK() // the client has the ID
		same := func(want string, members ...string) map[string]any {
			t.Helper()
			m := f.Next()
			task := m.Status(t)
			r := p.Task("tasks/get", id).OK()
			if got := r.Get().(map[string]any); task["status"] != want || fmt.Sprint(got) != fmt.Sprint(wiretest.DecodeParams(t, m.Text)) {
				t.Errorf("%s\nwant %s and %v", m.Text, want, got)
			}
			if strings.Contains(m.Text, "_meta") || strings.Contains(m.Text, `"id"`) && !strings.Contains(m.Text, "taskId") {
				t.Errorf("%s", m.Text)
			}
			return task
		}
		d.Tell(id, "one")
		if task := same("working"); task["statusMessage"] != "one" {
			t.Errorf("%v", task)
		}
		d.Tell(id, "one") // no visible change
		f.WantSilence()
		d.Tell(id, "ask")
		var question wiretest.WireMessage
		if m := f.Next(); m.Method == "elicitation/create" { // the question and the status come in any order
			question = m
			if task := same("input_required"); task["statusMessage"] != "A note?" {
				t.Errorf("%v", task)
			}
		} else {
			if task := m.Status(t); task["status"] != "input_required" || task["statusMessage"] != "A note?" {
				t.Errorf("%s", m.Text)
			}
			question = f.NextQuestion(id)
		}
		p.Respond(question.ID, wiretest.AcceptNote("yes"))
		if task := same("working"); task["statusMessage"] != "one" { // as before the question
			t.Errorf("%v", task)
		}
		d.Tell(id, "done")
		same("completed")
		f.WantSilence()

		failed := p.Create("driven", nil)
		p.Task("tasks/get", failed).OK()
		d.Tell(failed, "fail")
		if task := f.Next().Status(t); task["status"] != "failed" || task["statusMessage"] != "failed as told" {
			t.Errorf("%v", task)
		}
		cancelled := p.Create("driven", nil)
		p.Task("tasks/cancel", cancelled).OK()
		if task := f.Next().Status(t); task["status"] != "cancelled" || task["taskId"] != cancelled {
			t.Errorf("%v", task)
		}
		f.WantSilence()
	})
}

// TestStatusNotificationsOfOthers checks that status notifications go only to the owner's sessions
// that know the task, on their own stream.
func TestStatusNotificationsOfOthers(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "C-44")
	bubble.Test(t, func(t *testing.T) {
		var d wiretest.Driven
		url := wiretest.ServeAsk(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{d.Tools()}})
		owner, unaware, named, stranger := watcher(t, url, wiretest.LegacyRevision, "a"), watcher(t, url, wiretest.LegacyRevision, "a"), watcher(t, url, wiretest.LegacyRevision, "a"), watcher(t, url, wiretest.LegacyRevision, "b")
		id := owner.Create("driven", nil)
		for _, p := range []*wiretest.Peer{owner, named} {
			p.Task("tasks/get", id).OK()
		}
		stranger.Task("tasks/get", id).Want(http.StatusOK, wiretest.InvalidParams)
		theirs := map[string]*wiretest.Feed{"owner": owner.OpenGet(), "unaware": unaware.OpenGet(), "named": named.OpenGet(), "stranger": stranger.OpenGet()}
		result := owner.Result(id)
		d.Tell(id, "one", "done")
		for _, name := range []string{"owner", "named"} {
			last := ""
			for last != "completed" { // the status before it may be left out
				last, _ = theirs[name].Next().Status(t)["status"].(string)
			}
		}
		if m := result.Next(); m.Method != "" {
			t.Errorf("a status on the stream of tasks/result: %s", m.Text)
		}
		for _, f := range theirs {
			f.WantSilence()
		}
	})
}

// TestStatusAfterAGap checks that changes without an open stream are reported on the next stream,
// as the current state.
func TestStatusAfterAGap(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d wiretest.Driven
		url := wiretest.ServeAsk(t, wiretest.Setup{Tools: []mcptask.Tools{d.Tools()}})
		p := watcher(t, url, wiretest.LegacyRevision, "")
		id := p.Create("driven", nil)
		p.Task("tasks/get", id).OK()
		for i := range 3 {
			d.Tell(id, fmt.Sprint("a", i), fmt.Sprint("b", i))
			p.UntilMessage(id, fmt.Sprint("b", i))
			f := p.OpenGet()
			if task := f.Next().Status(t); task["statusMessage"] != fmt.Sprint("b", i) {
				t.Errorf("%v", task)
			}
			f.WantSilence()
			f.Stop()
		}
		d.Tell(id, "done")
		p.Until(id, "completed")
		p.OpenGet().WantSilence()
	})
}

// TestStatusOfAFlood checks that a client which does not read has a limited queue. When it reads,
// it gets current states, in order.
func TestStatusOfAFlood(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var d wiretest.Driven
		url := wiretest.ServeAsk(t, wiretest.Setup{Tools: []mcptask.Tools{d.Tools()}})
		p := watcher(t, url, wiretest.LegacyRevision, "")
		res, err := (&http.Client{Transport: p.Client.Transport}).Do(p.NewRequest(t.Context(), http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream")))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		id := p.Create("driven", nil)
		p.Task("tasks/get", id).OK()
		d.Flood(wiretest.NewPeer(t, url, wiretest.LegacyRevision, ""), id) // its polls tell the watcher nothing
		seen, last := 0, ""
		for data := range wiretest.Events(res.Body) {
			task := wiretest.WireMessage{Text: string(data)}.Status(t)
			seen++
			if task["status"] == "completed" {
				last = "the end"
				break
			}
			message, _ := task["statusMessage"].(string)
			if message <= last {
				t.Errorf("%.6s after %.6s", message, last)
			}
			last = message
		}
		if last != "the end" || seen > wiretest.FloodChanges*3/4 {
			t.Errorf("%d of %d changes were kept for a client that did not read, the last was %.6s", seen, wiretest.FloodChanges, last)
		}
	})
}

// TestStdioStatus checks that a pipe uses one stream for everything.
func TestStdioStatus(t *testing.T) {
	t.Parallel()
	rules.Covers(t, "C-44")
	p := wiretest.NewPipes(t)
	defer func() { _ = p.Close(); _ = p.Wait() }()
	p.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	p.Response(1)
	p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r"},"task":{}}}`)
	id := wiretest.Dig(t, p.Response(2), "result", "task", "taskId")
	status := p.Hear(func(m map[string]any) bool {
		return m["method"] == "notifications/tasks/status" && wiretest.Dig(t, m, "params", "status") == "completed"
	})
	p.Say(`{"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":%q}}`, id)
	if got := wiretest.Dig(t, p.Response(4), "result"); !reflect.DeepEqual(got, status["params"]) {
		t.Errorf("%v\nand %v", status, got)
	}
	// Any sooner, its answer could tell of the end first, and take the place of the notification.
	p.Say(`{"jsonrpc":"2.0","id":3,"method":"tasks/result","params":{"taskId":%q}}`, id)
	p.Response(3)
}
