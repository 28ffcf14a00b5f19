package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// connectWithin bounds how long a server may take until it can be called.
const connectWithin = 30 * time.Second

// settleWithin is how long the command waits for an answer to reach the server before it ends for another reason.
const settleWithin = time.Second

// session is one run of a command: the connection to a server, and the terminal of the person.
type session struct {
	*config
	conn     mcptask.Conn
	terminal *terminal.Terminal
	task     string // the command's task, or ""
	// asked gets the first question that nobody here can answer.
	asked chan openQuestion
	// answered has a value once a question is answered.
	answered chan struct{}
	// single means that the answer of the command line is for one question.
	single bool
	// only is the key or the type of the only question to answer, or "".
	only string
	// lost means that the last attempt did not reach the server.
	lost atomic.Bool

	mu    sync.Mutex
	taken *mcptask.Question // the question that has it
}

// openQuestion is a question that stays open. It ends the command.
type openQuestion struct {
	mcptask.Question
	fault error // of the answer that the command line has for it, or nil
}

// Error implements error.
func (q openQuestion) Error() string { return "an answer is needed: " + q.Message }

// newSession returns a session that is not connected yet.
func newSession(c *config) *session {
	s := &session{config: c, asked: make(chan openQuestion, 1), answered: make(chan struct{}, 1)}
	s.terminal = terminal.New(c.stdin, c.stderr, func() {
		select {
		case c.interrupts <- os.Interrupt:
		default:
		}
	})
	return s
}

// connect connects to the server.
func (s *session) connect(ctx context.Context) error {
	options := gosdk.ClientOptions{Answer: mcptask.AnswerAny(s.answer), OpenURL: s.openURL}
	options.Tasks.Logger = slog.New(slog.DiscardHandler) // of the tasks that a server makes of its questions
	stderr := io.Discard
	if s.verbose {
		stderr = s.stderr
		options.Logger = slog.New(slog.NewTextHandler(s.stderr, nil))
	}
	within, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	last := &tail{next: stderr}
	conn, err := s.server.connect(within, options, last)
	if other, ok := s.server.atUsualPath(); ok && isNotMCP(err) {
		if there, fault := other.connect(within, options, last); !isNotMCP(fault) {
			if !s.isForPrograms() {
				s.terminal.Printf("%s is not an MCP server: using %s", s.server.URL, other.URL)
			}
			s.server, conn, err = other, there, fault
		}
	}
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil {
		failed := describeFailure(err, "")
		if s.server.URL != "" && isNotMCP(err) {
			failed.error = fmt.Errorf("%s: %w; is the path right? Most servers have MCP at /mcp", s.server.URL, failed.error)
		}
		if words := last.String(); words != "" && !s.verbose {
			failed.error = fmt.Errorf("%w\n%s", failed.error, terminal.Printable(words, true))
		}
		return failed
	}
	s.conn = conn
	if full, ok := conn.(fullConn); ok {
		s.conn = readsConn{full, s.noteRead}
	}
	return nil
}

// fullConn has the methods of package gosdk's connections.
type fullConn interface {
	mcptask.Conn
	mcptask.Watcher
	mcptask.Lister
}

// readsConn tells how each read of a task has ended.
type readsConn struct {
	fullConn
	note func(context.Context, error)
}

// Task implements mcptask.Conn.
func (c readsConn) Task(ctx context.Context, id string) (mcptask.Snapshot, error) {
	snapshot, err := c.fullConn.Task(ctx, id)
	c.note(ctx, err)
	return snapshot, err
}

// noteRead tells the person that the server cannot be reached, once until it answers again.
func (s *session) noteRead(ctx context.Context, err error) {
	var wire *mcptask.Error
	if err == nil || errors.As(err, &wire) {
		s.lost.Store(false)
		return
	}
	if ctx.Err() != nil || errors.Is(err, mcptask.ErrDisconnected) || s.lost.Swap(true) || s.isQuiet() {
		return
	}
	s.terminal.Printf("The server cannot be reached. Trying again.")
}

// close ends the connection, if there is one. Tasks go on.
func (s *session) close() {
	s.terminal.Close()
	if s.conn != nil {
		_ = s.conn.Close() // nobody could read the error
	}
}

// tail keeps the end of a program's output, and passes all of it on.
type tail struct {
	next io.Writer
	mu   sync.Mutex
	kept []byte
}

// maxTail is how many bytes a tail keeps.
const maxTail = 2000

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-maxTail):]...)
	t.kept = bytes.Clone(t.kept[max(0, len(t.kept)-maxTail):])
	return t.next.Write(p)
}

// String returns the kept end.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.kept))
}

