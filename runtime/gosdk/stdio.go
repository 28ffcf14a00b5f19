package gosdk

import (
	"context"
	"io"
	"os"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Local is the principal of a client on standard input and output, unless the server's options say
// otherwise. No caller over HTTP has it: there the principal "local" becomes "remote:local".
const Local = "local"

// StdioTransport serves one client with tasks on standard input and output. It speaks 2025-11-25,
// earlier revisions without tasks, and 2026-07-28:
//
//	sdk.Run(ctx, gosdk.StdioTransport(tasks))
//
// The session has standard output for itself: other output of the program and its children goes to standard error. (On
// Windows that holds only for writes to os.Stdout after the session has begun.) The session ends with standard input.
func StdioTransport(tasks *taskserver.Server) mcp.Transport {
	return &pipeTransport{tasks: tasks.Backend(), in: os.Stdin}
}

// pipeTransport is an mcp.Transport behind a gateway.
type pipeTransport struct {
	tasks *taskserver.Backend
	in    io.Reader
	out   io.Writer // nil means standard output
}

// Connect implements mcp.Transport.
func (t *pipeTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	g := gateway.New(gateway.Config{
		Server:    t.tasks,
		Principal: func(context.Context) (string, error) { return Local, nil },
	})
	out, giveBack := t.out, func() {}
	if out == nil {
		out, giveBack = takeStdout()
	}
	reader, writer, err := g.Pipe(ctx, t.in, out)
	if err != nil {
		giveBack()
		return nil, err
	}
	writer = returningWriter{writer, giveBack}
	// The gateway bounds each message.
	return (&mcp.IOTransport{Reader: reader, Writer: writer, MaxLineLength: -1}).Connect(ctx)
}
