//go:build long

package serve_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/caller"
	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestCallerHTTP goes the whole way: a server of the generated tools beside the official SDK, and the generated client over
// HTTP, in both revisions.
func TestCallerHTTP(t *testing.T) {
	tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(&callerCI{})) // duplicate or invalid tools: err
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	server := httptest.NewServer(wirecheck.Handler(t, handler))
	defer server.Close()

	askThePerson := func(context.Context, mcptask.Question) (pipeline.Approval, error) {
		return pipeline.Approval{Approve: true}, nil
	}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		var out strings.Builder
		if err := caller.Run(t.Context(), &out, server.URL, revision, askThePerson); err != nil || out.String() != callerPrinted {
			t.Errorf("%s: %v\n%s", revision, err, out.String())
		}
	}
}
