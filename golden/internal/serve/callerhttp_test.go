//go:build long

package serve_test

import (
	"context"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/caller"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestCallerHTTP is TestCaller over HTTP, with the generated tools beside the official SDK.
func TestCallerHTTP(t *testing.T) {
	url := serve.HTTP(t, pipeline.CITools(&callerCI{}))
	askThePerson := func(context.Context, mcptask.Question) (pipeline.Approval, error) {
		return pipeline.Approval{Approve: true}, nil
	}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		var out strings.Builder
		if err := caller.Run(t.Context(), &out, url, revision, askThePerson); err != nil || out.String() != callerPrinted {
			t.Errorf("%s: %v\n%s", revision, err, out.String())
		}
	}
}
