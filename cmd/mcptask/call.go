package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/term"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// toolCall is a call of a tool.
type toolCall struct {
	name string
	// words are the arguments as a person types them: see terminal.Arguments. They add to arguments, a JSON object or nil.
	words          []string
	arguments      json.RawMessage
	detach, plain  bool
	ttl            time.Duration
	idempotencyKey string
}

// interruption is the error of work that the person, or the system, ends by a signal.
type interruption struct{ signal os.Signal }

// Error implements error.
func (i interruption) Error() string {
	if i.signal == os.Interrupt {
		return "interrupted"
	}
	return "ended by a signal: " + i.signal.String()
}

// code returns the exit code, as shells have it.
func (i interruption) code() int {
	if number, ok := i.signal.(syscall.Signal); ok {
		return 128 + int(number)
	}
	return exitInterrupted
}

// cancelWithin bounds how long reading the state of a cancelled task may take.
const cancelWithin = 10 * time.Second

// run calls the tool and prints its result.
func (c toolCall) run(ctx context.Context, s *session) error {
	info, err := s.findTool(ctx, c.name)
	if err != nil {
		return err
	}
	arguments, err := terminal.Arguments(ctx, info, c.arguments, c.words)
	if err != nil {
		return usageFailure(fmt.Errorf("%w; %s shows the arguments", err, s.server.commandLine("tools", c.name)))
	}
	options := []mcptask.CallOption{mcptask.TTL(c.ttl), func(call *mcptask.ToolCall) { call.IdempotencyKey = c.idempotencyKey }}
	if c.plain {
		options = append(options, mcptask.Plain())
	}
	if isTerminal(s.stderr) { // elsewhere each state is a line, and there is no task yet
		s.show(c.name, mcptask.Snapshot{Status: mcptask.StatusWorking})
	}
	call, err := mcptask.Start[*mcptask.Result](ctx, s.conn, c.name, arguments, options...)
	if err != nil {
		return err
	}
	if id := call.TaskID(); id != "" && c.detach {
		return s.printDetached(id)
	}
	return s.follow(ctx, c.name, call)
}

// run connects to the server and does something on it. The error is a *failure.
func (c *config) run(ctx context.Context, do action) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	if c.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	if err := c.check(); err != nil {
		return usageFailure(err)
	}
	s := newSession(c)
	defer s.close()
	go s.awaitEnd(ctx, stop)
	err := s.connect(ctx)
	if err == nil {
		err = do(ctx, s)
	}
	if err == nil {
		return nil
	}
	f := s.explain(ctx, err)
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.code, f.kind, f.error = exitTimeout, "timeout", fmt.Errorf("--timeout %v is over", c.timeout)
		if f.task != "" {
			f.error = fmt.Errorf("%w. %s", f.error, c.server.sayGoesOn(f.task))
		}
	case f.code == exitDenied:
		f.error = c.server.explainDenial(f.error)
	case f.code == exitUnreachable && f.task != "":
		f.error = fmt.Errorf("%w\nIf the task goes on, this waits for it:\n  %s", f.error, c.server.commandLine("watch", f.task))
	}
	return f
}

// check returns an error for flags that would fail only after the tool has begun.
func (c *config) check() error {
	if info, err := os.Stat(c.save); c.save != "" && (err != nil || !info.IsDir()) {
		return fmt.Errorf("--save: %s is not a directory", c.save)
	}
	return nil
}

// findTool returns a tool of the server's list.
func (s *session) findTool(ctx context.Context, name string) (mcptask.ToolInfo, error) {
	tools, err := s.conn.ListTools(ctx)
	if err != nil {
		return mcptask.ToolInfo{}, err
	}
	var names []string
	for _, tool := range tools {
		if tool.Name == name {
			return tool, nil
		}
		names = append(names, tool.Name)
	}
	return mcptask.ToolInfo{}, usageFailure(terminal.Unknown("the server", "tool", name, names))
}

// awaitEnd stops the command with a cause: the person presses Ctrl-C, the system ends the command by a signal, or a
// task asks a question that nobody here can answer.
func (s *session) awaitEnd(ctx context.Context, stop context.CancelCauseFunc) {
	select {
	case <-ctx.Done():
	case q := <-s.asked:
		stop(q)
	case signal := <-s.interrupts:
		stop(interruption{signal})
	}
}

// explain returns the failure for an error of the command, or for the cause that stopped it before.
func (s *session) explain(ctx context.Context, err error) *failure {
	var known *failure
	if !errors.As(err, &known) {
		var q openQuestion
		var interrupted interruption
		switch cause := context.Cause(ctx); {
		case errors.As(cause, &q):
			return s.needAnswer(cmp.Or(q.TaskID, s.task), q)
		case errors.As(cause, &interrupted):
			err = interrupted
		}
	}
	return describeFailure(err, s.task)
}

// needAnswer returns the failure of a command whose task asks a question that nobody here can answer. task may be "".
func (s *session) needAnswer(task string, q openQuestion) *failure {
	f := &failure{code: exitAsks, kind: "needs_answer", task: task, question: newQuestion(q.Question)}
	text := "an answer is needed: " + terminal.Printable(q.Message, false)
	switch {
	case errors.Is(q.fault, mcptask.ErrInvalidAnswer):
		f.code, f.kind = exitUsage, "wrong_answer"
		text = "the answer was not sent: " + terminal.Printable(q.fault.Error(), false) + "\nThe question is: " + terminal.Printable(q.Message, false)
	case q.fault != nil:
		text += "\n" + terminal.Printable(q.fault.Error(), false)
	}
	if task != "" {
		words := []string{task}
		if q.Key != "" {
			words = append(words, q.Key)
		}
		text += "\nThis answers it:\n  " + s.server.commandLine("answer", words...)
	}
	f.error = errors.New(text)
	return f
}

