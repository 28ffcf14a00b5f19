package mcpgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mark3labs/mcp-go/server"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Local is the principal of a client on standard input and output, unless the server's options say
// otherwise. No caller over HTTP has it: there the principal "local" becomes "remote:local".
const Local = "local"

// ServeStdio is server.ServeStdio with tasks, in 2025-11-25 and 2026-07-28. It returns nil at the end of standard input, and
// the context's error when ctx ends. Unlike server.ServeStdio it handles no signals: use signal.NotifyContext. The program
// must not write to standard output.
func ServeStdio(ctx context.Context, s *server.MCPServer, tasks *taskserver.Server, options ...server.StdioOption) error {
	return serveStdio(ctx, s, tasks, os.Stdin, os.Stdout, options...)
}

// serveStdio is ServeStdio on any pipes.
func serveStdio(ctx context.Context, s *server.MCPServer, tasks *taskserver.Server, in io.Reader, out io.Writer, options ...server.StdioOption) error {
	if err := checkLeftovers(s); err != nil {
		return fmt.Errorf("mcpgo: %w", err)
	}
	g := gateway.New(gateway.Config{
		Server: tasks.Backend(), Direct: true,
		Principal:  func(context.Context) (string, error) { return Local, nil },
		FindBinder: adoptionsOf(tasks.Backend()).binderFor(s),
	})
	reader, writer, err := g.Pipe(ctx, in, out)
	if err != nil {
		return fmt.Errorf("mcpgo: %w", err)
	}
	stdio := server.NewStdioServer(s)
	for _, option := range options {
		option(stdio)
	}
	listening, stop := context.WithCancel(ctx)
	err = stdio.Listen(listening, reader, writer)
	stop() // mcp-go goes on to write notifications
	return errors.Join(err, writer.Close(), reader.Close())
}
