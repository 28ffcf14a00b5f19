package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/cluster/films"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// principal is the owner of all tasks: the token of the clients is that of one user.
const principal = "demo"

// serveReplica serves one replica until ctx ends.
func serveReplica(ctx context.Context, out io.Writer, m mode) error {
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	store, err := postgres.Open(ctx, m.postgres, postgres.Options{})
	if err != nil {
		return err
	}
	tasks, err := taskserver.New(taskserver.Options{Store: store, Logger: logger}, films.StudioTools(studio{m.replica}))
	if err != nil {
		return errors.Join(err, store.Close())
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "studio", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	mux := http.NewServeMux()
	// The proxy may forward a name of its own to a loopback address.
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk },
		&mcp.StreamableHTTPOptions{DisableLocalhostProtection: true, SessionTimeout: time.Hour})
	mux.Handle("/mcp", requireToken(os.Getenv(tokenVariable))(handler))
	mux.Handle("/livez", gosdk.LiveHandler(tasks))
	mux.Handle("/readyz", gosdk.ReadyHandler(tasks))
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

// requireToken admits the clients that have the token.
func requireToken(token string) func(http.Handler) http.Handler {
	return gosdk.RequireBearerToken(func(_ context.Context, got string, _ *http.Request) (*auth.TokenInfo, error) {
		if token == "" || got != token {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: principal, Expiration: time.Now().Add(time.Hour)}, nil
	}, nil)
}
