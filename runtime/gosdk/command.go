package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
)

// ConnectCommand starts a server as a subprocess and connects to it over its standard input and
// output. The command must not have been started. ConnectCommand sets its Stdin and Stdout. The
// server's own messages go to its Stderr: set it to os.Stderr to see them. HTTPClient has no effect
// here.
//
// Close ends the process. It closes the process's standard input, and kills the process if it does
// not exit in time. If the process exits by itself, every call fails with mcptask.ErrDisconnected.
func ConnectCommand(ctx context.Context, cmd *exec.Cmd, options ClientOptions) (mcptask.Conn, error) {
	if err := options.setMaxMessage(); err != nil {
		return nil, err
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	process := &command{cmd: cmd, max: options.MaxMessage, logger: options.Logger}
	wire := &lineTransport{inner: process}
	c, err := connectOver(ctx, cmd.Path, options, func(b sessionCallbacks) dialed {
		wire.sessionCallbacks = b
		return dialed{Transport: wire, capabilities: wire.capabilities, endCause: wire.endCause, onEnd: wire.onEnd}
	})
	if err != nil {
		if cause := wire.endCause(); cause != nil {
			err = fmt.Errorf("%w: %w", err, cause)
		}
		if line := process.other.Load(); line != nil { // it may be no server
			err = fmt.Errorf("%w; its standard output has a line that is not an MCP message: %q", err, *line)
		}
		return nil, err
	}
	return c, nil
}

// command is an mcp.Transport over a subprocess. The SDK's own transport has no configurable limit
// on messages, and ends at a line that is not one.
type command struct {
	cmd    *exec.Cmd
	max    int // bytes of a message
	logger *slog.Logger
	other  atomic.Pointer[string] // as in messageReader
}

// endTimeout is how long a process has to exit before it gets a stronger signal.
const endTimeout = 5 * time.Second

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
	// Only the input is closed: what the process still writes must be read.
	messages := newMessageReader(stdout, c.max, c.logger)
	messages.other = &c.other
	over := &mcp.IOTransport{Reader: io.NopCloser(messages), Writer: &processInput{stdin, c.cmd}, MaxLineLength: -1} // the reader bounds them
	return over.Connect(ctx)
}

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

// lineTransport is an mcp.Transport that does for lines what httpTransport does for HTTP. It
// restores the carried methods, reads what the SDK's types drop, and intercepts what the SDK must
// not see.
type lineTransport struct {
	inner mcp.Transport
	sessionCallbacks

	mu       sync.Mutex
	declared json.RawMessage // by the server, in its answer to initialize
	readErr  error           // why reading failed: there is no other connection
	endHook  func()          // called when reading fails
}

func (t *lineTransport) onEnd(last func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.endHook = last
}

func (t *lineTransport) capabilities() json.RawMessage {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.declared
}

func (t *lineTransport) endCause() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.readErr
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
	first, last := t.readErr == nil, t.endHook
	if first {
		t.readErr = err
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
	return &lineConn{Connection: inner, transport: t, opened: map[jsonrpc.ID]string{}, hearing: map[string]notificationFunc{}}, nil
}

// lineConn is one connection of a lineTransport.
type lineConn struct {
	mcp.Connection
	transport *lineTransport

	mu       sync.Mutex
	opened   map[jsonrpc.ID]string // initialize and server/discover, until they are answered
	revision string                // the negotiated one, "" before
	// hearing has the subscriptions by the JSON of their request IDs.
	hearing map[string]notificationFunc
}

// Write implements mcp.Connection.
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if response, ok := m.(*jsonrpc.Response); ok {
		if id, err := json.Marshal(response.ID.Raw()); err == nil {
			defer c.transport.onReply(id)
		}
	}
	if request, ok := m.(*jsonrpc.Request); ok {
		if held := heldCallFrom(ctx); held != nil {
			switch {
			case request.IsCall():
				id := json.RawMessage(fmt.Sprint(request.ID.Raw())) // the SDK uses numbers
				held.requestID.Store(&id)
			case held.silent.Load(): // the SDK's cancellation: ours was sent
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
		if hear, ok := ctx.Value(hearKey{}).(notificationFunc); ok && request.IsCall() {
			id := fmt.Sprint(request.ID.Raw()) // the SDK uses numbers
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
			c.inspectResponse(m)
		case *jsonrpc.Request:
			if c.deliverNotification(m) || c.intercept(m) {
				continue
			}
		}
		return m, nil
	}
}

// inspectResponse reads the answer that opens the session, and rewrites what the SDK would misread.
func (c *lineConn) inspectResponse(response *jsonrpc.Response) {
	c.mu.Lock()
	defer c.mu.Unlock()
	method := c.opened[response.ID]
	delete(c.opened, response.ID)
	switch method {
	case "initialize":
		var result struct {
			ProtocolVersion string `json:"protocolVersion"`
		}
		_ = json.Unmarshal(response.Result, &result) // an error negotiates nothing
		c.revision = result.ProtocolVersion
		c.transport.mu.Lock()
		defer c.transport.mu.Unlock()
		c.transport.declared = decodeResultCapabilities(response.Result)
	case discover:
		rewriteResponse(response, rejectWrongKind)
	default:
		rewriteResponse(response, hideCode)
	}
}

func rewriteResponse(response *jsonrpc.Response, rewrite rewriteFunc) {
	a := answer{result: response.Result}
	if response.Error != nil && !errors.As(response.Error, &a.err) {
		return
	}
	if rewrite(&a) {
		response.Result, response.Error = a.result, a.err
	}
}

// deliverNotification takes the notifications of our subscriptions, which the SDK cannot handle.
func (c *lineConn) deliverNotification(request *jsonrpc.Request) bool {
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

// intercept offers a request or a notification to the interceptor.
func (c *lineConn) intercept(m *jsonrpc.Request) bool {
	message, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return false
	}
	c.mu.Lock()
	revision := c.revision
	c.mu.Unlock()
	return c.transport.intercept(message, messageSource{revision: revision, send: c.send})
}

// send writes a message directly to the connection.
func (c *lineConn) send(ctx context.Context, message []byte) error {
	m, err := jsonrpc.DecodeMessage(message)
	if err != nil {
		return err
	}
	return c.Connection.Write(ctx, m)
}
