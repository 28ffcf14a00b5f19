// Command hosts is a server for trying hosts. Its tools use features that hosts treat in different
// ways.
//
//	hosts -http 127.0.0.1:8080   serves /mcp until it is interrupted
//	hosts -stdio                 serves one client on standard input and output
//
// Its tests run published clients against it. The results are in docs/connect-clients.md.
//
// The server keeps its tasks in memory. With -store sqlite:FILE they survive the server.
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

	"github.com/mcptaskgen/mcptaskgen/examples/hosts/bakery"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/stores"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.BoolVar(&m.stdio, "stdio", false, "serve one client on standard input and output")
	flag.StringVar(&m.store, "store", stores.Default, stores.Usage)
	flag.StringVar(&m.log, "log", "", "append the log to this `file` instead of standard error")
	flag.DurationVar(&m.takes, "takes", 3*time.Minute, "how `long` the tool bake takes if the call does not say")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "hosts: unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := serve(ctx, os.Stdout, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "hosts:", err)
		os.Exit(1)
	}
}

// mode holds the values of the flags.
type mode struct {
	addr, store, log string
	stdio            bool
	takes            time.Duration
}

// serve serves until ctx ends, or until the end of the input.
func serve(ctx context.Context, out io.Writer, m mode) error {
	logger, closeLog, err := openLog(m.log)
	if err != nil {
		return err
	}
	defer closeLog()
	store, err := stores.Open(ctx, m.store)
	if err != nil {
		return err
	}
	tasks, err := taskserver.New(taskserver.Options{Store: store.Store, Logger: logger}, bakery.BakeryTools(baker{m.takes, logger}))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "bakery", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	if m.stdio {
		logger.Info("serving", "pid", os.Getpid())
		defer logger.Info("stopped", "pid", os.Getpid())
		return errors.Join(sdk.Run(ctx, gosdk.StdioTransport(tasks)), tasks.Close(), store.Close())
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.addr)
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
	fmt.Fprintf(out, "serving http://%s/mcp\n", listener.Addr())
	select {
	case err := <-served:
		return errors.Join(err, tasks.Close(), store.Close())
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return gosdk.Shutdown(stopping, server, tasks, store)
}

// openLog opens the log, and returns a function that closes it.
func openLog(file string) (*slog.Logger, func(), error) {
	if file == "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil)), func() {}, nil
	}
	out, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, nil, fmt.Errorf("-log: %w", err)
	}
	return slog.New(slog.NewTextHandler(out, nil)), func() { _ = out.Close() }, nil
}
