// Package calls calls the tools of a server, and watches, answers and cancels their tasks, for a person or a script at a
// command line.
package calls

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

// Tool says what to call.
type Tool struct {
	Name string
	// Words are the arguments as a person types them: see terminal.Arguments. They add to Arguments, a JSON object or nil.
	Words     []string
	Arguments json.RawMessage
	// Detach prints the ID of a task and does not wait for its result.
	Detach bool
	// Plain, TTL and IdempotencyKey are the options of package mcptask with these names.
	Plain          bool
	TTL            time.Duration
	IdempotencyKey string
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

// code returns the exit code.
func (i interruption) code() int {
	if code, ok := endings[i.signal]; ok {
		return code
	}
	return ExitInterrupted
}

// Endings returns the signals besides Ctrl-C that Config.Interrupts should get, so that a command that they end restores the
// terminal, and ends the program that it has started.
func Endings() []os.Signal { return slices.Collect(maps.Keys(endings)) }

const (
	// onePress is for how long further interrupts belong to one press of Ctrl-C. The terminal sends it to the go command and
	// to the tool that the go command runs, and the go command passes its own on to the tool.
	onePress = 300 * time.Millisecond
	// secondInterrupt is how long the person has for the second Ctrl-C, which cancels the task.
	secondInterrupt = 2 * time.Second
	// cancelWithin bounds that cancellation.
	cancelWithin = 10 * time.Second
)

// Call calls a tool and prints its result. The error is a *Failure.
func Call(ctx context.Context, config Config, tool Tool) error {
	return config.run(ctx, func(ctx context.Context, s *session) error {
		info, err := s.findTool(ctx, tool.Name)
		if err != nil {
			return err
		}
		arguments, err := terminal.Arguments(ctx, info, tool.Arguments, tool.Words)
		if err != nil {
			return usage(fmt.Errorf("%w; %s shows the arguments", err, s.Server.commandLine("tools", tool.Name)))
		}
		options := []mcptask.CallOption{mcptask.TTL(tool.TTL), func(c *mcptask.ToolCall) { c.IdempotencyKey = tool.IdempotencyKey }}
		if tool.Plain {
			options = append(options, mcptask.Plain())
		}
		if isTerminal(s.Stderr) { // elsewhere each state is a line, and there is no task yet
			s.terminal.Show(tool.Name, mcptask.Snapshot{Status: mcptask.StatusWorking})
		}
		var call *mcptask.Call[*mcptask.Result]
		err = s.interruptible(ctx, "", func(ctx context.Context) error {
			call, err = mcptask.Start[*mcptask.Result](ctx, s.conn, tool.Name, arguments, options...)
			return err
		})
		if err != nil {
			return err
		}
		if id := call.TaskID(); id != "" && tool.Detach {
			return s.printDetached(id)
		}
		return s.follow(ctx, tool.Name, call)
	})
}

// run connects to the server and does work. The error is a *Failure.
func (c Config) run(ctx context.Context, work func(context.Context, *session) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	if c.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.Timeout)
		defer cancel()
	}
	if err := c.check(); err != nil {
		return usage(err)
	}
	s := newSession(c)
	defer s.close()
	err := s.interruptible(ctx, "", s.connect)
	if err == nil {
		err = work(ctx, s)
	}
	if err == nil {
		return nil
	}
	f := describeFailure(err, "")
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		f.Code, f.Kind, f.Err = ExitTimeout, "timeout", fmt.Errorf("--timeout %v is over", c.Timeout)
		if f.Task != "" {
			f.Err = fmt.Errorf("%w. %s", f.Err, c.Server.sayGoesOn(f.Task))
		}
	case f.Code == ExitUnreachable && f.Task != "":
		f.Err = fmt.Errorf("%w\nIf the task goes on, this waits for it:\n  %s", f.Err, c.Server.commandLine("watch", f.Task))
	}
	return f
}

// check returns an error for what would fail only after the tool has begun.
func (c Config) check() error {
	if len(c.Sample) > 0 {
		if _, err := exec.LookPath(c.Sample[0]); err != nil {
			return fmt.Errorf("--sample: %w", err)
		}
	}
	if c.Save == "" {
		return nil
	}
	if info, err := os.Stat(c.Save); err != nil || !info.IsDir() {
		return fmt.Errorf("--save: %s is no directory", c.Save)
	}
	return nil
}

