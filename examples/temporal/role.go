package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.temporal.io/sdk/client"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/ci"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal"
)

const (
	// heartbeat is short, so that the program ends soon. In production, 30 seconds is better.
	heartbeat = 3 * time.Second
	// stopWithin is how long a role has to stop.
	stopWithin = 20 * time.Second
)

// node has the parts that the server and the workers share: the store, and their client of
// Temporal.
type node struct {
	store  *sqlite.Store
	client client.Client
	tasks  *taskserver.Server
}

// newLogger returns a logger of errors.
func newLogger() *slog.Logger {
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
}

// dial connects to Temporal. The SDK's own logger would write to standard output.
func dial(ctx context.Context, m mode) (client.Client, error) {
	c, err := client.DialContext(ctx, client.Options{
		HostPort: m.temporal, Namespace: m.namespace, Logger: sdklog.NewStructuredLogger(newLogger()),
	})
	if err != nil {
		return nil, fmt.Errorf("-temporal %s: %w; start that server or name another", m.temporal, err)
	}
	return c, nil
}

// openNode opens the store and connects to Temporal. The tasks of the node run here, unless submitOnly means that other
// processes run them.
func openNode(ctx context.Context, m mode, submitOnly bool) (n *node, err error) {
	n = &node{}
	defer func() {
		if err != nil {
			err = errors.Join(err, n.close())
		}
	}()
	n.store, err = sqlite.Open(m.store, sqlite.Options{})
	if err != nil {
		return n, fmt.Errorf("-store %s: %w", m.store, err)
	}
	n.client, err = dial(ctx, m)
	if err != nil {
		return n, err
	}
	impl := builder{name: m.name, CIWorkflows: ci.CIWorkflows{
		Runner: temporal.NewRunner(n.client, temporal.WorkflowOptions{TaskQueue: pipelineQueue, Poll: 200 * time.Millisecond}),
	}}
	n.tasks, err = taskserver.New(taskserver.Options{
		Store: n.store, Logger: newLogger(),
		Executor: temporal.NewExecutor(n.client, temporal.Options{TaskQueue: "ci", Heartbeat: heartbeat, SubmitOnly: submitOnly}),
	}, ci.CITools(impl))
	return n, err
}

// close closes the parts that openNode has opened.
func (n *node) close() error {
	var faults []error
	if n.tasks != nil {
		faults = append(faults, n.tasks.Close())
	}
	if n.client != nil {
		n.client.Close()
	}
	if n.store != nil {
		faults = append(faults, n.store.Close())
	}
	return errors.Join(faults...)
}

// builder implements the declared tools. Those that are workflows come from the generated file.
type builder struct {
	ci.CIWorkflows
	name string
}

// onWorker is the format of progress messages. The demonstration reads them.
const onWorker = "on %s"

// BuildImage implements ci.CI. It waits instead of working.
func (b builder) BuildImage(ctx context.Context, task *mcptask.Task, in ci.BuildInput) (ci.BuildReport, error) {
	for layer := range in.Layers {
		task.Progress(ctx, float64(layer), float64(in.Layers), fmt.Sprintf(onWorker, b.name))
		if err := pause(ctx, 100*time.Millisecond); err != nil {
			return ci.BuildReport{}, err
		}
	}
	return ci.BuildReport{Worker: b.name, Run: task.Attempt()}, nil
}

// serve is the role of the server, until ctx ends. It runs no handlers.
func serve(ctx context.Context, out io.Writer, m mode) (err error) {
	n, err := openNode(ctx, m, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, n.tasks)
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.NewHandler(n.tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.addr)
	if err != nil {
		return err
	}
	server := &http.Server{
		Handler: mux, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Fprintf(out, "%s http://%s/mcp\n", ready, listener.Addr())
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopWithin)
	defer cancel()
	return gosdk.Shutdown(stopping, server, n.tasks)
}

// work is the role of a worker, until ctx ends. It runs the handlers of tasks, and the workflow that is a tool.
func work(ctx context.Context, out io.Writer, m mode) (err error) {
	n, err := openNode(ctx, m, false)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	pipelines := worker.New(n.client, pipelineQueue, worker.Options{})
	pipelines.RegisterWorkflow(RunPipeline)
	pipelines.RegisterActivity(RunStage)
	if err := pipelines.Start(); err != nil {
		return err
	}
	defer pipelines.Stop()
	fmt.Fprintln(out, ready)
	<-ctx.Done()
	return nil
}
