package officialtest

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// object reads a JSON object whose members stay text.
func object(t *testing.T, data json.RawMessage) map[string]string {
	t.Helper()
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	texts := map[string]string{}
	for name, value := range members {
		texts[name] = string(value)
	}
	return texts
}

// holdsTask checks the members that every task has, in any revision.
func holdsTask(t *testing.T, revision, where string, task map[string]string, ttl, poll string) {
	t.Helper()
	members := []string{"taskId", "status", "createdAt", "lastUpdatedAt"}
	if revision == wiretest.CandidateRevision { // B-55
		if members = members[:3]; task["lastUpdatedAt"] != "" {
			t.Errorf("%s: lastUpdatedAt is %s", where, task["lastUpdatedAt"])
		}
	}
	for _, name := range members {
		var text string
		if err := json.Unmarshal([]byte(task[name]), &text); err != nil || text == "" {
			t.Errorf("%s: %s is %s", where, name, task[name])
		}
		if _, err := time.Parse(time.RFC3339, text); strings.HasSuffix(name, "At") && err != nil {
			t.Errorf("%s: %s: %v", where, name, err)
		}
	}
	for _, name := range []string{ttl, poll} {
		var ms int64
		if err := json.Unmarshal([]byte(task[name]), &ms); err != nil || ms <= 0 || strings.ContainsAny(task[name], ".eE") {
			t.Errorf("%s: %s is %s", where, name, task[name])
		}
	}
}

// TestLegacyTaskObject checks the members of a task in every response of 2025-11-25 that has one.
func TestLegacyTaskObject(t *testing.T) {
	rules.Covers(t, "C-23", "C-54", "C-55", "C-57", "C-59", "C-60")
	checkTaskObject(t, wiretest.LegacyRevision)
}

func checkTaskObject(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Bearer: true})
		p := wiretest.NewPeer(t, url, revision, "a")
		created := object(t, json.RawMessage(object(t, p.Call("tools/call", map[string]any{
			"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "task": map[string]any{"ttl": 600000},
		}).OK().Result)["task"]))
		holdsTask(t, revision, "created", created, "ttl", "pollInterval")
		id := strings.Trim(created["taskId"], `"`)
		got := object(t, p.Until(id, "working").Result)
		holdsTask(t, revision, "get", got, "ttl", "pollInterval")
		if got["ttl"] != "600000" {
			t.Errorf("ttl %s", got["ttl"])
		}
		listed := func() map[string]string {
			var tasks []json.RawMessage
			if err := json.Unmarshal([]byte(object(t, p.Call("tasks/list", nil).OK().Result)["tasks"]), &tasks); err != nil || len(tasks) != 1 {
				t.Fatal(tasks, err)
			}
			return object(t, tasks[0])
		}
		holdsTask(t, revision, "list", listed(), "ttl", "pollInterval")
		time.Sleep(time.Second)
		cancelled := object(t, p.Task("tasks/cancel", id).OK().Result)
		holdsTask(t, revision, "cancel", cancelled, "ttl", "pollInterval")
		after := object(t, p.Task("tasks/get", id).OK().Result)
		for where, task := range map[string]map[string]string{"cancel": cancelled, "get": after, "list": listed()} {
			if revision != wiretest.CandidateRevision && task["lastUpdatedAt"] <= got["lastUpdatedAt"] || task["createdAt"] != created["createdAt"] || task["status"] != `"cancelled"` {
				t.Errorf("%s: %v, before %v", where, task, got)
			}
		}
	})
}

