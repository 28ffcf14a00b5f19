package durabletest

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// heldTasks is how many tasks of the large store one worker holds.
	heldTasks = 10_000
	// expiryBatch is how many tasks expire at once.
	expiryBatch = 256
)

// Filled is a store with many tasks, which statements of the test have added. The tasks have the
// numbers from 1 on.
type Filled interface {
	taskstore.Store

	// Fill adds n tasks with the next numbers. The task with number i has the principal "user"
	// followed by the last digit of i, and was created i microseconds after Epoch. Worker "holder" runs
	// the tasks with numbers up to held. The others are done. Each has ten steps as FilledStep
	// returns them.
	Fill(b *testing.B, n, held int64, expires time.Time)

	// IDOf returns the ID of a task of Fill.
	IDOf(number int64) string
}

// FilledStep returns a step of a task of a Filled, without its name.
func FilledStep() *taskstore.Step {
	return &taskstore.Step{Kind: taskstore.StepDone, Value: make(json.RawMessage, 100), At: time.UnixMicro(Epoch), Attempt: 1}
}

// Epoch is when about the tasks of a Filled were created, in microseconds since 1970.
const Epoch = 1600000000000000

// BenchmarkMillion compares the cost of calls on a store with 1,000,000 tasks to that on one with
// 1,000: the ratios of the median times. It also measures the memory of the process, and the
// heartbeat of a worker that holds 10,000 tasks, and the reads of an operator. It takes minutes and up to 8 GB of disk.
//
// open makes a store, fills it with n tasks, and brings it to rest.
func BenchmarkMillion(b *testing.B, open func(b *testing.B, n, held int64) Filled) {
	b.Helper()
	const few, many = 1000, 1_000_000
	small, large := newClocked(b, open, few, 0), newClocked(b, open, many, heldTasks)
	before := heapSize()
	for b.Loop() {
		small.turn(b)
		large.turn(b)
	}
	for name := range large.times {
		b.ReportMetric(float64(large.median(name))/float64(small.median(name)), name+"-ratio")
	}
	b.ReportMetric(float64(large.median("expire").Microseconds())/1000, "expire-ms")
	held := make([]string, heldTasks)
	for i := range held {
		held[i] = large.IDOf(int64(i) + 1)
	}
	held[0] = "lost"
	for range 10 {
		large.time(b, "beat", 1, func(ctx context.Context) (int, error) {
			beat, err := large.Beat(ctx, "holder", time.Minute, held)
			return len(beat.Lost), err
		})
	}
	b.ReportMetric(float64(large.median("beat").Microseconds())/1000, "beat-ms")
	large.operate(b)
	large.show(b)
	b.ReportMetric(heapSize()-before, "heap-MB")
}

// operate measures the queries of an operator's page: the newest tasks, those that run, the oldest of them, those of
// one principal, those with a text that few have, one by its ID, the counts and the workers.
func (c *clocked) operate(b *testing.B) {
	b.Helper()
	const page = 50
	inspector := c.Filled.(taskstore.Inspector)
	calls := map[string]func(context.Context) (int, error){
		"counts": func(ctx context.Context) (int, error) {
			list, err := inspector.CountUnfinished(ctx)
			return len(list), err
		},
		"workers": func(ctx context.Context) (int, error) { list, err := inspector.Workers(ctx); return len(list), err },
	}
	for name, filter := range map[string]taskstore.Filter{
		"newest": {}, "running": {Phase: taskstore.PhaseRunning}, "oldest": {Unfinished: true, OldestFirst: true},
		"principal": {Principal: "user3"}, "ended": {Principal: "user3", Phase: taskstore.PhaseDone}, "text": {Message: "nobody says this"},
		"id": {IDPrefix: c.IDOf(c.tasks / 2)},
	} {
		calls[name] = func(ctx context.Context) (int, error) {
			list, err := inspector.Scan(ctx, filter, taskstore.Position{}, page)
			return len(list), err
		}
	}
	for name, call := range calls {
		want := page
		switch name {
		case "counts":
			want = 2 // the tasks that create has left, and those of Fill
		case "workers":
			want = 2 // the holder, and nobody
		case "text":
			want = 0
		case "id":
			want = 1
		}
		for range 10 {
			c.time(b, name, want, call)
		}
		b.ReportMetric(float64(c.median(name).Microseconds())/1000, name+"-ms")
	}
}

