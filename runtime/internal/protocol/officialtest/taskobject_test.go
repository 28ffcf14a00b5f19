package officialtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// wantTask checks the members of a task as far as the tap does not: the times are valid, and the milliseconds are whole
// numbers without a fraction.
func wantTask(t *testing.T, what string, task any, ttl, poll string, times ...string) {
	t.Helper()
	members, _ := task.(map[string]any)
	for _, name := range times {
		if _, err := time.Parse(time.RFC3339, fmt.Sprint(members[name])); err != nil {
			t.Errorf("%s: %s: %v", what, name, err)
		}
	}
	for _, name := range []string{ttl, poll} {
		number, _ := members[name].(json.Number)
		if ms, err := number.Int64(); err != nil || ms <= 0 {
			t.Errorf("%s: %s is %v", what, name, members[name])
		}
	}
}

// TestLegacyTaskObject checks the members of a task in every response of 2025-11-25 that has one.
// The tap checks that none of these responses has related-task metadata (C-66).
func TestLegacyTaskObject(t *testing.T) {
	rules.Covers(t, "C-23", "C-54", "C-55", "C-57", "C-59", "C-60", "C-66")
	checkTaskObject(t, wiretest.LegacyRevision)
}

func checkTaskObject(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision, Bearer: true}, func(t *testing.T, p *wiretest.Peer) {
		times := []string{"createdAt", "lastUpdatedAt"}
		if revision == wiretest.CandidateRevision { // B-55, which the tap checks
			times = times[:1]
		}
		created := p.Call("tools/call", map[string]any{
			"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "task": map[string]any{"ttl": 90000000},
		}).OK()
		id := created.Text("task", "taskId")
		working := p.Until(id, "working").WantMembers(`{"ttl":90000000}`)
		listed := func() any {
			tasks := p.Call("tasks/list", nil).OK().Get("tasks").([]any)
			if len(tasks) != 1 {
				t.Fatal(tasks)
			}
			return tasks[0]
		}
		for what, task := range map[string]any{"created": created.Get("task"), "get": working.Get(), "list": listed()} {
			wantTask(t, what, task, "ttl", "pollInterval", times...)
		}
		time.Sleep(time.Second)
		for what, task := range map[string]any{
			"cancel": p.Task("tasks/cancel", id).OK().Get(), "get": p.Task("tasks/get", id).OK().Get(), "list": listed(),
		} {
			wantTask(t, what, task, "ttl", "pollInterval", times...)
			members := task.(map[string]any)
			if len(times) > 1 && fmt.Sprint(members["lastUpdatedAt"]) <= working.Text("lastUpdatedAt") || members["createdAt"] != created.Get("task", "createdAt") || members["status"] != "cancelled" {
				t.Errorf("%s: %v, before %s", what, members, working.Body)
			}
		}
	})
}

// TestModernTaskObject checks the same in 2026-07-28, in which each status has its own members. The
// tap checks that each status has its members and no others.
func TestModernTaskObject(t *testing.T) {
	rules.Covers(t, "E-15", "E-16", "E-20")
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: wiretest.ModernRevision}, func(t *testing.T, p *wiretest.Peer) {
		p.Caps = wiretest.WithQuestions
		want := func(what string, r *wiretest.Response) {
			t.Helper()
			wantTask(t, what, r.WantMembers(`{"ttl":null,"pollInterval":null,"task":null}`).Get(), "ttlMs", "pollIntervalMs", "createdAt", "lastUpdatedAt")
		}
		want("created", p.CallTool("run_pipeline", wiretest.PipelineArgs("endless")))
		for _, c := range []struct {
			tool   string
			args   map[string]any
			status string
		}{
			{"run_pipeline", wiretest.PipelineArgs("endless"), "working"},
			{"two_notes", map[string]any{}, "input_required"},
			{"ponder", map[string]any{}, "completed"},
			{"locked", map[string]any{}, "failed"},
			{"run_pipeline", wiretest.PipelineArgs("endless"), "cancelled"},
		} {
			id := p.Create(c.tool, c.args)
			if c.status == "cancelled" {
				p.Task("tasks/cancel", id).OK()
			}
			want(c.status, p.Until(id, c.status))
		}
	})
}

