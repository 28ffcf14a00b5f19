// Command conformance is the fixture server of the official conformance suite,
// generated like any user's server.
//
//	conformance -http 127.0.0.1:8080   serves /mcp until it is interrupted
//	conformance -stdio                 serves one client on standard input and output
//	conformance -dialects all          speaks the revisions too that are off unless they are named
//
// Replicas behind one URL share -store postgres:DSN and -session-key KEY. With -bearer TOKEN only
// clients with that token are served: they are one user, who can list the tasks.
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

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/conformance/fixture"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/stores"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func main() {
	var m mode
	flag.StringVar(&m.addr, "http", "127.0.0.1:8080", "serve /mcp at this `address`")
	flag.BoolVar(&m.jsonOnly, "json", false, "answer calls with JSON instead of event streams")
	stdio := flag.Bool("stdio", false, "serve one client on standard input and output")
	dialects := flag.String("dialects", defaultRevisions, "speak these `revisions`, with commas between them, or all; "+
		mcptask.Revision20251125RC+" beside "+mcptask.Revision20251125+" only at "+candidatePath)
	flag.StringVar(&m.store, "store", stores.Default, stores.Usage)
	flag.StringVar(&m.sessionKey, "session-key", "", "share the sessions of 2025-11-25 with all replicas of this `key`, of at least 32 bytes")
	flag.StringVar(&m.bearer, "bearer", "", "serve only clients with this bearer `token`")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if *stdio {
		m.addr = ""
	}
	m.revisions = parseRevisions(*dialects)
	err := serve(ctx, m)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance:", err)
		os.Exit(1)
	}
}

// mode holds the values of the flags.
type mode struct {
	addr                      string // "" means standard input and output
	store, sessionKey, bearer string
	jsonOnly                  bool
	revisions                 []string
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

// taskOptions returns the options of the server.
func (m mode) taskOptions(store taskstore.Store) (taskserver.Options, error) {
	options := taskserver.Options{Revisions: m.revisions, Store: store}
	if m.sessionKey != "" {
		options.SessionKey = []byte(m.sessionKey)
		if len(m.sessionKey) < taskstore.MinSessionKey {
			return options, fmt.Errorf("-session-key has %d bytes, but needs at least %d: make one with openssl rand -hex 32",
				len(m.sessionKey), taskstore.MinSessionKey)
		}
	}
	return options, nil
}

// authenticate admits only clients with the bearer token, if there is one.
func (m mode) authenticate(next http.Handler) http.Handler {
	if m.bearer == "" {
		return next
	}
	return gosdk.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		if token != m.bearer {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: "bearer", Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)(next)
}

// serve serves revisions over HTTP, or over standard input and output if there is no address.
func serve(ctx context.Context, m mode) error {
	store, err := stores.Open(ctx, m.store)
	if err != nil {
		return err
	}
	taskOptions, err := m.taskOptions(store.Store)
	if err != nil {
		return errors.Join(err, store.Close())
	}
	tasks, err := taskserver.New(taskOptions, fixture.FixtureTools(tools{}))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "conformance", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	if m.addr == "" {
		return errors.Join(sdk.Run(ctx, gosdk.StdioTransport(tasks)), tasks.Close(), store.Close())
	}
	mux := http.NewServeMux()
	get, options := func(*http.Request) *mcp.Server { return sdk }, &mcp.StreamableHTTPOptions{JSONResponse: m.jsonOnly}
	mux.Handle("/mcp", gosdk.NewHandler(tasks, get, options))
	if slices.Contains(m.revisions, mcptask.Revision20251125RC) {
		mux.Handle(candidatePath, gosdk.NewRevisionHandler(tasks, mcptask.Revision20251125RC, get, options))
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", m.addr)
	if err != nil {
		return errors.Join(err, tasks.Close(), store.Close())
	}
	server := &http.Server{
		Handler: m.authenticate(mux), MaxHeaderBytes: 64 << 10,
		// Limits for slow requests and idle connections. Streams may last longer. NewHandler limits
		// each write.
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: time.Minute, IdleTimeout: 2 * time.Minute,
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	fmt.Printf("serving http://%s/mcp\n", listener.Addr())
	if slices.Contains(m.revisions, mcptask.Revision20251125RC) {
		fmt.Printf("and %s at http://%s%s\n", mcptask.Revision20251125RC, listener.Addr(), candidatePath)
	}
	select {
	case err := <-served:
		return errors.Join(err, tasks.Close(), store.Close())
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), 20*time.Second)
	defer cancel()
	return gosdk.Shutdown(stopping, server, tasks, store)
}