// show measures the pages of an operator. An open page is made again each second, for all its viewers together.
func (c *clocked) show(b *testing.B) {
	b.Helper()
	const asking = 300 // more than the first page looks at
	for range asking {
		r := NewTask(300)
		r.Phase, r.Timeline = taskstore.PhaseInputRequired, r.Timeline.With(taskstore.Moment{Kind: taskstore.EventAsked, At: r.CreatedAt, Text: "approve"})
		r.Inputs = []taskstore.Input{{Request: mcptask.Request{Key: "approve", Method: "elicitation/create", Params: json.RawMessage(`{"message":"Go on?"}`)}, State: taskstore.InputOutstanding}}
		if _, err := c.Create(b.Context(), r, quota); err != nil {
			b.Fatal(err)
		}
	}
	server, err := taskserver.New(taskserver.Options{Store: c.Filled, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer server.Close()
	page, err := console.New(server, console.Options{})
	if err != nil {
		b.Fatal(err)
	}
	web := httptest.NewServer(page)
	defer web.Close()
	get := func(path string) func(context.Context) (int, error) {
		return func(ctx context.Context) (int, error) {
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+"/console/"+path, nil)
			if err != nil {
				return 0, err
			}
			response, err := web.Client().Do(r)
			if err != nil {
				return 0, err
			}
			defer response.Body.Close()
			_, err = io.Copy(io.Discard, response.Body)
			return response.StatusCode, err
		}
	}
	for name, path := range map[string]string{"overview-page": "", "tasks-page": "tasks", "running-page": "tasks?state=running"} {
		for range 20 {
			c.time(b, name, http.StatusOK, get(path))
		}
		b.ReportMetric(float64(c.median(name).Microseconds())/1000, name+"-ms")
	}
}

// clocked is a store with the times of its calls.
type clocked struct {
	Filled
	tasks int64
	times map[string][]time.Duration
}

func newClocked(b *testing.B, open func(b *testing.B, n, held int64) Filled, n, held int64) *clocked {
	b.Helper()
	return &clocked{open(b, n, held), n, map[string][]time.Duration{}}
}

// time measures a call, which must return n records.
func (c *clocked) time(b *testing.B, name string, n int, do func(context.Context) (int, error)) {
	b.Helper()
	began := time.Now()
	got, err := do(b.Context())
	c.times[name] = append(c.times[name], time.Since(began))
	if err != nil || got != n {
		b.Fatalf("%s: %d records, %v; want %d", name, got, err, n)
	}
}

// median returns the median time of a call.
func (c *clocked) median(name string) time.Duration {
	slices.Sort(c.times[name])
	return c.times[name][len(c.times[name])/2]
}

// turn makes each call some times.
func (c *clocked) turn(b *testing.B) {
	b.Helper()
	const calls, page = 20, 50
	for i := range int64(calls) {
		c.time(b, "create", 1, func(ctx context.Context) (int, error) {
			_, err := c.Create(ctx, NewTask(300), quota)
			return 1, err
		})
		number := c.tasks/2 + i*7919%(c.tasks/2) // one that is done
		c.time(b, "get", 1, func(ctx context.Context) (int, error) {
			_, err := c.Get(ctx, c.IDOf(number))
			return 1, err
		})
		c.time(b, "steps", 10, func(ctx context.Context) (int, error) {
			steps, err := c.Steps(ctx, c.IDOf(number))
			return len(steps), err
		})
		after := taskstore.Position{CreatedAt: time.UnixMicro(Epoch + c.tasks/4 + i)}
		c.time(b, "list", page, func(ctx context.Context) (int, error) {
			list, err := c.List(ctx, "user3", after, page)
			return len(list), err
		})
	}
	c.Fill(b, expiryBatch, 0, time.Now().Add(-time.Hour))
	c.time(b, "expire", expiryBatch, func(ctx context.Context) (int, error) {
		list, err := c.Expire(ctx, expiryBatch)
		return len(list), err
	})
}

// heapSize returns the size of the live heap in MB.
func heapSize() float64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) / 1e6
}
