package gosdk

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// ConnectOver is ConnectCommand with a transport in the place of a command.
func ConnectOver(ctx context.Context, inner mcp.Transport, options ClientOptions) (mcptask.Conn, error) {
	wire := &lineTransport{inner: inner}
	c, err := connectOver(ctx, "pipe", options, func(b hooks) dialed {
		wire.hooks = b
		return dialed{Transport: wire, capabilities: wire.capabilities, endCause: wire.endCause, onEnd: wire.onEnd}
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}
