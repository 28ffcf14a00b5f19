//go:build long && unix

package proof

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"log/slog"
	"os"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal"
)

// asWorker is the variable that makes the test binary a worker. Its value is the worker's configuration.
const asWorker = "MCPTASK_PROOF_WORKER"

// TestMain runs as a worker if a test has started this binary for it. Otherwise it runs eight tests at the same time,
// because most of them only wait.
func TestMain(m *testing.M) {
	if text := os.Getenv(asWorker); text != "" {
		if err := work(text); err != nil {
			log.Fatal(err)
		}
		return
	}
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// workerConfig is the configuration that a test gives a worker.
type workerConfig struct {
	// Name is the name of the process in the journal.
	Name string
	// Store and Journal are files.
	Store, Journal string
	// Address and Queue are of Temporal.
	Address, Queue string
}

// heartbeat is how long a worker may be silent.
const heartbeat = time.Second

// options returns the options of a server on the store and on Temporal. The worker and the test differ
// only in SubmitOnly.
func (c workerConfig) options(out io.Writer, submitOnly bool) (taskserver.Options, func() error, error) {
	client, err := connect(out, c.Address)
	if err != nil {
		return taskserver.Options{}, nil, err
	}
	store, err := sqlite.Open(c.Store, sqlite.Options{})
	if err != nil {
		client.Close()
		return taskserver.Options{}, nil, err
	}
	none := taskserver.Totals{Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Sessions: -1}
	options := taskserver.Options{
		Store: store,
		Executor: temporal.NewExecutor(client, temporal.Options{
			TaskQueue: c.Queue, SubmitOnly: submitOnly, Concurrency: 32, Heartbeat: heartbeat, Patience: time.Second,
		}),
		Logger: slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: slog.LevelError})),
		Limits: taskserver.Limits{Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Server: none, Anonymous: none},
	}
	return options, func() error { client.Close(); return store.Close() }, nil
}

// work runs as a worker until the process is killed, or its standard input ends.
func work(text string) error {
	var c workerConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	journal, err := os.OpenFile(c.Journal, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	options, release, err := c.options(os.Stderr, false)
	if err != nil {
		return err
	}
	server, err := taskserver.New(options, tools(notes{journal, c.Name}))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin)
	return errors.Join(server.Close(), release(), journal.Close())
}

// notes writes into the journal.
type notes struct {
	journal io.Writer
	process string
}

// write appends a line, by one call, so that lines of several processes do not mix. A handler that cannot record an
// action must not act.
func (n notes) write(l line) {
	l.At, l.Process = time.Now().Round(0), n.process
	data, err := json.Marshal(l)
	if err == nil {
		_, err = n.journal.Write(append(data, '\n'))
	}
	if err != nil {
		panic(err)
	}
}

// The tools. Those with _fail must not run again.
const (
	toolWork     = "work"
	toolWorkFail = "work_fail"
	toolAsk      = "ask"
	toolAskFail  = "ask_fail"
	toolHold     = "hold" // runs until it is cancelled
	toolHoldFail = "hold_fail"
)

// workInput is the input of all tools.
type workInput struct {
	MS int `json:"ms"`
}

// word is the answer to a question.
type word struct {
	Word string `json:"word"`
}

var wordQuestion = mcptask.InputSpec{Name: "Word", Message: "Which word?",
	Schema: `{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}`}

// tools returns the tools whose runs are written down.
func tools(n notes) mcptask.Tools {
	newTool := func(name string, do func(*run, context.Context, *mcptask.Task, workInput) error) mcptask.Tool {
		policy := mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour, Poll: 10 * time.Millisecond}
		if restarts(name) {
			policy.OnLost, policy.Attempts = mcptask.RestartWhenLost, 1000
		}
		spec := mcptask.ToolSpec{Name: name, InputSchema: `{"type":"object","properties":{"ms":{"type":"integer"}},"required":["ms"]}`, Policy: policy}
		return mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, in workInput) (string, error) {
			r := &run{n, line{Task: task.ID(), Tool: name, Attempt: task.Attempt()}}
			r.note(momentStart, "", "")
			return r.finish(ctx, do(r, ctx, task, in))
		})
	}
	return mcptask.Tools{Service: "Proof", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{
		newTool(toolWork, (*run).work), newTool(toolWorkFail, (*run).work),
		newTool(toolAsk, (*run).ask), newTool(toolAskFail, (*run).ask),
		newTool(toolHold, (*run).hold), newTool(toolHoldFail, (*run).hold),
	}}
}

// run is a run of a handler that is written down.
type run struct {
	notes notes
	base  line
}

// note writes down a moment.
func (r *run) note(m moment, step, value string) {
	l := r.base
	l.Moment, l.Step, l.Value = m, step, value
	r.notes.write(l)
}

// finish writes down the end, and returns the result.
func (r *run) finish(ctx context.Context, err error) (string, error) {
	if ctx.Err() != nil {
		l := r.base
		l.Moment, l.Cause = momentCancelled, fmt.Sprint(context.Cause(ctx))
		r.notes.write(l)
		return "", ctx.Err()
	}
	if err != nil {
		r.note(momentEnd, "", err.Error())
		return "", err
	}
	value := fmt.Sprintf("%s, attempt %d in %s", r.base.Task, r.base.Attempt, r.notes.process)
	r.note(momentEnd, "", value)
	return value, nil
}

// pause lasts for a time, or until ctx ends.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// work works for as long as the input says.
func (r *run) work(ctx context.Context, _ *mcptask.Task, in workInput) error {
	return pause(ctx, time.Duration(in.MS)*time.Millisecond)
}

// ask asks two questions, and works after each.
func (r *run) ask(ctx context.Context, task *mcptask.Task, in workInput) error {
	for _, step := range []string{"s1", "s2"} {
		answer, err := mcptask.Ask[word](ctx, task, wordQuestion, step, "Which word for "+step)
		if err != nil {
			return err
		}
		r.note(momentAnswered, step, answer.Word)
		if err := pause(ctx, time.Duration(in.MS)*time.Millisecond/2); err != nil {
			return err
		}
	}
	return nil
}

// hold waits for its cancellation. It does not call the server, which would tell it.
func (r *run) hold(ctx context.Context, _ *mcptask.Task, _ workInput) error {
	<-ctx.Done()
	return ctx.Err()
}
