package gosdk

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Transport serves one client with tasks over any transport of the SDK, such as those of [mcp.NewInMemoryTransports] in a
// test:
//
//	client, server := mcp.NewInMemoryTransports()
//	session, err := sdk.Connect(ctx, gosdk.Transport(tasks, server), nil)
//
// It speaks the revisions of [StdioTransport], and the client has the principal [Local] unless the server's options say
// otherwise. Use [NewHandler] for HTTP.
func Transport(tasks *taskserver.Server, inner mcp.Transport) mcp.Transport {
	return &bridge{tasks, inner}
}

// bridge is the transport of Transport.
type bridge struct {
	tasks *taskserver.Server
	inner mcp.Transport
}

// Connect implements mcp.Transport.
func (b *bridge) Connect(ctx context.Context) (mcp.Connection, error) {
	client, err := b.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	in, fromClient := io.Pipe()
	c := &bridgeConn{client: client, fromClient: fromClient, done: make(chan struct{})}
	c.ctx, c.stop = context.WithCancel(context.WithoutCancel(ctx))
	c.Connection, err = (&pipeTransport{b.tasks.Backend(), in, bridgeWriter{c}}).Connect(ctx)
	if err != nil {
		c.stop()
		return nil, errors.Join(err, client.Close())
	}
	guard.Go(b.tasks.Backend().Logger(), "the reading of a transport", c.readClient)
	return c, nil
}

// SupportsProtocolVersion implements mcp.ProtocolVersionSupporter.
func (b *bridge) SupportsProtocolVersion(version string) bool {
	inner, ok := b.inner.(mcp.ProtocolVersionSupporter)
	return !ok || inner.SupportsProtocolVersion(version)
}

// bridgeConn is the SDK's connection to a gateway, with the client's connection behind it. It is safe for concurrent use.
type bridgeConn struct {
	mcp.Connection
	client     mcp.Connection
	fromClient *io.PipeWriter // to the gateway
	ctx        context.Context
	stop       context.CancelFunc
	done       chan struct{} // closed when readClient has returned

	mu     sync.Mutex
	failed error // of the client's connection; nil until then
}

// fail records the first error of the client's connection, and ends the gateway's input.
func (c *bridgeConn) fail(err error) {
	c.mu.Lock()
	if c.failed == nil {
		c.failed = err
	}
	c.mu.Unlock()
	_ = c.fromClient.Close()
}

// readClient passes the client's messages to the gateway.
func (c *bridgeConn) readClient() {
	defer close(c.done)
	defer func() { _ = c.fromClient.Close() }()
	for {
		message, err := c.client.Read(c.ctx)
		if err != nil {
			c.fail(err)
			return
		}
		line, err := jsonrpc.EncodeMessage(message)
		if err == nil {
			_, err = c.fromClient.Write(append(line, '\n'))
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

// Read implements mcp.Connection. Its last error is that of the client's connection, if that has failed.
func (c *bridgeConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if err != nil && ctx.Err() == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failed != nil {
			err = c.failed
		}
	}
	return message, err
}

// SessionID implements mcp.Connection.
func (c *bridgeConn) SessionID() string { return c.client.SessionID() }

// Close implements mcp.Connection. It returns when the client has the last messages, or no longer reads.
func (c *bridgeConn) Close() error {
	err := c.Connection.Close()
	_ = c.fromClient.Close()
	err = errors.Join(err, c.client.Close())
	c.stop()
	<-c.done
	return err
}

// bridgeWriter passes the gateway's lines to the client. The gateway writes whole lines.
type bridgeWriter struct{ c *bridgeConn }

// Write implements io.Writer.
func (w bridgeWriter) Write(data []byte) (int, error) {
	for line := range bytes.Lines(data) {
		message, err := jsonrpc.DecodeMessage(bytes.TrimSpace(line))
		if err == nil {
			err = w.c.client.Write(w.c.ctx, message)
		}
		if err != nil {
			w.c.fail(err)
			return 0, err
		}
	}
	return len(data), nil
}
