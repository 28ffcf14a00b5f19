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
	"path/filepath"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.opentelemetry.io/otel/metric"

	"github.com/mcptaskgen/mcptaskgen/examples/observe/lab"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/oteltask"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const (
	// slots is how many handlers run at once. The customers want more, so there is a queue.
	slots = 4
	// maxArguments bounds the arguments of a call, in bytes.
	maxArguments = 1000
)

// program is a running lab.
type program struct {
	url       string // for clients
	probesURL string // for operators, without a path
	failed    chan error

	telemetry  *telemetry
	hooks      taskserver.Hooks
	tasks      *taskserver.Server
	server     *http.Server
	operations *http.Server
	closers    []io.Closer // closed when the lab has stopped, in this order
}

// closer is a function as an io.Closer.
type closer func() error

func (c closer) Close() error { return c() }

// start serves the lab, and its metrics and probes at an address of their own: callers of the tools do not need them.
func start(ctx context.Context, m mode) (_ *program, err error) {
	p := &program{failed: make(chan error, 2)}
	defer func() {
		if err != nil {
			err = errors.Join(err, p.stop(context.WithoutCancel(ctx)))
		}
	}()
	if p.telemetry, err = newTelemetry(m.traces); err != nil {
		return nil, err
	}
	file := m.store
	if file == "" {
		directory, err := os.MkdirTemp("", "observe")
		if err != nil {
			return nil, err
		}
		file = filepath.Join(directory, "tasks.db")
		p.closers = append(p.closers, closer(func() error { return os.RemoveAll(directory) }))
	}
	level := slog.LevelWarn
	if m.isVerbose {
		level = slog.LevelDebug
	}
	logger := slog.New(oteltask.LogHandler(slog.NewJSONHandler(os.Stderr, &slog.HandlerOptions{Level: level})))
	store, err := sqlite.Open(file, sqlite.Options{Logger: logger})
	if err != nil {
		return nil, fmt.Errorf("-store: %w", err)
	}
	p.closers = append([]io.Closer{store}, p.closers...)
	// All clients are the lab's own customers, so they may decide to which trace a span belongs.
	p.hooks = oteltask.Hooks(oteltask.WithMeterProvider(p.telemetry.meters), oteltask.WithTracerProvider(p.telemetry.tracers),
		oteltask.WithTrustRemote())
	p.tasks, err = taskserver.New(taskserver.Options{
		Store: store, Logger: logger, Hooks: []taskserver.Hooks{p.hooks},
		Concurrency: slots, Limits: taskserver.Limits{Arguments: maxArguments},
	}, lab.LabTools(photoLab{}))
	if err != nil {
		return nil, err
	}
	if err := p.measureReadiness(); err != nil {
		return nil, err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "lab", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, p.tasks)
	calls := http.NewServeMux()
	calls.Handle("/mcp", gosdk.NewHandler(p.tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	var address string
	if p.server, address, err = p.serve(ctx, m.addr, calls); err != nil {
		return nil, fmt.Errorf("-http: %w", err)
	}
	p.url = "http://" + address + "/mcp"
	if p.operations, address, err = p.serve(ctx, m.probes, p.handleOperations()); err != nil {
		return nil, fmt.Errorf("-probes: %w", err)
	}
	p.probesURL = "http://" + address
	return p, nil
}

// measureReadiness makes a metric of the probe of readiness, for the alerts: Prometheus does not read probes.
func (p *program) measureReadiness() error {
	_, err := p.telemetry.meters.Meter("lab").Int64ObservableGauge("server.ready",
		metric.WithDescription("1 if /readyz answers 200, else 0."),
		metric.WithInt64Callback(func(_ context.Context, o metric.Int64Observer) error {
			var ready int64
			if p.tasks.Ready() == nil {
				ready = 1
			}
			o.Observe(ready)
			return nil
		}))
	return err
}

// handleOperations returns the handler of the metrics and the probes.
func (p *program) handleOperations() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/metrics", p.telemetry.handler())
	mux.Handle("/readyz", gosdk.ReadyHandler(p.tasks))
	mux.Handle("/livez", gosdk.LiveHandler(p.tasks))
	return mux
}

// serve serves a handler, and returns the address at which it listens.
func (p *program) serve(ctx context.Context, addr string, handler http.Handler) (*http.Server, string, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, "", err
	}
	server := &http.Server{
		Handler: handler, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	go func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			p.failed <- err
		}
	}()
	return server, listener.Addr().String(), nil
}

// stop stops the parts that have started. The probes and the metrics come last, so that they can report that the lab is
// not ready while it stops.
func (p *program) stop(ctx context.Context) error {
	var faults []error
	if p.tasks != nil {
		faults = append(faults, gosdk.Shutdown(ctx, p.server, p.tasks, p.closers...))
	} else {
		for _, c := range p.closers {
			faults = append(faults, c.Close())
		}
	}
	if p.operations != nil {
		faults = append(faults, p.operations.Shutdown(ctx))
	}
	if p.telemetry != nil {
		faults = append(faults, p.telemetry.shutDown(ctx))
	}
	return errors.Join(faults...)
}
