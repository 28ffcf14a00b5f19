package gosdk

import (
	"context"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
)

// Local is the principal of a client on standard input and output, unless the server's options say
// otherwise. No caller over HTTP has it: there the principal "local" becomes "remote:local".
const Local = "local"

// StdioTransport serves one client with tasks on standard input and output. It speaks 2025-11-25,
// earlier revisions without tasks, and 2026-07-28:
//
//	sdk.Run(ctx, gosdk.StdioTransport(tasks))
//
// The program must write only protocol messages to standard output. The session ends with standard
// input.
func StdioTransport(tasks *mcptask.Server) mcp.Transport {
	return &pipeTransport{tasks, os.Stdin, os.Stdout}
}

// pipeTransport is an mcp.Transport behind a gateway.
type pipeTransport struct {
	tasks *mcptask.Server
	in    io.Reader
	out   io.Writer
}

// Connect implements mcp.Transport.
func (t *pipeTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	g := gateway.New(gateway.Config{
		Server:    t.tasks,
		Principal: func(context.Context) (string, error) { return Local, nil },
	})
	reader, writer, err := g.Pipe(ctx, t.in, t.out)
	if err != nil {
		return nil, err
	}
	// The gateway bounds each message.
	return (&mcp.IOTransport{Reader: reader, Writer: writer, MaxLineLength: -1}).Connect(ctx)
}
