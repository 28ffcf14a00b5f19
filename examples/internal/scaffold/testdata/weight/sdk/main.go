// Command sdk serves one tool with the official SDK alone.
package main

import (
	"context"
	"flag"
	"log"
	"net"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

type arguments struct {
	Region string `json:"region"`
}

type report struct {
	Text string `json:"text"`
}

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.Parse()
	server := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "0.1.0"}, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "write_report", Description: "Writes a report."},
		func(_ context.Context, _ *mcp.CallToolRequest, in arguments) (*mcp.CallToolResult, report, error) {
			return nil, report{"All is well in the " + in.Region + "."}, nil
		})
	http.Handle("/mcp", mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, nil))
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/mcp", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
