//go:build linux

// Measure runs mcptaskgen and stringer in turn on one package, which declares a service and imports the
// Go SDK, and prints what both take beside the goals. It fails where a goal is missed: run it by hand,
// with make bench-generator, on a machine that has nothing else to do.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// The goals.
const (
	maxRatio = 1.3  // of stringer's wall time
	maxPeak  = 64e6 // bytes
	maxAfter = 20e6 // nanoseconds after loading
)

func main() {
	runs := flag.Int("runs", 21, "how often to run each; at least nine")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Stdout, *runs)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "measure:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out io.Writer, runs int) error {
	if runs < 9 {
		return errors.New("the median of fewer than nine runs says little; raise -runs")
	}
	dir, err := os.MkdirTemp("", "measure")
	if err != nil {
		return err
	}
	f, err := measure(ctx, dir, runs)
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	return f.report(out)
}

// measure makes the subject in the folder dir and runs both tools on it.
func measure(ctx context.Context, dir string, runs int) (figures, error) {
	s, err := prepare(ctx, dir)
	if err != nil {
		return figures{}, err
	}
	return s.measure(ctx, runs)
}
