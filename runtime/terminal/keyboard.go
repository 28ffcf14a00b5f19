package terminal

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

const (
	// escapeDelay is how long an escape may be apart from the rest of its sequence. The Esc key takes effect after it.
	escapeDelay = 60 * time.Millisecond
	// maxTyped bounds the bytes that wait for a question. What is typed beyond is lost.
	maxTyped = 256 << 10
	// maxEmptyReads is how often the keyboard may say that it has ended, as it does for Ctrl-D between questions.
	maxEmptyReads = 32
)

var errNoKeyboard = errors.New("the keyboard is gone")

// keyboard reads what a person types. One goroutine reads, because a read of a terminal cannot be stopped. It ends
// with the terminal, or with the process.
type keyboard struct {
	in    *os.File
	start sync.Once
	ready chan struct{} // has an element if something was typed

	mu    sync.Mutex
	typed []byte
	ended bool

	// The rest belongs to the question that is asked.
	parser keyParser
	keys   []key
}

func newKeyboard(in *os.File) *keyboard { return &keyboard{in: in, ready: make(chan struct{}, 1)} }

// begin starts to read for a question.
func (k *keyboard) begin() {
	k.forget()
	k.start.Do(func() { go k.read() })
}

// forget forgets what was typed before the question was on the screen.
func (k *keyboard) forget() {
	flushInput(k.in)
	k.take()
	k.parser, k.keys = keyParser{}, nil
}

// read reads until the keyboard ends.
func (k *keyboard) read() {
	defer guard.Then(nil, "the keyboard", k.end)
	defer k.end()
	buffer := make([]byte, 4096)
	for empty := 0; empty < maxEmptyReads; {
		n, err := k.in.Read(buffer)
		switch {
		case n > 0:
			empty = 0
			k.put(buffer[:n])
		case err == nil || errors.Is(err, io.EOF):
			empty++
		default:
			return
		}
	}
}

func (k *keyboard) put(data []byte) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.typed = append(k.typed, data[:min(len(data), maxTyped-len(k.typed))]...)
	k.ring()
}

func (k *keyboard) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.ended = true
	k.ring()
}

func (k *keyboard) ring() {
	select {
	case k.ready <- struct{}{}:
	default:
	}
}

// take returns what was typed since the last call.
func (k *keyboard) take() (typed []byte, ended bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	typed, k.typed = k.typed, nil
	return typed, k.ended
}

// next returns the next key. It waits until ctx ends, or until closed.
func (k *keyboard) next(ctx context.Context, closed <-chan struct{}) (key, error) {
	for {
		if ctx.Err() != nil {
			return key{}, context.Cause(ctx)
		}
		if len(k.keys) > 0 {
			pressed := k.keys[0]
			k.keys = k.keys[1:]
			return pressed, nil
		}
		typed, ended := k.take()
		if k.keys = k.parser.parse(typed); len(k.keys) > 0 {
			continue
		}
		if ended {
			return key{}, errNoKeyboard
		}
		if err := k.wait(ctx, closed); err != nil {
			return key{}, err
		}
	}
}

// hasMore reports whether a key is there already, so that there is no need to draw yet.
func (k *keyboard) hasMore() bool { return len(k.keys) > 0 }

// wait waits until something was typed, or an escape is alone.
func (k *keyboard) wait(ctx context.Context, closed <-chan struct{}) error {
	var alone <-chan time.Time
	if k.parser.waits() {
		timer := time.NewTimer(escapeDelay)
		defer timer.Stop()
		alone = timer.C
	}
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-closed:
		return errClosed
	case <-k.ready:
	case <-alone:
		k.keys = k.parser.flush()
	}
	return nil
}
