package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// exceeded checks that an error is the refusal of an account's limit, and has the way out.
func exceeded(t *testing.T, err error, name string, most int) {
	t.Helper()
	exceededBy(t, err, "", name, most)
	if way := accountAdvice[name]; way.help == "" || !strings.HasSuffix(wireError(err).Message, " is exceeded: "+way.help) {
		t.Errorf("the limit %s does not say what helps: %v", name, err)
	}
}

// exceededBy checks that an error is the refusal of a limit of several accounts together.
func exceededBy(t *testing.T, err error, scope taskstore.Scope, name string, most int) {
	t.Helper()
	want := fmt.Sprintf(`{"limit":%q,"max":%d,"scope":%q}`, name, most, scope)
	want = strings.Replace(want, `,"scope":""`, "", 1)
	if wire := wireError(err); wire.Code != mcptask.CodeInternalError || wire.Limit() != name || string(wire.Data) != want {
		t.Errorf("%v is not the limit %s", err, want)
	}
}

// call is a call with the number 21.
func call(s *Backend, caller Caller, tool string, mode Mode) (CallReply, error) {
	return s.Call(context.Background(), caller, tool, json.RawMessage(`{"n":21}`), CallRequest{Mode: mode})
}

// TestLimitRunning checks that exactly as many tasks are created as are allowed, however many are
// tried at once. A task that ends makes room, and no account pays for another (C-96).
func TestLimitRunning(t *testing.T) {
	rules.Covers(t, "C-96", "B-91")
	const most = 5
	s := newServer(t, Options{Limits: Limits{Running: most}}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
	accounts := map[string]Caller{
		"a principal": alice, "another": bob,
		"a session": {Session: "s1", Revision: mcptask.Revision20251125}, "another session": {Session: "s2", Revision: mcptask.Revision20251125},
		"nobody": {Revision: mcptask.Revision20260728},
	}
	for name, caller := range accounts {
		var mu sync.Mutex
		var all sync.WaitGroup
		var made []string
		for range 50 {
			all.Go(func() {
				reply, err := call(s, caller, "hang", ModeTask)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					made = append(made, reply.Task.ID)
				} else {
					exceeded(t, err, "running", most)
				}
			})
		}
		if all.Wait(); len(made) != most {
			t.Fatalf("%s has %d tasks", name, len(made))
		}
		if _, _, err := s.Cancel(t.Context(), caller, made[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := call(s, caller, "hang", ModeTask); err != nil {
			t.Errorf("%s: one has ended: %v", name, err)
		}
		_, err := call(s, caller, "hang", ModeTask)
		exceeded(t, err, "running", most)
	}
}

// TestLimitTasks checks that a task counts until it is deleted, soon after its ttl.
func TestLimitTasks(t *testing.T) {
	rules.Covers(t, "C-98", "B-93")
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Limits: Limits{Tasks: 3}}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour}, double))
		for range 3 {
			ended(t, s, alice, begin(t, s, alice, "double").ID)
		}
		_, err := call(s, alice, "double", ModeTask)
		exceeded(t, err, "tasks", 3)
		begin(t, s, bob, "double")
		if reply, err := call(s, alice, "double", ModePlain); err != nil || reply.Outcome == nil {
			t.Errorf("a plain call, which stores nothing: %+v, %v", reply, err)
		}
		time.Sleep(time.Hour + 2*sweepEvery)
		begin(t, s, alice, "double")
	})
}

// TestLimitAndIdempotency checks that a repeated call gets its task even if there is no room for
// another.
func TestLimitAndIdempotency(t *testing.T) {
	s := newServer(t, Options{Limits: Limits{Tasks: 1, Running: 1}}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
	var ids []string
	for range 2 {
		reply, err := s.Call(t.Context(), alice, "hang", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask, IdempotencyKey: "k"})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, reply.Task.ID)
	}
	if ids[0] != ids[1] {
		t.Errorf("%v", ids)
	}
}

