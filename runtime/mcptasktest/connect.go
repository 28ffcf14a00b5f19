// Package mcptasktest tests handlers and clients without a network. It works inside
// testing/synctest, so that hours of polling take no time. Start such tests with bubble.Test of the
// package below.
package mcptasktest

import (
	"context"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Local is the principal of every call in a test.
const Local = "local"

// Options configure Connect. The zero value is ready to use.
type Options struct {
	// Answer answers questions. The zero Answerer declares that the client cannot answer any.
	Answer mcptask.Answerer
	// Sample answers a task's requests to a model. It returns mcptask.ErrDeclined if the user
	// refuses. nil declares that the client has no model.
	Sample func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error)
	// Roots are the places that the user has opened. nil declares that the client tells no roots.
	Roots []mcptask.Root
	// OpenURL shows a page to the user. It returns mcptask.ErrDeclined or mcptask.ErrDismissed to
	// refuse. nil declares that the client cannot show pages.
	OpenURL func(context.Context, mcptask.Question) error
	// Interrupt is called at each point of a run: before the work of a step, after its result is stored, and at the
	// beginning and the end of a mcptask.Sleep. If it returns true, the run ends there as if its process had been
	// killed, and another process had taken the task. The run's context ends with mcptask.ErrSuperseded, and what it
	// does from then on is not stored. If the tool has onlost=restart, the next run begins, which counts for
	// Policy.Attempts. Otherwise, or if these are used up, the task ends with mcptask.ErrWorkerLost. The handler waits
	// while Interrupt runs, and Interrupt is called from many goroutines. Most tests use Once. nil means never.
	Interrupt func(Point) bool
	// Server holds the server's options. A nil Principal makes Local the caller. Local may have all
	// slots, as a client on standard input and output may. Nil Revisions enable the revision of the
	// test, even one that is off by default. A nil Logger means slog.Default for warnings and errors,
	// without the warnings that tasks are kept in memory.
	Server taskserver.Options
}

// Connect serves tools in this process and connects a client to them in one revision. The messages
// are the same bytes as over HTTP. Only a poll of a task that has not changed since the last poll
// sends none: the connection returns the last snapshot, so that hours of polling in a bubble cost
// little. Connect closes the server and the connection at the end of the test. An error fails the
// test.
func Connect(t testing.TB, revision string, options Options, tools ...mcptask.Tools) mcptask.Conn {
	t.Helper()
	if options.Server.Principal == nil {
		options.Server.Principal = func(context.Context) (string, error) { return Local, nil }
	}
	if options.Server.Revisions == nil && !slices.Contains(defaultRevisions, revision) { // this revision must be enabled by name
		options.Server.Revisions = []string{revision}
	}
	if options.Server.Logger == nil {
		options.Server.Logger = slog.New(testHandler{slog.Default().Handler()}) //nolint:forbidigo // a server without a logger has this one too
	}
	if options.Interrupt != nil {
		options.Server.Hooks = append(slices.Clone(options.Server.Hooks), newHooks(options.Interrupt))
	}
	tasks, err := taskserver.New(options.Server, tools...)
	if err != nil {
		t.Fatalf("mcptasktest: %v", err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "mcptasktest", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	wrapper, inspected := t.(handlerWrapper)
	if inspected {
		handler = wrapper.WrapHandler(handler)
	}
	wire := &handlerTransport{handler: handler}
	conn, err := gosdk.Connect(t.Context(), "http://mcptasktest/mcp", gosdk.ClientOptions{
		Answer: options.Answer, Sample: options.Sample, Roots: options.Roots, OpenURL: options.OpenURL,
		Revision: revision, HTTPClient: &http.Client{Transport: wire},
	})
	if err != nil {
		_ = tasks.Close()
		t.Fatalf("mcptasktest: %v", err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Errorf("mcptasktest: close the connection: %v", err)
		}
		if err := tasks.Close(); err != nil {
			t.Errorf("mcptasktest: close the server: %v", err)
		}
		wire.requests.Wait()
	})
	if watcher, ok := conn.(mcptask.Watcher); ok {
		c := newTestConn(conn, watcher, tasks)
		c.sendsAll = inspected
		return c
	}
	return conn
}

// testHandler keeps the records that a server without a Logger logs. It leaves out the advice to use a durable store,
// because a test keeps its tasks in memory on purpose.
type testHandler struct{ slog.Handler }

// Enabled implements slog.Handler.
func (h testHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && h.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h testHandler) Handle(ctx context.Context, r slog.Record) error {
	if strings.Contains(r.Message, "set Options.Store to a durable store") {
		return nil
	}
	return h.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (h testHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return testHandler{h.Handler.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h testHandler) WithGroup(name string) slog.Handler {
	return testHandler{h.Handler.WithGroup(name)}
}

// handlerWrapper is a test that inspects messages. This module's tests check every message against
// the schemas, which users' tests do not need to link.
type handlerWrapper interface {
	WrapHandler(next http.Handler) http.Handler
}

// defaultRevisions are the revisions that a server speaks by default.
var defaultRevisions = []string{mcptask.Revision20251125, mcptask.Revision20260728}

// EachRevision runs a test once in every revision that a server speaks by default.
func EachRevision(t *testing.T, test func(t *testing.T, revision string)) {
	t.Helper()
	for _, revision := range defaultRevisions {
		t.Run(revision, func(t *testing.T) { test(t, revision) })
	}
}
