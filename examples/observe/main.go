// Command observe shows a server that operators can see: its traces, metrics and logs by OpenTelemetry, its probes, and
// files for Prometheus and Grafana that fit. The server is a photo lab on SQLite, with customers of its own.
//
//	observe                       the lab and its customers
//	observe -load=false           only the lab
//	observe -traces spans.json    the spans too, as lines of JSON
//
// Prometheus scrapes it with prometheus.yml, which loads the alerts of rules.yml. Grafana shows dashboard.json.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// defaultProbes is where prometheus.yml scrapes.
const defaultProbes = "127.0.0.1:9464"

// mode holds the values of the flags.
type mode struct {
	addr, probes, store, traces string
	isLoaded, isVerbose         bool
}

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.StringVar(&m.probes, "probes", defaultProbes, "serve /metrics, /readyz and /livez at this `address`")
	flag.StringVar(&m.store, "store", "", "keep the tasks in this SQLite `file`; the default is a temporary one")
	flag.StringVar(&m.traces, "traces", "", "append each finished span to this `file`, as a line of JSON")
	flag.BoolVar(&m.isLoaded, "load", true, "let customers call the tools")
	flag.BoolVar(&m.isVerbose, "v", false, "log the audit trail too, and not only warnings")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "observe: unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	if err := run(ctx, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "observe:", err)
		os.Exit(1)
	}
}

// run serves until ctx ends or something fails.
func run(ctx context.Context, out io.Writer, m mode) error {
	p, err := start(ctx, m)
	if err != nil {
		return err
	}
	p.explain(out, m)
	loading, leave := context.WithCancel(ctx)
	defer leave()
	var loaded chan error // nil, which blocks, without customers
	if m.isLoaded {
		loaded = make(chan error, 1)
		go func() {
			defer close(loaded)
			loaded <- p.runLoad(loading, p.url, orders)
		}()
	}
	select {
	case <-ctx.Done():
	case err = <-loaded:
		if ctx.Err() == nil {
			err = fmt.Errorf("the customers have left: %w", err)
		}
	case err = <-p.failed:
	}
	leave()
	if m.isLoaded {
		err = errors.Join(err, <-loaded) // nil if they have left before
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return errors.Join(err, p.stop(stopping))
}

// explain prints the addresses, and the next steps.
func (p *program) explain(out io.Writer, m mode) {
	fmt.Fprintf(out, "serving %s\n", p.url)
	fmt.Fprintf(out, "metrics %s/metrics\n", p.probesURL)
	fmt.Fprintf(out, "probes  %s/readyz and %[1]s/livez\n", p.probesURL)
	if m.traces != "" {
		fmt.Fprintf(out, "spans   %s\n", m.traces)
	}
	if m.isLoaded {
		fmt.Fprintf(out, "load    %d customers, half of them in %s, half in %s\n", 2*customers, mcptask.Revision20251125, mcptask.Revision20260728)
	}
	fmt.Fprintf(out, `
In another terminal, from the root of this repository:

  prometheus --config.file=examples/observe/prometheus.yml --storage.tsdb.path="$(mktemp -d)"

Then open http://localhost:9090/alerts. In Grafana, add the data source http://localhost:9090 of the type Prometheus, and
import examples/observe/dashboard.json. Ctrl-C stops the lab.
`)
	if m.probes != defaultProbes {
		fmt.Fprintf(out, "prometheus.yml scrapes %s: name the address above there.\n", defaultProbes)
	}
}
