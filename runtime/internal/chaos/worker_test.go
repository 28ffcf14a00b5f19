package chaos

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/tuning"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const (
	// lease is how long a worker that has died keeps its tasks. It is longer than a stopped process may hold the lock
	// of runtime/postgres, and a renewal more.
	lease = 2500 * time.Millisecond
	// tick is how often a worker looks whether it runs.
	tick = 50 * time.Millisecond
	// late is how long a worker may be kept from running without a note.
	late = 300 * time.Millisecond
	// usualConcurrency is how many handlers a worker runs at once.
	usualConcurrency = 256
)

// workerConfig is the configuration of a worker by its test.
type workerConfig struct {
	// Name is the name of the process in the history.
	Name string
	// Store is sqlite:FILE or postgres:DSN.
	Store string
	// Journal is the file for the notes of handlers.
	Journal string
	// Skew is how far the clock of the process is ahead. The binary is built so; see buildSkewed.
	Skew time.Duration
	// SessionKey signs the sessions, or is "".
	SessionKey string
	// Lease is how long a worker that may have died keeps its tasks, or 0: the usual lease.
	Lease time.Duration
	// Concurrency is how many handlers run at once, or 0: 256.
	Concurrency int `json:",omitempty"`
	// Effects is the file of effects, or "".
	Effects string `json:",omitempty"`
}

// notes writes into the journal of a process.
type notes struct {
	journal *Journal
	process string
	skew    time.Duration
	effects effects
}

// now returns the time of the machine's clock.
func (n notes) now() time.Time { return time.Now().Add(-n.skew).Round(0) }

// write appends a line. A handler that cannot note its work must not do it.
func (n notes) write(l Line) {
	if err := n.journal.Write(l); err != nil && !errors.Is(err, os.ErrClosed) {
		panic(err)
	}
}

// work runs as a worker: it serves on the listener that it has inherited until its standard input ends or it is
// told to terminate.
func work(text string) error {
	var c workerConfig
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		return err
	}
	if c.Lease > 0 {
		tuning.Lease = c.Lease
	}
	journal, err := OpenJournal(c.Journal)
	if err != nil {
		return err
	}
	n := notes{journal: journal, process: c.Name, skew: c.Skew}
	if c.Effects != "" {
		if n.effects, err = openEffects(c.Effects); err != nil {
			return err
		}
	}
	store, err := openStore(context.Background(), c.Store)
	if err != nil {
		return err
	}
	tasks, handler, err := newServer(n, store, c.SessionKey, cmp.Or(c.Concurrency, usualConcurrency))
	if err != nil {
		return err
	}
	go n.watchClock(context.Background())
	const inherited = 3
	listener, err := net.FileListener(os.NewFile(inherited, "listener"))
	if err != nil {
		return err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0)}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()
	fmt.Println(time.Now().Unix()) // says that it is ready, and that the clock is the one that the test wants

	end, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the test has ended
	}()
	<-end.Done()
	// As docs/deploy.md asks for.
	closing, cancel := context.WithTimeout(context.Background(), lease)
	defer cancel()
	closed := make(chan error, 1)
	go func() { closed <- tasks.Close() }()
	_ = server.Shutdown(closing)
	return errors.Join(<-closed, store.Close())
}

// watchClock notes when the process was kept from running, until ctx ends.
func (n notes) watchClock(ctx context.Context) {
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for last := time.Now(); ; {
		select {
		case <-ticks.C:
		case <-ctx.Done():
			return
		}
		now := time.Now()
		if gap := now.Sub(last); gap > late {
			n.write(Line{Disturbance: &Disturbance{At: n.now(), Process: n.process, Harm: HarmLate, For: gap}})
		}
		last = now
	}
}

// newServer makes a server of the tools whose runs are written down. A bearer token is the principal.
func newServer(n notes, store taskstore.Store, sessionKey string, concurrency int) (*taskserver.Server, http.Handler, error) {
	none := taskserver.Totals{Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Sessions: -1}
	options := taskserver.Options{
		Store: store, Concurrency: concurrency, Drain: lease,
		Logger: slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
		Limits: taskserver.Limits{Tasks: -1, Running: -1, Waiting: -1, Bytes: -1, Polls: -1, Lists: -1, Sessions: -1, Server: none, Anonymous: none},
	}
	if sessionKey != "" {
		options.SessionKey = []byte(sessionKey)
	}
	tasks, err := taskserver.New(options, n.tools())
	if err != nil {
		return nil, nil, err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "chaos", Version: "1"}, &mcp.ServerOptions{Logger: slog.New(slog.DiscardHandler)})
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	verify := func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
	}
	return tasks, auth.RequireBearerToken(verify, nil)(handler), nil
}

