package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"time"

	mcpgo "github.com/mark3labs/mcp-go/mcp"
	mcpgoserver "github.com/mark3labs/mcp-go/server"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/compare/jobs"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The names of the targets, which are the columns of the table.
const (
	inMemory   = "memory"
	onSQLite   = "SQLite"
	onPostgres = "PostgreSQL"
	onMCPGo    = "mcp-go, memory"
)

// target is a server that is measured.
type target struct {
	name  string
	works []work
	live  func(context.Context) error // makes a task that ends at once, and gets its result
	stops []func() error              // called by close, from the last to the first
}

// work is something that a target does again and again.
type work struct {
	row      string
	requests float64 // the number of its requests; 1 if it makes none
	do       func(context.Context) error
	bare     func(context.Context) error // the same work with the bare driver; nil if there is no database
	prepare  func(context.Context) error // called once before; nil if nothing is to be prepared
}

func (t *target) atEnd(stop func() error) { t.stops = append(t.stops, stop) }

func (t *target) close() error {
	var faults []error
	for i := len(t.stops) - 1; i >= 0; i-- {
		faults = append(faults, t.stops[i]())
	}
	return errors.Join(faults...)
}

// serve serves a handler on a loopback address.
func (t *target) serve(ctx context.Context, handler http.Handler) (url string, err error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.atEnd(func() error {
		err := server.Close()
		if fault := <-served; !errors.Is(fault, http.ErrServerClosed) {
			err = errors.Join(err, fault)
		}
		return err
	})
	return "http://" + listener.Addr().String(), nil
}

// connect makes a client of a revision and adds its works. bareLife does the same as a life on a database.
func (t *target) connect(ctx context.Context, url, revision string, bareLife func(context.Context) error) (*client, error) {
	c, err := newClient(ctx, url, revision)
	if err != nil {
		return nil, err
	}
	t.atEnd(func() error {
		c.close()
		return nil
	})
	waiting, err := c.create(ctx, "wait", "{}")
	if err != nil {
		return nil, err
	}
	t.works = append(t.works,
		work{"life, " + revision, 2, c.live, bareLife, nil},
		work{"creation, " + revision, 1, c.createRun, nil, nil},
		work{"poll, " + revision, 1, func(ctx context.Context) error { return c.poll(ctx, waiting) }, nil, nil})
	t.live = c.live
	return c, nil
}

// startEcho serves the floor for anything that answers JSON over HTTP: a handler that decodes the body and encodes it
// again.
func startEcho(ctx context.Context) (*target, error) {
	t := &target{name: "echo"}
	url, err := t.serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(body) // an error means that the client has gone
	}))
	if err != nil {
		return nil, err
	}
	c, err := newClient(ctx, url, mcptask.Revision20260728)
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.atEnd(func() error {
		c.close()
		return nil
	})
	t.works = []work{{row: "echo", requests: 1, do: func(ctx context.Context) error {
		_, err := c.request(ctx, "tools/call", "run", `"name":"run","arguments":`+runArguments)
		return err
	}}}
	return t, nil
}

// reporters is the number of tasks that report in turns. A task stores a report at most once in a millisecond.
const reporters = 256

// worker implements jobs.Jobs.
type worker struct {
	turns chan chan struct{} // a channel for each report, which is closed when the report is stored
}

// Run implements jobs.Jobs.
func (worker) Run(context.Context, *mcptask.Task, jobs.RunInput) (string, error) {
	return "it ran", nil
}

// Wait implements jobs.Jobs.
func (worker) Wait(ctx context.Context, _ *mcptask.Task) error {
	<-ctx.Done()
	return ctx.Err()
}

