package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/pflag"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/target"
	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

const callUsage = `mcptask call calls a tool of an MCP server, and waits for its result.

Usage:
  mcptask call [flags] URL TOOL [ARGUMENT]...                  a server over streamable HTTP
  mcptask call [flags] -- CMD [ARG]... -- TOOL [ARGUMENT]...   a server on the standard input and output of a program

An ARGUMENT is NAME=VALUE, read by the type that the tool gives it, or NAME:=JSON, as for an object. A name
that is given more than once makes a list. mcptask tools URL TOOL shows what a tool takes.

  mcptask call http://localhost:8080/mcp deploy_service service=api environment=staging
  mcptask call http://localhost:8080/mcp search query="task leases" 'filters:={"kind": "video"}'
  mcptask call -- npx -y search-server -- search query="task leases" limit=5

Flags may follow a URL, but not the second --: there, all words are for the tool.

A tool that may run as a task runs as one. Progress and questions go to the terminal, and only the
result goes to standard output. Ctrl-C leaves the task running and prints the command that waits for it
again. mcptask cancel cancels it.

Flags:
`

const watchUsage = `mcptask watch waits for a task of an MCP server, and prints its result.

Usage:
  mcptask watch [flags] URL TASK
  mcptask watch [flags] -- CMD [ARG]... -- TASK

TASK is the ID of a task.

Flags:
`

const answerUsage = `mcptask answer answers a question of a task.

Usage:
  mcptask answer [flags] URL TASK [KEY] [ANSWER]
  mcptask answer [flags] -- CMD [ARG]... -- TASK [KEY] [ANSWER]

ANSWER is a JSON object that fits the question, or decline, or cancel. Without it, the question is asked
here. KEY names the question if the task asks several: mcptask watch --output jsonl shows the keys. A
task that is not waiting for an answer is an error with exit code 2.

  mcptask answer http://localhost:8080/mcp T4CBF4RMCDDG5OJ5ZG52GGQXSP '{"approve": true}'

Flags:
`

const cancelUsage = `mcptask cancel cancels tasks of an MCP server.

Usage:
  mcptask cancel [flags] URL TASK...
  mcptask cancel [flags] -- CMD [ARG]... -- TASK...

A task that had ended before is an error with exit code 5.

Flags:
`

const tasksUsage = `mcptask tasks lists your tasks at an MCP server, the newest first.

Usage:
  mcptask tasks [flags] URL
  mcptask tasks [flags] -- CMD [ARG]...

The columns are the ID, the tool, the status, the age, and the message of the server or why the task is stale. Only
servers of mcptaskgen name the tool. JSON has the time of the creation in place of the age.

Only 2025-11-25 has a list, and only servers that know who calls offer it.

Flags:
`

const exitCodes = `
Exit codes: 0 when all is well, 2 if the command line or an answer on it is wrong, 3 if the server refuses
the caller, 4 if it cannot be reached, 5 if the tool or the server failed, 6 if the task was cancelled,
7 if the task is not known, has expired or lost its worker, 8 if an answer is needed, 9 if the server has had
too many requests, 10 if its answer is malformed, 124 after --timeout, 130 after Ctrl-C, 129 or 143 after
SIGHUP or SIGTERM.
`

const toolsUsage = `mcptask tools lists the tools of an MCP server, or shows what one of them does and takes.

Usage:
  mcptask tools [flags] URL [TOOL]
  mcptask tools [flags] -- CMD [ARG]... [-- TOOL]

Flags:
`

// The formats of --output.
const (
	formatText  = "text"
	formatJSON  = "json"
	formatLines = "jsonl" // one object for each change, then one for the end
)

var formats = []string{formatText, formatJSON, formatLines}

// config is the configuration of a command. Parsing the flags sets most of it.
type config struct {
	serverFlags target.Flags
	server      server
	rest        []string // the words after the server

	stdin  *os.File
	stdout io.Writer // results
	stderr *os.File  // the rest
	// interrupts has a value for each Ctrl-C. It needs a buffer: a question at the terminal sends one too, if there is room.
	interrupts chan os.Signal

	format                  string
	timeout                 time.Duration // of the command. A task goes on. 0 means no limit.
	noInput, quiet, verbose bool
	answerFlags             []string
	// answers has answers by the key or the type of their question. "*" answers any. "decline" and "cancel" refuse.
	answers map[string]string
	save    string // the directory for the files of results, or ""
}

