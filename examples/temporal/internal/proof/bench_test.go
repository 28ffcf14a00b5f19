package proof

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal"
)

// contender does something and waits for its result. Each benchmark lets all contenders take turns, so that a machine
// that is slow for a while is slow for all of them.
type contender struct {
	name string
	do   func(context.Context) error
}

// BenchmarkTask measures tasks on Temporal beside workflows with one activity on the same server, and beside tasks on
// the local executor with a store of the same kind. Latencies are medians in milliseconds, one task after the other.
// Throughputs are tasks a second, 50 at once.
func BenchmarkTask(b *testing.B) {
	c := dial(b)
	contenders := []contender{
		newWorkflow(b, c),
		newServer(b, "temporal", temporal.NewExecutor(c, temporal.Options{TaskQueue: fmt.Sprintf("bench-%x", rand.Uint64())})),
		newServer(b, "local", nil),
	}
	for _, c := range contenders { // connections, caches and pollers
		if err := c.doMany(b.Context(), 200, 50); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("latency", func(b *testing.B) {
		took := make([][]time.Duration, len(contenders))
		for b.Loop() {
			for i, c := range contenders {
				began := time.Now()
				if err := c.do(b.Context()); err != nil {
					b.Fatal(err)
				}
				took[i] = append(took[i], time.Since(began))
			}
		}
		b.ReportMetric(0, "ns/op") // a sum of different things
		medians := make([]float64, len(contenders))
		for i, c := range contenders {
			slices.Sort(took[i])
			medians[i] = float64(took[i][len(took[i])/2])
			b.ReportMetric(medians[i]/1e6, c.name+"-p50-ms")
		}
		b.ReportMetric(medians[1]/medians[0], "temporal/workflow")
	})
	b.Run("throughput", func(b *testing.B) {
		const many = 100
		took := make([]time.Duration, len(contenders))
		rounds := 0
		for b.Loop() {
			rounds++
			for i, c := range contenders {
				began := time.Now()
				if err := c.doMany(b.Context(), many, 50); err != nil {
					b.Fatal(err)
				}
				took[i] += time.Since(began)
			}
		}
		b.ReportMetric(0, "ns/op")
		for i, c := range contenders {
			b.ReportMetric(float64(many*rounds)/took[i].Seconds(), c.name+"/s")
		}
		b.ReportMetric(float64(took[0])/float64(took[1]), "temporal/workflow")
	})
}

// doMany does it n times, some of them at once.
func (c contender) doMany(ctx context.Context, n, atOnce int) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	turns := make(chan struct{}, n)
	for range n {
		turns <- struct{}{}
	}
	close(turns)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for range turns {
				if err := c.do(ctx); err != nil {
					cancel(fmt.Errorf("%s: %w", c.name, err))
					return
				}
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

// answer is the result of the tool and of the activity.
var answer = strings.Repeat("x", 100)

// newWorkflow returns a workflow with one activity. It has the options that a task's workflow has.
func newWorkflow(b *testing.B, c client.Client) contender {
	b.Helper()
	queue := fmt.Sprintf("bench-%x", rand.Uint64())
	w := worker.New(c, queue, worker.Options{MaxConcurrentActivityExecutionSize: taskserver.DefaultConcurrency})
	w.RegisterActivityWithOptions(func(context.Context, string) (string, error) { return answer, nil }, activity.RegisterOptions{Name: "answer"})
	w.RegisterWorkflowWithOptions(func(ctx workflow.Context, id string) (text string, err error) {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			ScheduleToCloseTimeout: time.Hour, HeartbeatTimeout: temporal.DefaultHeartbeat, WaitForCancellation: true,
		})
		err = workflow.ExecuteActivity(ctx, "answer", id).Get(ctx, &text)
		return text, err
	}, workflow.RegisterOptions{Name: "ask"})
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(w.Stop)
	return contender{"workflow", func(ctx context.Context) error {
		options := client.StartWorkflowOptions{ID: fmt.Sprintf("bench-%x", rand.Uint64()), TaskQueue: queue, WorkflowExecutionTimeout: time.Hour}
		run, err := c.ExecuteWorkflow(ctx, options, "ask", options.ID)
		if err != nil {
			return err
		}
		var text string
		if err := run.Get(ctx, &text); err != nil || text != answer {
			return fmt.Errorf("%q, %w", text, err)
		}
		return nil
	}}
}

// newServer returns a task of a server.
func newServer(b *testing.B, name string, executor func(taskserver.RunFunc) (taskserver.Executor, error)) contender {
	b.Helper()
	store, err := sqlite.Open(filepath.Join(b.TempDir(), "tasks.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	none := taskserver.Totals{Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Sessions: -1}
	spec := mcptask.ToolSpec{Name: "answer", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}}
	tool := mcptask.NewTool(spec, func(context.Context, *mcptask.Task, struct{}) (string, error) { return answer, nil })
	server, err := taskserver.New(taskserver.Options{
		Store: store, Executor: executor, Logger: slog.New(slog.NewTextHandler(b.Output(), &slog.HandlerOptions{Level: slog.LevelError})),
		Limits: taskserver.Limits{Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Server: none, Anonymous: none},
	}, mcptask.Tools{Service: "Bench", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Tools: []mcptask.Tool{tool}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := server.Close(); err != nil {
			b.Error(err)
		}
		if err := store.Close(); err != nil {
			b.Error(err)
		}
	})
	caller := taskserver.Caller{Principal: "bench", Revision: mcptask.Revision20260728}
	return contender{name, func(ctx context.Context) error {
		reply, err := server.Backend().Call(ctx, caller, "answer", nil, taskserver.CallRequest{Mode: taskserver.ModeTask})
		if err != nil {
			return err
		}
		record, err := server.Backend().Await(ctx, caller, reply.Task.ID)
		if err != nil || record.Outcome.Kind != taskstore.OutcomeResult {
			return fmt.Errorf("%+v, %w", record.Outcome, err)
		}
		return nil
	}}
}
