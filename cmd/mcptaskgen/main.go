// Mcptaskgen generates MCP tool servers and clients with tasks from Go interfaces. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

const usage = `mcptaskgen generates MCP tool servers and clients, with tasks, from Go interfaces.

Usage:
  mcptaskgen [flags] [packages]

Packages are patterns as for go list; the default is the package in the current folder. Mark an
interface in it, and every method becomes a tool:

  //go:generate go tool mcptaskgen

  // CI runs continuous-integration jobs.
  //
  //mcptask:service fallback=tools
  type CI interface {
          // RunPipeline builds and tests one branch of a repository.
          //
          //mcptask:tool task=required ttl=24h
          RunPipeline(ctx context.Context, task *mcptask.Task, in RunInput) (RunReport, error)
  }

Then run go generate. Beside the declaration stands ` + generator.OutputName + `, with CITools for the
server and CIClient for its callers. Commit it; --check tells whether it is up to date.

Flags:
`

const exitCodes = `
Exit codes: 0 when all is well, 1 when --check found differences, 2 on errors.
`

// The exit codes.
const (
	ok = iota
	differences
	failure
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	flags := pflag.NewFlagSet("mcptaskgen", pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	check := flags.Bool("check", false, "write nothing; list files that are stale, missing or left over")
	tags := flags.String("tags", "", "build tags, comma-separated, as for go build")
	version := flags.Bool("version", false, "print the version")
	flags.Usage = func() {}
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, usage, flags.FlagUsages(), exitCodes)
		return ok
	} else if err != nil {
		fmt.Fprintf(stderr, "mcptaskgen: %v; see mcptaskgen --help\n", err)
		return failure
	}
	if *version {
		fmt.Fprintln(stdout, "mcptaskgen", moduleVersion())
		return ok
	}
	out, err := generator.Generate(ctx, generator.Config{Patterns: flags.Args(), Tags: *tags})
	if err != nil {
		fmt.Fprintln(stderr, err)
		return failure
	}
	if *check {
		return report(out, stdout, stderr)
	}
	if _, err := out.Write(); err != nil {
		fmt.Fprintln(stderr, err)
		return failure
	}
	return ok
}

// report lists what is not up to date.
func report(out generator.Output, stdout, stderr io.Writer) int {
	stale, err := out.Diff()
	if err != nil {
		fmt.Fprintln(stderr, err)
		return failure
	}
	for _, path := range stale {
		fmt.Fprintln(stdout, path)
	}
	if len(stale) > 0 {
		return differences
	}
	return ok
}

// moduleVersion is what the go command recorded in the binary.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(devel)"
}
