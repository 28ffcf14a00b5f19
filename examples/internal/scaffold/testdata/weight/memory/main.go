// Command memory serves the tools that init writes, with tasks in memory.
package main

import (
	"flag"
	"log"
	"log/slog"
	"net"
	"net/http"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"example.com/hello/reports"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.Parse()
	tasks, err := taskserver.New(taskserver.Options{Logger: slog.New(slog.DiscardHandler)}, reports.ReportsTools(service{}))
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "memory", Version: "0.1.0"}, nil)
	gosdk.AddTools(server, tasks)
	http.Handle("/mcp", gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return server }, nil))
	listener, err := net.Listen("tcp", *addr)
	if err != nil {
		log.Fatal(err)
	}
	log.Printf("serving http://%s/mcp", listener.Addr())
	log.Fatal(http.Serve(listener, nil))
}
