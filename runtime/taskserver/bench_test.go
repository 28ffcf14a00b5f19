package taskserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Each benchmark that has a floor runs it in turn with the work, and reports the
// ratio of the rates as of-floor: a machine that is slow for a while is slow for both.

// beside runs work b.N times, and floor as often.
func beside(b *testing.B, floor, work func()) {
	b.Helper()
	b.ReportAllocs()
	var floorTime time.Duration
	const rounds = 16
	b.ResetTimer()
	for round := range rounds {
		n := b.N*(round+1)/rounds - b.N*round/rounds
		b.StopTimer()
		began := time.Now()
		for range n {
			floor()
		}
		floorTime += time.Since(began)
		b.StartTimer()
		for range n {
			work()
		}
	}
	b.StopTimer()
	b.ReportMetric(float64(floorTime)/float64(b.Elapsed()), "of-floor")
}

type benchInput struct {
	N int `json:"n"`
}

// benchServer has a tool that is done at once, with a result of 100 bytes.
func benchServer(b *testing.B, store taskstore.Store) *taskserver.Server {
	b.Helper()
	text := strings.Repeat("x", 100-len(`{"content":[{"type":"text","text":""}]}`))
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "t", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}},
		func(context.Context, *mcptask.Task, benchInput) (string, error) { return text, nil })
	s, err := taskserver.New(taskserver.Options{Store: store, Limits: taskserver.Limits{Tasks: math.MaxInt, Running: math.MaxInt}},
		mcptask.Tools{Service: "B", Impl: 1, Tools: []mcptask.Tool{tool}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := s.Close(); err != nil {
			b.Error(err)
		}
	})
	return s
}

var alice = taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20251125, CanAsk: []string{"elicitation/create", "sampling/createMessage"}}

