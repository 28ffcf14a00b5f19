package taskserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/cause"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// stored returns how many tasks a caller has.
func stored(t *testing.T, s *Backend, caller Caller) int {
	t.Helper()
	page, _, err := s.List(context.Background(), caller, taskstore.Position{})
	if err != nil {
		t.Fatal(err)
	}
	return len(page)
}

func TestInvalidArgumentsCreateNothing(t *testing.T) {
	ran := false
	s := newServer(t, Options{}, numberTool("t", mcptask.Policy{Task: mcptask.TaskOptional}, func(context.Context, *mcptask.Task, number) (number, error) {
		ran = true
		return number{}, nil
	}))
	for _, arguments := range []string{`{}`, ``, `null`, `{"n":"x"}`, `{"n":1,"m":2}`, `[]`, `{`, `{"n":1}{}`} {
		for _, mode := range []Mode{ModePlain, ModeTask, ModeGrace} {
			reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(arguments), CallRequest{Mode: mode})
			if mode == ModeTask {
				if wireError(err).Code != mcptask.CodeInvalidParams || !strings.Contains(wireError(err).Message, "invalid arguments: ") {
					t.Errorf("%q as a task: %v", arguments, err)
				}
				continue
			}
			if err != nil || reply.Task != nil || reply.Outcome == nil || !reply.Outcome.IsError {
				t.Errorf("%q in mode %d: %+v, %v", arguments, mode, reply, err)
			}
		}
	}
	if n := stored(t, s, alice); n != 0 || ran {
		t.Errorf("%d tasks stored, handler ran: %v", n, ran)
	}
	if _, err := s.Call(t.Context(), alice, "unknown", nil, CallRequest{}); err == nil || !strings.Contains(err.Error(), `unknown tool "unknown"`) {
		t.Errorf("unknown tool: %v", err)
	}
}

// TestUnreadableArgumentsCreateNothing checks that arguments that fit their schema, but not the handler's type, are
// refused before anyone is asked and anything is stored.
func TestUnreadableArgumentsCreateNothing(t *testing.T) {
	type step struct {
		Until time.Time `json:"until"`
		Level int8      `json:"level"`
	}
	type plan struct {
		When  time.Time       `json:"when"`
		Steps []step          `json:"steps"`
		ByDay map[string]step `json:"by_day"`
	}
	ran := false
	s := newServer(t, Options{}, mcptask.NewTool(mcptask.ToolSpec{
		Name: "t", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}, Questions: []mcptask.InputSpec{approvalInput},
	}, func(context.Context, *mcptask.Task, plan) (string, error) { ran = true; return "", nil }))
	for arguments, want := range map[string]string{
		`{"when":"tomorrow"}`:              `invalid arguments: when: parsing time "tomorrow" as`,
		`{"when":"2026-02-30T00:00:00Z"}`:  `invalid arguments: when: parsing time "2026-02-30T00:00:00Z": day out of range`,
		`{"by_day":{"mon":{"level":300}}}`: `invalid arguments: by_day.mon.level: got number 300, want an integer from -128 to 127`,
		`{"steps":{}}`:                     `invalid arguments: steps: got object, want array`,
		`[]`:                               `invalid arguments: `,
	} {
		for _, mode := range []Mode{ModePlain, ModeTask, ModeGrace} {
			reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(arguments), CallRequest{Mode: mode})
			text := ""
			if mode == ModeTask {
				text = wireError(err).Message
			} else if err == nil && reply.Outcome != nil {
				text = readFirstText(reply.Outcome.Result)
			}
			if !strings.HasPrefix(text, want) || strings.Contains(text, "Go ") || reply.Questions != nil || reply.Task != nil {
				t.Errorf("%s in mode %d: %q, %+v, %v", arguments, mode, text, reply, err)
			}
		}
	}
	if n := stored(t, s, alice); n != 0 || ran {
		t.Errorf("%d tasks stored, handler ran: %v", n, ran)
	}
}

// counted counts how often it is decoded.
type counted struct{ N int }

var decodings atomic.Int32

