package terminal

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

const (
	// escapeDelay is how long an escape may be apart from the rest of its sequence. The Esc key takes effect after it.
	escapeDelay = 60 * time.Millisecond
	// maxTyped bounds the reads of a terminal that wait for a question. Further input is lost.
	maxTyped = 64
	// maxEmptyReads bounds the reads in a row that report the end of the input, as for Ctrl-D between questions.
	maxEmptyReads = 32
)

var (
	errNoKeyboard = errors.New("the keyboard is gone")
	// errInterrupted means that the person pressed Ctrl-C.
	errInterrupted = errors.New("the question was interrupted")
)

// The marks of a terminal around pasted text.
var pasteStart, pasteEnd = []byte("\x1b[200~"), []byte("\x1b[201~")

// keyboard reads a person's input. One goroutine reads, because a read of a terminal cannot be stopped. It ends with
// the terminal, or with the process.
type keyboard struct {
	in    *os.File
	start sync.Once
	typed chan []byte
}

func newKeyboard(in *os.File) *keyboard { return &keyboard{in: in, typed: make(chan []byte, maxTyped)} }

// read reads until the keyboard ends.
func (k *keyboard) read() {
	defer close(k.typed)
	buffer := make([]byte, 4096)
	for empty := 0; empty < maxEmptyReads; {
		n, err := k.in.Read(buffer)
		switch {
		case n > 0:
			empty = 0
			select {
			case k.typed <- bytes.Clone(buffer[:n]):
			default:
			}
		case err == nil || errors.Is(err, io.EOF):
			empty++
		default:
			return
		}
	}
}

// forget discards input that was typed before the question was on the screen.
func (k *keyboard) forget() {
	flushInput(k.in)
	for {
		select {
		case _, ok := <-k.typed:
			if ok {
				continue
			}
		default:
		}
		return
	}
}

// typist reads the input for one question. Its errors are errInterrupted for Ctrl-C, ErrDismissed for Esc,
// errNoKeyboard, errClosed, and the cause of the end of its context.
type typist struct {
	*keyboard
	ctx         context.Context //nolint:containedctx // of the question
	closed      <-chan struct{}
	held, ready []byte // the beginning of a sequence, and the bytes that can be read
	isPasting   bool
}

// Read implements io.Reader. Ends of lines in pasted text become blanks, so that the person presses Enter.
func (r *typist) Read(p []byte) (int, error) {
	for len(r.ready) == 0 {
		var alone <-chan time.Time
		if len(r.held) > 0 {
			alone = time.After(escapeDelay)
		}
		select {
		case <-r.ctx.Done():
			return 0, context.Cause(r.ctx)
		case <-r.closed:
			return 0, errClosed
		case <-alone:
			if string(r.held) == "\x1b" {
				return 0, mcptask.ErrDismissed
			}
			r.ready, r.held = r.held, nil
		case typed, ok := <-r.typed:
			switch {
			case !ok:
				return 0, errNoKeyboard
			case bytes.IndexByte(typed, 0x03) >= 0: // in pasted text too: if the end of the text got lost, nothing else would help
				return 0, errInterrupted
			}
			r.take(append(r.held, typed...))
		}
	}
	n := copy(p, r.ready)
	r.ready = r.ready[n:]
	return n, nil
}

// take makes typed bytes ready to be read, but for the beginning of a sequence at their end.
func (r *typist) take(typed []byte) {
	r.held = nil
	if at := bytes.LastIndexByte(typed, '\x1b'); at >= 0 && len(typed)-at < len(pasteEnd) && bytes.HasPrefix(pasteEnd, typed[at:]) {
		typed, r.held = typed[:at], bytes.Clone(typed[at:])
	}
	for len(typed) > 0 {
		mark := pasteStart
		if r.isPasting {
			mark = pasteEnd
		}
		part, rest, isMarked := bytes.Cut(typed, mark)
		if r.isPasting {
			if isMarked {
				part = bytes.TrimRight(part, "\r\n")
			}
			for _, end := range []string{"\r\n", "\r", "\n"} {
				part = bytes.ReplaceAll(part, []byte(end), []byte(" "))
			}
		}
		r.ready = append(r.ready, part...)
		if isMarked {
			r.ready = append(r.ready, mark...)
			r.isPasting = !r.isPasting
		}
		typed = rest
	}
}
