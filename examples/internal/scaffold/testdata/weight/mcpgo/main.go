// Command mcpgo serves one tool with mark3labs/mcp-go alone.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.Parse()
	tools := server.NewMCPServer("mcpgo", "0.1.0")
	tools.AddTool(mcp.NewTool("write_report", mcp.WithDescription("Writes a report."), mcp.WithString("region", mcp.Required())),
		func(_ context.Context, call mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			return mcp.NewToolResultText("All is well in the " + call.GetString("region", "") + "."), nil
		})
	http.Handle("/mcp", server.NewStreamableHTTPServer(tools))
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/mcp", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