func (c *counted) UnmarshalJSON(data []byte) error {
	decodings.Add(1)
	return json.Unmarshal(data, &c.N)
}

// TestArgumentsAreDecodedOnce checks that a call that runs at once decodes its arguments once, with defaults too.
func TestArgumentsAreDecodedOnce(t *testing.T) {
	type wait struct {
		C counted `json:"c"`
		N int     `json:"n"`
	}
	s := newServer(t, Options{}, mcptask.NewTool(mcptask.ToolSpec{
		Name: "t", InputSchema: `{"type":"object","properties":{"c":{},"n":{"default":2}}}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional},
	}, func(_ context.Context, _ *mcptask.Task, in wait) (string, error) {
		return fmt.Sprint(in.C.N, in.N), nil
	}))
	for _, mode := range []Mode{ModePlain, ModeTask} {
		before := decodings.Load()
		reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"c":7}`), CallRequest{Mode: mode})
		if err != nil {
			t.Fatal(err)
		}
		outcome := reply.Outcome
		if mode == ModeTask {
			outcome = ended(t, s, alice, reply.Task.ID).Outcome
		}
		if n := decodings.Load() - before; n != 1 || readFirstText(outcome.Result) != "7 2" {
			t.Errorf("mode %d: decoded %d times, %s", mode, n, outcome.Result)
		}
	}
}

