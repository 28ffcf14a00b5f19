package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// ConnectCommand starts a server as a subprocess and connects to it over its
// standard input and output. Close ends the process: it closes its input, and
// after a while kills it. The command must not have been started; its Stdin and
// Stdout are the connection's, and its Stderr is where the server's own messages
// go (set it to os.Stderr to see them). HTTPClient has no meaning here. When the
// process ends by itself, every call fails with mcptask.ErrDisconnected.
func ConnectCommand(ctx context.Context, cmd *exec.Cmd, options ClientOptions) (mcptask.Conn, error) {
	if err := options.limit(); err != nil {
		return nil, err
	}
	wire := &lineTransport{inner: &command{cmd, options.MaxMessage}, max: options.MaxMessage}
	c, err := connectOver(ctx, cmd.Path, options, func(b beside) dialed {
		wire.beside = b
		return dialed{Transport: wire, capabilities: wire.capabilities, ended: wire.ended, atEnd: wire.atEnd}
	})
	if err != nil {
		if cause := wire.ended(); cause != nil {
			return nil, fmt.Errorf("%w: %w", err, cause)
		}
		return nil, err
	}
	return c, nil
}

// command is a mcp.Transport over a subprocess. The SDK's own has no bound that can
// be set.
type command struct {
	cmd *exec.Cmd
	max int // bytes of a message
}

// endWithin is how long a process that was asked to end has until it is asked in a
// harsher way.
const endWithin = 5 * time.Second

// Connect implements mcp.Transport.
func (c *command) Connect(ctx context.Context) (mcp.Connection, error) {
	stdout, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	// What the process still writes as it ends is read: only the input is closed.
	over := &mcp.IOTransport{Reader: io.NopCloser(stdout), Writer: &input{stdin, c.cmd}, MaxLineLength: c.max}
	return over.Connect(ctx)
}

// input is the standard input of a process, whose end is that of the process.
type input struct {
	io.WriteCloser
	cmd *exec.Cmd
}

// Close implements io.Closer. It waits for the end of the process, which it brings
// about if need be.
func (i *input) Close() error {
	if err := i.WriteCloser.Close(); err != nil {
		return fmt.Errorf("gosdk: close the server's standard input: %w", err)
	}
	ended := make(chan error, 1)
	go func() { defer guard.Recover(nil, "the wait for a process"); ended <- i.cmd.Wait() }()
	for _, signal := range []os.Signal{nil, syscall.SIGTERM, os.Kill} {
		if signal != nil && i.cmd.Process.Signal(signal) != nil {
			continue // a system that has no such signal, or no such process any more
		}
		select {
		case err := <-ended:
			return err
		case <-time.After(endWithin):
		}
	}
	return errors.New("gosdk: the server's process does not end")
}

// lineTransport is a mcp.Transport that does for lines what transport does for
// HTTP: it restores the carried methods, reads what the SDK's types drop and
// takes out what the SDK is not to see.
type lineTransport struct {
	inner mcp.Transport
	max   int // bytes of a message, which inner sees to
	beside

	mu       sync.Mutex
	declared json.RawMessage // by the server, in its answer to initialize
	failed   error           // of the reading: there is no other connection
	last     func()          // called when it has failed
}

func (t *lineTransport) atEnd(last func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = last
}

func (t *lineTransport) capabilities() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.declared
}

func (t *lineTransport) ended() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.failed
}

// fail notes why nothing more can be read.
func (t *lineTransport) fail(err error) {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, os.ErrClosed):
		err = errors.New("the server has ended")
	case strings.Contains(err.Error(), "maximum line length"): // the SDK does not export the error
		err = tooLong{t.max}
	default:
		err = fmt.Errorf("the server wrote something that is not protocol to its standard output: %w", err)
	}
	t.mu.Lock()
	first, last := t.failed == nil, t.last
	if first {
		t.failed = err
	}
	t.mu.Unlock()
	if first && last != nil {
		last()
	}
}

// Connect implements mcp.Transport.
func (t *lineTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lineConn{Connection: inner, transport: t, opened: map[jsonrpc.ID]string{}, hearing: map[string]notified{}}, nil
}

