package edgetest

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// serveOnly starts a server that speaks one of the released revisions.
func serveOnly(t *testing.T, revision string, tools ...mcptask.Tools) string {
	url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: mcptask.Options{Revisions: []string{revision}}, Tools: tools})
	return url
}

// TestUnspokenRevision checks that a server declares tasks only in the revisions that it supports.
// A client that calls a required task tool in another revision learns which revisions have tasks,
// instead of a missing capability.
func TestUnspokenRevision(t *testing.T) {
	run := map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("main"), "task": map[string]any{}}
	t.Run(wiretest.ModernRevision, func(t *testing.T) {
		p := wiretest.NewPeer(t, serveOnly(t, wiretest.LegacyRevision), wiretest.ModernRevision, "")
		r := p.Call("server/discover", nil).OK()
		if r.Get("capabilities", "extensions", mcptask.ExtensionTasks) != nil || r.Text("resultType") != "complete" {
			t.Errorf("%s", r.Body)
		}
		r = p.Call("tools/call", run).Want(http.StatusBadRequest, mcptask.CodeMissingClientCapability)
		if r.Error != nil && !strings.Contains(r.Error.Message, "no tasks in 2026-07-28, only in 2025-11-25") {
			t.Error(r.Error.Message)
		}
	})
	t.Run(wiretest.LegacyRevision, func(t *testing.T) {
		p := wiretest.NewPeer(t, serveOnly(t, wiretest.ModernRevision), wiretest.LegacyRevision, "")
		if p.Opened.Get("capabilities", "tasks") != nil {
			t.Errorf("%s", p.Opened.Body)
		}
		r := p.Call("tools/call", run).Want(http.StatusOK, mcptask.CodeMethodNotFound)
		if r.Error != nil && !strings.Contains(r.Error.Message, "no tasks in 2025-11-25, only in 2026-07-28") {
			t.Error(r.Error.Message)
		}
	})
}

// TestUnspokenFallback checks the error of the generated client for a call that goes on behind the
// fallback tools, in a revision without tasks. The error names the option that helps.
func TestUnspokenFallback(t *testing.T) {
	t.Parallel()
	for spoken, revision := range map[string]string{wiretest.LegacyRevision: wiretest.ModernRevision, wiretest.ModernRevision: wiretest.LegacyRevision} {
		bubble.Run(t, revision, func(t *testing.T) {
			gate := make(chan struct{})
			defer close(gate)
			conn, err := gosdk.Connect(t.Context(), serveOnly(t, spoken, slowTools(time.Millisecond, gate)), gosdk.ClientOptions{Revision: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = mcptask.Run[slowReport](t.Context(), conn, "slow_sleep", wiretest.PonderInput{MS: -1})
			var refused *mcptask.Error
			if !errors.As(err, &refused) || refused.Code != mcptask.CodeMethodNotFound || !strings.Contains(err.Error(), "ClientOptions.Revision") {
				t.Error(err)
			}
		})
	}
}