// TestLimitResult checks that no outcome above the limit is stored or sent.
func TestLimitResult(t *testing.T) {
	const most = 1000
	big := strings.Repeat("x", most+1)
	tools := map[string]func() (string, error){
		"text":  func() (string, error) { return big, nil },
		"tool":  func() (string, error) { return "", errors.New(big) },
		"error": func() (string, error) { return "", mcptask.Errorf(4055, "%s", big) },
		"data": func() (string, error) {
			err := mcptask.Errorf(4055, "no")
			err.Data = json.RawMessage(`"` + big + `"`)
			return "", err
		},
		"small": func() (string, error) { return big[:most-100], nil },
	}
	var list []mcptask.Tool
	for name, f := range tools {
		list = append(list, mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: numberSchema, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(context.Context, *mcptask.Task, number) (string, error) { return f() }))
	}
	s := newServer(t, Options{Limits: Limits{Result: most}}, list...)
	for name := range tools {
		r := ended(t, s, alice, begin(t, s, alice, name).ID)
		reply, err := call(s, alice, name, ModePlain)
		if err != nil {
			t.Fatal(err)
		}
		for _, outcome := range []*taskstore.Outcome{r.Outcome, reply.Outcome} {
			if name == "small" {
				if outcome.Kind != taskstore.OutcomeResult {
					t.Errorf("%s: %+v", name, outcome)
				}
				continue
			}
			if outcome.Kind != taskstore.OutcomeError || outcome.Result != nil {
				t.Fatalf("%s: %+v", name, outcome)
			}
			exceeded(t, outcome.Error, "result", most)
		}
		if stored, err := json.Marshal(r); err != nil || strings.Contains(string(stored), big) {
			t.Errorf("%s: stored: %v, %.100s", name, err, stored)
		}
	}
}

// TestLimitQuestions checks that a question above the limit gives the handler an error. The error
// ends the task if the handler returns it. Answered questions count too.
func TestLimitQuestions(t *testing.T) {
	const most = 3
	handler := func(returns bool) func(context.Context, *mcptask.Task, number) (number, error) {
		return func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			for i := range most + 1 {
				_, err := mcptask.Ask[approval](ctx, task, approvalInput, fmt.Sprint("step", i), "")
				var wire *mcptask.Error
				switch {
				case errors.As(err, &wire) && !returns:
					return number{i}, nil
				case err != nil:
					return number{}, err
				}
			}
			return in, nil
		}
	}
	s := newServer(t, Options{Limits: Limits{Questions: most}},
		numberTool("asks", mcptask.Policy{Task: mcptask.TaskRequired}, handler(true)), numberTool("copes", mcptask.Policy{Task: mcptask.TaskRequired}, handler(false)))
	for _, tool := range []string{"asks", "copes"} {
		id := begin(t, s, alice, tool).ID
		for i := range most {
			asks(t, s, alice, id)
			answers := map[string]json.RawMessage{fmt.Sprint("step", i): json.RawMessage(`{"action":"accept","content":{"approve":true}}`)}
			if err := s.Answer(t.Context(), alice, id, answers); err != nil {
				t.Fatal(err)
			}
		}
		r := ended(t, s, alice, id)
		switch {
		case len(r.Inputs) != most:
			t.Errorf("%s has asked %d questions", tool, len(r.Inputs))
		case tool == "copes":
			if r.Outcome.Kind != taskstore.OutcomeResult || !strings.Contains(string(r.Outcome.Result), `"n":3`) {
				t.Errorf("%+v", r.Outcome)
			}
		case r.Outcome.Kind != taskstore.OutcomeError:
			t.Errorf("%+v", r.Outcome)
		default:
			exceeded(t, r.Outcome.Error, "questions", most)
		}
	}
}

