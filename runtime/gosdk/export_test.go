package gosdk

import (
	"io"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// PipeTransport is StdioTransport on other pipes.
func PipeTransport(tasks *mcptask.Server, in io.Reader, out io.Writer) mcp.Transport {
	return &pipeTransport{tasks, in, out}
}