// TestDefaultsOfArguments checks that a handler gets the defaults of arguments that a call leaves out, and that the
// task keeps the arguments as they were sent.
func TestDefaultsOfArguments(t *testing.T) {
	type search struct {
		Limit *int8 `json:"limit"`
		Page  struct {
			Size int `json:"size"`
		} `json:"page"`
	}
	const schema = `{"type":"object","properties":{"limit":{"type":["integer","null"],"default":10},
		"page":{"type":"object","properties":{"size":{"type":"integer","minimum":1,"default":5}},"default":{}}}}`
	var raw json.RawMessage
	s := newServer(t, Options{},
		mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: schema, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}, func(_ context.Context, _ *mcptask.Task, in search) (search, error) {
			return in, nil
		}),
		mcptask.NewRawTool(mcptask.ToolSpec{Name: "raw", InputSchema: schema, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}, func(_ context.Context, params json.RawMessage) (json.RawMessage, error) {
			raw = params
			return json.RawMessage(`{}`), nil
		}))
	for arguments, want := range map[string]string{
		``: `{"limit":10,"page":{"size":5}}`, `null`: `{"limit":10,"page":{"size":5}}`, `{}`: `{"limit":10,"page":{"size":5}}`,
		`{"limit":0}`: `{"limit":0,"page":{"size":5}}`, `{"limit":null,"page":{}}`: `{"limit":null,"page":{"size":5}}`,
		`{"page":{"size":1.0}}`: `{"limit":10,"page":{"size":1}}`,
	} {
		sent := json.RawMessage(arguments)
		plain, err := s.Call(t.Context(), alice, "t", sent, CallRequest{})
		if err != nil || readFirstText(plain.Outcome.Result) != want {
			t.Errorf("%s: %+v, %v", arguments, plain, err)
		}
		reply, err := s.Call(t.Context(), alice, "t", sent, CallRequest{Mode: ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		r := ended(t, s, alice, reply.Task.ID)
		if got := readFirstText(r.Outcome.Result); got != want {
			t.Errorf("%s as a task: %s", arguments, got)
		}
		if strings.HasPrefix(arguments, "{") && string(r.Arguments) != arguments {
			t.Errorf("%s is stored as %s", arguments, r.Arguments)
		}
	}
	if _, err := s.Call(t.Context(), alice, "raw", nil, CallRequest{}); err != nil || string(raw) != `{}` {
		t.Errorf("raw: %s, %v", raw, err)
	}
}

func TestGrace(t *testing.T) {
	rules.Covers(t, "E-03")
	graced := mcptask.Policy{Task: mcptask.TaskOptional, Grace: 200 * time.Millisecond}
	call := func(s *Backend, ctx context.Context, tool string) (CallReply, error) {
		return s.Call(ctx, alice, tool, json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeGrace})
	}
	bubble.Run(t, "a quick call leaves no record", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", graced, double))
		reply, err := call(s, t.Context(), "t")
		if err != nil || reply.Task != nil || outcomeText(reply.Outcome) != doubled {
			t.Fatalf("%+v, %v", reply, err)
		}
		synctest.Wait()
		if n := stored(t, s, alice); n != 0 {
			t.Errorf("%d records are left", n)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if len(s.running)+listeners(s) != 0 {
			t.Error("the server still knows the task")
		}
	})
	bubble.Run(t, "a slow call becomes a task", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", graced, after(time.Second)))
		began := time.Now()
		reply, err := call(s, t.Context(), "t")
		if err != nil || reply.Task == nil || time.Since(began) != graced.Grace {
			t.Fatalf("%+v, %v after %v", reply, err, time.Since(began))
		}
		if r := ended(t, s, alice, reply.Task.ID); r.Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
	bubble.Run(t, "a caller that asks for a task gets one", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", graced, double))
		r := begin(t, s, alice, "t")
		if r.Done() {
			t.Errorf("the task was not there before its end: %+v", r)
		}
		ended(t, s, alice, r.ID)
	})
	bubble.Run(t, "a question ends it", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", graced, confirm))
		began := time.Now()
		reply, err := call(s, t.Context(), "t")
		if err != nil || reply.Task == nil || reply.Task.Phase != taskstore.PhaseInputRequired || time.Since(began) != 0 {
			t.Fatalf("%+v, %v after %v", reply, err, time.Since(began))
		}
	})
	for _, concurrency := range []int{1, 2} { // with one slot the call waits in the queue
		bubble.Run(t, "a caller that leaves has no task", func(t *testing.T) {
			var stopped, started atomic.Int32
			s := newServer(t, Options{Concurrency: concurrency}, numberTool("other", mcptask.Policy{}, hang),
				numberTool("t", graced, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
					started.Add(1)
					defer stopped.Add(1)
					return hang(ctx, task, in)
				}))
			begin(t, s, bob, "other")
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			reply, err := call(s, ctx, "t")
			if !errors.Is(err, context.DeadlineExceeded) || reply.Task != nil || reply.Outcome != nil {
				t.Fatalf("%+v, %v", reply, err)
			}
			synctest.Wait()
			if n := stored(t, s, alice); n != 0 || started.Load() != stopped.Load() || int(started.Load()) != concurrency-1 {
				t.Errorf("%d records are left, %d started, %d stopped", n, started.Load(), stopped.Load())
			}
		})
	}
	t.Run("the caller has left before", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", graced, double))
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if reply, err := call(s, ctx, "t"); !errors.Is(err, context.Canceled) || reply.Task != nil || reply.Outcome != nil || stored(t, s, alice) != 0 {
			t.Errorf("%+v, %v", reply, err)
		}
	})
}