// answer answers a form: as given on the command line, or by the person.
func (s *session) answer(ctx context.Context, q mcptask.Question) (json.RawMessage, error) {
	if s.isForAnother(q) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	content, err := s.findAnswer(q)
	var fault error
	if content != nil { // servers fail the task for a wrong answer, or do without one
		if wrong := terminal.Check(ctx, q.Schema, content); wrong != nil {
			fault = fmt.Errorf("%w: %w", mcptask.ErrInvalidAnswer, wrong)
		}
	}
	if content == nil && err == nil {
		fault = s.checkNames(q)
	}
	if (content != nil || err != nil) && fault == nil && !s.take(q) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	if content == nil && err == nil || fault != nil {
		if !s.canAsk() {
			return nil, s.leaveOpen(ctx, q, fault)
		}
		if fault != nil {
			s.terminal.Printf("%v", fault)
		}
		content, err = s.terminal.Ask(ctx, q)
		if errors.Is(err, mcptask.ErrCannotAsk) { // the terminal has gone
			return nil, s.leaveOpen(ctx, q, nil)
		}
	}
	if err == nil || errors.Is(err, mcptask.ErrDeclined) || errors.Is(err, mcptask.ErrDismissed) && ctx.Err() == nil {
		s.noteAnswer()
	}
	return content, err
}

// isForAnother reports whether the command is for another question of the task.
func (s *session) isForAnother(q mcptask.Question) bool {
	return s.only != "" && q.Key != "" && !s.isNamed(q)
}

// isNamed reports whether the person has named a question.
func (s *session) isNamed(q mcptask.Question) bool { return q.Key == s.only || q.Input == s.only }

// checkNames returns an error if the person has named another question, or has only answers to other questions.
func (s *session) checkNames(q mcptask.Question) error {
	names := "neither a key nor a type"
	switch {
	case q.Key != "" && q.Input != "":
		names = fmt.Sprintf("the key %q and the type %q", q.Key, q.Input)
	case q.Key != "":
		names = fmt.Sprintf("the key %q", q.Key)
	case q.Input != "":
		names = fmt.Sprintf("the type %q", q.Input)
	}
	isOther := s.only != "" && !s.isNamed(q)
	switch {
	case isOther && len(s.answers) == 0:
		return fmt.Errorf("the task has no question %q, and %[1]q is neither a JSON object nor decline or cancel", s.only)
	case isOther:
		return fmt.Errorf("the task has no question %q; this one has %s", s.only, names)
	case len(s.answers) > 0:
		return fmt.Errorf("no --answer is for this question, which has %s", names)
	}
	return nil
}

// take reports whether a question may have the answer of the command line. If that is for one question, the first takes it.
// That question may ask again, if its key tells it apart.
func (s *session) take(q mcptask.Question) bool {
	if !s.single {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken == nil {
		s.taken = &q
		return true
	}
	return q.Key != "" && s.taken.Key == q.Key
}

// taker returns the question that has the answer of the command line, or nil.
func (s *session) taker() *mcptask.Question {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.taken
}

// noteAnswer signals that a question is answered.
func (s *session) noteAnswer() {
	select {
	case s.answered <- struct{}{}:
	default:
	}
}

// leaveOpen reports a question that nobody here can answer, and waits until the command ends. An error would tell the
// server that nobody will ever answer.
func (s *session) leaveOpen(ctx context.Context, q mcptask.Question, fault error) error {
	if len(s.answers) > 0 { // the end of the command could lose the answers to other questions
		select {
		case <-time.After(settleWithin):
		case <-ctx.Done():
		}
	}
	if s.taker() != nil {
		<-ctx.Done()
		return ctx.Err()
	}
	select {
	case s.asked <- openQuestion{q, fault}:
	default:
	}
	<-ctx.Done()
	return ctx.Err()
}

// findAnswer returns the answer that the command line has for a question, or nil. The words decline and cancel refuse.
func (s *session) findAnswer(q mcptask.Question) (json.RawMessage, error) {
	for _, name := range []string{q.Key, q.Input, "*"} {
		text, ok := s.answers[name]
		switch {
		case !ok || name == "":
		case text == "decline":
			return nil, mcptask.ErrDeclined
		case text == "cancel":
			return nil, mcptask.ErrDismissed
		default:
			return json.RawMessage(text), nil
		}
	}
	return nil, nil
}

// openURL lets the person open a page.
func (s *session) openURL(ctx context.Context, q mcptask.Question) error {
	content, err := s.findAnswer(q)
	switch {
	case s.isForAnother(q), (err != nil || content != nil) && !s.take(q):
		<-ctx.Done()
		return ctx.Err()
	case err != nil || content != nil:
	case !s.canAsk():
		return s.leaveOpen(ctx, q, s.checkNames(q))
	default:
		err = s.terminal.OpenURL(ctx, q)
		if errors.Is(err, mcptask.ErrCannotAsk) {
			return s.leaveOpen(ctx, q, nil)
		}
	}
	if ctx.Err() == nil {
		s.noteAnswer()
	}
	return err
}

// isForPrograms reports whether a program reads the output. Then standard error has nothing but the error, as JSON.
func (s *session) isForPrograms() bool { return s.format == formatJSON || s.format == formatLines }

// isQuiet reports whether the terminal shows no progress.
func (s *session) isQuiet() bool { return s.quiet || s.isForPrograms() }

// show shows the state of a task.
func (s *session) show(name string, snapshot mcptask.Snapshot) {
	if !s.isQuiet() {
		s.terminal.Show(name, snapshot)
	}
}

// canAsk reports whether a person answers questions.
func (s *session) canAsk() bool { return !s.noInput && s.terminal.CanAsk() }
