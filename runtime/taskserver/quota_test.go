package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// anonymous returns an anonymous caller with a session of its own.
func anonymous(session int) Caller {
	return Caller{Session: fmt.Sprint("session", session), Revision: mcptask.Revision20251125, CanAsk: []string{spec.Elicit}}
}

// TestSessionsDoNotMultiplyLimits checks that a client that opens many sessions gets no more tasks
// than all anonymous callers together may have, and that principals can go on.
func TestSessionsDoNotMultiplyLimits(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 10
		tr := &trail{}
		s := newServer(t, Options{Logger: tr.logger(), Limits: Limits{Running: most}}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
		made := 0
		var last error
		for i := range 600 {
			if _, err := call(s, anonymous(i/12), "hang", ModeTask); err == nil {
				made++
			} else if i%12 < most { // else the session has as many as it may have
				last = err
			}
		}
		if made != 4*most {
			t.Errorf("%d tasks run, of %d that all anonymous callers may have", made, 4*most)
		}
		if exceededBy(t, last, taskstore.ScopeAnonymous, "running", 4*most); !strings.HasSuffix(hideInternals(last).Message, " for all anonymous callers together is exceeded: try again later, or authenticate") {
			t.Error(last)
		}
		_, err := call(s, Caller{Revision: mcptask.Revision20260728}, "hang", ModeTask)
		exceededBy(t, err, taskstore.ScopeAnonymous, "running", 4*most) // a caller without a session is limited too
		begin(t, s, alice, "hang")
		// The sessions get one record: they are one flood, in one second.
		if got := tr.of("limit"); len(got) != 2 || got[1]["scope"] != "anonymous" || got[1]["option"] != "Limits.Anonymous.Running" || got[0]["scope"] != nil {
			t.Errorf("%v", got)
		}
	})
}

// TestLimitServer checks that the server's limits hold however many accounts there are.
func TestLimitServer(t *testing.T) {
	for name, limits := range map[string]Limits{
		"running": {Server: Totals{Running: 5}}, "tasks": {Server: Totals{Tasks: 5}},
	} {
		s := newServer(t, Options{Limits: limits}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
		for i := range 5 {
			begin(t, s, Caller{Principal: fmt.Sprint(i), Revision: mcptask.Revision20260728}, "hang")
		}
		_, err := call(s, alice, "hang", ModeTask)
		exceededBy(t, err, taskstore.ScopeServer, name, 5)
	}
}

// lengthy returns a tool whose result is a text of n bytes.
func lengthy(n int) mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: "big", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(context.Context, *mcptask.Task, struct{}) (string, error) { return strings.Repeat("x", n), nil })
}

// bytesOf returns how many bytes are stored for some tasks.
func bytesOf(t *testing.T, s *Backend, ids []string) (n int) {
	t.Helper()
	for _, id := range ids {
		r, err := s.Peek(id)
		if err != nil {
			t.Fatal(err)
		}
		n += int(r.Size())
	}
	return n
}

// TestLimitBytesOfResults checks that results count. A task whose result has no room ends with an
// error that says so.
func TestLimitBytesOfResults(t *testing.T) {
	const size, most, tasks = 10_000, 45_000, 10
	for scope, limits := range map[taskstore.Scope]Limits{
		taskstore.ScopeAccount: {Bytes: most}, taskstore.ScopeServer: {Server: Totals{Bytes: most}}, // TestRoomForResults has the others
	} {
		s := newServer(t, Options{Limits: limits}, lengthy(size))
		var ids []string
		kept := 0
		for i := range tasks {
			caller := alice
			if scope == taskstore.ScopeServer {
				caller.Principal = fmt.Sprint(i)
			}
			reply, err := s.Call(t.Context(), caller, "big", nil, CallRequest{Mode: ModeTask})
			if err != nil {
				t.Fatalf("%s: %v", scope, err)
			}
			r := ended(t, s, caller, reply.Task.ID)
			ids = append(ids, r.ID)
			switch {
			case r.Outcome.Kind == taskstore.OutcomeResult:
				kept++
			case scope == taskstore.ScopeAccount:
				exceeded(t, r.Outcome.Error, "bytes", most)
			default:
				exceededBy(t, r.Outcome.Error, scope, "bytes", most)
			}
		}
		if n := bytesOf(t, s, ids); kept != most/size || n > most+tasks*500 {
			t.Errorf("%s: %d results are kept, and %d bytes of %d", scope, kept, n, most)
		}
	}
}

