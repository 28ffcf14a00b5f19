// Command oauth is a server for hosts that sign their users in by OAuth. Its users have different rights, and a release is
// shipped only if a second person approves.
//
//	oauth -http 127.0.0.1:8080 -resource https://releases.example.com/mcp \
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
	"strings"
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
	addr, dir, people                string
	resource, audience, issuer, jwks string
	scopes                           string
	pace                             time.Duration
}

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.StringVar(&m.resource, "resource", "", "the `URL` by which clients call the server, such as https://releases.example.com/mcp")
	flag.StringVar(&m.issuer, "issuer", "", "take the tokens of this authorization `server`, named as in its tokens")
	flag.StringVar(&m.jwks, "jwks", "", "the `URL` of its keys: jwks_uri in its metadata")
	flag.StringVar(&m.audience, "audience", "", "the `audience` of the tokens, if it is not the resource")
	flag.StringVar(&m.scopes, "scopes", scopeReleases, "the `scopes` that hosts ask for when a user signs in, with blanks between them; for others they ask later")
	flag.StringVar(&m.people, "people", "people.json", "the `file` that says who may ship which services")
	flag.StringVar(&m.dir, "dir", ".", "keep the tasks and the approvals in this `directory`")
	flag.DurationVar(&m.pace, "pace", time.Second, "look this `often` whether a release was approved")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Stdout, m); err != nil {
		fmt.Fprintln(os.Stderr, "oauth:", err)
		stop()
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, out io.Writer, m mode) (err error) {
	resource, err := parseResource(m.resource)
	if err != nil {
		return err
	}
	if _, err := os.Stat(m.people); err != nil {
		return err
	}
	approvals, err := openApprovals(ctx, filepath.Join(m.dir, "approvals.db"), m.pace)
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
		AllowedHosts: []string{resource.Hostname()}, // a proxy on this machine may keep the name
		Logger:       slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelWarn})),
	}
	tasks, err := taskserver.New(options, releases.ReleasesTools(impl))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "releases", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)

	mux := http.NewServeMux()
	o := oauth{
		resource: resource, audience: m.audience, issuer: m.issuer, jwks: m.jwks,
		signIn: strings.Fields(m.scopes), toolScopes: toolScopes,
	}
	handler, err := o.protect(ctx, mux, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil))
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