// TestLegacyOtherRequests checks that undeclared request types never become tasks.
func TestLegacyOtherRequests(t *testing.T) {
	rules.Covers(t, "C-05", "C-21")
	checkOtherRequests(t, wiretest.LegacyRevision)
}

func checkOtherRequests(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision, Bearer: true}, func(t *testing.T, p *wiretest.Peer) {
		for _, method := range []string{"tools/list", "ping"} {
			r := p.Call(method, map[string]any{"task": map[string]any{"ttl": 60000}}).WantMembers(`{"task":null}`)
			if (r.Get("tools") != nil) != (method == "tools/list") {
				t.Errorf("%s: %s", method, r.Body)
			}
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		// In a session of a revision without tasks, the client has declared nothing.
		old := wiretest.NewPeer(t, p.URL, wiretest.BeforeTasks, "a")
		for tool, args := range map[string]map[string]any{"deploy_service": staging, "sdk_tool": {}} {
			old.Call("tools/call", map[string]any{"name": tool, "arguments": args, "task": map[string]any{}}).WantPlain()
		}
	})
}

// staging are the arguments of a deployment that asks no question.
var staging = map[string]any{"service": "api", "environment": "staging"}

// TestLegacyUndeclared checks that undeclared methods do not exist: anonymous callers have no list,
// and a revision without tasks has no task methods.
func TestLegacyUndeclared(t *testing.T) {
	rules.Covers(t, "C-06", "C-07")
	checkUndeclared(t, wiretest.LegacyRevision)
}

func checkUndeclared(t *testing.T, revision string) {
	t.Helper()
	wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision}, func(t *testing.T, p *wiretest.Peer) {
		p.Opened.WantMembers(`{"capabilities":{"tasks":{"list":null,"cancel":{}}}}`)
		id := p.Create("ponder", nil)
		p.Call("tasks/list", nil).Want(200, wiretest.MethodNotFound)
		old := wiretest.NewPeer(t, p.URL, wiretest.BeforeTasks, "")
		for _, method := range []string{"tasks/cancel", "tasks/list"} {
			old.Task(method, id).Want(200, wiretest.MethodNotFound)
		}
		p.Until(id, "completed")
	})
}

// awayStore is a store that fails while it is away.
type awayStore struct {
	taskstore.Store

	away atomic.Bool
}

func (s *awayStore) fails() error {
	if s.away.Load() {
		return errors.New("secret: disk 7 is away")
	}
	return nil
}

// Get implements taskstore.Store.
func (s *awayStore) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if err := s.fails(); err != nil {
		return taskstore.Record{}, err
	}
	return s.Store.Get(ctx, id)
}

// Create implements taskstore.Store.
func (s *awayStore) Create(ctx context.Context, r taskstore.Record, q taskstore.Quota) (taskstore.Record, error) {
	if err := s.fails(); err != nil {
		return taskstore.Record{}, err
	}
	return s.Store.Create(ctx, r, q)
}

// List implements taskstore.Store.
func (s *awayStore) List(ctx context.Context, principal string, after taskstore.Position, limit int) ([]taskstore.Record, error) {
	if err := s.fails(); err != nil {
		return nil, err
	}
	return s.Store.List(ctx, principal, after, limit)
}

