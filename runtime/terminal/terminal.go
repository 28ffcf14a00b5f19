// Package terminal shows the tasks that a program calls to a person at a terminal, and asks the person what the
// tasks ask.
//
// A [Terminal] keeps one line on the screen, with a bar and the time. It asks forms field by field, by their
// schema. If there is no terminal, it writes a line for each change and asks nobody.
package terminal

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// drawEvery is how often the line is drawn again.
const drawEvery = 100 * time.Millisecond

// errClosed says that the terminal was closed.
var errClosed = errors.New("the terminal is closed")

// The sequences that the terminal is driven with.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearRight = "\x1b[K"
	clearBelow = "\x1b[J"
	markPaste  = "\x1b[?2004h"
	plainPaste = "\x1b[?2004l"
)

// Options say what a Terminal writes to, what it reads, and how it looks. The zero value of each field is usable.
type Options struct {
	// In is where the person types. If it is nil or no terminal, nobody is asked. From the first question on the
	// Terminal reads In, also between questions and after Close, until the process ends: nothing else can read it.
	In *os.File
	// Out is where the line and the questions go, usually os.Stderr. If it is nil, nothing is written and nobody
	// is asked.
	Out *os.File
	// NoInput asks nobody.
	NoInput bool
	// Quiet shows no states, only questions.
	Quiet bool
	// Getenv returns a variable of the environment: NO_COLOR, CLICOLOR_FORCE, TERM. If it is nil, it is os.Getenv.
	Getenv func(string) string
	// Interrupt is called when the person presses Ctrl-C at a question: then the terminal sends no signal. The
	// terminal is restored before, so that the next Ctrl-C is a signal. The question goes on waiting until its
	// context ends. If Interrupt is nil, the process gets the signal os.Interrupt.
	Interrupt func()
}

// Terminal shows tasks and asks questions. Make one with New and close it. All methods are safe for concurrent use.
type Terminal struct {
	in, out   *os.File
	quiet     bool
	interrupt func()
	look      style
	// isTerminal says that Out is a terminal, and isLive that it takes escape sequences.
	isTerminal, isLive, canAsk bool
	keys                       *keyboard
	turn                       chan struct{} // has an element while a question is asked
	closed                     chan struct{}

	mu             sync.Mutex // guards what follows, and what is written
	board          board
	drawing        bool // a goroutine draws the line
	asking         bool // the line is away
	isCursorHidden bool
	line           string      // the line on the screen, or ""
	prompt         []string    // the prompt on the screen, or nil
	raw            *term.State // what In was before the question, or nil
	console        func()      // undoes what New changed
}

// New returns a terminal. It writes nothing yet.
func New(options Options) *Terminal {
	getenv := options.Getenv
	if getenv == nil {
		getenv = os.Getenv
	}
	t := &Terminal{
		in: options.In, out: options.Out, quiet: options.Quiet, interrupt: options.Interrupt, console: func() {},
		keys: newKeyboard(options.In), turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if t.interrupt == nil {
		t.interrupt = interruptProcess
	}
	if t.isTerminal = isTerminal(t.out); t.isTerminal && getenv("TERM") != "dumb" {
		t.console, t.isLive = enableSequences(t.out)
	}
	t.canAsk = !options.NoInput && t.isTerminal && isTerminal(t.in)
	t.look.colored = isColored(t.isLive, getenv)
	return t
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// isColored decides whether there are colors, by the variables of https://no-color.org and of CLICOLOR_FORCE.
func isColored(isLive bool, getenv func(string) string) bool {
	if force := getenv("CLICOLOR_FORCE"); force != "" && force != "0" {
		return true
	}
	return isLive && getenv("NO_COLOR") == ""
}

// interruptProcess does what Ctrl-C does while a terminal sends signals.
func interruptProcess() {
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Signal(os.Interrupt) // Windows knows no such signal
	}
}

// CanAsk reports whether there is a person to ask: In and Out are terminals, and Options allow it.
func (t *Terminal) CanAsk() bool { return t.canAsk && !t.isClosed() }

func (t *Terminal) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// Show shows the state of a task. name is what the person calls it, and tells tasks apart. At a terminal, Show
// draws the line: what the task does, how far it is, and the time since its creation. With several names, the
// line has the number of tasks in each state and the last change. A state that is done takes its name off the
// line. Without a terminal, Show writes a line for each change.
func (t *Terminal) Show(name string, s mcptask.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.quiet || t.out == nil || t.isClosed() {
		return
	}
	now := time.Now()
	switch changed := t.board.show(name, s, now); {
	case !t.isLive && changed:
		line := t.board.last.String()
		if took := now.Sub(t.board.last.began); s.Done() && took >= time.Second {
			line += " (" + formatElapsed(took) + ")"
		}
		t.print([]string{line})
	case t.isLive && t.board.isEmpty():
		t.removeLine()
	case t.isLive && !t.drawing:
		t.drawing = true
		go t.keepDrawing()
	}
}

// keepDrawing draws the line while there is something to show.
func (t *Terminal) keepDrawing() {
	defer guard.Then(nil, "the line of a terminal", t.Close)
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for t.drawNext(time.Now()) {
		select {
		case <-ticker.C:
		case <-t.closed:
		}
	}
}

// drawNext draws the line, and reports whether to go on.
func (t *Terminal) drawNext(now time.Time) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.board.isEmpty() || t.isClosed() {
		t.drawing = false
		return false
	}
	t.drawLine(now)
	return true
}