// bind declares the flags of all commands.
func (c *config) bind(flags *pflag.FlagSet) {
	flags.DurationVar(&c.timeout, "timeout", 0, "how long to wait; the task goes on (default: no limit)")
	c.serverFlags.Bind(flags, "the `revision` of tasks to speak (default: the first of 2026-07-28 and 2025-11-25 in\nwhich the server has tasks)")
	flags.BoolVarP(&c.verbose, "verbose", "v", false, "log what happens, and show what the program writes to its standard error")
}

// bindTasks declares those of commands that print tasks.
func (c *config) bindTasks(flags *pflag.FlagSet) {
	flags.StringVarP(&c.format, "output", "o", formatText, "the `format` of the output: text, json, or jsonl, with an object on each line")
	flags.BoolVarP(&c.quiet, "quiet", "q", false, "show no progress")
}

// bindWait declares those of commands that wait for results.
func (c *config) bindWait(flags *pflag.FlagSet) {
	c.bindTasks(flags)
	flags.StringArrayVar(&c.answerFlags, "answer", nil, "answer a question, as `KEY=JSON`; the key, the type or * names it, and decline\nand cancel refuse it; may be repeated")
	c.bindNoInput(flags)
	flags.StringVar(&c.save, "save", "", "write images, sounds and files of the result into this `directory`")
}

// bindNoInput declares --no-input, for commands that answer questions.
func (c *config) bindNoInput(flags *pflag.FlagSet) {
	flags.BoolVar(&c.noInput, "no-input", false, "ask nobody: end with exit code 8 and the question if an answer is needed")
}

// read reads the server and checks the flags.
func (c *config) read(flags *pflag.FlagSet) error {
	to, rest, err := c.serverFlags.Read(flags.Args(), flags.ArgsLenAtDash())
	c.server, c.rest = server{to}, rest
	switch {
	case err != nil:
		return err
	case to.Revision != "" && !slices.Contains(schema.Revisions(), to.Revision):
		return fmt.Errorf("--revision %q is not known: name %s", to.Revision, strings.Join(schema.ReleasedRevisions(), " or "))
	case c.format != "" && !slices.Contains(formats, c.format):
		return fmt.Errorf("--output %q is not text, json or jsonl", c.format)
	case c.timeout < 0:
		return fmt.Errorf("--timeout %v is negative", c.timeout)
	}
	c.answers = map[string]string{}
	for _, answer := range c.answerFlags {
		key, text, ok := strings.Cut(answer, "=")
		if !ok || key == "" {
			return fmt.Errorf("--answer %q is not of the form KEY=JSON", answer)
		}
		if err := checkAnswerText(text); err != nil {
			return fmt.Errorf("--answer %s: %w", key, err)
		}
		c.answers[key] = text
	}
	return nil
}

// checkAnswerText returns an error if a text is neither a JSON object nor a refusal.
func checkAnswerText(text string) error {
	var object map[string]json.RawMessage
	if text == "decline" || text == "cancel" || json.Unmarshal([]byte(text), &object) == nil && object != nil {
		return nil
	}
	return fmt.Errorf("%q is neither a JSON object nor decline or cancel", text)
}

// attach takes the standard files and the signals of this process.
func (c *config) attach(stdout io.Writer, stderr *os.File) {
	c.stdin, c.stdout, c.stderr = os.Stdin, stdout, stderr
	c.interrupts = make(chan os.Signal, 2)
	signals := []os.Signal{os.Interrupt}
	for _, ending := range []os.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(ending) { // nohup ignores one
			signals = append(signals, ending)
		}
	}
	signal.Notify(c.interrupts, signals...)
}

var commands = []command{
	{"call", callUsage, bindCall},
	{"watch", watchUsage, func(flags *pflag.FlagSet, config *config) func([]string) (action, error) {
		config.bindWait(flags)
		return readWatch
	}},
	{"answer", answerUsage, func(flags *pflag.FlagSet, config *config) func([]string) (action, error) {
		config.bindTasks(flags)
		config.bindNoInput(flags)
		return readAnswer
	}},
	{"cancel", cancelUsage, func(flags *pflag.FlagSet, config *config) func([]string) (action, error) {
		config.bindTasks(flags)
		return readCancel
	}},
	{"tasks", tasksUsage, bindList},
	{"tools", toolsUsage, func(*pflag.FlagSet, *config) func([]string) (action, error) {
		return func(rest []string) (action, error) { return describeTools(rest), checkWords(rest, 1) }
	}},
}

