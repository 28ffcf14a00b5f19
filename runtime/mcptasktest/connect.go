// Package mcptasktest tests handlers and clients without a network. It works
// inside testing/synctest, where hours of polling take no time: begin such tests
// with bubble.Test, of the package below this one.
package mcptasktest

import (
	"context"
	"net/http"
	"slices"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// Local is the principal of every call in a test.
const Local = "local"

// Options configure Connect. The zero value is ready to use.
type Options struct {
	// Answer answers questions; the zero Answerer declares that nobody can be
	// asked.
	Answer mcptask.Answerer
	// Server are the server's options. A nil Principal makes every caller Local, nil
	// Revisions speak what the test asks for, one that is off by default too.
	Server mcptask.Options
}

// Connect serves tools in this process and connects a client to them in one
// revision: the same bytes go the same way as over HTTP. Server and connection
// are closed when the test ends. What goes wrong fails the test.
func Connect(t testing.TB, revision string, options Options, tools ...mcptask.Tools) mcptask.Conn {
	t.Helper()
	if options.Server.Principal == nil {
		options.Server.Principal = func(context.Context) (string, error) { return Local, nil }
	}
	if options.Server.Revisions == nil && !slices.Contains(released, revision) { // which has to be named
		options.Server.Revisions = []string{revision}
	}
	tasks, err := mcptask.NewServer(options.Server, tools...)
	if err != nil {
		t.Fatalf("mcptasktest: %v", err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "mcptasktest", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	if w, ok := t.(wrapper); ok {
		handler = w.WrapHandler(handler)
	}
	wire := &handlerTransport{handler: handler}
	conn, err := gosdk.Connect(t.Context(), "http://mcptasktest/mcp", gosdk.ClientOptions{
		Answer: options.Answer, Revision: revision, HTTPClient: &http.Client{Transport: wire},
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
	return conn
}

// wrapper is a test that looks at the wire: this module's own hold every
// message against the schemas, which no user's test has to link.
type wrapper interface {
	WrapHandler(next http.Handler) http.Handler
}

// released are the revisions that a server speaks without being told to.
var released = []string{mcptask.Revision20251125, mcptask.Revision20260728}

// EachRevision runs a test once in every revision that a server speaks without
// being told to.
func EachRevision(t *testing.T, test func(t *testing.T, revision string)) {
	t.Helper()
	for _, revision := range released {
		t.Run(revision, func(t *testing.T) { test(t, revision) })
	}
}
