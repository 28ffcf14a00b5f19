package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/creack/pty"
	"golang.org/x/term"
)

// The size of the recorded terminal.
const (
	columns = 80
	rows    = 27
)

// record runs the demo at a terminal of its own, and writes the demo's output into a file, in version 2 of asciinema's
// format. The demo gets the person's input.
func record(ctx context.Context, out *os.File, m mode) (err error) {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	written, err := os.Create(m.record) //nolint:gosec // the person names the file
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, written.Close()) }()
	var args []string
	if m.brief {
		args = []string{"-brief"}
	}
	cmd := exec.CommandContext(ctx, program, args...) //nolint:gosec // itself
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "NO_COLOR=")
	screen, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: columns, Rows: rows})
	if err != nil {
		return fmt.Errorf("-record: no terminal of its own: %w", err)
	}
	defer func() { _ = screen.Close() }() // the program has ended
	if keyboard := int(os.Stdin.Fd()); term.IsTerminal(keyboard) {
		former, err := term.MakeRaw(keyboard)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, term.Restore(keyboard, former)) }()
		go func() { _, _ = io.Copy(screen, os.Stdin) }() // until the process ends
	}
	c := newCast(written)
	command := strings.Join(append([]string{"go run ./examples/pipeline"}, args...), " ")
	header := map[string]any{
		"version": 2, "width": columns, "height": rows, "timestamp": c.began.Unix(), "idle_time_limit": 2,
		"command": command, "env": map[string]string{"TERM": "xterm-256color"},
	}
	if err := c.encoder.Encode(header); err != nil {
		return err
	}
	shown := io.MultiReader(strings.NewReader("$ "+command+"\r\n"), screen)
	if _, err := io.Copy(io.MultiWriter(out, c), shown); err != nil && !errors.Is(err, syscall.EIO) { // the end (Linux)
		return errors.Join(err, cmd.Wait())
	}
	return cmd.Wait()
}

// cast writes the output of a terminal as events of asciinema.
type cast struct {
	encoder *json.Encoder
	began   time.Time
	rest    []byte // a part of a character
}

func newCast(out io.Writer) *cast {
	return &cast{encoder: json.NewEncoder(out), began: time.Now()}
}

// Write implements io.Writer.
func (c *cast) Write(p []byte) (int, error) {
	text := append(c.rest, p...)
	whole := len(text)
	for back := 1; back < utf8.UTFMax && back <= len(text); back++ {
		if start := len(text) - back; utf8.RuneStart(text[start]) {
			if !utf8.FullRune(text[start:]) {
				whole = start
			}
			break
		}
	}
	c.rest = append([]byte(nil), text[whole:]...)
	if whole == 0 {
		return len(p), nil
	}
	event := []any{time.Since(c.began).Seconds(), "o", string(text[:whole])}
	return len(p), c.encoder.Encode(event)
}