// follow shows a call until it is done, and prints its result. Ctrl-C leaves a task running.
func (s *session) follow(ctx context.Context, name string, call *mcptask.Call[*mcptask.Result]) error {
	s.task = call.TaskID()
	var last mcptask.Snapshot
	for snapshot, err := range call.Updates(ctx) {
		var interrupted interruption
		switch {
		case err != nil && errors.As(context.Cause(ctx), &interrupted):
			if s.task != "" && !s.isForPrograms() {
				s.terminal.Printf("%s", s.server.sayGoesOn(s.task))
			}
			return describeFailure(interrupted, s.task)
		case err != nil:
			return err
		}
		last = snapshot
		if snapshot.Done() { // the result, or the failure, tells the end
			continue
		}
		s.show(name, snapshot)
		if s.format == formatLines {
			if err := s.printLine(describeState(snapshot)); err != nil {
				return usageFailure(err)
			}
		}
	}
	result, err := call.Wait(ctx)
	var tool *mcptask.ToolError
	if errors.As(err, &tool) {
		result = tool.Result
	}
	s.terminal.Close()
	if printed := s.printEnd(last, result); printed != nil {
		return usageFailure(printed)
	}
	return err
}

// state is a task as a program reads it.
type state struct {
	Task      string          `json:"task,omitempty"`
	Tool      string          `json:"tool,omitempty"`
	Status    mcptask.Status  `json:"status"`
	Message   string          `json:"message,omitempty"`
	Done      float64         `json:"done,omitempty"`
	Total     float64         `json:"total,omitempty"`
	CreatedAt *time.Time      `json:"created,omitempty"`
	UpdatedAt *time.Time      `json:"updated,omitempty"`
	Questions []*question     `json:"questions,omitempty"`
	Result    *mcptask.Result `json:"result,omitempty"`
	Error     *mcptask.Error  `json:"error,omitempty"`
	Stale     string          `json:"stale,omitempty"`
	// Saved are the paths of the files that --save has written.
	Saved []string `json:"saved,omitempty"`
}

// describeState describes a task.
func describeState(s mcptask.Snapshot) state {
	described := state{
		Task: s.TaskID, Tool: s.Tool, Status: s.Status, Message: s.Message, Done: s.Progress.Done, Total: s.Progress.Total,
		CreatedAt: nonZero(s.CreatedAt), UpdatedAt: nonZero(s.UpdatedAt), Result: s.Result, Error: s.Error, Stale: s.Stale,
	}
	for _, q := range s.Questions {
		described.Questions = append(described.Questions, newQuestion(q))
	}
	return described
}

// nonZero returns a time, or nil if it is zero.
func nonZero(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// printLine prints a value as one line of JSON.
func (s *session) printLine(value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return s.print(string(text))
}

// print prints a line to standard output. At a terminal, where a question may be on the screen, the line goes above it.
func (s *session) print(line string) error {
	if isTerminal(s.stdout) && isTerminal(s.stderr) {
		s.terminal.Printf("%s", line)
		return nil
	}
	_, err := fmt.Fprintln(s.stdout, line)
	return err
}

// printDetached prints the task that goes on.
func (s *session) printDetached(id string) error {
	s.terminal.Close()
	if s.format == formatText {
		shown := id
		if isTerminal(s.stdout) {
			shown = terminal.Printable(id, false)
		}
		if _, err := fmt.Fprintln(s.stdout, shown); err != nil {
			return usageFailure(err)
		}
		if !s.quiet {
			fmt.Fprintln(s.stderr, s.server.sayGoesOn(id))
		}
		return nil
	}
	if err := s.printLine(state{Task: id, Status: mcptask.StatusWorking}); err != nil {
		return usageFailure(err)
	}
	return nil
}

// printEnd prints a task that is done, and saves its files. result is nil if there is none.
func (s *session) printEnd(last mcptask.Snapshot, result *mcptask.Result) error {
	var text string
	var files []terminal.File
	if result != nil && !result.IsError { // the failure has its text
		text, files = terminal.ReadResult(result)
	}
	var saved []string
	if s.save != "" {
		for _, file := range files {
			path, err := file.Save(s.save)
			if err != nil {
				return fmt.Errorf("--save: %w", err)
			}
			saved = append(saved, path)
		}
	}
	if s.format != formatText {
		described := describeState(last)
		described.Saved = saved
		return s.printLine(described)
	}
	if isTerminal(s.stdout) {
		text = terminal.Printable(text, true)
	}
	if text != "" {
		if _, err := fmt.Fprintln(s.stdout, strings.TrimSuffix(text, "\n")); err != nil {
			return err
		}
	}
	for i, file := range files {
		kind := fmt.Sprintf("(%s, %d bytes)", terminal.Printable(file.MediaType, false), len(file.Data))
		if s.save == "" {
			fmt.Fprintf(s.stderr, "%s %s: --save DIRECTORY writes it\n", file.Name, kind)
		} else {
			fmt.Fprintf(s.stderr, "%s %s\n", saved[i], kind)
		}
	}
	return nil
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor fits
}