// listTools returns the server's tools.
func (s *session) listTools(ctx context.Context) (tools []mcptask.ToolInfo, err error) {
	err = s.interruptible(ctx, "", func(ctx context.Context) (err error) {
		tools, err = s.conn.ListTools(ctx)
		return err
	})
	return tools, err
}

// findTool returns what the server says of a tool.
func (s *session) findTool(ctx context.Context, name string) (mcptask.ToolInfo, error) {
	tools, err := s.listTools(ctx)
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
	return mcptask.ToolInfo{}, usage(terminal.Unknown("the server", "tool", name, names))
}

// interruptible does work. It cancels the work and waits for its end if the person presses Ctrl-C, if the system ends the
// command by a signal, or if the task asks what nobody here can answer. task is the task that the work is about, or "".
func (s *session) interruptible(ctx context.Context, task string, work func(context.Context) error) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	done := make(chan struct{})
	var err error // once it is done
	go func() {
		defer close(done)
		defer func() {
			if r := recover(); r != nil {
				err = fmt.Errorf("it panicked: %v", r)
			}
		}()
		err = work(ctx)
	}()
	select {
	case <-done:
		return err
	case q := <-s.asked:
		stop(nil)
		<-done
		if q.TaskID != "" {
			task = q.TaskID
		}
		return s.needAnswer(task, q)
	case signal := <-s.Interrupts:
		stop(interruption{signal})
		<-done
		return interruption{signal}
	}
}

// ReadInput reads standard input, up to so many bytes. The error is a *Failure if a signal ends the command before.
func (c Config) ReadInput(ctx context.Context, most int64) (content []byte, err error) {
	read := make(chan error, 1)
	var input []byte // once it is read
	go func() {
		var err error
		input, err = io.ReadAll(io.LimitReader(c.Stdin, most))
		read <- err
	}()
	s := &session{Config: c}
	err = s.interruptible(ctx, "", func(ctx context.Context) error {
		select {
		case err := <-read:
			content = input
			return err
		case <-ctx.Done(): // nothing ends the read
			return ctx.Err()
		}
	})
	if interrupted := (interruption{}); errors.As(err, &interrupted) {
		return nil, describeFailure(err, "")
	}
	return content, err
}

// needAnswer returns the failure of a command whose task asks what nobody here can answer. task may be "".
func (s *session) needAnswer(task string, q openQuestion) *Failure {
	f := &Failure{Code: ExitAsks, Kind: "needs_answer", Task: task, Question: newQuestion(q.Question)}
	text := "an answer is needed: " + terminal.Printable(q.Message, false)
	switch {
	case errors.Is(q.fault, mcptask.ErrInvalidAnswer):
		f.Code, f.Kind = ExitUsage, "wrong_answer"
		text = "the answer was not sent: " + terminal.Printable(q.fault.Error(), false) + "\nThe question is: " + terminal.Printable(q.Message, false)
	case q.fault != nil:
		text += "\n" + terminal.Printable(q.fault.Error(), false)
	}
	if task != "" {
		words := []string{task}
		if q.Key != "" {
			words = append(words, q.Key)
		}
		text += "\nThis answers it:\n  " + s.Server.commandLine("answer", words...)
	}
	f.Err = errors.New(text)
	return f
}

// follow shows a call until it is done, and prints its result. Ctrl-C leaves a task running. A second Ctrl-C cancels it.
func (s *session) follow(ctx context.Context, name string, call *mcptask.Call[*mcptask.Result]) error {
	id := call.TaskID()
	var last mcptask.Snapshot
	err := s.interruptible(ctx, id, func(ctx context.Context) error {
		for snapshot, err := range call.Updates(ctx) {
			if err != nil {
				return err
			}
			last = snapshot
			if !snapshot.Done() { // the result, or the failure, tells the end
				s.terminal.Show(name, snapshot)
			}
			if s.Format == FormatLines && !snapshot.Done() {
				if err := s.printLine(describeState(snapshot)); err != nil {
					return usage(err)
				}
			}
		}
		return nil
	})
	var interrupted interruption
	switch {
	case errors.As(err, &interrupted):
		return s.leave(ctx, interrupted, id, call)
	case err != nil:
		return describeFailure(err, id)
	}
	result, err := call.Wait(ctx)
	var tool *mcptask.ToolError
	if errors.As(err, &tool) {
		result = tool.Result
	}
	s.terminal.Close()
	if printed := s.printEnd(last, result); printed != nil {
		return usage(printed)
	}
	if err != nil {
		return describeFailure(err, id)
	}
	return nil
}

