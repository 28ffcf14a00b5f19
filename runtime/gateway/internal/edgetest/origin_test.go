package edgetest

import (
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// TestTenantCalledLocal checks that an authenticated user with the name of the client on a pipe is served like any
// other. In a store that a server on pipes uses too, the two do not see each other's tasks.
func TestTenantCalledLocal(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		store := mcptask.NewMemoryStore()
		tasks, err := mcptask.NewServer(mcptask.Options{Store: store, Limits: wiretest.NoPollLimits}, wiretest.EndlessTools())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = tasks.Close() })
		pipe := wiretest.PipeTo(t, tasks, 100)
		pipe.Initialize()
		hidden := pipe.StartEndless()
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: mcptask.Options{Store: store, Concurrency: 4}})
		owners := map[string]string{"local": "remote:local", "remote:local": "remote:remote:local", "localhost": "localhost"}
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			for user, owner := range owners {
				p := wiretest.NewPeer(t, url, revision, user)
				unknown := p.Task("tasks/get", "NOSUCHTASKNOSUCHTASKNOSUCH")
				for _, method := range []string{"tasks/get", "tasks/cancel"} {
					p.Task(method, hidden).Want(unknown.Status, wiretest.InvalidParams)
				}
				own := p.Create("raw", nil)
				p.Until(own, "completed")
				record, err := store.Get(t.Context(), own)
				if err != nil || record.Principal != owner {
					t.Errorf("the task of the user %q belongs to %q, want %q: %v", user, record.Principal, owner, err)
				}
				if revision == wiretest.LegacyRevision {
					if listed := wiretest.ListTasks(t, p); len(listed) != 1 || listed[0]["taskId"] != own {
						t.Errorf("%s lists %v, and has %s", user, listed, own)
					}
					p.Task("tasks/result", p.Create("ponder", map[string]any{"ms": 40_000})).OK() // meanwhile the principal is asked again
				}
			}
		}
		record, err := store.Get(t.Context(), hidden)
		if err != nil || record.Principal != "local" || record.Done() {
			t.Errorf("the task of the client on a pipe: %+v, %v", record, err)
		}
		pipe.Say(`{"jsonrpc":"2.0","id":"l","method":"tasks/list"}`)
		if m := pipe.NextMessage(); m.ID != "l" || strings.Count(m.Line, `"taskId"`) != 1 {
			t.Errorf("the list of the client on a pipe: %s", m.Line)
		}
		// The name brings no slots.
		p, other := wiretest.NewPeer(t, url, wiretest.ModernRevision, "local"), wiretest.NewPeer(t, url, wiretest.ModernRevision, "b")
		for range 4 {
			p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		}
		other.Until(other.Create("raw", nil), "completed")
	})
}
