// Command conformance is the fixture server of the official conformance suite,
// generated like any user's server.
//
//	conformance -http 127.0.0.1:8080   serves /mcp
package main

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/conformance/fixture"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve /mcp at this `address`")
	jsonOnly := flag.Bool("json", false, "answer calls with JSON instead of event streams")
	flag.Parse()
	if err := serve(*addr, *jsonOnly); err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

func serve(addr string, jsonOnly bool) error {
	tasks, err := mcptask.NewServer(mcptask.Options{}, fixture.FixtureTools(tools{}))
	if err != nil {
		return err
	}
	defer tasks.Close()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "conformance", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{JSONResponse: jsonOnly}))
	server := &http.Server{Addr: addr, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}
