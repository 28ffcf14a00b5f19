package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/calls"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

const callUsage = `mcptaskgen call calls a tool of an MCP server, and waits for its result.

Usage:
  mcptaskgen call [flags] URL TOOL [ARGUMENT]...                  a server over streamable HTTP
  mcptaskgen call [flags] -- CMD [ARG]... -- TOOL [ARGUMENT]...   a server on the standard input and output of a program

An ARGUMENT is NAME=VALUE, read by the type that the tool gives it, or NAME:=JSON. A name that is
given more than once makes a list. mcptaskgen tools URL TOOL shows what a tool takes.

  mcptaskgen call http://localhost:8080/mcp deploy_service service=api environment=staging
  mcptaskgen call -- npx -y search-server -- search query="task leases" limit=5

Flags may follow a URL, but not the second --: there, all words are for the tool.

A tool that may run as a task runs as one. Progress and questions go to the terminal, and only the
result goes to standard output. Ctrl-C leaves the task running and prints the command that waits for it
again. A second Ctrl-C cancels the task.

Flags:
`

const watchUsage = `mcptaskgen watch waits for tasks of an MCP server, and prints their results.

Usage:
  mcptaskgen watch [flags] URL TASK...
  mcptaskgen watch [flags] -- CMD [ARG]... -- TASK...

TASK is the ID of a task. - reads IDs from standard input, one a line. Of several tasks it prints one
line each, in the order in which they end. The exit code is that of the first TASK that failed.

Flags:
`

const answerUsage = `mcptaskgen answer answers a question of a task.

Usage:
  mcptaskgen answer [flags] URL TASK [KEY] [ANSWER]
  mcptaskgen answer [flags] -- CMD [ARG]... -- TASK [KEY] [ANSWER]

ANSWER is a JSON object that fits the question, or decline, or cancel. Without it, the question is asked
here. KEY names the question if the task asks several: mcptaskgen watch --output jsonl shows the keys. A
task that asks nothing is an error with exit code 2.

  mcptaskgen answer http://localhost:8080/mcp T4CBF4RMCDDG5OJ5ZG52GGQXSP '{"approve": true}'

Flags:
`

const cancelUsage = `mcptaskgen cancel cancels tasks of an MCP server.

Usage:
  mcptaskgen cancel [flags] URL TASK...
  mcptaskgen cancel [flags] -- CMD [ARG]... -- TASK...

A task that had ended before is an error with exit code 5.

Flags:
`

const tasksUsage = `mcptaskgen tasks lists your tasks at an MCP server, the newest first.

Usage:
  mcptaskgen tasks [flags] URL
  mcptaskgen tasks [flags] -- CMD [ARG]...

Only 2025-11-25 has a list, and only servers that know who calls offer it.

Flags:
`

const callExitCodes = `
Exit codes: 0 when all is well, 2 if the command line or an answer on it is wrong, 3 if the server wants to
know who calls, 4 if it cannot be reached, 5 if the tool or the server failed, 6 if the task was cancelled,
7 if the task is not known, has expired or lost its worker, 8 if an answer is needed, 9 if the server has had
too many requests, 10 if its answer is malformed, 124 after --timeout, 130 after Ctrl-C, 129 or 143 after
SIGHUP or SIGTERM.
`

// callFlags are the flags that the commands of tasks share. Parsing sets them in config, answers and sample.
type callFlags struct {
	serverFlags

	config  calls.Config
	answers []string
	sample  string
}

// bind declares the flags of all these commands.
func (f *callFlags) bind(flags *pflag.FlagSet) {
	flags.StringVarP(&f.config.Format, "output", "o", calls.FormatText, "the `format` of the output: text, json, or jsonl, with an object on each line")
	flags.DurationVar(&f.config.Timeout, "timeout", 0, "how long to wait; the task goes on (default: no limit)")
	f.serverFlags = bindServer(flags, "the `revision` of tasks to speak (default: the first of 2026-07-28 and 2025-11-25 in\nwhich the server has tasks)")
	flags.BoolVarP(&f.config.Quiet, "quiet", "q", false, "show no progress")
	flags.BoolVarP(&f.config.Verbose, "verbose", "v", false, "log what happens, and show what the program writes to its standard error")
}