func TestIdempotency(t *testing.T) {
	const key = "a key of 24 bytes or so.."
	call := func(s *Backend, caller Caller, tool, arguments, key string, mode Mode) (CallReply, error) {
		return s.Call(context.Background(), caller, tool, json.RawMessage(arguments), CallRequest{Mode: mode, IdempotencyKey: key})
	}
	policy := mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Minute, Grace: time.Second}
	bubble.Run(t, "one key, one task", func(t *testing.T) {
		var runs atomic.Int32
		s := newServer(t, Options{}, numberTool("t", policy, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			runs.Add(1)
			return after(time.Second)(ctx, task, in)
		}))
		ids := map[string]bool{}
		var mu sync.Mutex
		var calling sync.WaitGroup
		for range 20 {
			calling.Go(func() {
				reply, err := call(s, alice, "t", `{"n":1}`, key, ModeTask)
				if err != nil || reply.Task == nil {
					t.Errorf("%+v, %v", reply, err)
					return
				}
				mu.Lock()
				ids[reply.Task.ID] = true
				mu.Unlock()
			})
		}
		calling.Wait()
		time.Sleep(2 * time.Second)
		if len(ids) != 1 || runs.Load() != 1 {
			t.Errorf("%d tasks, %d runs", len(ids), runs.Load())
		}
		_, err := call(s, alice, "t", `{"n":2}`, key, ModeTask)
		if wireError(err).Code != mcptask.CodeInvalidParams {
			t.Errorf("other arguments: %v", err)
		}
		if reply, err := call(s, bob, "t", `{"n":2}`, key, ModeTask); err != nil || ids[reply.Task.ID] {
			t.Errorf("another caller's key: %+v, %v", reply, err)
		}
	})
	bubble.Run(t, "a quick call can be repeated", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", policy, double))
		if reply, err := call(s, alice, "t", `{"n":21}`, key, ModeGrace); err != nil || outcomeText(reply.Outcome) != doubled {
			t.Fatalf("%+v, %v", reply, err)
		}
		reply, err := call(s, alice, "t", `{"n":21}`, key, ModeGrace)
		if err != nil || reply.Task != nil || outcomeText(reply.Outcome) != doubled {
			t.Errorf("%+v, %v", reply, err)
		}
		// A caller that asks for a task gets it, even if it has ended.
		reply, err = call(s, alice, "t", `{"n":21}`, key, ModeTask)
		if err != nil || reply.Task == nil || outcomeText(reply.Task.Outcome) != doubled {
			t.Errorf("%+v, %v", reply, err)
		}
	})
	bubble.Run(t, "a caller that left with a key finds the task again", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", policy, after(10*time.Second)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := s.Call(ctx, alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeGrace, IdempotencyKey: key}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		reply, err := call(s, alice, "t", `{"n":1}`, key, ModeTask)
		if err != nil || ended(t, s, alice, reply.Task.ID).Outcome.Kind != taskstore.OutcomeResult {
			t.Errorf("%+v, %v", reply, err)
		}
	})
	bubble.Run(t, "a key is free when its task has expired, swept or not", func(t *testing.T) {
		time.Sleep(300 * time.Millisecond)
		s := newServer(t, Options{}, numberTool("t", policy, double))
		time.Sleep(300 * time.Millisecond) // between two sweeps
		first, err := call(s, alice, "t", `{"n":1}`, key, ModeTask)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(policy.TTL)
		second, err := call(s, alice, "t", `{"n":2}`, key, ModeTask)
		if err != nil || second.Task.ID == first.Task.ID {
			t.Errorf("%+v, %v", second, err)
		}
	})
	t.Run("an anonymous key must not be guessable", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", policy, double))
		anonymous := Caller{Revision: mcptask.Revision20260728}
		_, err := call(s, anonymous, "t", `{"n":1}`, key[:15], ModeTask)
		if wireError(err).Code != mcptask.CodeInvalidParams || !strings.Contains(wireError(err).Message, "16 bytes") {
			t.Errorf("%v", err)
		}
		if _, err := call(s, anonymous, "t", `{"n":1}`, key[:16], ModeTask); err != nil {
			t.Error(err)
		}
		if _, err := call(s, alice, "t", `{"n":1}`, "k", ModeTask); err != nil {
			t.Error(err)
		}
	})
}

// TestRetention checks that a client may wish for more than the tool's ttl, up to the longest of the server, and
// never gets less: that would stop the work. A retention from the end may be shorter.
func TestRetention(t *testing.T) {
	rules.Covers(t, "C-56", "C-97", "B-51", "B-92")
	s := newServer(t, Options{MaxTTL: 2 * time.Hour}, numberTool("t", mcptask.Policy{TTL: time.Hour}, double))
	for _, c := range []struct {
		wish *time.Duration
		want time.Duration
	}{
		{nil, time.Hour}, {pointer(time.Duration(0)), time.Hour}, {pointer(-time.Second), time.Hour}, {pointer(time.Minute), time.Hour},
		{pointer(2 * time.Hour), 2 * time.Hour}, {pointer(3 * time.Hour), 2 * time.Hour}, {pointer(time.Duration(1<<63 - 1)), 2 * time.Hour},
	} {
		reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask, TTL: c.wish})
		if err != nil || reply.Task.TTL() != c.want {
			t.Errorf("%+v, %v; want %v", reply.Task, err, c.want)
		}
	}
	longer := newServer(t, Options{MaxTTL: time.Minute}, numberTool("t", mcptask.Policy{TTL: time.Hour}, double))
	for _, wish := range []time.Duration{time.Second, time.Minute, 2 * time.Hour} {
		reply, err := longer.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask, TTL: &wish})
		if err != nil || reply.Task.TTL() != time.Hour {
			t.Errorf("%v gives %+v, %v", wish, reply.Task, err)
		}
	}
}

