// Command temporal shows tasks on Temporal: a server that only submits them, and two workers that run them. A client
// calls a handler, whose worker is killed in the middle, and then a workflow that is a tool, which asks a question.
//
//	temporal                                       everything, with a Temporal server in memory
//	temporal -temporal localhost:7233              everything, with this Temporal server
//	temporal -role server -temporal … -store …     only the server, at /mcp
//	temporal -role worker -temporal … -store …     only a worker
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/temporal/internal/temporalserver"
)

// demoWithin is how long the client may take.
const demoWithin = time.Minute

// The roles of a process.
const (
	roleServer = "server"
	roleWorker = "worker"
)

// mode holds the values of the flags.
type mode struct {
	role, temporal, namespace, store, addr, name string
	attached                                     bool
}

func main() {
	var m mode
	flag.StringVar(&m.temporal, "temporal", "",
		"use the Temporal server at this `host:port`; the default is one in memory, which is built the first time")
	flag.StringVar(&m.namespace, "namespace", "default", "use this `namespace` of -temporal")
	flag.StringVar(&m.store, "store", "", "keep the tasks in this SQLite `file`; the default is a temporary one")
	flag.StringVar(&m.role, "role", "", "run only this `role`: server or worker; it needs -temporal and -store")
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve the server's /mcp at this `address`")
	flag.StringVar(&m.name, "name", "worker", "use this `name` of the worker in its reports")
	flag.BoolVar(&m.attached, "attached", false, "end the role at the end of standard input")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "temporal: unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "temporal:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, m mode) error {
	if m.role == "" {
		return show(ctx, out, m)
	}
	if m.temporal == "" || m.store == "" {
		return fmt.Errorf("-role %s needs -temporal and -store", m.role)
	}
	if m.attached {
		var end context.CancelFunc
		ctx, end = context.WithCancel(ctx)
		defer end()
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			end()
		}()
	}
	switch m.role {
	case roleServer:
		return serve(ctx, out, m)
	case roleWorker:
		return work(ctx, out, m)
	}
	return fmt.Errorf("-role %q is unknown: write server or worker", m.role)
}

// show starts everything, runs the client, and stops everything.
func show(ctx context.Context, out io.Writer, m mode) (err error) {
	if m.temporal == "" {
		if err := temporalserver.Build(ctx, out); err != nil {
			return err
		}
		server, failed := temporalserver.Start(ctx)
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, server.Close()) }()
		m.temporal = server.Address()
	}
	c, err := dial(ctx, m) // an error is clearer here than in the processes
	if err != nil {
		return err
	}
	c.Close()
	if m.store == "" {
		directory, failed := os.MkdirTemp("", "temporal")
		if failed != nil {
			return failed
		}
		defer func() { err = errors.Join(err, os.RemoveAll(directory)) }()
		m.store = filepath.Join(directory, "tasks.db")
	}
	var started []*process
	defer func() {
		for _, p := range slices.Backward(started) {
			err = errors.Join(err, p.stop())
		}
	}()
	common := []string{"-temporal", m.temporal, "-namespace", m.namespace, "-store", m.store}
	for _, one := range []struct{ name, role string }{{"server", roleServer}, {"worker-1", roleWorker}, {"worker-2", roleWorker}} {
		p, err := startProcess(ctx, one.name, append(slices.Clone(common), "-role", one.role, "-http", "127.0.0.1:0")...)
		if err != nil {
			return err
		}
		started = append(started, p)
	}
	fmt.Fprintf(out, "started the server %s and two workers, with Temporal at %s\n", started[0].url, m.temporal)
	ctx, cancel := context.WithTimeoutCause(ctx, demoWithin, fmt.Errorf("the client was not ready within %v", demoWithin))
	defer cancel()
	return demo{out: out, url: started[0].url, workers: started[1:]}.run(ctx)
}
