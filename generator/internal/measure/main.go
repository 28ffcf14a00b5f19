//go:build linux

// Measure runs mcptaskgen and stringer in turn on a package that declares a service and imports the
// Go SDK, and mcptaskgen on a package with many tools. It prints their times and memory beside the
// goals, and fails if a goal is missed. Run it by hand with make bench-generator on an idle machine.
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

// The goals of mcptaskgen.
const (
	maxRatio = 1.3  // relative to stringer's wall time
	maxPeak  = 64e6 // bytes
	maxAfter = 20e6 // nanoseconds after loading
	maxLarge = 75e7 // nanoseconds for the large package
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
	f, err := measureSubject(ctx, dir, runs)
	if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
		return err
	}
	return f.printReport(out)
}

// measureSubject creates the subject in dir and runs both tools on it.
func measureSubject(ctx context.Context, dir string, runs int) (figures, error) {
	s, err := prepareSubject(ctx, dir)
	if err != nil {
		return figures{}, err
	}
	return s.measureTools(ctx, runs)
}
