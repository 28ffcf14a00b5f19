package taskserver

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// withFormer returns a tool with former names.
func withFormer(tool mcptask.Tool, was ...string) mcptask.Tool {
	tool.Spec.Was = was
	return tool
}

// TestFormerNameClashes checks that a former name is valid and belongs to one tool, in any order of services.
func TestFormerNameClashes(t *testing.T) {
	tool := func(name string, was ...string) mcptask.Tool {
		return withFormer(numberTool(name, mcptask.Policy{}, double), was...)
	}
	service := func(name string, fallback mcptask.Fallback, tools ...mcptask.Tool) mcptask.Tools {
		return mcptask.Tools{Service: name, Impl: 1, Fallback: fallback, Tools: tools}
	}
	none := mcptask.FallbackNone
	for _, test := range []struct {
		services []mcptask.Tools
		want     string // "" is no error
	}{
		{[]mcptask.Tools{service("A", none, tool("a", "x", "y"), tool("b", "z"))}, ""},
		{[]mcptask.Tools{service("A", none, tool("a", "no spaces"))}, `tool "a": its former name "no spaces" is not 1 to 128 letters`},
		{[]mcptask.Tools{service("A", none, tool("a", "a"))}, `tool "a": its former name is the one that it has now: remove it from Was`},
		{[]mcptask.Tools{service("A", none, tool("a", "x", "x"))}, `"x" is a former name of the tool "a" of service A, and a former name of the tool "a" of service A`},
		{[]mcptask.Tools{service("A", none, tool("a", "b"), tool("b"))}, `"b" is a tool of service A, and a former name of the tool "a" of service A: remove the former name`},
		{[]mcptask.Tools{service("A", none, tool("a")), service("B", none, tool("b", "a"))}, `service B: "a" is a former name of the tool "b" of service B, and a tool of service A: remove the former name`},
		{[]mcptask.Tools{service("A", none, tool("a", "x")), service("B", none, tool("b", "x"))}, `"x" is a former name of the tool "b" of service B, and a former name of the tool "a" of service A`},
		{[]mcptask.Tools{service("A", mcptask.FallbackTools, tool("a", "task_list"))}, `"task_list" is a former name of the tool "a" of service A, and a fallback tool of service A: remove the former name`},
		{[]mcptask.Tools{service("A", none, tool("a", "task_list")), service("B", mcptask.FallbackTools, tool("b"))}, `service B: its fallback tool "task_list" is a former name of the tool "a" of service A`},
	} {
		s, err := New(Options{}, test.services[0])
		if err == nil {
			for _, later := range test.services[1:] {
				err = s.Register(later)
			}
			_ = s.Close()
		}
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%v, want %q", err, test.want)
		}
	}
}

// TestCallByFormerName checks that a call under a former name is one of the tool, and that no list has that name.
func TestCallByFormerName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{}, withFormer(numberTool("new", mcptask.Policy{Task: mcptask.TaskOptional}, double), "old", "older"))
		for _, name := range []string{"older", "old", "new"} {
			if r := begin(t, s, alice, name); r.Tool != "new" || outcomeText(ended(t, s, alice, r.ID).Outcome) != doubled {
				t.Errorf("%s: a task of %s: %s", name, r.Tool, outcomeText(r.Outcome))
			}
			if reply, err := s.Call(t.Context(), alice, name, json.RawMessage(`{"n":21}`), CallRequest{}); err != nil || outcomeText(reply.Outcome) != doubled {
				t.Errorf("%s, plainly: %+v, %v", name, reply, err)
			}
			if spec, ok := s.Tool(name); !ok || spec.Name != "new" {
				t.Errorf("%s: %+v", name, spec)
			}
		}
		if tools := s.Tools(); len(tools) != 1 || tools[0].Name != "new" {
			t.Errorf("%+v", tools)
		}
	})
}

