package gosdk_test

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
	if revision == candidateRevision { // B-55
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

// The members of a task, wherever one stands in a response.
func TestLegacyTaskObject(t *testing.T) {
	rules.Covers(t, "C-23", "C-54", "C-55", "C-57", "C-59", "C-60")
	checkTaskObject(t, legacyRevision)
}

func TestCandidateTaskObject(t *testing.T) {
	rules.Covers(t, "B-24", "B-50", "B-52", "B-54", "B-55")
	checkTaskObject(t, candidateRevision)
}

func checkTaskObject(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, bearer: true})
		p := newPeer(t, url, revision, "a")
		created := object(t, json.RawMessage(object(t, p.call("tools/call", map[string]any{
			"name": "run_pipeline", "arguments": pipelineArgs("endless"), "task": map[string]any{"ttl": 600000},
		}).ok().Result)["task"]))
		holdsTask(t, revision, "created", created, "ttl", "pollInterval")
		id := strings.Trim(created["taskId"], `"`)
		got := object(t, p.until(id, "working").Result)
		holdsTask(t, revision, "get", got, "ttl", "pollInterval")
		if got["ttl"] != "600000" {
			t.Errorf("ttl %s", got["ttl"])
		}
		listed := func() map[string]string {
			var tasks []json.RawMessage
			if err := json.Unmarshal([]byte(object(t, p.call("tasks/list", nil).ok().Result)["tasks"]), &tasks); err != nil || len(tasks) != 1 {
				t.Fatal(tasks, err)
			}
			return object(t, tasks[0])
		}
		holdsTask(t, revision, "list", listed(), "ttl", "pollInterval")
		time.Sleep(time.Second)
		cancelled := object(t, p.task("tasks/cancel", id).ok().Result)
		holdsTask(t, revision, "cancel", cancelled, "ttl", "pollInterval")
		after := object(t, p.task("tasks/get", id).ok().Result)
		for where, task := range map[string]map[string]string{"cancel": cancelled, "get": after, "list": listed()} {
			if revision != candidateRevision && task["lastUpdatedAt"] <= got["lastUpdatedAt"] || task["createdAt"] != created["createdAt"] || task["status"] != `"cancelled"` {
				t.Errorf("%s: %v, before %v", where, task, got)
			}
		}
	})
}

// The same in 2026-07-28, where each status has members of its own.
func TestModernTaskObject(t *testing.T) {
	rules.Covers(t, "E-15", "E-16", "E-20")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, modernRevision, "")
		p.caps = withQuestions
		holdsTask(t, modernRevision, "created", object(t, p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless")}).ok().Result), "ttlMs", "pollIntervalMs")
		own := []string{"inputRequests", "result", "error"}
		for _, c := range []struct {
			tool   string
			args   map[string]any
			status string
			has    string
		}{
			{"run_pipeline", pipelineArgs("endless"), "working", ""},
			{"two_notes", map[string]any{}, "input_required", "inputRequests"},
			{"ponder", map[string]any{}, "completed", "result"},
			{"locked", map[string]any{}, "failed", "error"},
			{"run_pipeline", pipelineArgs("endless"), "cancelled", ""},
		} {
			id := p.create(c.tool, c.args)
			if c.status == "cancelled" {
				p.task("tasks/cancel", id).ok()
			}
			task := object(t, p.until(id, c.status).Result)
			holdsTask(t, modernRevision, c.status, task, "ttlMs", "pollIntervalMs")
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

// Request types that are not declared never become tasks, whatever they carry.
func TestLegacyOtherRequests(t *testing.T) {
	rules.Covers(t, "C-05", "C-21")
	checkOtherRequests(t, legacyRevision)
}

func TestCandidateOtherRequests(t *testing.T) {
	rules.Covers(t, "B-05", "B-21")
	checkOtherRequests(t, candidateRevision)
}

func checkOtherRequests(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision, bearer: true})
		p := newPeer(t, url, revision, "a")
		for _, method := range []string{"tools/list", "ping"} {
			r := p.call(method, map[string]any{"task": map[string]any{"ttl": 60000}}).ok()
			if r.get("task") != nil || (r.get("tools") != nil) != (method == "tools/list") {
				t.Errorf("%s: %s", method, r.body)
			}
		}
		if tasks := tasksOf(t, p); len(tasks) != 0 {
			t.Errorf("%v", tasks)
		}
		// A session of a revision without tasks has declared nothing at all.
		old := newPeer(t, at(url, revision), "2025-06-18", "a")
		for tool, args := range map[string]map[string]any{"deploy_service": {"service": "api", "environment": "staging"}, "sdk_tool": {}} {
			if r := old.call("tools/call", map[string]any{"name": tool, "arguments": args, "task": map[string]any{}}).ok(); r.get("content") == nil || r.get("task") != nil {
				t.Errorf("%s: %s", tool, r.body)
			}
		}
	})
}

// What is not declared does not exist: no list for who is anonymous, and
// nothing at all in a revision without tasks.
func TestLegacyUndeclared(t *testing.T) {
	rules.Covers(t, "C-06", "C-07")
	checkUndeclared(t, legacyRevision)
}