// bindWait declares those of commands that wait for results.
func (f *callFlags) bindWait(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.answers, "answer", nil, "answer a question, as `KEY=JSON`; the key, the type or * names it, and decline\nand cancel refuse it; may be repeated")
	flags.BoolVar(&f.config.NoInput, "no-input", false, "ask nobody: end with exit code 8 and the question if an answer is needed")
	flags.StringVar(&f.sample, "sample", "", "a `program` that answers requests to a model: it reads the request as JSON and\nwrites the result, or text")
	flags.StringVar(&f.config.Save, "save", "", "write images, sounds and files of the result into this `directory`")
}

// readCall returns how a command works, and the words after the server. dash is that of read.
func (f callFlags) readCall(i invocation, dash int) (config calls.Config, rest []string, err error) {
	config = i.attach(f.config)
	if config.Server, rest, err = f.read(i.args, dash); err != nil {
		return config, nil, err
	}
	if err := checkRevision(config.Server.Revision); err != nil {
		return config, nil, err
	}
	config.Sample = strings.Fields(f.sample)
	if !slices.Contains([]string{calls.FormatText, calls.FormatJSON, calls.FormatLines}, config.Format) {
		return config, nil, fmt.Errorf("--output %q is not text, json or jsonl", config.Format)
	}
	if config.Timeout < 0 {
		return config, nil, fmt.Errorf("--timeout %v is negative", config.Timeout)
	}
	config.Answers = map[string]string{}
	for _, answer := range f.answers {
		key, text, ok := strings.Cut(answer, "=")
		if !ok || key == "" {
			return config, nil, fmt.Errorf("--answer %q is not of the form KEY=JSON", answer)
		}
		if err := checkAnswer(text); err != nil {
			return config, nil, fmt.Errorf("--answer %s: %w", key, err)
		}
		config.Answers[key] = text
	}
	return config, rest, nil
}

// checkAnswer returns an error if a text is neither a JSON object nor a refusal.
func checkAnswer(text string) error {
	var object map[string]json.RawMessage
	if text == "decline" || text == "cancel" || json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return nil
	}
	return fmt.Errorf("%q is neither a JSON object nor decline or cancel", text)
}

// attach returns a configuration with the standard files and the signals of this process.
func (i invocation) attach(config calls.Config) calls.Config {
	config.Interrupts = make(chan os.Signal, 2)
	signal.Notify(config.Interrupts, os.Interrupt)
	if ending := slices.DeleteFunc(calls.Endings(), signal.Ignored); len(ending) > 0 { // nohup ignores some
		signal.Notify(config.Interrupts, ending...)
	}
	config.Stdin, config.Stdout, config.Stderr = os.Stdin, i.stdout, os.Stderr
	return config
}

// printFailure prints why a command has ended, and returns its exit code.
func (i invocation) printFailure(name, format string, err error) int {
	if err == nil {
		return exitOK
	}
	failure := new(calls.Failure)
	if !errors.As(err, &failure) {
		failure = &calls.Failure{Code: calls.ExitUsage, Kind: "usage", Err: err}
	}
	if format == calls.FormatJSON || format == calls.FormatLines {
		fmt.Fprintln(i.stderr, failure.JSON())
	} else if failure.Code != calls.ExitInterrupted {
		fmt.Fprintf(i.stderr, "mcptaskgen %s: %s\n", name, terminal.Printable(failure.Error(), true)) // it may be the server's
	}
	return failure.Code
}

// callAction is what a command does on a server. rest are the words after the server.
type callAction func(ctx context.Context, config calls.Config, rest []string) error

// taskCommand makes a command that connects to a server. bind declares its own flags.
func taskCommand(name, usage string, bind func(*pflag.FlagSet, *callFlags) callAction) command {
	return command{name: name, usage: usage, after: callExitCodes, bind: func(flags *pflag.FlagSet) func(context.Context, invocation) int {
		var shared callFlags
		do := bind(flags, &shared)
		shared.bind(flags)
		return func(ctx context.Context, i invocation) int {
			config, rest, err := shared.readCall(i, flags.ArgsLenAtDash())
			if err == nil {
				// Ctrl-C has a meaning of its own here.
				err = do(context.WithoutCancel(ctx), config, rest)
			} else {
				err = fmt.Errorf("%w; see mcptaskgen %s --help", err, name)
			}
			return i.printFailure(name, shared.config.Format, err)
		}
	}}
}

