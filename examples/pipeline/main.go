// Command pipeline shows a generated server and its generated client running
// tasks, in both official revisions of MCP.
//
//	pipeline                       a client, and a server that is killed and comes back
//	pipeline -http 127.0.0.1:8080  only the server, at /mcp; with -console 127.0.0.1:8081 the operator's page beside it
//	pipeline -stdio                only the server, on standard input and output
//	pipeline -call URL             only the client, against a server
//	pipeline -record FILE          the first, recorded at a terminal of 80 columns into FILE, for asciinema
//	pipeline -brief                the first, without the cancellation, the errors and the revisions
//
// With -http and -stdio the server keeps its tasks in memory. With -store sqlite:FILE or -store postgres:DSN it keeps them
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
	"github.com/mcptaskgen/mcptaskgen/runtime/console"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "", "serve /mcp at this `address` until interrupted")
	flag.StringVar(&m.keep.console, "console", "", "with -http: serve the operator's page at this loopback `address`; "+
		"anyone on this machine can then answer, cancel and repeat all tasks, and see their arguments and results")
	flag.BoolVar(&m.stdio, "stdio", false, "serve one client on standard input and output")
	flag.StringVar(&m.url, "call", "", "run only the client, against the server at this `URL`")
	flag.StringVar(&m.record, "record", "", "record the demo into this `file`, for asciinema")
	flag.BoolVar(&m.brief, "brief", false, "leave the cancellation, the errors and the revisions out of the demo")
	flag.BoolVar(&m.attached, "attached", false, "with -http: end when standard input ends")
	flag.StringVar(&m.keep.store, "store", stores.Default, stores.Usage)
	flag.StringVar(&m.keep.sessionKey, "session-key", "", "share the sessions of 2025-11-25 with all replicas of this `key`, of at least 32 bytes")
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "pipeline: unknown argument %q; see -help\n", flag.Arg(0))
		os.Exit(2)
	}
	err := run(context.Background(), os.Stdout, m)
	switch {
	case errors.Is(err, errLeft):
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "pipeline:", err)
		os.Exit(1)
	}
}

// mode holds the values of the flags.
type mode struct {
	addr, url, record      string
	stdio, attached, brief bool
	keep                   keeping
}

// keeping has the places of the server's tasks and sessions, and the address of the operator's page.
type keeping struct {
	store, sessionKey, console string
}

// isDefault reports whether the server keeps them in memory.
func (k keeping) isDefault() bool {
	return k.sessionKey == "" && (k.store == "" || k.store == stores.Default)
}

func run(ctx context.Context, out *os.File, m mode) error {
	chosen := 0
	for _, isSet := range []bool{m.addr != "", m.url != "", m.stdio, m.record != ""} {
		if isSet {
			chosen++
		}
	}
	switch {
	case m.keep.console != "" && m.addr == "":
		return errors.New("-console needs -http")
	case chosen > 1:
		return errors.New("-http, -stdio, -call and -record exclude each other")
	case m.addr == "" && !m.stdio && !m.keep.isDefault():
		return errors.New("-store and -session-key need -http or -stdio: the demo keeps its tasks in a file of its own")
	case m.record != "":
		return record(ctx, out, m)
	case m.addr == "" && !m.stdio:
		return runDemo(ctx, out, m)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the process at once
	if m.stdio {
		return serveStdio(ctx, m.keep)
	}
	if m.attached {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	return serve(ctx, m.addr, m.keep, func(url string) {
		fmt.Fprintf(out, "serving %s\n", url)
		<-ctx.Done()
	})
}

// runDemo tells the story against the server at a URL, or against one of its own.
func runDemo(ctx context.Context, out *os.File, m mode) (err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	s := newStory(os.Stdin, out, leave)
	s.brief = m.brief
	defer s.t.Close()
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(interrupts)
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // not the end of the process: paint ends the demo
	go func() {
		for {
			select {
			case <-interrupts:
				s.interrupt()
			case <-ctx.Done():
				signal.Stop(interrupts) // another interrupt ends the process at once
				return
			}
		}
	}()
	url := m.url
	if url == "" {
		if s.server, err = startChild(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.server.close()) }()
		url = s.server.url()
		s.t.Printf("Process %d is a generated server. It keeps its tasks in an SQLite file.", s.server.pid())
	}
	s.connect = connectTo(url)
	err = s.tell(ctx)
	switch {
	case ctx.Err() != nil:
		s.t.Close()
		s.t.Printf("The demo is over.")
		return context.Cause(ctx)
	case err != nil && s.server != nil:
		return fmt.Errorf("%w\n%s", err, s.server.output())
	}
	return err
}

// newServer creates the generated server, and the SDK's server for it.
func newServer(store taskstore.Store, keep keeping) (*taskserver.Server, *mcp.Server, error) {
	level := slog.LevelWarn
	if keep.console != "" {
		level = slog.LevelInfo // for the audit trail of an operator's actions
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	options := taskserver.Options{Store: store, Logger: logger}
	if keep.sessionKey != "" {
		options.SessionKey = []byte(keep.sessionKey)
	}
	tasks, err := taskserver.New(options, pipeline.CITools(ci{}))
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

// serveConsole serves the operator's page at an address until end is called. The page answers only this machine, and lets
// everyone there step in and reveal. If the address is "", serveConsole does nothing.
func serveConsole(ctx context.Context, tasks *taskserver.Server, address string) (end func(), err error) {
	if address == "" {
		return func() {}, nil
	}
	page, err := console.New(tasks, console.Options{Actions: true, Reveal: true})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	server := &http.Server{Handler: page, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute}
	go func() { _ = server.Serve(listener) }() // it ends with the process at the latest
	fmt.Fprintf(os.Stderr, "the operator's page: http://%s/console/\n", listener.Addr())
	return func() { _ = server.Close() }, nil
}

// serve runs the server until work returns.
func serve(ctx context.Context, addr string, keep keeping, work func(url string)) error {
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
	closeConsole, err := serveConsole(ctx, tasks, keep.console)
	if err != nil {
		return errors.Join(err, server.Close(), tasks.Close(), store.Close())
	}
	defer closeConsole()

	work("http://" + listener.Addr().String() + "/mcp")
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	err = gosdk.Shutdown(stopping, server, tasks, store)
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}