// workInput is the input of all tools.
type workInput struct {
	Nonce string `json:"nonce"`
	MS    int    `json:"ms"`
}

const workSchema = `{"type":"object","properties":{"nonce":{"type":"string"},"ms":{"type":"integer"}},"required":["nonce","ms"]}`

// word is the answer to a question.
type word struct {
	Word string `json:"word"`
}

var wordQuestion = mcptask.InputSpec{Name: "Word", Message: "Which word?",
	Schema: `{"type":"object","properties":{"word":{"type":"string"}},"required":["word"]}`}

// askedSteps are the questions of ToolAsk, in their order.
var askedSteps = []string{"s1", "s2"}

// stepMessage is the text of a question before its step. In sessions a question has no other name.
const stepMessage = "Which word for "

// reportSteps is how many reports a worker makes.
const reportSteps = 3

// tools returns the tools whose runs are written down.
func (n notes) tools() mcptask.Tools {
	newTool := func(name Tool, do func(*run, context.Context, *mcptask.Task, workInput) error) mcptask.Tool {
		policy := mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour, Poll: 10 * time.Millisecond}
		if name.restarts() {
			policy.OnLost = mcptask.RestartWhenLost
		}
		spec := mcptask.ToolSpec{Name: string(name), InputSchema: workSchema, Policy: policy}
		return mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, in workInput) (string, error) {
			r := &run{n, Run{Process: n.process, Task: task.ID(), Tool: name, Nonce: in.Nonce, Attempt: task.Attempt()}}
			return r.finish(ctx, do(r, ctx, task, in))
		})
	}
	steps := mcptask.ToolSpec{Name: string(toolSteps), InputSchema: workSchema, Policy: mcptask.Policy{
		Task: mcptask.TaskRequired, TTL: time.Hour, OnLost: mcptask.RestartWhenLost, Attempts: 1000,
	}}
	return mcptask.Tools{Service: "Chaos", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{
		newTool(ToolRestart, (*run).work), newTool(ToolFail, (*run).work), newTool(ToolWatch, (*run).watch), newTool(ToolAsk, (*run).ask),
		mcptask.NewTool(steps, n.takeSteps),
	}}
}

// run is a run of a handler that is written down.
type run struct {
	notes notes
	base  Run
}

// note writes down a moment.
func (r *run) note(m Moment, step, value string) {
	now := r.base
	now.At, now.Moment, now.Step, now.Value = r.notes.now(), m, step, value
	r.notes.write(Line{Run: &now})
}

// finish writes down the end and returns the result.
func (r *run) finish(ctx context.Context, err error) (string, error) {
	switch {
	case ctx.Err() != nil:
		r.note(MomentCancelled, "", "")
		return "", ctx.Err()
	case err != nil:
		r.note(MomentEnd, "", err.Error())
		return "", err
	}
	value := FormatValue(r.base.Nonce, r.base.Attempt, r.base.Process)
	r.note(MomentEnd, "", value)
	return value, nil
}

// work works for as long as the input says, and reports.
func (r *run) work(ctx context.Context, task *mcptask.Task, in workInput) error {
	r.note(MomentStart, "", "")
	for step := range reportSteps {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(in.MS) * time.Millisecond / reportSteps):
		}
		task.Message(ctx, FormatReport(r.base.Attempt, step+1))
	}
	return nil
}

// watch waits for as long as the input says. It does not call the server, which would tell it of a cancellation.
func (r *run) watch(ctx context.Context, _ *mcptask.Task, in workInput) error {
	r.note(MomentStart, "", "")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(in.MS) * time.Millisecond):
		return nil
	}
}

// ask asks two questions, with work between them.
func (r *run) ask(ctx context.Context, task *mcptask.Task, in workInput) error {
	r.note(MomentStart, "", "")
	for _, step := range askedSteps {
		answer, err := mcptask.Ask[word](ctx, task, wordQuestion, step, stepMessage+step)
		if err != nil {
			return err
		}
		r.note(MomentAnswered, step, answer.Word)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(in.MS) * time.Millisecond):
		}
	}
	return nil
}

// openStore opens a store by its name.
func openStore(ctx context.Context, name string) (taskstore.Store, error) {
	kind, place, _ := strings.Cut(name, ":")
	open := stores[kind]
	if open == nil {
		return nil, fmt.Errorf("the store %q is unknown", name)
	}
	return open(ctx, place)
}
