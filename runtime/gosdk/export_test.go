package gosdk

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// PipeTransport is StdioTransport on other pipes.
func PipeTransport(tasks *taskserver.Server, in io.Reader, out io.Writer) mcp.Transport {
	return &pipeTransport{tasks.Backend(), in, out}
}

// NewSDKHandler is NewHandler with the SDK's handler for all calls.
func NewSDKHandler(tasks *taskserver.Server, getServer func(*http.Request) *mcp.Server, opts *mcp.StreamableHTTPOptions) http.Handler {
	config := newConfig(tasks.Backend(), "", getServer, opts)
	config.FindRunner = nil
	return gateway.New(config)
}

// ReadMessages returns the messages on a command's standard output, one a line.
func ReadMessages(r io.Reader, most int, logger *slog.Logger) (lines string, err error) {
	messages := newMessageReader(r, most, logger)
	for {
		m, err := messages.next()
		if err != nil {
			return lines, err
		}
		lines += string(m.Bytes()) + "\n"
	}
}

// ConnectOver is ConnectCommand with pipes in the place of a command.
func ConnectOver(ctx context.Context, pipes *mcp.IOTransport, options ClientOptions) (mcptask.Conn, error) {
	c, err := connectOver(ctx, "pipe", options, func(c *conn, inbox *inbox) (transport, error) {
		return newLineTransport(c, inbox, pipes.Reader, pipes.Writer), nil
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// MiddlewareOf returns the receiving middleware of a server.
func FindReceivingHandler(server *mcp.Server) mcp.MethodHandler { return findReceivingHandler(server) }
