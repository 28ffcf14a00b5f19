package gosdk_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestConnectRefused: the error names the revisions that were tried, and where a
// token belongs that the server misses.
func TestConnectRefused(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		for status, hint := range map[int]bool{http.StatusUnauthorized: true, http.StatusNotFound: false} {
			server := memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", status) }), nil)
			defer server.Close()
			for revision, tried := range map[string]string{
				"": "in 2026-07-28, then 2025-11-25", mcptask.Revision20251125: "in 2025-11-25", mcptask.Revision20260728: "in 2026-07-28",
			} {
				_, err := gosdk.Connect(t.Context(), server.URL, gosdk.ClientOptions{Revision: revision})
				if err == nil || !strings.Contains(err.Error(), server.URL+" "+tried+":") || strings.Contains(err.Error(), "HTTPClient") != hint {
					t.Errorf("%d, %q: %v", status, revision, err)
				}
			}
		}
	})
}

// TestTTLBelowZero: what no server could keep is refused here, before it is sent.
func TestTTLBelowZero(t *testing.T) {
	url, _ := wiretest.Serve(t, mcptask.Options{})
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		ci := wiretest.Connect(t, url, revision, mcptask.Answerer{})
		_, err := ci.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "r"}, mcptask.TTL(-1))
		if err == nil || !strings.Contains(err.Error(), "the TTL is -1ns") {
			t.Errorf("%v", err)
		}
	})
}