// lineConn is one connection of a lineTransport.
type lineConn struct {
	mcp.Connection
	transport *lineTransport

	mu       sync.Mutex
	opened   map[jsonrpc.ID]string // initialize and server/discover, until they are answered
	revision string                // what was negotiated, "" before
	// hearing are the subscriptions, by the ID of their request as JSON.
	hearing map[string]notified
}

// Write implements mcp.Connection.
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok && c.transport.replied != nil {
		if id, err := json.Marshal(response.ID.Raw()); err == nil {
			defer c.transport.replied(id)
		}
	}
	if request, ok := m.(*jsonrpc.Request); ok {
		if open := callOf(ctx); open != nil {
			switch {
			case request.IsCall():
				open.sent(json.RawMessage(fmt.Sprint(request.ID.Raw()))) // a number of the SDK's
			case open.isSilent(): // the SDK's cancellation: ours was sent
				return nil
			}
		}
		if method, carried := strings.CutPrefix(request.Method, aliasPrefix); carried {
			renamed := *request
			renamed.Method = method
			m = &renamed
		}
		c.mu.Lock()
		if request.Method == "initialize" || request.Method == discover {
			c.opened[request.ID] = request.Method
		}
		if hear, ok := ctx.Value(hearKey{}).(notified); ok && request.IsCall() {
			id := fmt.Sprint(request.ID.Raw()) // a number of the SDK's
			c.hearing[id] = hear
			context.AfterFunc(ctx, func() { defer guard.Recover(nil, "the end of a subscription"); c.unsubscribe(id) })
		}
		c.mu.Unlock()
		if request.Method == "initialize" && c.transport.declare != nil {
			params, err := c.transport.declare(request.Params)
			if err != nil {
				return err
			}
			declared := *request
			declared.Params = params
			m = &declared
		}
	}
	return c.Connection.Write(ctx, m)
}

func (c *lineConn) unsubscribe(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.hearing, id)
}

// Read implements mcp.Connection.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	for {
		m, err := c.Connection.Read(ctx)
		if err != nil {
			if ctx.Err() == nil {
				c.transport.fail(err)
			}
			return m, err
		}
		switch m := m.(type) {
		case *jsonrpc.Response:
			c.answered(m)
		case *jsonrpc.Request:
			if c.hears(m) || c.taken(m) {
				continue
			}
		}
		return m, nil
	}
}

// answered reads the answer to a request that opens the session, and rewrites
// what the SDK would misread.
func (c *lineConn) answered(response *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	method := c.opened[response.ID]
	delete(c.opened, response.ID)
	switch method {
	case "initialize":
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(response.Result, &result) // a failure has negotiated nothing
		c.revision = result.ProtocolVersion
		c.transport.mu.Lock()
		defer c.transport.mu.Unlock()
		c.transport.declared = declaredBy(response.Result)
	case discover:
		rewriteResponse(response, checkKind)
	default:
		rewriteResponse(response, hideCode)
	}
}

func rewriteResponse(response *jsonrpc.Response, rewrite rewriting) {
	a := answer{result: response.Result}
	if response.Error != nil && !errors.As(response.Error, &a.err) {
		return
	}
	if rewrite(&a) {
		response.Result, response.Error = a.result, a.err
	}
}

// hears takes the notifications of our subscriptions out, which the SDK cannot
// take.
func (c *lineConn) hears(request *jsonrpc.Request) bool {
	if request.IsCall() || request.Method != protocol.TaskChanged && request.Method != protocol.Acknowledged {
		return false
	}
	c.mu.Lock()
	hear := c.hearing[string(protocol.ReadSubscriptionID(request.Params))]
	c.mu.Unlock()
	if hear == nil {
		return request.Method == protocol.TaskChanged
	}
	hear(request.Method, request.Params)
	return true
}

// taken offers a request or a notification to the taker.
func (c *lineConn) taken(m *jsonrpc.Request) bool {
	if c.transport.take == nil {
		return false
	}
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return false
	}
	c.mu.Lock()
	revision := c.revision
	c.mu.Unlock()
	return c.transport.take(message, way{revision: revision, send: c.send})
}

// send writes a message of our own.
func (c *lineConn) send(ctx context.Context, message []byte) error {
	m, err := jsonrpc.DecodeMessage(message)
	if err != nil {
		return err
	}
	return c.Connection.Write(ctx, m)
}
