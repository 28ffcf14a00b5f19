// Package terminal shows the tasks that a program calls to a person at a terminal, and asks the person the questions of
// the tasks.
//
// A [Terminal] keeps one line on the screen, with a bar and the time. It asks forms field by field, by their
// schema. If there is no terminal, it writes a line for each change and asks nobody.
package terminal

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// drawEvery is how often the line is drawn again.
const drawEvery = 100 * time.Millisecond

// errClosed means that the terminal was closed.
var errClosed = errors.New("the terminal is closed")

// The sequences that the terminal is driven with.
const (
	hideCursor = "\x1b[?25l"
	showCursor = "\x1b[?25h"
	clearRight = "\x1b[K"
)

// Terminal shows tasks and asks questions. Make one with New and close it. All methods are safe for concurrent use.
type Terminal struct {
	in, out   *os.File
	interrupt func()
	look      style
	// isTerminal means that out is a terminal, and isLive that it takes escape sequences.
	isTerminal, isLive bool
	keys               *keyboard
	turn               chan struct{} // has an element while a question is asked
	closed             chan struct{}

	mu             sync.Mutex // guards the fields below, and writes to out
	shown          state      // the last one
	isShowing      bool       // shown is of a task that has not ended
	drawing        bool       // a goroutine draws the line
	isCursorHidden bool
	hasLine        bool           // the line is on the screen
	question       *term.Terminal // edits the answer of the question that is asked, or nil
	raw            *term.State    // the state of in before the question, or nil
	console        func()         // undoes the changes of New
}

// New returns a terminal. It writes nothing yet. The line and the questions go to out, which is usually os.Stderr. If
// out is nil, nothing is written. If in is nil, or if in or out is not a terminal, nobody is asked. From the first
// question on, the Terminal reads in until the process ends, and nothing else can read it.
//
// interrupt is called when the person presses Ctrl-C at a question, because then the terminal sends no signal. Before
// the call the terminal is restored, so that the next Ctrl-C is a signal. The question goes on waiting until its
// context ends.
func New(in, out *os.File, interrupt func()) *Terminal {
	t := &Terminal{
		in: in, out: out, interrupt: interrupt, console: func() {}, keys: newKeyboard(in),
		turn: make(chan struct{}, 1), closed: make(chan struct{}),
	}
	if t.isTerminal = isTerminal(t.out); t.isTerminal && os.Getenv("TERM") != "dumb" {
		t.console, t.isLive = enableSequences(t.out)
	}
	t.look = newStyle(t.isLive)
	return t
}

// newStyle returns the style of an output. isLive means that it takes escape sequences.
func newStyle(isLive bool) style {
	// These are the variables of https://no-color.org and of CLICOLOR_FORCE.
	force := os.Getenv("CLICOLOR_FORCE")
	return style{force != "" && force != "0" || isLive && os.Getenv("NO_COLOR") == ""}
}

// windowWidth returns the columns of the window if w is a terminal, or else 0.
func windowWidth(w io.Writer) int {
	if f, ok := w.(*os.File); ok && isTerminal(f) {
		if width, _, err := term.GetSize(int(f.Fd())); err == nil {
			return width
		}
	}
	return 0
}

func isTerminal(f *os.File) bool { return f != nil && term.IsTerminal(int(f.Fd())) }

// CanAsk reports whether there is a person to ask.
func (t *Terminal) CanAsk() bool { return t.isLive && isTerminal(t.in) && !t.isClosed() }

func (t *Terminal) isClosed() bool {
	select {
	case <-t.closed:
		return true
	default:
		return false
	}
}

// Show shows the state of a task. name is the person's name for it. At a terminal, Show draws the line: the task's message,
// its progress, and the time since its creation. A state that is done takes the line away. Without a terminal, Show
// writes a line for each change.
func (t *Terminal) Show(name string, s mcptask.Snapshot) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out == nil || t.isClosed() {
		return
	}
	now := time.Now()
	before := t.shown
	t.shown, t.isShowing = newState(name, s, now), !s.Done()
	if s.CreatedAt.IsZero() && !before.began.IsZero() {
		t.shown.began = before.began
	}
	switch {
	case !t.isLive && t.shown.String() != before.String():
		line := t.shown.String()
		if took := now.Sub(t.shown.began); s.Done() && took >= time.Second {
			line += " (" + formatElapsed(took) + ")"
		}
		t.print(line)
	case t.isLive && !t.isShowing:
		t.removeLine()
	case t.isLive && !t.drawing:
		t.drawing = true
		go t.keepDrawing()
	}
}

// keepDrawing draws the line while there is something to show.
func (t *Terminal) keepDrawing() {
	defer t.closeInPanic()
	ticker := time.NewTicker(drawEvery)
	defer ticker.Stop()
	for t.drawNext() {
		select {
		case <-ticker.C:
		case <-t.closed:
		}
	}
}

// closeInPanic restores the terminal in a panic.
func (t *Terminal) closeInPanic() {
	if r := recover(); r != nil {
		t.Close()
		panic(r)
	}
}

// drawNext draws the line, and reports whether to go on.
func (t *Terminal) drawNext() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.drawing = t.isShowing && !t.isClosed()
	t.drawLine()
	return t.drawing
}

// Printf writes a whole line above the line or the question on the screen, or several if the text has ends of lines.
// The text is made Printable, so it has no colors.
func (t *Terminal) Printf(format string, args ...any) {
	text := Printable(fmt.Sprintf(format, args...), true)
	t.say(strings.Split(strings.TrimSuffix(text, "\n"), "\n")...)
}

// say writes lines above the line or the question on the screen.
func (t *Terminal) say(lines ...string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.out != nil {
		t.print(lines...)
	}
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
	if t.question != nil {
		t.write("\r\n")
	}
	t.leaveRaw()
	t.console()
}

// The methods below need t.mu.

// write writes to out. If that fails, there is no place to report it.
func (t *Terminal) write(s string) { _, _ = t.out.WriteString(s) }

// size returns the columns and rows of the window.
func (t *Terminal) size() (width, height int) {
	width, height, err := term.GetSize(int(t.out.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return 80, 24
	}
	return width, height
}

// drawLine draws the live line, unless a question is on the screen. The last column stays empty, because some terminals
// begin a new line at it.
func (t *Terminal) drawLine() {
	if t.question != nil || !t.drawing || t.isClosed() {
		return
	}
	width, _ := t.size()
	if !t.isCursorHidden {
		t.isCursorHidden = true
		t.write(hideCursor)
	}
	t.hasLine = true
	t.write("\r" + t.shown.draw(max(width-1, 1), time.Now(), t.look) + clearRight)
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
	if t.hasLine {
		t.hasLine = false
		t.write("\r" + clearRight)
	}
}

// print writes lines above the line or the question on the screen.
func (t *Terminal) print(lines ...string) {
	if t.question != nil {
		_, _ = t.question.Write([]byte(strings.Join(lines, "\n") + "\n")) // there is no place to report a failure
		return
	}
	t.eraseLine()
	end := "\n"
	if t.isTerminal {
		end = "\r\n"
	}
	t.write(strings.Join(lines, end) + end)
	t.drawLine()
}

// leaveRaw ends the question on the screen and restores in.
func (t *Terminal) leaveRaw() {
	if t.question == nil {
		return
	}
	t.question.SetBracketedPasteMode(false)
	t.question = nil
	_ = term.Restore(int(t.in.Fd()), t.raw) // there is nothing else to try
}