// checkWords returns an error if there are more words than a command takes.
func checkWords(words []string, most int) error {
	if len(words) > most {
		return fmt.Errorf("%q is one word too many", words[most])
	}
	return nil
}

func bindCall(flags *pflag.FlagSet, config *config) func([]string) (action, error) {
	var call toolCall
	arguments := flags.String("args", "", "the arguments as `JSON`, @file with JSON, or - for standard input")
	flags.BoolVarP(&call.detach, "detach", "d", false, "print the ID of the task and leave it running")
	flags.BoolVar(&call.plain, "plain", false, "ask for no task")
	flags.DurationVar(&call.ttl, "ttl", 0, "how long the server has to keep the task (default: it decides)")
	flags.StringVar(&call.idempotencyKey, "idempotency-key", "", "calls with the same `key` share one task")
	config.bindWait(flags)
	return func(rest []string) (action, error) {
		if len(rest) == 0 {
			return nil, errors.New("name the tool after the server")
		}
		call.name, call.words = rest[0], rest[1:]
		var err error
		if call.arguments, err = readArguments(*arguments); err != nil {
			return nil, fmt.Errorf("--args: %w", err)
		}
		return call.run, nil
	}
}

func bindList(flags *pflag.FlagSet, config *config) func([]string) (action, error) {
	var list taskList
	config.bindTasks(flags)
	flags.StringSliceVar(&list.statuses, "status", nil, "list only tasks of this `status`, which may be repeated:\n"+strings.Join(statuses, ", "))
	flags.StringVar(&list.tool, "tool", "", "list only tasks of this `tool`")
	flags.IntVar(&list.limit, "limit", defaultLimit, "list only this `number` of tasks; 0 lists all, as JSON does without --limit")
	flags.BoolVar(&list.stale, "stale", false, "list only tasks that the server cannot run as they are stored, and say why")
	return func(rest []string) (action, error) {
		for _, status := range list.statuses {
			if !slices.Contains(statuses, status) {
				return nil, fmt.Errorf("--status: %w", terminal.Unknown("a task", "status", status, statuses))
			}
		}
		if list.limit < 0 {
			return nil, fmt.Errorf("--limit %d is negative", list.limit)
		}
		if config.format != formatText && !flags.Changed("limit") {
			list.limit = 0
		}
		config.takeListRevision()
		return list.run, checkWords(rest, 0)
	}
}

// readArguments reads the arguments from the value of --args, or from the file that it names.
func readArguments(text string) (json.RawMessage, error) {
	switch path, isFile := strings.CutPrefix(text, "@"); {
	case isFile:
		return os.ReadFile(path) //nolint:gosec // the person names the file
	case text == "-":
		return io.ReadAll(io.LimitReader(os.Stdin, 64<<20))
	}
	return json.RawMessage(text), nil
}

// readWatch reads the ID of a task to wait for.
func readWatch(rest []string) (action, error) {
	if len(rest) != 1 {
		return nil, errors.New("name one task after the server")
	}
	return func(ctx context.Context, s *session) error { return s.watch(ctx, rest[0]) }, nil
}

// readCancel reads the IDs of tasks to cancel.
func readCancel(rest []string) (action, error) {
	if len(rest) == 0 {
		return nil, errors.New("name a task after the server")
	}
	return func(ctx context.Context, s *session) error { return s.cancelTasks(ctx, rest) }, nil
}

// readAnswer reads a task, the key of its question, and the answer.
func readAnswer(rest []string) (action, error) {
	if len(rest) < 1 || len(rest) > 3 {
		return nil, errors.New("give a task, the key of its question if it has several, and the answer")
	}
	var key, answer string
	words := rest[1:]
	if n := len(words); n == 2 || n == 1 && (strings.HasPrefix(words[0], "{") || checkAnswerText(words[0]) == nil) {
		answer, words = words[n-1], words[:n-1]
		if err := checkAnswerText(answer); err != nil {
			return nil, err
		}
	}
	if len(words) > 0 {
		key = words[0]
	}
	return func(ctx context.Context, s *session) error { return s.answerTask(ctx, rest[0], key, answer) }, nil
}
