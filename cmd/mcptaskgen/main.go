// Mcptaskgen generates MCP tool servers and clients with tasks from Go interfaces. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// The exit codes.
const (
	ok = iota
	differences
	failure
)

const exitCodes = `
Exit codes: 0 when all is well, 1 when --check or --diff found differences, 2 on errors.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is one of the commands: what its help says and what it does.
type command struct {
	name  string
	usage string // the help, above the flags
	after string // the help, below the flags
	// bind declares the flags and returns what runs once they are read.
	bind func(*pflag.FlagSet) func(context.Context, invocation) int
}

// invocation is one run of a command.
type invocation struct {
	args           []string
	stdout, stderr io.Writer
}

// fail prints an error and returns the exit code for it.
func (i invocation) fail(err error) int {
	fmt.Fprintln(i.stderr, err)
	return failure
}

// commands are those that have a name; without one, code is generated.
func commands() []command {
	return []command{initCommand(), docsCommand(), schemaCommand(), upgradeCommand()}
}

// checkCommand refuses what help is asked of where there is no such command.
func checkCommand(name string) error {
	var names []string
	for _, c := range commands() {
		names = append(names, c.name)
	}
	if strings.HasPrefix(name, "-") || slices.Contains(names, name) {
		return nil
	}
	return fmt.Errorf("mcptaskgen: there is no command %q; the commands are %s; see mcptaskgen --help", name, strings.Join(names, ", "))
}

// run is the command without the process around it.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
		if err := checkCommand(args[0]); err != nil {
			return invocation{stderr: stderr}.fail(err)
		}
	}
	c := generateCommand()
	if len(args) > 0 {
		for _, named := range commands() {
			if named.name == args[0] {
				c, args = named, args[1:]
				break
			}
		}
	}
	return c.run(ctx, args, stdout, stderr)
}

func (c command) run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	title := strings.TrimSpace("mcptaskgen " + c.name)
	flags := pflag.NewFlagSet(title, pflag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.SortFlags = false
	flags.Usage = func() {}
	do := c.bind(flags)
	if err := flags.Parse(args); errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, c.usage, flags.FlagUsages(), c.after)
		return ok
	} else if err != nil {
		fmt.Fprintf(stderr, "%s: %v; see %[1]s --help\n", title, err)
		return failure
	}
	return do(ctx, invocation{flags.Args(), stdout, stderr})
}
