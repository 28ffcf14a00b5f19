// Mcptask calls the tools of an MCP server, and watches, answers and cancels their tasks. See --help.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/build"
	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
)

const usage = `mcptask calls the tools of an MCP server, and watches, answers and cancels their tasks.

Usage:
  mcptask call URL TOOL [ARGUMENT]...  call a tool, and wait for its result
  mcptask watch URL TASK               wait for a task
  mcptask answer URL TASK [ANSWER]     answer a question of a task
  mcptask cancel URL TASK...           cancel tasks
  mcptask tasks URL                    list your tasks
  mcptask tools URL [TOOL]             list the tools, or show what one takes
  mcptask completion SHELL             print the completion of bash, zsh or fish
  mcptask version                      print what this program was built from

Instead of a URL, -- CMD [ARG]... -- names a program that serves on its standard input and output.
mcptask help COMMAND says more.
`

// command is a command that connects to a server.
type command struct {
	name, usage string
	// bind declares the flags that only this command has. It returns a function that reads the words after the server
	// and returns the action.
	bind func(flags *pflag.FlagSet, config *config) func(rest []string) (action, error)
}

// action is the work of a command on a server.
type action func(ctx context.Context, s *session) error

func main() { os.Exit(run(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// run runs the command line and returns the exit code.
func run(ctx context.Context, args []string, stdout io.Writer, stderr *os.File) int {
	if len(args) == 0 {
		args = []string{"help"}
	}
	if args[0] == "help" {
		args = append(args[1:], "--help")
	}
	name, args := args[0], args[1:]
	switch at := slices.IndexFunc(commands, func(c command) bool { return c.name == name }); {
	case at >= 0:
		return commands[at].run(ctx, args, stdout, stderr)
	case name == completeWord:
		complete(ctx, args, stdout)
	case name == "completion" && len(args) == 1 && completionScripts[args[0]] != "":
		fmt.Fprint(stdout, completionScripts[args[0]])
	case name == "completion" && slices.Contains(args, "--help"):
		fmt.Fprint(stdout, completionUsage)
	case name == "--help", name == "-h":
		fmt.Fprint(stdout, usage)
	case name == "completion":
		fmt.Fprintln(stderr, "mcptask completion: name one shell: bash, fish or zsh")
		return exitUsage
	case name == "version", name == "--version":
		fmt.Fprint(stdout, build.Describe("mcptask"))
	default:
		fmt.Fprintf(stderr, "mcptask: unknown command %q; the commands are %s; see mcptask --help\n", name, strings.Join(commandNames(), ", "))
		return exitUsage
	}
	return 0
}

// commandNames returns the names of all commands.
func commandNames() (names []string) {
	for _, c := range commands {
		names = append(names, c.name)
	}
	return append(names, "completion", "version")
}

// flagSet returns the command's flags, the config that they set, and the function that reads the
// words after the server.
func (c command) flagSet() (*pflag.FlagSet, *config, func(rest []string) (action, error)) {
	flags := pflag.NewFlagSet("mcptask "+c.name, pflag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.SortFlags = false
	flags.Usage = func() {}
	var config config
	read := c.bind(flags, &config)
	config.bind(flags)
	return flags, &config, read
}

// run runs the command and returns the exit code.
func (c command) run(ctx context.Context, args []string, stdout io.Writer, stderr *os.File) int {
	flags, config, read := c.flagSet()
	err := flags.Parse(args)
	if errors.Is(err, pflag.ErrHelp) {
		fmt.Fprint(stdout, c.usage, flags.FlagUsages(), exitCodes)
		return 0
	}
	if err == nil {
		err = config.read(flags)
	}
	var do action
	if err == nil {
		do, err = read(config.rest)
	}
	if err != nil {
		err = usageFailure(fmt.Errorf("%w; see mcptask %s --help", err, c.name))
	} else {
		config.attach(stdout, stderr)
		err = config.run(ctx, do)
	}
	if err == nil {
		return 0
	}
	failed := describeFailure(err, "")
	if config.format == formatJSON || config.format == formatLines {
		fmt.Fprintln(stderr, failed.encode())
	} else if failed.code != exitInterrupted {
		fmt.Fprintf(stderr, "mcptask %s: %s\n", c.name, terminal.Printable(failed.Error(), true)) // it may be the server's
	}
	return failed.code
}