// Report implements jobs.Jobs.
func (w worker) Report(ctx context.Context, task *mcptask.Task) error {
	for n := 1.0; ; n++ {
		select {
		case stored := <-w.turns:
			task.Progress(ctx, n, 0, "working")
			close(stored)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// report lets one of the tasks report, and waits until the report is stored.
func (w worker) report(ctx context.Context) error {
	stored := make(chan struct{})
	select {
	case w.turns <- stored:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case <-stored:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start starts our server on the store of a target's name. dsn names the PostgreSQL database. Each target has a directory
// and a number of its own.
func start(ctx context.Context, name, dsn, directory string, number int) (_ *target, err error) {
	t := &target{name: name}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("%s: %w", name, err), t.close())
		}
	}()
	if name == onMCPGo {
		return t, t.startMCPGo(ctx)
	}
	logger := slog.New(slog.DiscardHandler)
	var store taskstore.Store
	var bare *bareTable
	switch name {
	case onSQLite:
		file := filepath.Join(directory, fmt.Sprintf("tasks%d.db", number))
		if store, err = sqlite.Open(file, sqlite.Options{Logger: logger}); err != nil {
			return nil, err
		}
		t.atEnd(store.Close)
		bare, err = t.openBare(ctx, "sqlite", "file:"+filepath.Join(directory, fmt.Sprintf("bare%d.db", number))+
			"?_pragma=busy_timeout(5000)&_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)", 1)
	case onPostgres:
		if store, err = postgres.Open(ctx, dsn, postgres.Options{Schema: fmt.Sprintf("compare%d", number), Logger: logger}); err != nil {
			return nil, err
		}
		t.atEnd(store.Close)
		bare, err = t.openBare(ctx, "pgx", dsn, clients)
	}
	if err != nil {
		return nil, err
	}
	handlers := worker{make(chan chan struct{})}
	tasks, err := taskserver.New(taskserver.Options{
		Store: store, Logger: logger, Concurrency: 2 * reporters,
		Principal: func(context.Context) (string, error) { return "compare", nil },
		// The rates are measured, and not their limits.
		Limits: taskserver.Limits{
			Tasks: -1, Running: -1, Bytes: -1, Polls: -1, Waiting: -1, Server: taskserver.Totals{Tasks: -1, Running: -1, Bytes: -1, Waiting: -1},
		},
	}, jobs.JobsTools(handlers))
	if err != nil {
		return nil, err
	}
	t.atEnd(tasks.Close)
	sdk := mcp.NewServer(&mcp.Implementation{Name: "compare", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	url, err := t.serve(ctx, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	if err != nil {
		return nil, err
	}
	var bareLife, bareReport func(context.Context) error
	if bare != nil {
		bareLife, bareReport = bare.live, bare.report
	}
	var c *client
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		if c, err = t.connect(ctx, url, revision, bareLife); err != nil {
			return nil, err
		}
	}
	t.works = append(t.works, work{"stored report", 1, handlers.report, bareReport, func(ctx context.Context) error {
		return repeat(ctx, reporters, func(ctx context.Context) error {
			_, err := c.create(ctx, "report", "{}")
			return err
		})
	}})
	return t, nil
}

// startMCPGo starts a server of mcp-go with the same tools. It has no tasks in 2026-07-28, and none in a database.
func (t *target) startMCPGo(ctx context.Context) error {
	closing := make(chan struct{})
	s := mcpgoserver.NewMCPServer("compare", "1.0.0", mcpgoserver.WithToolCapabilities(true), mcpgoserver.WithTaskCapabilities(true, true, true))
	s.AddTool(mcpgo.NewTool("run", mcpgo.WithDescription("Ends at once."), mcpgo.WithTaskSupport(mcpgo.TaskSupportRequired),
		mcpgo.WithString("repository", mcpgo.Required()), mcpgo.WithString("branch", mcpgo.Required())),
		func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			return mcpgo.NewToolResultText("it ran"), nil
		})
	s.AddTool(mcpgo.NewTool("wait", mcpgo.WithDescription("Runs until the server closes."), mcpgo.WithTaskSupport(mcpgo.TaskSupportRequired)),
		func(context.Context, mcpgo.CallToolRequest) (*mcpgo.CallToolResult, error) {
			<-closing
			return mcpgo.NewToolResultText("the server closes"), nil
		})
	t.atEnd(func() error {
		close(closing)
		return nil
	})
	url, err := t.serve(ctx, mcpgoserver.NewStreamableHTTPServer(s, mcpgoserver.WithStateful(true)))
	if err != nil {
		return err
	}
	_, err = t.connect(ctx, url+"/mcp", mcptask.Revision20251125, nil)
	return err
}