func TestPlainCalls(t *testing.T) {
	plain := func(s *Backend, ctx context.Context, tool string) (CallReply, error) {
		return s.Call(ctx, alice, tool, json.RawMessage(`{"n":21}`), CallRequest{Mode: ModePlain})
	}
	bubble.Run(t, "wait bounds it", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("slow", mcptask.Policy{Wait: time.Minute}, hang), numberTool("quick", mcptask.Policy{Wait: time.Minute}, double))
		if reply, err := plain(s, t.Context(), "quick"); err != nil || outcomeText(reply.Outcome) != doubled {
			t.Errorf("%+v, %v", reply, err)
		}
		began := time.Now()
		reply, err := plain(s, t.Context(), "slow")
		if err != nil || time.Since(began) != time.Minute || !reply.Outcome.IsError ||
			!strings.Contains(outcomeText(reply.Outcome), "slow did not finish within the 1m0s") {
			t.Errorf("%s, %v after %v", outcomeText(reply.Outcome), err, time.Since(began))
		}
		if stored(t, s, alice) != 0 {
			t.Error("a plain call left a task")
		}
	})
	bubble.Run(t, "deadline and caller bound it too", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{Wait: time.Minute, Deadline: time.Second}, hang))
		reply, err := plain(s, t.Context(), "t")
		if err != nil || reply.Outcome.Kind != taskstore.OutcomeError || reply.Outcome.Error.Reason() != cause.Deadline {
			t.Errorf("%s, %v", outcomeText(reply.Outcome), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if reply, err := plain(s, ctx, "t"); err != nil || reply.Outcome.Kind != taskstore.OutcomeCancelled {
			t.Errorf("%s, %v", outcomeText(reply.Outcome), err)
		}
	})
	bubble.Run(t, "the server's end ends it", func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, hang))
		go func() { time.Sleep(time.Second); _ = s.server.Close() }()
		for range 2 { // at work, and afterwards
			if _, err := plain(s, t.Context(), "t"); err == nil || err.Error() != newShutdownError().Error() {
				t.Errorf("%v", err)
			}
		}
		if _, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask}); err == nil || err.Error() != newShutdownError().Error() {
			t.Errorf("%v", err)
		}
	})
	t.Run("its task", func(t *testing.T) {
		var progress []string
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if task == nil || task.ID() != "" || task.Principal() != "alice" || task.Attempt() != 1 {
				t.Errorf("%+v", task)
			}
			task.Progress(ctx, 1, 2, "half")
			task.Message(ctx, "soon")
			if _, err := mcptask.Ask[approval](ctx, task, approvalInput, "ship", ""); !errors.Is(err, mcptask.ErrCannotAsk) || !strings.Contains(err.Error(), "call the tool as a task") {
				t.Errorf("%v", err)
			}
			return in, nil
		}))
		_, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Progress: func(id string, done, total float64, message string) {
			progress = append(progress, id+taskstore.Progress{Done: done, Total: total}.Status(message))
		}})
		if err != nil || strings.Join(progress, ", ") != "half (1/2), soon" {
			t.Errorf("%v, %v", progress, err)
		}
	})
}

