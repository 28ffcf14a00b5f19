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

// Exit codes of the command.
const (
	exitOK = iota
	exitDifferences
	exitFailure
)

const exitCodes = `
Exit codes: 0 when all is well, 1 when --check found differences or breaking has findings, 2 on errors.
`

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// command is a subcommand: its help and its action.
type command struct {
	name  string
	usage string // the help, above the flags
	after string // the help, below the flags
	// bind declares the flags and returns the action to run after they are parsed.
	bind func(*pflag.FlagSet) func(context.Context, invocation) int
}

// invocation holds the arguments and output streams of one run.
type invocation struct {
	args           []string
	stdout, stderr io.Writer
}

func (i invocation) printError(err error) int {
	fmt.Fprintln(i.stderr, err)
	return exitFailure
}

// printText prints a text, or the error if it is not nil.
func (i invocation) printText(text string, err error) int {
	if err != nil {
		return i.printError(err)
	}
	fmt.Fprint(i.stdout, text)
	return exitOK
}

// namedCommands returns the subcommands. Without a subcommand, mcptaskgen generates code.
func namedCommands() []command {
	return []command{initCommand(), toolsCommand(), docsCommand(), breakingCommand(), schemaCommand(), upgradeCommand(), versionCommand()}
}

// commandNames returns the names of the subcommands.
func commandNames() (names []string) {
	for _, c := range namedCommands() {
		names = append(names, c.name)
	}
	return names
}

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	names := commandNames()
	if len(args) > 0 && args[0] == "help" {
		args = append(args[1:], "--help")
		if name := args[0]; !strings.HasPrefix(name, "-") && !slices.Contains(names, name) {
			return invocation{stderr: stderr}.printError(fmt.Errorf("mcptaskgen: unknown command %q; the commands are %s; see mcptaskgen --help", name, strings.Join(names, ", ")))
		}
	}
	c := generateCommand()
	if len(args) > 0 && slices.Contains(names, args[0]) {
		c, args = namedCommands()[slices.Index(names, args[0])], args[1:]
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
		return exitOK
	} else if err != nil {
		fmt.Fprintf(stderr, "%s: %v; see %[1]s --help\n", title, err)
		return exitFailure
	}
	return do(ctx, invocation{flags.Args(), stdout, stderr})
}
