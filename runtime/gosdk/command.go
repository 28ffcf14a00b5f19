package gosdk

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// ConnectCommand starts a server as a subprocess and connects to it over its
// standard input and output. Close ends the process: it closes its input, and
// after a while kills it. The command must not have been started; its Stdin and
// Stdout are the connection's, and its Stderr is where the server's own messages
// go (set it to os.Stderr to see them). HTTPClient has no meaning here. When the
// process ends by itself, every call fails with mcptask.ErrDisconnected.
func ConnectCommand(ctx context.Context, cmd *exec.Cmd, options ClientOptions) (mcptask.Conn, error) {
	wire := &lineTransport{inner: &mcp.CommandTransport{Command: cmd}}
	c, err := connectOver(ctx, cmd.Path, options, func() dialed { return dialed{wire, wire.takesTasks, wire.ended} })
	if err != nil {
		if cause := wire.ended(); cause != nil {
			return nil, fmt.Errorf("%w: %w", err, cause)
		}
		return nil, err
	}
	return c, nil
}

// lineTransport is a mcp.Transport that does for lines what transport does for
// HTTP: it restores the carried methods and reads what the SDK's types drop.
type lineTransport struct {
	inner mcp.Transport

	mu     sync.Mutex
	tasks  bool
	failed error // of the reading: there is no other connection
}

func (t *lineTransport) takesTasks() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.tasks
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
	default:
		err = fmt.Errorf("the server wrote something that is not protocol to its standard output: %w", err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed == nil {
		t.failed = err
	}
}

// Connect implements mcp.Transport.
func (t *lineTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &lineConn{Connection: inner, transport: t}, nil
}

// lineConn is one connection of a lineTransport.
type lineConn struct {
	mcp.Connection
	transport *lineTransport

	mu         sync.Mutex
	initialize jsonrpc.ID
}

// Write implements mcp.Connection.
func (c *lineConn) Write(ctx context.Context, m jsonrpc.Message) error {
	if request, ok := m.(*jsonrpc.Request); ok {
		if method, carried := strings.CutPrefix(request.Method, aliasPrefix); carried {
			renamed := *request
			renamed.Method = method
			m = &renamed
		}
		if request.Method == "initialize" {
			c.mu.Lock()
			c.initialize = request.ID
			c.mu.Unlock()
		}
	}
	return c.Connection.Write(ctx, m)
}

// Read implements mcp.Connection.
func (c *lineConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if err != nil && ctx.Err() == nil {
		c.transport.fail(err)
	}
	if response, ok := m.(*jsonrpc.Response); ok && err == nil {
		c.mu.Lock()
		first := c.initialize.IsValid() && response.ID == c.initialize
		c.mu.Unlock()
		if first {
			c.transport.mu.Lock()
			c.transport.tasks = takesTasks(response.Result)
			c.transport.mu.Unlock()
		}
	}
	return m, err
}