// TestNameOfExpiredTask checks that the end of an expired task does not end the task that has its name next.
func TestNameOfExpiredTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond)
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{TTL: 5 * time.Second}, double))
		time.Sleep(300 * time.Millisecond) // between two sweeps
		for range 2 {
			reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, ExternalID: "the name of a task"})
			if err != nil {
				t.Fatal(err)
			}
			if r := ended(t, s, alice, reply.Task.ID); outcomeText(r.Outcome) != doubled {
				t.Errorf("%+v", r.Outcome)
			}
			time.Sleep(5 * time.Second)
		}
	})
}

// hastyStore is a store for a server that believes the store's clock to be ahead.
type hastyStore struct{ taskstore.Store }

func (s hastyStore) Beat(ctx context.Context, worker string, lease time.Duration, held []string) (taskstore.Heartbeat, error) {
	beat, err := s.Store.Beat(ctx, worker, lease, held)
	beat.Now = beat.Now.Add(time.Second)
	return beat, err
}

// TestUpdatedAtNeverGoesBack checks that a change is not dated before an earlier change by another server.
func TestUpdatedAtNeverGoesBack(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		defer func() { _ = store.Close() }()
		tool := numberTool("t", mcptask.Policy{}, hang)
		a, b := newServer(t, Options{Store: hastyStore{store}}, tool), newServer(t, Options{Store: store}, tool)
		time.Sleep(time.Second) // both have a lease
		created := begin(t, a, alice, "t")
		cancelled, _, err := b.Cancel(t.Context(), alice, created.ID)
		if err != nil || cancelled.UpdatedAt.Before(created.UpdatedAt) || !cancelled.TerminalAt.Equal(cancelled.UpdatedAt) {
			t.Errorf("created at %v, cancelled at %v, %v", created.UpdatedAt, cancelled.UpdatedAt, err)
		}
	})
}

// TestRefusedNameIsSeen checks that a follower of a named task sees the task that another server creates while a call
// here wants the name.
func TestRefusedNameIsSeen(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		tool := numberTool("t", mcptask.Policy{}, hang)
		a, b := newServer(t, Options{Store: line}, tool), newServer(t, Options{Store: store}, tool)
		synctest.Wait() // the feeds have begun
		call := CallRequest{Mode: ModeTask, ExternalID: "a name"}
		seen := make(chan taskstore.Record, 10)
		defer a.Observe(func(r taskstore.Record) { seen <- r })()
		defer a.Follow(alice.Named(call.ExternalID))()
		line.set(before(func(context.Context) error {
			_, err := b.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), call)
			synctest.Wait() // the news of it has come
			return err
		}, "Create"))
		if _, err := a.Call(t.Context(), alice, "t", json.RawMessage(`{"n":21}`), call); wireError(err).Code != mcptask.CodeInvalidParams {
			t.Errorf("%v", err)
		}
		synctest.Wait()
		if len(seen) != 1 || (<-seen).Claim.Worker != b.worker {
			t.Errorf("observers saw %d versions", len(seen))
		}
	})
}

// TestLineIsShown checks that a task says while it is in line that it waits for a slot, and no longer. A task that
// finds a slot never says so, and neither is stored more often for it.
func TestLineIsShown(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 1}, numberTool("hang", mcptask.Policy{Task: mcptask.TaskOptional}, hang), numberTool("double", mcptask.Policy{Task: mcptask.TaskOptional}, double))
		first, second := begin(t, s, alice, "hang"), begin(t, s, alice, "hang")
		synctest.Wait()
		message := func(id string, version int64) string {
			r, err := s.Get(t.Context(), alice, id)
			if err != nil || r.Version != version {
				t.Errorf("version %d: %v", r.Version, err)
			}
			return r.StatusMessage
		}
		if got := message(first.ID, 1); got != "" {
			t.Errorf("the one that runs says %q", got)
		}
		if got := message(second.ID, 1); got != waitsForSlot || second.StatusMessage != got {
			t.Errorf("the one in line says %q", got)
		}
		if _, _, err := s.Cancel(t.Context(), alice, first.ID); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if got := message(second.ID, 2); got != "" {
			t.Errorf("the one that runs now says %q", got)
		}
	})
}

// pointer returns a pointer to a value.
func pointer[T any](v T) *T { return &v }
