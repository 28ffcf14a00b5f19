package mcpgo_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestMadeUpSessions checks that a call of a task tool needs a session that exists, and that the streams that mcp-go opens
// for other sessions are bounded.
func TestMadeUpSessions(t *testing.T) {
	tasks, s := newServer(t, taskserver.Options{Limits: taskserver.Limits{Waiting: 2}}, pipeline.CITools(wiretest.CI{}))
	p := wiretest.NewUnopenedPeer(t, serve(t, tasks, s), wiretest.LegacyRevision, "", "{}")
	call := `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"lint_file","arguments":{"path":"x"}}}`
	for session, want := range map[string]int{"": http.StatusBadRequest, "made-up": http.StatusNotFound} {
		if got := p.Status("POST", call, wiretest.WithHeader("Mcp-Session-Id", session)); got != want {
			t.Errorf("a call in session %q: %d, want %d", session, got, want)
		}
	}
	for i, want := range []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests} {
		res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodGet, "", wiretest.WithHeader("Mcp-Session-Id", fmt.Sprint("made-up-", i))))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode != want {
			t.Errorf("stream %d: %d, want %d", i, res.StatusCode, want)
		}
	}
}

// TestFurtherStreams checks that each stream of a session but the first counts as a request that waits. mcp-go allows any
// number of them.
func TestFurtherStreams(t *testing.T) {
	tasks, s := newServer(t, taskserver.Options{Limits: taskserver.Limits{Waiting: 2}}, pipeline.CITools(wiretest.CI{}))
	p := wiretest.NewPeer(t, serve(t, tasks, s), wiretest.LegacyRevision, "")
	open := func(want int) {
		t.Helper()
		res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodGet, ""))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = res.Body.Close() })
		if res.StatusCode != want {
			t.Errorf("a stream: %d, want %d", res.StatusCode, want)
		}
	}
	for range 3 {
		open(http.StatusOK)
	}
	open(http.StatusTooManyRequests)
}

// TestRevisionsTurnedOff checks that mcp-go serves no revision that the options leave out.
func TestRevisionsTurnedOff(t *testing.T) {
	only := func(revision string) *wiretest.Peer {
		tasks, s := newServer(t, taskserver.Options{Revisions: []string{revision}}, pipeline.CITools(wiretest.CI{}))
		return wiretest.NewUnopenedPeer(t, serve(t, tasks, s), wiretest.ModernRevision, "", wiretest.TasksExtension)
	}
	p := only(wiretest.LegacyRevision)
	for _, method := range []string{"server/discover", "tools/list", "tasks/get"} {
		for _, header := range []string{wiretest.ModernRevision, wiretest.LegacyRevision} {
			r := p.Call(method, map[string]any{"taskId": "x"}, wiretest.WithHeader("MCP-Protocol-Version", header)).Want(http.StatusBadRequest, wiretest.Unsupported)
			if r.Error != nil && !wiretest.SameJSON(string(r.Error.Data), `{"requested":"2026-07-28","supported":["2025-11-25"]}`) {
				t.Errorf("%s", r.Body)
			}
		}
	}
	initialize := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	unnamed := wiretest.WithHeader("MCP-Protocol-Version", "")
	if got := p.Post(fmt.Sprintf(initialize, wiretest.ModernRevision), unnamed).OK().Text("protocolVersion"); got != wiretest.LegacyRevision {
		t.Errorf("it negotiates %s", got)
	}
	if conn := connect(t, p.URL, ""); conn.Revision() != wiretest.LegacyRevision {
		t.Errorf("the client speaks %s", conn.Revision())
	}

	p = only(wiretest.ModernRevision)
	if got := fmt.Sprint(p.Call("server/discover", nil).OK().Get("supportedVersions")); got != "[2026-07-28]" {
		t.Errorf("it supports %s", got)
	}
	r := p.Post(fmt.Sprintf(initialize, wiretest.LegacyRevision), unnamed).Want(http.StatusBadRequest, wiretest.Unsupported)
	if !strings.Contains(string(r.Body), `"supported":["2026-07-28"]`) {
		t.Errorf("%s", r.Body)
	}
}
