// Command pipeline shows a generated server and its generated client running
// tasks, in both official revisions of MCP.
//
//	pipeline                       server and client in one process
//	pipeline -http 127.0.0.1:8080  only the server, at /mcp
//	pipeline -stdio                only the server, on standard input and output
//	pipeline -call URL             only the client, against a server
//
// The server keeps its tasks in memory. With -store sqlite:FILE or -store postgres:DSN it keeps them
// in a database, and they survive the server. Replicas behind one URL share -store postgres:DSN and
// -session-key KEY.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/stores"
	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "", "serve /mcp at this `address` until interrupted")
	flag.BoolVar(&m.stdio, "stdio", false, "serve one client on standard input and output")
	flag.StringVar(&m.url, "call", "", "run only the client, against the server at this `URL`")
	flag.StringVar(&m.keep.store, "store", stores.Default, stores.Usage)
	flag.StringVar(&m.keep.sessionKey, "session-key", "", "share the sessions of 2025-11-25 with all replicas of this `key`, of at least 32 bytes")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "pipeline: unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	if err := run(ctx, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		stop()
		os.Exit(1)
	}
}

// mode holds the values of the flags.
type mode struct {
	addr, url string
	stdio     bool
	keep      keeping
}

// keeping says where the server keeps its tasks and its sessions.
type keeping struct {
	store, sessionKey string
	// briefly says that the tasks are meant to end with the process: the server does not warn of that.
	briefly bool
}

// isDefault reports whether the server keeps them in memory.
func (k keeping) isDefault() bool {
	return k.sessionKey == "" && (k.store == "" || k.store == stores.Default)
}

func run(ctx context.Context, out io.Writer, m mode) error {
	switch {
	case m.addr != "" && m.url != "", m.stdio && (m.addr != "" || m.url != ""):
		return errors.New("-http, -stdio and -call exclude each other")
	case m.url != "" && !m.keep.isDefault():
		return errors.New("-call runs only the client: give -store and -session-key to the server")
	case m.url != "":
		return runClient(ctx, out, m.url)
	case m.stdio:
		return serveStdio(ctx, m.keep)
	case m.addr != "":
		return serve(ctx, m.addr, m.keep, func(url string) error {
			fmt.Fprintf(out, "serving %s\n", url)
			<-ctx.Done()
			return nil
		})
	}
	m.keep.briefly = true
	return serve(ctx, "127.0.0.1:0", m.keep, func(url string) error {
		fmt.Fprintf(out, "a generated server at %s, called by its generated client\n", url)
		return runClient(ctx, out, url)
	})
}

// runClient runs the client in one revision after another.
func runClient(ctx context.Context, out io.Writer, url string) error {
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		if err := runDemo(ctx, out, url, revision); err != nil {
			return err
		}
	}
	return nil
}

// newServer creates the generated server, and the SDK's server for it.
func newServer(store mcptask.Store, keep keeping) (*mcptask.Server, *mcp.Server, error) {
	level := slog.LevelWarn
	if keep.briefly {
		level = slog.LevelError
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	options := mcptask.Options{Store: store, Logger: logger}
	if keep.sessionKey != "" {
		options.SessionKey = []byte(keep.sessionKey)
	}
	tasks, err := mcptask.NewServer(options, pipeline.CITools(ci{}))
	if err != nil {
		return nil, nil, err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	return tasks, sdk, nil
}

// serveStdio serves one client until its input ends.
func serveStdio(ctx context.Context, keep keeping) error {
	store, err := stores.Open(ctx, keep.store)
	if err != nil {
		return err
	}
	tasks, sdk, err := newServer(store.Store, keep)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	return errors.Join(sdk.Run(ctx, gosdk.StdioTransport(tasks)), tasks.Close(), store.Close())
}

// serve runs the server until work returns.
func serve(ctx context.Context, addr string, keep keeping, work func(url string) error) error {
	store, err := stores.Open(ctx, keep.store)
	if err != nil {
		return err
	}
	tasks, sdk, err := newServer(store.Store, keep)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return errors.Join(err, tasks.Close(), store.Close())
	}
	server := &http.Server{
		Handler: mux, MaxHeaderBytes: 64 << 10,
		// Limits for slow requests and idle connections. Streams may last longer. NewHandler limits
		// each write.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()

	err = work("http://" + listener.Addr().String() + "/mcp")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	err = errors.Join(err, gosdk.Shutdown(stopping, server, tasks, store))
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}
