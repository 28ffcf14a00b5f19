package record

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// endTimeout is how long a program has to exit before it gets a stronger signal.
const endTimeout = 2 * time.Second

// command is a server that speaks on its standard input and output.
type command struct {
	stdin  io.WriteCloser
	stdout *io.PipeReader // ends after the program, with the error of its Wait
	lines  *bufio.Reader  // of stdout
	cancel context.CancelFunc
	noise  string // the first line that is not a message
}

func startCommand(ctx context.Context, cfg Config) (*command, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, cfg.Command[0], cfg.Command[1:]...)
	// A program such as npx passes an interrupt on to the server that it started.
	cmd.Cancel = func() error {
		if cmd.Process.Signal(os.Interrupt) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	// Wait does not wait longer for a program that goes on, or for one of its own that keeps the pipes open.
	cmd.WaitDelay = endTimeout
	out, in := io.Pipe()
	cmd.Stdout, cmd.Stderr = in, cfg.Stderr
	stdin, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start the server: %w", err)
	}
	go func() { _ = in.CloseWithError(cmd.Wait()) }()
	left := maxBytes
	return &command{stdin: stdin, stdout: out, lines: bufio.NewReader(bounded{out, &left}), cancel: cancel}, nil
}

// send ignores errors of the pipe. If the program has ended, receive reports it.
func (c *command) send(_ context.Context, m message, _ string) error {
	data, err := json.Marshal(m)
	if err == nil {
		_, _ = c.stdin.Write(append(data, '\n'))
	}
	return err
}

// receive skips lines that are not JSON: some servers print a greeting.
func (c *command) receive() (m message, err error) {
	for {
		line, err := c.lines.ReadBytes('\n')
		fault := decode(line, &m)
		switch text := bytes.TrimSpace(line); {
		case fault == nil:
			return m, nil
		case bytes.Contains(text, []byte(`"jsonrpc"`)) && err == nil:
			return m, fmt.Errorf("the server sent a message that is not JSON-RPC: %w", fault)
		case c.noise == "":
			c.noise = string(text[:min(len(text), 200)])
		}
		if err != nil {
			return m, c.explainEnd(err)
		}
	}
}

// explainEnd tells how the program ended, with the text that it wrote instead of a message.
func (c *command) explainEnd(err error) error {
	if errors.Is(err, errTooMuch) {
		c.cancel() // it would go on
		return err
	}
	text := "the server ended"
	if !errors.Is(err, io.EOF) {
		text += " with " + err.Error()
	}
	if c.noise != "" {
		text += " after it wrote " + words.QuoteJSON(c.noise) + " to its standard output"
	}
	return errors.New(text)
}

// close ends the program: it closes its standard input, and later interrupts and kills it.
func (c *command) close() {
	_ = c.stdin.Close()
	later := time.AfterFunc(endTimeout, c.cancel)
	_, _ = io.Copy(io.Discard, c.stdout) // until the program has ended; how does not matter
	later.Stop()
	c.cancel()
}