// leave ends the wait for a task after a signal. After Ctrl-C it offers that a second one cancels the task. A second one
// counts only after that offer.
func (s *session) leave(ctx context.Context, by interruption, id string, call *mcptask.Call[*mcptask.Result]) error {
	left := describeFailure(by, id)
	if id == "" {
		return left
	}
	s.terminal.Printf("%s", s.Server.sayGoesOn(id))
	if by.signal != os.Interrupt {
		return left
	}
	timer := time.NewTimer(onePress)
	defer timer.Stop()
	for isTold, isPressed := false, false; !isPressed; {
		select {
		case <-timer.C:
			if isTold {
				return left
			}
			isTold = true
			s.terminal.Printf("Ctrl-C once more cancels it.")
			timer.Reset(secondInterrupt)
		case signal := <-s.Interrupts:
			if signal != os.Interrupt {
				return describeFailure(interruption{signal}, id)
			}
			isPressed = isTold
		}
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelWithin)
	defer cancel()
	if err := call.Cancel(ctx); err != nil {
		return describeFailure(fmt.Errorf("the task was not cancelled: %w", err), id)
	}
	return &Failure{Code: ExitCancelled, Kind: "cancelled", Task: id, Err: errors.New("the task was cancelled")}
}

// state is a task as a program reads it.
type state struct {
	Task      string          `json:"task,omitempty"`
	Status    mcptask.Status  `json:"status"`
	Message   string          `json:"message,omitempty"`
	Done      float64         `json:"done,omitempty"`
	Total     float64         `json:"total,omitempty"`
	CreatedAt *time.Time      `json:"created,omitempty"`
	UpdatedAt *time.Time      `json:"updated,omitempty"`
	Questions []*Question     `json:"questions,omitempty"`
	Result    *mcptask.Result `json:"result,omitempty"`
	Error     *mcptask.Error  `json:"error,omitempty"`
}

// describeState describes a task.
func describeState(s mcptask.Snapshot) state {
	described := state{
		Task: s.TaskID, Status: s.Status, Message: s.Message, Done: s.Progress.Done, Total: s.Progress.Total,
		CreatedAt: nonZero(s.CreatedAt), UpdatedAt: nonZero(s.UpdatedAt), Result: s.Result, Error: s.Error,
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
	if isTerminal(s.Stdout) && isTerminal(s.Stderr) {
		s.terminal.Printf("%s", line)
		return nil
	}
	_, err := fmt.Fprintln(s.Stdout, line)
	return err
}

// printDetached prints the task that goes on.
func (s *session) printDetached(id string) error {
	s.terminal.Close()
	if s.Format == FormatText {
		shown := id
		if isTerminal(s.Stdout) {
			shown = terminal.Printable(id, false)
		}
		if _, err := fmt.Fprintln(s.Stdout, shown); err != nil {
			return usage(err)
		}
		if !s.Quiet {
			fmt.Fprintln(s.Stderr, s.Server.sayGoesOn(id))
		}
		return nil
	}
	if err := s.printLine(state{Task: id, Status: mcptask.StatusWorking}); err != nil {
		return usage(err)
	}
	return nil
}

// printEnd prints a task that is done. result is nil if there is none.
func (s *session) printEnd(last mcptask.Snapshot, result *mcptask.Result) error {
	if s.Format != FormatText {
		if err := s.printLine(describeState(last)); err != nil {
			return err
		}
		if s.Save == "" {
			return nil
		}
	}
	if result == nil || result.IsError { // the failure says it
		return nil
	}
	text, files := terminal.ReadResult(result)
	if isTerminal(s.Stdout) {
		text = terminal.Printable(text, true)
	}
	if text != "" && s.Format == FormatText {
		if _, err := fmt.Fprintln(s.Stdout, strings.TrimSuffix(text, "\n")); err != nil {
			return err
		}
	}
	for _, file := range files {
		if s.Save == "" {
			fmt.Fprintf(s.Stderr, "%s (%s, %d bytes): --save DIRECTORY writes it\n", file.Name, terminal.Printable(file.MediaType, false), len(file.Data))
			continue
		}
		path, err := file.Save(s.Save)
		if err != nil {
			return fmt.Errorf("--save: %w", err)
		}
		fmt.Fprintf(s.Stderr, "%s (%s, %d bytes)\n", path, terminal.Printable(file.MediaType, false), len(file.Data))
	}
	return nil
}

// isTerminal reports whether w is a terminal.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) //nolint:gosec // a descriptor fits
}
