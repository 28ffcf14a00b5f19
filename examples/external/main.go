// Command external is a server whose work other processes do: a child process that it starts, and jobs of a batch system.
// Kill the server while it works and start it again: the work is done once.
//
//	external -batch 127.0.0.1:8081                                  only the batch system
//	external -http 127.0.0.1:8080 -batch-url http://127.0.0.1:8081  the server, at /mcp
//
// The server keeps its tasks and the reports in the directory that -dir names.
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
	"path/filepath"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/external/reports"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// mode holds the values of the flags.
type mode struct {
	addr, batchAddr, batchURL, dir string
	pace                           time.Duration
	export                         string // the child's file
	rows                           int
}

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "", "serve /mcp at this `address`")
	flag.StringVar(&m.dir, "dir", ".", "keep the tasks and the reports in this `directory`")
	flag.StringVar(&m.batchURL, "batch-url", "http://127.0.0.1:8081", "submit jobs to the batch system at this `URL`")
	flag.StringVar(&m.batchAddr, "batch", "", "be the batch system at this `address`")
	flag.DurationVar(&m.pace, "pace", 200*time.Millisecond, "work this `long` at each row or part")
	flag.StringVar(&m.export, "export", "", "be the child that writes a report into this `file`")
	flag.IntVar(&m.rows, "rows", 0, "with -export: the `number` of rows")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdin, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "external:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context, in io.Reader, out io.Writer, m mode) error {
	switch {
	case m.export != "":
		return export(ctx, in, out, m)
	case m.batchAddr != "":
		b := newBatch(ctx, out, func(ctx context.Context) error { return pause(ctx, m.pace) })
		return serveBatch(ctx, m.batchAddr, b, func(url string) { fmt.Fprintln(out, "serving", url) })
	case m.addr != "":
		return serve(ctx, out, m)
	}
	return errors.New("write -http ADDRESS for the server or -batch ADDRESS for the batch system; see -help")
}

// serve runs the server until ctx ends.
func serve(ctx context.Context, out io.Writer, m mode) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	store, err := sqlite.Open(filepath.Join(m.dir, "tasks.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	impl := maker{program: program, dir: m.dir, pace: m.pace, batch: batchClient{url: m.batchURL}}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn}))
	tasks, err := taskserver.New(taskserver.Options{Store: store, Logger: logger}, reports.ReportsTools(impl))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "reports", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	mux := http.NewServeMux()
	mux.Handle("/mcp", gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	server, served, url, err := listen(ctx, m.addr, mux)
	if err != nil {
		return errors.Join(err, tasks.Close(), store.Close())
	}
	fmt.Fprintf(out, "serving %s/mcp\n", url)
	select {
	case err := <-served:
		return errors.Join(err, tasks.Close(), store.Close())
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return gosdk.Shutdown(stopping, server, tasks, store)
}

// listen starts an HTTP server. served gets its end.
func listen(ctx context.Context, addr string, handler http.Handler) (server *http.Server, served <-chan error, url string, err error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, nil, "", err
	}
	server = &http.Server{
		Handler: handler, MaxHeaderBytes: 64 << 10,
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	return server, ended, "http://" + listener.Addr().String(), nil
}

// pause waits, or returns why ctx has ended.
func pause(ctx context.Context, duration time.Duration) error {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