// TestModernTaskObject checks the same in 2026-07-28, in which each status has its own members.
func TestModernTaskObject(t *testing.T) {
	rules.Covers(t, "E-15", "E-16", "E-20")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		p.Caps = wiretest.WithQuestions
		holdsTask(t, wiretest.ModernRevision, "created", object(t, p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless")}).OK().Result), "ttlMs", "pollIntervalMs")
		own := []string{"inputRequests", "result", "error"}
		for _, c := range []struct {
			tool   string
			args   map[string]any
			status string
			has    string
		}{
			{"run_pipeline", wiretest.PipelineArgs("endless"), "working", ""},
			{"two_notes", map[string]any{}, "input_required", "inputRequests"},
			{"ponder", map[string]any{}, "completed", "result"},
			{"locked", map[string]any{}, "failed", "error"},
			{"run_pipeline", wiretest.PipelineArgs("endless"), "cancelled", ""},
		} {
			id := p.Create(c.tool, c.args)
			if c.status == "cancelled" {
				p.Task("tasks/cancel", id).OK()
			}
			task := object(t, p.Until(id, c.status).Result)
			holdsTask(t, wiretest.ModernRevision, c.status, task, "ttlMs", "pollIntervalMs")
			for _, name := range own {
				if (task[name] != "") != (name == c.has) {
					t.Errorf("%s: %s is %s", c.status, name, task[name])
				}
			}
			for _, name := range []string{"ttl", "pollInterval", "task"} {
				if task[name] != "" {
					t.Errorf("%s: %s is %s", c.status, name, task[name])
				}
			}
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
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision, Bearer: true})
		p := wiretest.NewPeer(t, url, revision, "a")
		for _, method := range []string{"tools/list", "ping"} {
			r := p.Call(method, map[string]any{"task": map[string]any{"ttl": 60000}}).OK()
			if r.Get("task") != nil || (r.Get("tools") != nil) != (method == "tools/list") {
				t.Errorf("%s: %s", method, r.Body)
			}
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		// A session of a revision without tasks has declared nothing at all.
		old := wiretest.NewPeer(t, wiretest.RevisionURL(url, revision), "2025-06-18", "a")
		for tool, args := range map[string]map[string]any{"deploy_service": {"service": "api", "environment": "staging"}, "sdk_tool": {}} {
			if r := old.Call("tools/call", map[string]any{"name": tool, "arguments": args, "task": map[string]any{}}).OK(); r.Get("content") == nil || r.Get("task") != nil {
				t.Errorf("%s: %s", tool, r.Body)
			}
		}
	})
}

// TestLegacyUndeclared checks that undeclared methods do not exist: anonymous callers have no list,
// and a revision without tasks has no task methods.
func TestLegacyUndeclared(t *testing.T) {
	rules.Covers(t, "C-06", "C-07")
	checkUndeclared(t, wiretest.LegacyRevision)
}

func checkUndeclared(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: revision})
		p := wiretest.NewPeer(t, url, revision, "")
		if p.Opened.Get("capabilities", "tasks", "list") != nil || p.Opened.Get("capabilities", "tasks", "cancel") == nil {
			t.Errorf("%s", p.Opened.Body)
		}
		id := p.Create("ponder", nil)
		p.Call("tasks/list", nil).Want(200, wiretest.MethodNotFound)
		old := wiretest.NewPeer(t, wiretest.RevisionURL(url, revision), "2025-06-18", "")
		for _, method := range []string{"tasks/cancel", "tasks/list"} {
			old.Task(method, id).Want(200, wiretest.MethodNotFound)
		}
		p.Until(id, "completed")
	})
}

// awayStore is a store that fails to read while it is away.
type awayStore struct {
	mcptask.Store

	mu   sync.Mutex
	away bool
}

func (s *awayStore) set(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

func (s *awayStore) fails() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		return errors.New("secret: disk 7 is away")
	}
	return nil
}

// Get implements mcptask.Store.
func (s *awayStore) Get(ctx context.Context, id string) (mcptask.Record, error) {
	if err := s.fails(); err != nil {
		return mcptask.Record{}, err
	}
	return s.Store.Get(ctx, id)
}

// Create implements mcptask.Store.
func (s *awayStore) Create(ctx context.Context, r mcptask.Record, q mcptask.Quota) (mcptask.Record, error) {
	if err := s.fails(); err != nil {
		return mcptask.Record{}, err
	}
	return s.Store.Create(ctx, r, q)
}

// List implements mcptask.Store.
func (s *awayStore) List(ctx context.Context, principal string, after mcptask.Position, limit int) ([]mcptask.Record, error) {
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
	memory := mcptask.NewMemoryStore()
	t.Cleanup(func() { _ = memory.Close() })
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		methods := []string{"tasks/get", "tasks/cancel", "tasks/list", "tools/call"} // tasks/result waits for the store
		if revision == wiretest.ModernRevision {
			methods = []string{"tasks/get", "tasks/cancel", "tasks/update", "tools/call"}
		}
		for _, method := range methods { // at once, since each is tried again for a while
			t.Run(revision+" "+method, func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					store := &awayStore{Store: memory}
					url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: mcptask.Options{Store: store}})
					p := wiretest.NewPeer(t, url, revision, "a")
					p.Call("tools/list", nil).OK()
					id := p.Create("ponder", map[string]any{})
					p.Until(id, "completed")
					store.set(true)
					r := p.Call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}, "name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}},
						func(r *http.Request) {
							if r.Header.Set("Mcp-Name", id); method == "tools/call" {
								r.Header.Set("Mcp-Name", "ponder")
							}
						})
					if r.Error == nil || r.Error.Code != wiretest.InternalError || strings.Contains(string(r.Body), "secret") {
						t.Errorf("%d %s", r.Status, r.Body)
					}
					store.set(false)
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
			{wiretest.LegacyRevision, "tools/call", map[string]any{"name": "run_pipeline", "arguments": map[string]any{"repository": 5}, "task": map[string]any{}}, []string{"run_pipeline", "repository"}},
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