// TestLimitBytesOfArguments checks that arguments count, and that a deleted task makes room.
func TestLimitBytesOfArguments(t *testing.T) {
	const most = 10_000
	s := newServer(t, Options{Limits: Limits{Bytes: most}}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
	arguments := json.RawMessage(`{"n":1` + strings.Repeat(" ", 4000) + `}`)
	var ids []string
	for range 2 {
		reply, err := s.Call(t.Context(), alice, "hang", arguments, CallRequest{Mode: ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, reply.Task.ID)
	}
	_, err := s.Call(t.Context(), alice, "hang", arguments, CallRequest{Mode: ModeTask})
	exceeded(t, err, "bytes", most)
	begin(t, s, alice, "hang") // a small one fits
	if _, err := s.Call(t.Context(), bob, "hang", arguments, CallRequest{Mode: ModeTask}); err != nil {
		t.Errorf("bob: %v", err)
	}
	for deleted := false; !deleted; { // its start may come between
		r, err := s.store.Get(t.Context(), ids[0])
		if err != nil {
			t.Fatal(err)
		}
		switch err := s.store.Delete(t.Context(), r); {
		case err == nil:
			deleted = true
		case !errors.Is(err, taskstore.ErrConflict):
			t.Fatal(err)
		}
	}
	if _, err := s.Call(t.Context(), alice, "hang", arguments, CallRequest{Mode: ModeTask}); err != nil {
		t.Errorf("one has gone: %v", err)
	}
}

// TestFullAccountEnds checks that a task can be cancelled even if its account has no room.
func TestFullAccountEnds(t *testing.T) {
	store := taskstore.NewMemory()
	open := newServer(t, Options{Store: store}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang))
	id := begin(t, open, alice, "hang").ID
	r, err := store.Get(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	s := newServer(t, Options{Store: store, Limits: Limits{Bytes: int(r.Size())}}, numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
	if r, done, err := s.Cancel(t.Context(), alice, id); err != nil || done || r.Outcome.Kind != taskstore.OutcomeCancelled {
		t.Errorf("%+v, %v", r.Outcome, err)
	}
}

// TestLimitBytesOfAnswers checks that questions and answers count. An answer without room is
// refused if its sender can be told, and ends the question otherwise.
func TestLimitBytesOfAnswers(t *testing.T) {
	const most = 5000
	answer := json.RawMessage(`{"action":"accept","content":{"approve":true,"note":"` + strings.Repeat("x", most) + `"}}`)
	asking := func(message string) mcptask.Tool {
		return numberTool("asks", mcptask.Policy{Task: mcptask.TaskOptional}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			_, err := mcptask.Ask[approval](ctx, task, approvalInput, "step", message)
			return in, err
		})
	}
	s := newServer(t, Options{Limits: Limits{Bytes: most}}, asking(""))
	id := asks(t, s, alice, begin(t, s, alice, "asks").ID).ID
	exceeded(t, s.Answer(t.Context(), alice, id, map[string]json.RawMessage{"step": answer}), "bytes", most)
	if r := asks(t, s, alice, id); len(r.Outstanding()) != 1 {
		t.Errorf("%+v", r.Inputs)
	}
	if err := s.Respond(t.Context(), alice, id, "step", answer, nil); err != nil {
		t.Error(err)
	}
	r := ended(t, s, alice, id)
	if !r.Outcome.IsError || !strings.Contains(string(r.Outcome.Result), `\"bytes\"`) || r.Size() > most {
		t.Errorf("%s of %d bytes", r.Outcome.Result, r.Size())
	}
	s = newServer(t, Options{Limits: Limits{Bytes: most}}, asking(strings.Repeat("x", most)))
	r = ended(t, s, alice, begin(t, s, alice, "asks").ID)
	exceeded(t, r.Outcome.Error, "bytes", most)
}

// TestLimitBytesOfReports checks that a report without room is dropped and its task goes on.
func TestLimitBytesOfReports(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		const most = 2000
		s := newServer(t, Options{Limits: Limits{Bytes: most}}, numberTool("reports", mcptask.Policy{Task: mcptask.TaskOptional}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			task.Message(ctx, "fits")
			task.Message(ctx, strings.Repeat("x", most))
			return hang(ctx, task, in)
		}))
		id := begin(t, s, alice, "reports").ID
		synctest.Wait()
		if r, err := s.Get(t.Context(), alice, id); err != nil || r.StatusMessage != "fits" || r.Phase != taskstore.PhaseRunning {
			t.Errorf("%s: %.20q, %v", r.Phase, r.StatusMessage, err)
		}
	})
}

// TestSleepersDelayNobody checks that sleeping tasks of one principal, of one session or of many sessions
// do not delay the tasks of other callers.
func TestSleepersDelayNobody(t *testing.T) {
	const sleepers = 200
	for name, tc := range map[string]struct {
		flood  func(i int) Caller
		others []Caller
	}{
		"a principal": {func(int) Caller { return alice }, []Caller{bob, anonymous(1), {Revision: mcptask.Revision20260728}}},
		"a session":   {func(int) Caller { return anonymous(1) }, []Caller{bob, anonymous(2), {Revision: mcptask.Revision20260728}}},
		"no session":  {func(int) Caller { return Caller{Revision: mcptask.Revision20260728} }, []Caller{bob, anonymous(2)}},
		"sessions":    {anonymous, []Caller{bob}},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newServer(t, Options{}, numberTool("sleep", mcptask.Policy{Task: mcptask.TaskOptional}, after(8*time.Second)), numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
			var last string
			for i := range sleepers {
				last = begin(t, s, tc.flood(i), "sleep").ID
			}
			synctest.Wait()
			for _, caller := range tc.others {
				began := time.Now()
				ended(t, s, caller, begin(t, s, caller, "double").ID)
				if waited := time.Since(began); waited != 0 {
					t.Errorf("%+v waits for %v", caller, waited)
				}
			}
			ended(t, s, tc.flood(sleepers-1), last) // they run all the same
		})
	}
}

// TestLocalHasAllSlots checks that the client of a pipe, which has the server to itself, gets all
// slots.
func TestLocalHasAllSlots(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 4}, numberTool("sleep", mcptask.Policy{Task: mcptask.TaskOptional}, after(time.Second)))
		local := Caller{Principal: alice.Principal, Local: true, Revision: mcptask.Revision20260728}
		began := time.Now()
		var ids []string
		for range 4 {
			ids = append(ids, begin(t, s, local, "sleep").ID)
		}
		for _, id := range ids {
			ended(t, s, local, id)
		}
		if took := time.Since(began); took != time.Second {
			t.Errorf("four at once took %v", took)
		}
	})
}