func TestCandidateUndeclared(t *testing.T) {
	rules.Covers(t, "B-06", "B-07")
	checkUndeclared(t, candidateRevision)
}

func checkUndeclared(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{revision: revision})
		p := newPeer(t, url, revision, "")
		if p.opened.get("capabilities", "tasks", "list") != nil || p.opened.get("capabilities", "tasks", "cancel") == nil {
			t.Errorf("%s", p.opened.body)
		}
		id := p.create("ponder", nil)
		p.call("tasks/list", nil).want(200, methodNotFound)
		old := newPeer(t, at(url, revision), "2025-06-18", "")
		for _, method := range []string{"tasks/cancel", "tasks/list"} {
			old.task(method, id).want(200, methodNotFound)
		}
		p.until(id, "completed")
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

// A store that fails is the server's fault, not the request's, and nobody's
// business.
func TestInternalErrors(t *testing.T) {
	rules.Covers(t, "C-83", "E-76")
	t.Parallel()
	memory := mcptask.NewMemoryStore()
	t.Cleanup(func() { _ = memory.Close() })
	for _, revision := range []string{legacyRevision, modernRevision} {
		methods := []string{"tasks/get", "tasks/cancel", "tasks/list", "tools/call"} // tasks/result waits for the store
		if revision == modernRevision {
			methods = []string{"tasks/get", "tasks/cancel", "tasks/update", "tools/call"}
		}
		for _, method := range methods { // at once, since each is tried again for a while
			t.Run(revision+" "+method, func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					store := &awayStore{Store: memory}
					url, _ := serveWith(t, setup{bearer: true, options: mcptask.Options{Store: store}})
					p := newPeer(t, url, revision, "a")
					p.call("tools/list", nil).ok()
					id := p.create("ponder", map[string]any{})
					p.until(id, "completed")
					store.set(true)
					r := p.call(method, map[string]any{"taskId": id, "inputResponses": map[string]any{}, "name": "ponder", "arguments": map[string]any{}, "task": map[string]any{}},
						func(r *http.Request) {
							if r.Header.Set("Mcp-Name", id); method == "tools/call" {
								r.Header.Set("Mcp-Name", "ponder")
							}
						})
					if r.Error == nil || r.Error.Code != internalError || strings.Contains(string(r.body), "secret") {
						t.Errorf("%d %s", r.status, r.body)
					}
					store.set(false)
					p.task("tasks/cancel", p.create("run_pipeline", pipelineArgs("endless"))).ok()
				})
			})
		}
	}
}

// The message of an error names what was wrong.
func TestErrorMessages(t *testing.T) {
	rules.Covers(t, "C-84", "E-78")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{bearer: true})
		for _, c := range []struct {
			revision, method string
			params           map[string]any
			says             []string
		}{
			{legacyRevision, "tasks/get", map[string]any{"taskId": "none"}, []string{"no task"}},
			{legacyRevision, "tasks/get", map[string]any{}, []string{"taskId", "missing"}},
			{legacyRevision, "tasks/cancel", map[string]any{"taskId": 5}, []string{"taskId", "number"}},
			{legacyRevision, "tasks/list", map[string]any{"cursor": "made up"}, []string{"cursor"}},
			{legacyRevision, "tasks/update", map[string]any{"taskId": "none"}, []string{"tasks/update", legacyRevision}},
			{legacyRevision, "tools/call", map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("main")}, []string{"run_pipeline", "params.task"}},
			{legacyRevision, "tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": "p"}, "task": map[string]any{}}, []string{"lint_file", "task"}},
			{legacyRevision, "tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}, "task": map[string]any{"ttl": -1}}, []string{"ttl", "milliseconds"}},
			{legacyRevision, "tools/call", map[string]any{"name": "run_pipeline", "arguments": map[string]any{"repository": 5}, "task": map[string]any{}}, []string{"run_pipeline", "repository"}},
			{modernRevision, "tasks/get", map[string]any{"taskId": "none"}, []string{"no task"}},
			{modernRevision, "tasks/update", map[string]any{"taskId": "none"}, []string{"inputResponses"}},
			{modernRevision, "tasks/result", map[string]any{"taskId": "none"}, []string{"tasks/result", modernRevision}},
		} {
			r := newPeer(t, url, c.revision, "a").call(c.method, c.params)
			if r.Error == nil {
				t.Errorf("%s %v: %s", c.method, c.params, r.body)
				continue
			}
			if slices.ContainsFunc(c.says, func(word string) bool { return !strings.Contains(r.Error.Message, word) }) {
				t.Errorf("%s %v: %q, want %v in it", c.method, c.params, r.Error.Message, c.says)
			}
		}
		p := newPeer(t, url, modernRevision, "a")
		if r := p.call("tasks/get", map[string]any{"taskId": "none"}, withHeader("Mcp-Name", "other")); r.Error == nil || !strings.Contains(r.Error.Message, "Mcp-Name") {
			t.Errorf("%s", r.body)
		}
		p.caps = `{}`
		if r := p.task("tasks/get", "none"); r.Error == nil || !strings.Contains(r.Error.Message, "io.modelcontextprotocol/tasks") {
			t.Errorf("%s", r.body)
		}
	})
}