// TestStoredUnderFormerName checks that a server serves the tasks which a server of the former code has left in the store.
func TestStoredUnderFormerName(t *testing.T) {
	policy := mcptask.Policy{OnLost: mcptask.RestartWhenLost}
	for name, test := range map[string]struct {
		tool string
		do   func(t *testing.T, s *Backend, id string) error
		want string
	}{
		"it runs again": {"old", func(*testing.T, *Backend, string) error { return nil }, doubled},
		"it is cancelled": {"old", func(t *testing.T, s *Backend, id string) error {
			_, _, err := s.Cancel(t.Context(), alice, id)
			return err
		}, outcomeText(&taskstore.Outcome{Kind: taskstore.OutcomeCancelled})},
		"it is answered": {"asked", func(t *testing.T, s *Backend, id string) error {
			asked := asks(t, s, alice, id)
			answer := json.RawMessage(`{"action":"accept","content":{"approve":true}}`)
			return s.Answer(t.Context(), alice, id, map[string]json.RawMessage{asked.Inputs[0].Key: answer})
		}, `{"n":21}`},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := taskstore.NewMemory()
			dying := &tapStore{Store: store}
			former := newServer(t, Options{Store: dying}, numberTool("old", policy, hang), numberTool("asked", policy, confirm))
			id := begin(t, former, alice, test.tool).ID
			if test.tool == "asked" {
				asks(t, former, alice, id)
			}
			dying.set(cut)
			s := newServer(t, Options{Store: store},
				withFormer(numberTool("new", policy, double), "old"), withFormer(numberTool("asks", policy, confirm), "asked"))
			if err := test.do(t, s, id); err != nil {
				t.Fatal(err)
			}
			r := ended(t, s, alice, id)
			if got := outcomeText(r.Outcome); !strings.Contains(got, test.want) || r.Tool != test.tool {
				t.Errorf("the task of %s has ended with %s, want %s", r.Tool, got, test.want)
			}
			if again, err := s.server.Operator("ops").RunAgain(t.Context(), id); err != nil || again.Tool == test.tool {
				t.Errorf("run again: %+v, %v", again, err)
			}
			if err := s.Stop(t.Context(), alice, id); err != nil {
				t.Errorf("deleted: %v", err)
			}
			dying.set(nil)
		})
	}
}

// TestFormerNamesWaitTogether checks that a server takes the waiting tasks of a server of the former code, which lives, and
// that they and new ones count together for the bound of the tool.
func TestFormerNamesWaitTogether(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		former := newServer(t, Options{Store: store, Concurrency: 1}, numberTool("old", mcptask.Policy{}, after(time.Hour)))
		time.Sleep(2 * orphansFirst)
		var ids []string
		for range 4 { // the first one runs there
			ids = append(ids, begin(t, former, alice, "old").ID)
		}
		var runs, now, most atomic.Int32
		work := counting(&runs, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			defer now.Add(-1)
			most.Store(max(most.Load(), now.Add(1)))
			return after(time.Minute)(ctx, task, in)
		})
		s := newServer(t, Options{Store: store}, withFormer(numberTool("new", mcptask.Policy{Task: mcptask.TaskOptional, Concurrency: 2}, work), "old"))
		for range 2 {
			ids = append(ids, begin(t, s, alice, "new").ID)
		}
		for _, id := range ids[1:] {
			ended(t, s, alice, id)
		}
		if runs.Load() != 5 || most.Load() != 2 {
			t.Errorf("%d runs, %d at once", runs.Load(), most.Load())
		}
	})
}

// TestKeyUnderFormerName checks that an idempotency key finds the task of a call under any name of the tool.
func TestKeyUnderFormerName(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store, policy := taskstore.NewMemory(), mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour}
		former := newServer(t, Options{Store: store}, numberTool("old", policy, double))
		s := newServer(t, Options{Store: store}, withFormer(numberTool("new", policy, double), "older", "old"))
		call := func(s *Backend, tool, key string) string {
			t.Helper()
			reply, err := s.Call(t.Context(), alice, tool, json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, IdempotencyKey: key})
			if err != nil || reply.Task == nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			return reply.Task.ID
		}
		first := []string{call(former, "old", "a key"), call(s, "old", "a key"), call(s, "new", "a key"), call(s, "older", "a key")}
		if len(slices.Compact(first)) != 1 {
			t.Errorf("tasks %q", first)
		}
		second := []string{call(s, "old", "another"), call(s, "new", "another"), call(s, "older", "another")}
		if len(slices.Compact(second)) != 1 || second[0] == first[0] {
			t.Errorf("tasks %q", second)
		}
		aware := newServer(t, Options{Store: store}, withFormer(numberTool("old", policy, double), "new")) // as before, and knows what comes
		if call(aware, "old", "another") != second[0] {
			t.Error("a server that knows the new name has not found its task")
		}
		if _, err := s.Call(t.Context(), alice, "new", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask, IdempotencyKey: "a key"}); err == nil {
			t.Error("the key was used with other arguments")
		}
		if n := stored(t, s, alice); n != 2 {
			t.Errorf("%d tasks are stored, want 2", n)
		}
		time.Sleep(policy.TTL)
		if call(s, "new", "a key") == first[0] {
			t.Error("a task has outlived its time")
		}
	})
}
