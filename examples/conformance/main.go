// Command conformance is the fixture server of the official conformance suite,
// generated like any user's server.
//
//	conformance -http 127.0.0.1:8080   serves /mcp until it is interrupted
//	conformance -stdio                 serves one client on standard input and output
//	conformance -dialects all          speaks the revisions too that are off unless they are named
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/conformance/fixture"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

func main() {
	addr := flag.String("http", "127.0.0.1:8080", "serve /mcp at this `address`")
	jsonOnly := flag.Bool("json", false, "answer calls with JSON instead of event streams")
	stdio := flag.Bool("stdio", false, "serve one client on standard input and output")
	dialects := flag.String("dialects", defaultRevisions, "speak these `revisions`, with commas between them, or all; "+
		mcptask.Revision20251125RC+" beside "+mcptask.Revision20251125+" only at "+candidatePath)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *stdio {
		*addr = ""
	}
	err := serve(ctx, *addr, *jsonOnly, parseRevisions(*dialects))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

const (
	// defaultRevisions are the revisions that the server speaks by default.
	defaultRevisions = mcptask.Revision20251125 + "," + mcptask.Revision20260728
	// candidatePath is the path of the release candidate, because its requests look like those of
	// the release.
	candidatePath = "/mcp/" + mcptask.Revision20251125RC
)

// parseRevisions returns the revisions that a text names. The server refuses unknown names.
func parseRevisions(text string) []string {
	if text == "all" {
		return slices.Sorted(maps.Keys(mcptask.Declared()))
	}
	return strings.Split(text, ",")
}

// serve serves revisions over HTTP, or over standard input and output if there is no address.
func serve(ctx context.Context, addr string, jsonOnly bool, revisions []string) error {
	tasks, err := mcptask.NewServer(mcptask.Options{Revisions: revisions}, fixture.FixtureTools(tools{}))
	if err != nil {
		return err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "conformance", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	if addr == "" {
		return errors.Join(sdk.Run(ctx, gosdk.StdioTransport(tasks)), tasks.Close())
	}
	mux := http.NewServeMux()
	get, options := func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{JSONResponse: jsonOnly}
	mux.Handle("/mcp", gosdk.NewHandler(tasks, get, options))
	if slices.Contains(revisions, mcptask.Revision20251125RC) {
		mux.Handle(candidatePath, gosdk.NewRevisionHandler(tasks, mcptask.Revision20251125RC, get, options))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Join(err, tasks.Close())
	}
	server := &http.Server{
		Handler: mux, MaxHeaderBytes: 64 << 10,
		// Limits for slow requests and idle connections. Streams may last longer. NewHandler limits
		// each write.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	if slices.Contains(revisions, mcptask.Revision20251125RC) {
		fmt.Printf("and %s at http://%s%s\n", mcptask.Revision20251125RC, listener.Addr(), candidatePath)
	}
	select {
	case err := <-served:
		return errors.Join(err, tasks.Close())
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return gosdk.Shutdown(stopping, server, tasks)
}
