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
	"strings"
	"time"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// endTimeout is how long a program has to exit before it gets a stronger signal.
const endTimeout = 2 * time.Second

// command is a server that speaks on its standard input and output.
type command struct {
	cmd    *exec.Cmd
	cancel context.CancelFunc
	in     io.WriteCloser
	out    *bufio.Reader
	stop   func() bool // ends the watch over the context
	noise  string      // the first line that is no message
}

func startCommand(ctx context.Context, cfg Config) (link, error) {
	ctx, cancel := context.WithCancel(ctx)
	cmd := exec.CommandContext(ctx, cfg.Command[0], cfg.Command[1:]...)
	cmd.Stderr = cfg.Stderr
	// A program such as npx passes an interrupt on to the server that it started.
	cmd.Cancel = func() error {
		if cmd.Process.Signal(os.Interrupt) != nil {
			return cmd.Process.Kill()
		}
		return nil
	}
	cmd.WaitDelay = endTimeout
	in, err := cmd.StdinPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		cancel()
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		cancel()
		return nil, fmt.Errorf("cannot start the server: %w", err)
	}
	// A process that the program has started may keep the pipe open after the program was killed.
	stop := context.AfterFunc(ctx, func() { _ = out.Close() })
	return &command{cmd: cmd, cancel: cancel, in: in, out: bufio.NewReaderSize(out, 64<<10), stop: stop}, nil
}

func (c *command) setRevision(string) {}

func (c *command) send(_ context.Context, _ string, message []byte) error {
	_, err := c.in.Write(append(message, '\n'))
	if err != nil {
		return c.explain(errors.New("the server closed its standard input"))
	}
	return nil
}

// receive skips lines that are not JSON: some servers print a greeting.
func (c *command) receive() ([]byte, error) {
	for {
		line, err := readLine(c.out, maxMessage)
		if len(bytes.TrimSpace(line)) > 0 {
			if json.Valid(line) {
				return line, nil
			}
			if c.noise == "" {
				c.noise = strings.TrimSpace(string(line[:min(len(line), 200)]))
			}
		}
		if errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) {
			return nil, c.explain(errors.New("the server ended"))
		}
		if err != nil {
			return nil, err
		}
	}
}

// explain adds to an error what the server wrote instead of a message.
func (c *command) explain(err error) error {
	if c.noise == "" {
		return err
	}
	return fmt.Errorf("%w after it wrote %s to its standard output", err, words.QuoteJSON(c.noise))
}

// close ends the program: it closes its standard input, and later kills it.
func (c *command) close() {
	_ = c.in.Close()
	later := time.AfterFunc(endTimeout, c.cancel)
	_ = c.cmd.Wait() // how the program ends does not matter: it has answered, or the error is known
	later.Stop()
	c.stop()
	c.cancel()
}
