// Command oauth is a server for hosts that sign their users in by OAuth. Its users have different rights, and a release is
// shipped only if a second person approves.
//
//	oauth -http 127.0.0.1:8080 -url https://releases.example.com/mcp \
//	      -issuer https://login.example.com -jwks https://login.example.com/jwks.json -people people.json
//
// The server keeps its tasks and the approvals in the directory that -dir names.
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

	"github.com/mcptaskgen/mcptaskgen/examples/oauth/releases"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/sqlite"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// mode holds the values of the flags.
type mode struct {
	addr, dir, people string
	oauth             oauth
}

func main() {
	m := mode{oauth: newOAuth()}
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.StringVar(&m.people, "people", "people.json", "the `file` that says who may ship which services")
	flag.StringVar(&m.dir, "dir", ".", "keep the tasks and the approvals in this `directory`")
	m.oauth.addFlags(flag.CommandLine)
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "oauth:", err)
		stop()
		os.Exit(1)
	}
}

// newOAuth returns what the flags do not say, and their defaults.
func newOAuth() oauth {
	return oauth{signIn: []string{scopeReleases}, toolScopes: toolScopes, logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
}

// run serves until ctx ends.
func run(ctx context.Context, out io.Writer, m mode) (err error) {
	if _, err := os.Stat(m.people); err != nil {
		return err
	}
	approvals, err := openApprovals(ctx, filepath.Join(m.dir, "approvals.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, approvals.Close()) }()
	store, err := sqlite.Open(filepath.Join(m.dir, "tasks.db"), sqlite.Options{})
	if err != nil {
		return err
	}
	impl := &releaser{approvals, func(_ context.Context, key string, r releases.Release) error {
		fmt.Fprintf(out, "shipping %s %s under the key %s\n", r.Service, r.Version, key) // the work
		return nil
	}}
	options := taskserver.Options{
		Store: store, Context: directory(m.people).addPerson,
		AllowedHosts: m.oauth.hosts(),
		Logger:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	tasks, err := taskserver.New(options, releases.ReleasesTools(impl))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "releases", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)

	mux := http.NewServeMux()
	handler, err := m.oauth.protect(ctx, mux, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
	if err != nil {
		return errors.Join(err, tasks.Close(), store.Close())
	}
	mux.Handle("/mcp", handler)

	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.addr)
	if err != nil {
		return errors.Join(err, tasks.Close(), store.Close())
	}
	server := &http.Server{
		Handler: mux, MaxHeaderBytes: 64 << 10,
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