// TestInternalErrors checks that a store failure is reported as the server's fault, without
// details.
func TestInternalErrors(t *testing.T) {
	rules.Covers(t, "C-83", "E-76")
	t.Parallel()
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		methods := []string{"tasks/get", "tasks/cancel", "tasks/list", "tools/call"} // tasks/result waits until the store works again
		if revision == wiretest.ModernRevision {
			methods = []string{"tasks/get", "tasks/cancel", "tasks/update", "tools/call"}
		}
		for _, method := range methods { // in parallel, because each is retried for a while
			t.Run(revision+" "+method, func(t *testing.T) {
				store := &awayStore{Store: taskstore.NewMemory()}
				t.Cleanup(func() { _ = store.Close() })
				wiretest.RunWithPeer(t, wiretest.Setup{Revision: revision, Bearer: true, Options: taskserver.Options{Store: store}}, func(t *testing.T, p *wiretest.Peer) {
					p.Call("tools/list", nil).OK()
					id := p.Create("ponder", map[string]any{})
					p.Until(id, "completed")
					store.away.Store(true)
					r := p.Call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}, "name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}},
						func(r *http.Request) {
							if r.Header.Set("Mcp-Name", id); method == "tools/call" {
								r.Header.Set("Mcp-Name", "ponder")
							}
						})
					if r.Error == nil || r.Error.Code != wiretest.InternalError || strings.Contains(string(r.Body), "secret") {
						t.Errorf("%d %s", r.Status, r.Body)
					}
					store.away.Store(false)
					p.Task("tasks/cancel", p.Create("run_pipeline", wiretest.PipelineArgs("endless"))).OK()
				})
			})
		}
	}
}

// TestErrorMessages checks that an error's message names the cause.
func TestErrorMessages(t *testing.T) {
	rules.Covers(t, "C-84", "E-78")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true})
		for _, c := range []struct {
			revision, method string
			params           map[string]any
			says             []string
		}{
			{wiretest.LegacyRevision, "tasks/get", map[string]any{"taskId": "none"}, []string{"no task"}},
			{wiretest.LegacyRevision, "tasks/get", map[string]any{}, []string{"taskId", "missing"}},
			{wiretest.LegacyRevision, "tasks/cancel", map[string]any{"taskId": 5}, []string{"taskId", "number"}},
			{wiretest.LegacyRevision, "tasks/list", map[string]any{"cursor": "made up"}, []string{"cursor"}},
			{wiretest.LegacyRevision, "tasks/update", map[string]any{"taskId": "none"}, []string{"tasks/update", wiretest.LegacyRevision}},
			{wiretest.LegacyRevision, "tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("main")}, []string{"run_pipeline", "params.task"}},
			{wiretest.LegacyRevision, "tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "p"}, "task": map[string]any{}}, []string{"lint_file", "task"}},
			{wiretest.LegacyRevision, "tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"ttl": -1}}, []string{"ttl", "milliseconds"}},
			{wiretest.LegacyRevision, "tools/call", map[string]any{"name": "run_pipeline", "arguments": map[string]any{"repository": 5}, "task": map[string]any{}}, []string{"arguments", "repository"}},
			{wiretest.ModernRevision, "tasks/get", map[string]any{"taskId": "none"}, []string{"no task"}},
			{wiretest.ModernRevision, "tasks/update", map[string]any{"taskId": "none"}, []string{"inputResponses"}},
			{wiretest.ModernRevision, "tasks/result", map[string]any{"taskId": "none"}, []string{"tasks/result", wiretest.ModernRevision}},
		} {
			r := wiretest.NewPeer(t, url, c.revision, "a").Call(c.method, c.params)
			if r.Error == nil {
				t.Errorf("%s %v: %s", c.method, c.params, r.Body)
				continue
			}
			if slices.ContainsFunc(c.says, func(word string) bool { return !strings.Contains(r.Error.Message, word) }) {
				t.Errorf("%s %v: %q, want %v in it", c.method, c.params, r.Error.Message, c.says)
			}
		}
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
		if r := p.Call("tasks/get", map[string]any{"taskId": "none"}, wiretest.WithHeader("Mcp-Name", "other")); r.Error == nil || !strings.Contains(r.Error.Message, "Mcp-Name") {
			t.Errorf("%s", r.Body)
		}
		p.Caps = `{}`
		if r := p.Task("tasks/get", "none"); r.Error == nil || !strings.Contains(r.Error.Message, "io.modelcontextprotocol/tasks") {
			t.Errorf("%s", r.Body)
		}
	})
}