func callCommand() command {
	return taskCommand("call", callUsage, func(flags *pflag.FlagSet, shared *callFlags) callAction {
		arguments := flags.String("args", "", "the arguments as `JSON`, @file with JSON, or - for standard input")
		detach := flags.BoolP("detach", "d", false, "print the ID of the task and leave it running")
		plain := flags.Bool("plain", false, "ask for no task")
		ttl := flags.Duration("ttl", 0, "how long the server has to keep the task (default: it decides)")
		key := flags.String("idempotency-key", "", "calls with the same `key` share one task")
		shared.bindWait(flags)
		return func(ctx context.Context, config calls.Config, rest []string) error {
			if len(rest) == 0 {
				return errors.New("name the tool after the server; see mcptaskgen call --help")
			}
			base, err := readArguments(ctx, config, *arguments)
			if err != nil {
				return err
			}
			return calls.Call(ctx, config, calls.Tool{
				Name: rest[0], Words: rest[1:], Arguments: base, Detach: *detach, Plain: *plain, TTL: *ttl, IdempotencyKey: *key,
			})
		}
	})
}

// maxInput bounds the bytes of standard input.
const maxInput = 64 << 20

// readArguments reads what --args names.
func readArguments(ctx context.Context, config calls.Config, text string) (json.RawMessage, error) {
	switch path, isFile := strings.CutPrefix(text, "@"); {
	case isFile:
		content, err := os.ReadFile(path) //nolint:gosec // the person names the file
		if err != nil {
			return nil, fmt.Errorf("--args: %w", err)
		}
		return content, nil
	case text == "-":
		content, err := config.ReadInput(ctx, maxInput)
		if err != nil {
			return nil, fmt.Errorf("--args -: %w", err)
		}
		return content, nil
	}
	return json.RawMessage(text), nil
}

func watchCommand() command {
	return taskCommand("watch", watchUsage, func(flags *pflag.FlagSet, shared *callFlags) callAction {
		shared.bindWait(flags)
		return func(ctx context.Context, config calls.Config, rest []string) error {
			ids, err := readIDs(ctx, config, rest)
			if err != nil {
				return err
			}
			return calls.Watch(ctx, config, ids)
		}
	})
}

// readIDs reads the IDs of tasks. - stands for those on standard input.
func readIDs(ctx context.Context, config calls.Config, words []string) (ids []string, err error) {
	for _, word := range words {
		if word != "-" {
			ids = append(ids, word)
			continue
		}
		content, err := config.ReadInput(ctx, maxInput)
		if err != nil {
			return nil, fmt.Errorf("read IDs from standard input: %w", err)
		}
		ids = append(ids, strings.Fields(string(content))...)
	}
	if len(ids) == 0 {
		return nil, errors.New("name a task after the server")
	}
	seen := map[string]bool{}
	return slices.DeleteFunc(ids, func(id string) bool {
		again := seen[id]
		seen[id] = true
		return again
	}), nil
}

func answerCommand() command {
	return taskCommand("answer", answerUsage, func(*pflag.FlagSet, *callFlags) callAction {
		return func(ctx context.Context, config calls.Config, rest []string) error {
			if len(rest) < 1 || len(rest) > 3 {
				return errors.New("give a task, the key of its question if it has several, and the answer; see mcptaskgen answer --help")
			}
			var key, answer string
			words := rest[1:]
			if n := len(words); n == 2 || n == 1 && (strings.HasPrefix(words[0], "{") || checkAnswer(words[0]) == nil) {
				answer, words = words[n-1], words[:n-1]
				if err := checkAnswer(answer); err != nil {
					return err
				}
			}
			if len(words) > 0 {
				key = words[0]
			}
			return calls.Answer(ctx, config, rest[0], key, answer)
		}
	})
}

func cancelCommand() command {
	return taskCommand("cancel", cancelUsage, func(*pflag.FlagSet, *callFlags) callAction {
		return func(ctx context.Context, config calls.Config, rest []string) error {
			ids, err := readIDs(ctx, config, rest)
			if err != nil {
				return err
			}
			return calls.Cancel(ctx, config, ids)
		}
	})
}

func tasksCommand() command {
	return taskCommand("tasks", tasksUsage, func(*pflag.FlagSet, *callFlags) callAction {
		return func(ctx context.Context, config calls.Config, rest []string) error {
			if len(rest) > 0 {
				return fmt.Errorf("%q is one word too many; see mcptaskgen tasks --help", rest[0])
			}
			return calls.List(ctx, config)
		}
	})
}
