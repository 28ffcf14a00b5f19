// Package handlers implements tools.
package handlers

import (
	"context"
	"fmt"
	"log/slog"
	"os/exec"
	"strings"
	"sync"
	"time"

	"example.com/app/ci"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

type sleeper struct{}

func (sleeper) Run(_ context.Context, task *mcptask.Task, in ci.Input) error { // want `Run ignores its context and calls time.Sleep, which waits`
	time.Sleep(time.Second)
	return nil
}

func (*sleeper) Lint(ctx context.Context, in ci.Input) error { // want `Lint ignores its context and waits on a channel: it continues after the task has ended`
	<-time.After(time.Second)
	return nil
}

// Helper has the form of a handler and is none.
func (sleeper) Helper(ctx context.Context, in ci.Input) error {
	time.Sleep(time.Second)
	return nil
}

type looper struct{ files []string }

func (l looper) Run(context.Context, *mcptask.Task, ci.Input) error { // want `Run ignores its context and loops`
	for _, file := range l.files {
		lint(file)
	}
	return nil
}

func (l looper) Lint(context.Context, ci.Input) error { // at once
	var lines []string
	for i, file := range l.files {
		lines = append(lines, strings.ToUpper(file), fmt.Sprint(i), string(rune(len(file))))
	}
	slog.Info("lint", "lines", len(lines))
	lint(lines[0])
	return nil
}

func lint(string) {}

func work(context.Context) error { return nil }

type database struct{}

func (database) Ping() error { return nil }

func (*database) PingContext(context.Context) error { return nil }

type caller struct{ db *database }

func (c caller) Run(_ context.Context, _ *mcptask.Task, _ ci.Input) error { // want `Run ignores its context and calls exec.Command instead of CommandContext, which takes one`
	return exec.Command("make").Run()
}

func (c caller) Lint(_ context.Context, _ ci.Input) error { // want `Lint ignores its context and calls c.db.Ping instead of PingContext, which takes one`
	return c.db.Ping()
}

type passer struct{ ctx context.Context }

func (p passer) Run(_ context.Context, task *mcptask.Task, _ ci.Input) error { // want `Run ignores its context and calls work, which takes one`
	return work(p.ctx)
}

func (p passer) Lint(context.Context, ci.Input) error { // want `Lint ignores its context and calls p.work, which takes one`
	return p.work(p.ctx)
}

func (passer) work(context.Context) error { return nil }

type user struct{}

func (user) Run(ctx context.Context, task *mcptask.Task, _ ci.Input) error {
	select {
	case <-time.After(time.Second):
	case <-ctx.Done():
	}
	return ctx.Err()
}

func (user) Lint(ctx context.Context, _ ci.Input) error {
	go func() { _ = work(context.WithoutCancel(ctx)) }()
	defer work(context.Background())
	defer func() { _ = work(context.Background()) }()
	return work(ctx)
}

type teller struct{}

func (teller) Run(ctx context.Context, task *mcptask.Task, _ ci.Input) error { // want `Run ignores its context and loops: it continues after the task has ended`
	for i := range 3 {
		task.Progress(ctx, float64(i), 3, "working")
		time.Sleep(time.Second)
	}
	return nil
}

func (teller) Lint(ctx context.Context, _ ci.Input) error { // at once, whatever it tells
	var task *mcptask.Task
	for i := range 3 {
		task.Progress(ctx, float64(i), 3, strings.Repeat("x", i))
	}
	task.Message(ctx, "done")
	return nil
}

type describer struct{ ci.CI }

func (describer) Run(ctx context.Context, task *mcptask.Task, _ ci.Input) error {
	task.Message(ctx, fmt.Sprint(work(ctx)))
	time.Sleep(time.Second)
	return nil
}

type background struct{}

func (background) Run(ctx context.Context, task *mcptask.Task, _ ci.Input) error {
	task.Progress(ctx, 1, 2, "")
	return work(context.Background()) // want `Run uses context.Background\(\), but its own context ends with the task: use ctx, or context.WithoutCancel\(ctx\) for work that must outlive it`
}

func (background) Lint(ctx context.Context, _ ci.Input) error {
	timeout, cancel := context.WithTimeout(context.TODO(), time.Second) // want `Lint uses context.TODO\(\)`
	defer cancel()
	{
		ctx := timeout
		_ = work(context.Background()) // want `Lint uses context.Background\(\)`
		return work(ctx)
	}
}

type poller struct{ events chan string }

func (p poller) Run(_ context.Context, _ *mcptask.Task, _ ci.Input) error { // at once
	select {
	case p.events <- "run":
	default:
	}
	return nil
}

func (p poller) Lint(_ context.Context, _ ci.Input) error { // want `Lint ignores its context and waits on a channel`
	for range p.events {
	}
	return nil
}

type waiter struct{ ci.CI }

func (waiter) Lint(_ context.Context, _ ci.Input) error { // want `Lint ignores its context and calls wg.Wait, which waits`
	var wg sync.WaitGroup
	wg.Go(func() {})
	wg.Wait()
	return nil
}

// part implements nothing.
type part struct{}

func (part) Run(_ context.Context, _ *mcptask.Task, _ ci.Input) error {
	time.Sleep(time.Second)
	return nil
}

type other struct{}

func (other) Other(context.Context) { time.Sleep(time.Second) }

func register() {
	_ = mcptask.NewTool(mcptask.ToolSpec{}, func(_ context.Context, _ *mcptask.Task, _ ci.Input) (ci.Input, error) { // want `the handler ignores its context`
		time.Sleep(time.Second)
		return ci.Input{}, nil
	})
	_ = gosdk.AddTaskTool(nil, nil, nil, sum, nil)
	_ = gosdk.AddTaskTool(nil, nil, nil, adder{}.add, nil)
	_ = gosdk.AddTaskTool(nil, nil, nil, generic[ci.Input], nil)
}

func sum(_ context.Context, _ *gosdk.Request, _ ci.Input) (*gosdk.Result, ci.Input, error) { // want `sum ignores its context`
	time.Sleep(time.Second)
	return nil, ci.Input{}, nil
}

type adder struct{}

func (adder) add(ctx context.Context, _ *gosdk.Request, _ ci.Input) (*gosdk.Result, ci.Input, error) {
	return nil, ci.Input{}, work(context.Background()) // want `add uses context.Background`
}

func generic[T any](_ context.Context, _ *gosdk.Request, in T) (*gosdk.Result, T, error) { // want `generic ignores its context`
	time.Sleep(time.Second)
	return nil, in, nil
}