// finish makes a task and waits for its end.
func finish(b *testing.B, s *taskserver.Server) taskstore.Record {
	reply, err := s.Backend().Call(b.Context(), alice, "t", json.RawMessage(`{"n":1}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		b.Fatal(err)
	}
	r, err := s.Backend().Await(b.Context(), alice, reply.Task.ID)
	if err != nil || r.Outcome.Kind != taskstore.OutcomeResult {
		b.Fatal(r, err)
	}
	return r
}

// BenchmarkQuestions runs a task that asks twice, before it begins and while it runs. Each answer
// is checked against its schema more than once.
func BenchmarkQuestions(b *testing.B) {
	input := mcptask.InputSpec{Name: "Approval", Message: "Ship it?", Schema: `{"type":"object","properties":{
		"approve":{"type":"boolean","default":false},"reason":{"type":"string","maxLength":200},
		"when":{"type":"string","format":"date-time"}},"required":["approve"]}`}
	spec := mcptask.ToolSpec{
		Name: "t", InputSchema: `{"type":"object"}`, Questions: []mcptask.InputSpec{input},
		Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour},
	}
	tool := mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ benchInput) (string, error) {
		_, err := mcptask.Ask[map[string]any](ctx, task, input, "ship", "")
		return "done", err
	})
	s, err := taskserver.New(taskserver.Options{Limits: taskserver.Limits{Tasks: -1, Running: -1, Bytes: -1}},
		mcptask.Tools{Service: "B", Impl: 1, Tools: []mcptask.Tool{tool}})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	answer := json.RawMessage(`{"action":"accept","content":{"approve":true,"reason":"it is tested","when":"2026-01-02T03:04:05Z"}}`)
	b.ReportAllocs()
	for b.Loop() {
		reply, err := s.Backend().Call(b.Context(), alice, "t", json.RawMessage(`{}`), taskserver.CallRequest{
			Mode:    taskserver.ModeTask,
			Answers: map[string]json.RawMessage{"before/Approval": answer},
		})
		if err != nil {
			b.Fatal(err)
		}
		r := *reply.Task
		for len(r.Outstanding()) == 0 {
			if r, err = s.Backend().Changed(b.Context(), alice, r.ID, r.Version); err != nil || r.Done() {
				b.Fatal(r, err)
			}
		}
		if err := s.Backend().Answer(b.Context(), alice, r.ID, map[string]json.RawMessage{"ship": answer}); err != nil {
			b.Fatal(err)
		}
		if r, err := s.Backend().Await(b.Context(), alice, r.ID); err != nil || r.Outcome.Kind != taskstore.OutcomeResult || r.Outcome.IsError {
			b.Fatal(r, err)
		}
	}
}

// BenchmarkCreateToResult makes a task in this process and waits for its result. Its floors do the same without a
// Server: a goroutine that sends on a channel, and the calls of the store for a task, which create it, update it and
// get it.
func BenchmarkCreateToResult(b *testing.B) {
	b.Run("goroutine", func(b *testing.B) {
		s := benchServer(b, nil)
		beside(b, func() {
			done := make(chan int)
			go func() { done <- 1 }()
			<-done
		}, func() { finish(b, s) })
	})
	b.Run("store", func(b *testing.B) {
		s, store, n := benchServer(b, nil), taskstore.NewMemory(), 0
		now := time.Now()
		beside(b, func() {
			n++
			r, err := store.Create(b.Context(), taskstore.Record{ID: fmt.Sprint(n), Principal: "alice", Arguments: []byte(`{"n":1}`), CreatedAt: now, ExpiresAt: now}, taskstore.Quota{})
			if err == nil {
				r, err = store.Update(b.Context(), r, r, taskstore.Quota{})
			}
			if err == nil {
				_, err = store.Get(b.Context(), r.ID)
			}
			if err != nil {
				b.Fatal(err)
			}
		}, func() { finish(b, s) })
	})
}

// filled returns a store with finished tasks of one principal, which expire after an hour. Its clock is
// ahead.
func filled(b *testing.B, size int, ahead time.Duration) taskstore.Store {
	b.Helper()
	s := taskstore.NewMemoryAt(func() time.Time { return time.Now().Add(ahead) })
	began := time.Now().Truncate(time.Microsecond)
	for i := range size {
		at := began.Add(time.Duration(i) * time.Microsecond)
		_, err := s.Create(b.Context(), taskstore.Record{
			ID: fmt.Sprintf("%026d", i*7919%size), Principal: "alice", Account: "principal alice", Tool: "t", Arguments: fmt.Appendf(nil, `{"n":%d}`, i),
			CanAsk: []string{"elicitation/create"}, Phase: taskstore.PhaseDone, Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(`{"content":[]}`)},
			CreatedAt: at, UpdatedAt: at, TerminalAt: at, ExpiresAt: at.Add(time.Hour),
		}, taskstore.Quota{})
		if err != nil {
			b.Fatal(err)
		}
	}
	return s
}

// BenchmarkList reads page after page of 100,000 tasks; its floor does so with 1,000.
func BenchmarkList(b *testing.B) {
	const few, many = 1000, 100_000
	small, large := filled(b, few, 0), filled(b, many, 0)
	// pages walks a list from its start again and again.
	pages := func(list func(after taskstore.Position) []taskstore.Record) func() {
		var after taskstore.Position
		return func() {
			page := list(after)
			if len(page) == 0 {
				after = taskstore.Position{}
				return
			}
			last := page[len(page)-1]
			after = taskstore.Position{CreatedAt: last.CreatedAt, ID: last.ID}
		}
	}
	b.Run("store", func(b *testing.B) {
		list := func(s taskstore.Store) func(taskstore.Position) []taskstore.Record {
			return func(after taskstore.Position) []taskstore.Record {
				page, err := s.List(b.Context(), "alice", after, 20)
				if err != nil {
					b.Fatal(err)
				}
				return page
			}
		}
		beside(b, pages(list(small)), pages(list(large)))
	})
	b.Run("server", func(b *testing.B) {
		list := func(s *taskserver.Server) func(taskstore.Position) []taskstore.Record {
			return func(after taskstore.Position) []taskstore.Record {
				page, _, err := s.Backend().List(b.Context(), alice, after)
				if err != nil {
					b.Fatal(err)
				}
				return page
			}
		}
		beside(b, pages(list(benchServer(b, small))), pages(list(benchServer(b, large))))
	})
}

// BenchmarkRetained ends 100,000 tasks with a result of 100 bytes, and says how
// many bytes and goroutines each costs while it is stored, and after its ttl.
func BenchmarkRetained(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes half a minute")
	}
	const tasks = 100_000
	for b.Loop() {
		var ahead atomic.Int64
		store := taskstore.NewMemoryAt(func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) })
		s := benchServer(b, store)
		finish(b, s)
		heap, goroutines := inUse()
		for range tasks {
			if r := finish(b, s); len(r.Outcome.Result) != 100 {
				b.Fatalf("%s has %d bytes", r.Outcome.Result, len(r.Outcome.Result))
			}
		}
		full, atWork := inUse()
		ahead.Store(int64(2 * time.Hour))
		for gone := 1; gone > 0; {
			records, err := store.Expire(b.Context(), 256)
			if err != nil {
				b.Fatal(err)
			}
			gone = len(records)
		}
		after, _ := inUse()
		b.ReportMetric(float64(full-heap)/tasks, "B/finished-task")
		b.ReportMetric(float64(after-heap)/tasks, "B/expired-task")
		b.ReportMetric(float64(atWork-goroutines), "more-goroutines")
		runtime.KeepAlive(s)
	}
}

// inUse returns how many bytes are reachable, and how many goroutines there are.
func inUse() (bytes int64, goroutines int) {
	for range 3 {
		runtime.GC()
	}
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc), runtime.NumGoroutine()
}

// BenchmarkExpire lets the tasks of a full store go, in batches.
func BenchmarkExpire(b *testing.B) {
	const tasks = 20_000
	for b.Loop() {
		b.StopTimer()
		s := filled(b, tasks, 2*time.Hour)
		b.StartTimer()
		for gone := 1; gone > 0; {
			records, err := s.Expire(b.Context(), 256)
			if err != nil {
				b.Fatal(err)
			}
			gone = len(records)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*tasks), "ns/task")
}