// TestLimitDefaults checks the defaults of the limits, and that a negative limit means no limit.
func TestLimitDefaults(t *testing.T) {
	for _, fields := range []reflect.Type{reflect.TypeFor[Limits](), reflect.TypeFor[Totals]()} {
		for i := range fields.NumField() {
			name := fields.Field(i).Name
			if fields.Field(i).Type == reflect.TypeFor[Totals]() {
				continue
			}
			if way := accountAdvice[strings.ToLower(name)]; way.option != "Limits."+name || way.help == "" {
				t.Errorf("accountAdvice has no entry %q for Limits.%s with its option and a help: %q", strings.ToLower(name), name, way)
			}
		}
	}
	none := Totals{-1, -1, -1, -1, -1}
	unlimited := Limits{
		Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Arguments: -1, Result: -1, Questions: -1, Step: -1, Steps: -1, Polls: -1, Lists: -1, Sessions: -1, Anonymous: none, Server: none,
	}
	s := newServer(t, Options{Limits: unlimited}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
	for range 20 {
		begin(t, s, alice, "double")
		begin(t, s, Caller{Revision: mcptask.Revision20260728}, "double")
	}
	if got := newServer(t, Options{}).Options().Limits; got != (Limits{
		Tasks: 10_000, Running: 1000, Waiting: 1000, Bytes: 256 << 20, Arguments: 1 << 20, Result: 4 << 20, Questions: 100, Step: 256 << 10, Steps: 4 << 20, Polls: 20, Lists: 20, Sessions: 1000,
		Anonymous: Totals{40_000, 4000, 4000, 512 << 20, 1000}, Server: Totals{100_000, 10_000, 10_000, 1 << 30, 10_000},
	}) {
		t.Errorf("the defaults are not those of this list: %+v", got)
	}
	// A limit of an account moves the defaults of the totals. Without one, the totals have none either.
	const unbounded = math.MaxInt
	for _, tc := range []struct {
		given             Limits
		anonymous, server int // of Running
	}{
		{Limits{Running: 10}, 40, 10_000}, {Limits{Running: 50_000}, 50_000, 100_000}, {Limits{Running: -1}, unbounded, unbounded},
		{Limits{Running: math.MaxInt}, unbounded, unbounded}, {Limits{Server: Totals{Running: 10}}, 5, 10}, {Limits{Server: Totals{Running: 1}}, 1, 1},
		{Limits{Server: Totals{Running: -1}}, 4000, unbounded}, {Limits{Anonymous: Totals{Running: -1}}, unbounded, 10_000},
		{Limits{Anonymous: Totals{Running: 7}, Server: Totals{Running: 9}}, 7, 9},
	} {
		if got := newServer(t, Options{Limits: tc.given}).Options().Limits; got.Anonymous.Running != tc.anonymous || got.Server.Running != tc.server {
			t.Errorf("%+v gives %+v", tc.given, got)
		}
	}
	for data, want := range map[string]string{``: "", `{"limit":"polls"}`: "polls", `{"reason":"expired"}`: "", `5`: "", `{"limit":5}`: ""} {
		if got := (&mcptask.Error{Data: json.RawMessage(data)}).Limit(); got != want {
			t.Errorf("%s: %q", data, got)
		}
	}
}

// TestProgressOfTasksInLine checks that the server lets go of the caller of a task that ends in
// line. The caller's progress function may keep a whole request in memory.
func TestProgressOfTasksInLine(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 1}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour}, hang),
			numberTool("brief", mcptask.Policy{Task: mcptask.TaskOptional, TTL: 2 * time.Second}, hang))
		kept := func() (n int) {
			s.progress.Range(func(any, any) bool { n++; return true })
			return n
		}
		begin(t, s, alice, "hang")
		synctest.Wait()
		call := CallRequest{Mode: ModeTask, Progress: func(string, float64, float64, string) {}}
		const tasks = 10
		for i := range 2 * tasks {
			reply, err := s.Call(t.Context(), alice, "brief", json.RawMessage(`{"n":1}`), call)
			if err != nil {
				t.Fatal(err)
			}
			if i < tasks {
				continue
			}
			if _, _, err := s.Cancel(t.Context(), alice, reply.Task.ID); err != nil {
				t.Error(err)
			}
		}
		if n := kept(); n != tasks {
			t.Errorf("%d are kept when %d are cancelled", n, tasks)
		}
		time.Sleep(4 * time.Second)
		if n := kept(); n != 0 {
			t.Errorf("%d are kept when the rest is over", n)
		}
	})
}