// Printf writes a whole line above the line that lives, or several if the text has ends of lines. The text is made
// Printable, so it has no colors.
func (t *Terminal) Printf(format string, args ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out == nil {
		return
	}
	text := Printable(fmt.Sprintf(format, args...), true)
	t.print(strings.Split(strings.TrimSuffix(text, "\n"), "\n"))
}

// Close removes the line and restores the terminal. A question that is asked returns ErrDismissed. Printf goes on
// working. Close may be called again.
func (t *Terminal) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.isClosed() {
		return
	}
	close(t.closed)
	t.removeLine()
	t.removePrompt()
	t.leaveRaw()
	t.console()
}

// The methods below need t.mu.

// write writes to Out. If that fails, there is no place to say so.
func (t *Terminal) write(s string) { _, _ = t.out.WriteString(s) }

// size returns the columns that a line may take, and the rows. The last column stays empty, because some terminals
// begin a new line at it.
func (t *Terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		width, height = 80, 24
	}
	return max(width-1, 1), height
}

// drawLine draws the line that lives, unless a question is on the screen.
func (t *Terminal) drawLine(now time.Time) {
	if t.asking || t.isClosed() || !t.isLive || t.board.isEmpty() {
		return
	}
	width, _ := t.size()
	t.line = t.board.line(width, now, t.look)
	if !t.isCursorHidden {
		t.isCursorHidden = true
		t.write(hideCursor)
	}
	t.write("\r" + t.line + clearRight)
}

// removeLine takes the line off the screen and shows the cursor.
func (t *Terminal) removeLine() {
	t.eraseLine()
	if t.isCursorHidden {
		t.isCursorHidden = false
		t.write(showCursor)
	}
}

func (t *Terminal) eraseLine() {
	if t.line != "" {
		t.line = ""
		t.write("\r" + clearRight)
	}
}

// print writes lines above what is on the screen.
func (t *Terminal) print(lines []string) {
	prompt := t.prompt
	t.removePrompt()
	t.eraseLine()
	end := "\n"
	if t.isTerminal {
		end = "\r\n" // a raw terminal does not return by itself
	}
	t.write(strings.Join(lines, end) + end)
	if prompt != nil {
		t.drawPrompt(prompt)
	}
	t.drawLine(time.Now())
}

// drawPrompt draws a prompt in the place of the one on the screen.
func (t *Terminal) drawPrompt(lines []string) {
	if !t.isLive { // only its last line, without sequences
		lines = lines[len(lines)-1:]
		blank := ""
		if t.prompt != nil {
			blank = strings.Repeat(" ", columns(t.prompt[0]))
		}
		t.write("\r" + blank + "\r" + lines[0])
		t.prompt = lines
		return
	}
	var b strings.Builder
	b.WriteString(t.promptStart())
	for i, line := range lines {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(line + clearRight)
	}
	b.WriteString(clearBelow)
	t.write(b.String())
	t.prompt = lines
}

// promptStart returns the sequence that goes to the beginning of the prompt on the screen.
func (t *Terminal) promptStart() string {
	if len(t.prompt) > 1 {
		return fmt.Sprintf("\r\x1b[%dA", len(t.prompt)-1)
	}
	return "\r"
}

// removePrompt takes the prompt off the screen.
func (t *Terminal) removePrompt() {
	switch {
	case t.prompt == nil:
		return
	case t.isLive:
		t.write(t.promptStart() + clearBelow)
	default:
		t.write("\r" + strings.Repeat(" ", columns(t.prompt[0])) + "\r")
	}
	t.prompt = nil
}

// enterRaw makes In give each key at once.
func (t *Terminal) enterRaw() (err error) {
	if t.raw, err = term.MakeRaw(int(t.in.Fd())); err == nil && t.isLive {
		t.write(markPaste)
	}
	return err
}

// leaveRaw restores In.
func (t *Terminal) leaveRaw() {
	if t.raw == nil {
		return
	}
	if t.isLive {
		t.write(plainPaste)
	}
	_ = term.Restore(int(t.in.Fd()), t.raw) // there is nothing else to try
	t.raw = nil
}
