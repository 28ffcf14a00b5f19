package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// ConnectCommand starts a server as a subprocess and connects to it over its standard input and
// output. The command must not have been started. ConnectCommand sets its Stdin and Stdout. The
// server's own messages go to its Stderr: set it to os.Stderr to see them. HTTPClient has no effect
// here.
//
// Close ends the process. It closes the process's standard input, and kills the process if it does
// not exit in time. If the process exits by itself, every call fails with mcptask.ErrDisconnected.
func ConnectCommand(ctx context.Context, cmd *exec.Cmd, options ClientOptions) (mcptask.Conn, error) {
	var over *lineTransport
	c, err := connectOver(ctx, cmd.Path, options, func(c *conn, inbox *inbox) (_ transport, err error) {
		over, err = startCommand(cmd, c, inbox)
		return over, err
	})
	if err != nil && over != nil {
		if cause := over.endCause(); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		if line := over.messages.other.Load(); line != nil { // it may be no server
			err = fmt.Errorf("%w; its standard output has a line that is not an MCP message: %q", err, *line)
		}
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// startCommand starts a server as a subprocess.
func startCommand(cmd *exec.Cmd, c *conn, inbox *inbox) (*lineTransport, error) {
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return newLineTransport(c, inbox, stdout, &processInput{stdin, cmd}), nil
}

// endTimeout is how long a process has to exit before it gets a stronger signal.
const endTimeout = 5 * time.Second

// processInput is the standard input of a process. Closing it ends the process.
type processInput struct {
	io.WriteCloser
	cmd *exec.Cmd
}

// Close implements io.Closer. It waits for the process to exit, and signals it if it does not.
func (i *processInput) Close() error {
	if err := i.WriteCloser.Close(); err != nil {
		return fmt.Errorf("gosdk: close the server's standard input: %w", err)
	}
	ended := make(chan error, 1)
	go func() { defer guard.Recover(nil, "the wait for a process"); ended <- i.cmd.Wait() }()
	for _, signal := range []os.Signal{nil, syscall.SIGTERM, os.Kill} {
		if signal != nil && i.cmd.Process.Signal(signal) != nil {
			continue // the system has no such signal, or the process has exited
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(endTimeout):
		}
	}
	return errors.New("gosdk: the server's process did not exit after it was killed")
}

// lineTransport is a session over the lines of a server's standard input and output.
type lineTransport struct {
	messages *messageReader
	in       io.Closer
	out      io.WriteCloser
	inbox    *inbox
	onEnd    func()        // called when reading fails
	ended    chan struct{} // closed when readErr is set
	writing  chan struct{} // has a value while a line is written

	mu      sync.Mutex
	waiting map[string]*waitingRequest // by ID
	readErr error                      // why reading failed: there is no other connection
}

// waitingRequest is a request without a response yet.
type waitingRequest struct {
	*request
	answer chan *wire.Message
}

// newLineTransport begins to read the lines of a server.
func newLineTransport(c *conn, inbox *inbox, in io.ReadCloser, out io.WriteCloser) *lineTransport {
	t := &lineTransport{
		messages: newMessageReader(in, c.options.MaxMessage, c.options.Logger), in: in, out: out,
		inbox: inbox, onEnd: c.watches.reportDisconnect, ended: make(chan struct{}), writing: make(chan struct{}, 1), waiting: map[string]*waitingRequest{},
	}
	inbox.transport = t
	guard.Go(c.options.Logger, "the reading of a server's output", t.readMessages)
	return t
}

// setVersion implements transport: a line has no header.
func (t *lineTransport) setVersion(string) {}

// endCause implements transport.
func (t *lineTransport) endCause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readErr
}

// readMessages reads messages until that fails.
func (t *lineTransport) readMessages() {
	defer t.onEnd()
	for {
		m, err := t.messages.next()
		if err != nil {
			t.fail(err)
			return
		}
		t.receive(m)
	}
}

// receive takes a message of the server.
func (t *lineTransport) receive(m *wire.Message) {
	id := m.ID
	if m.Method == protocol.TaskChanged || m.Method == protocol.Acknowledged {
		id = protocol.ReadSubscriptionID(m.Params.Raw())
	}
	t.mu.Lock()
	r := t.waiting[string(id)]
	t.mu.Unlock()
	switch {
	case m.IsResponse() && r != nil:
		select {
		case r.answer <- m:
		default: // the server has answered twice
		}
	case !m.IsResponse() && (r == nil || m.ID != nil):
		t.inbox.receive(m, nil)
	case !m.IsResponse():
		t.inbox.receive(m, r.notified)
	}
}

// fail records why reading failed.
func (t *lineTransport) fail(err error) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		err = errors.New("the server has ended")
	case errors.As(err, new(tooLongError)), errors.As(err, new(floodError)):
	default:
		err = fmt.Errorf("the server's standard output cannot be read: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.readErr = err
	close(t.ended)
}

// roundTrip implements transport.
func (t *lineTransport) roundTrip(ctx context.Context, r *request) (*wire.Message, error) {
	waiting := &waitingRequest{r, make(chan *wire.Message, 1)}
	t.mu.Lock()
	t.waiting[string(r.id)] = waiting
	t.mu.Unlock()
	defer func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.waiting, string(r.id))
	}()
	r.isSent.Store(true)
	if err := t.send(ctx, r.method, r.encode()); err != nil {
		return nil, err
	}
	select {
	case m := <-waiting.answer:
		return m, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-t.inbox.ctx.Done():
		return nil, errSessionLost
	case <-t.ended:
		return nil, t.endCause()
	}
}

// send implements transport. If ctx ends while the server does not read its input, the line is written in the background.
func (t *lineTransport) send(ctx context.Context, _ string, message []byte) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	select {
	case t.writing <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	written := make(chan error, 1)
	go func() {
		defer guard.Recover(nil, "the writing to a server's input")
		defer func() { <-t.writing }()
		_, err := t.out.Write(append(message, '\n'))
		written <- err
	}()
	select {
	case err := <-written:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// close implements transport.
func (t *lineTransport) close() error {
	err := t.out.Close()
	_ = t.in.Close() // nothing more is read
	<-t.ended
	return err
}
