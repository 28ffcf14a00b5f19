package hostiletest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestHostileLimits exceeds every limit at once while the victim is served normally. Afterwards the
// flooding client is served too, and nothing is left behind.
func TestHostileLimits(t *testing.T) {
	const most = 8
	s := wiretest.Setup{Options: taskserver.Options{Limits: taskserver.Limits{Tasks: 4 * most, Running: most, Waiting: most, Arguments: 2000, Result: 2000, Lists: -1, Sessions: most}}}
	eachAttack(t, s, func(t *testing.T, a *attack, mallory *wiretest.Peer) {
		ctx, drop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		var mu sync.Mutex
		refused := map[string]int{}
		// open sends a request that may stay open, and notes the limit that it meets.
		open := func(p *wiretest.Peer, method string, params map[string]any) {
			body, edits := p.Request(method, params)
			all.Go(func() {
				res, err := (&http.Client{Transport: p.Client.Transport}).Do(p.NewRequest(ctx, http.MethodPost, body, edits...))
				if err != nil {
					return
				}
				defer res.Body.Close()
				data, _ := io.ReadAll(res.Body)
				if _, after, ok := strings.Cut(string(data), `"limit":"`); ok {
					limit, _, _ := strings.Cut(after, `"`)
					mu.Lock()
					defer mu.Unlock()
					refused[limit]++
				}
			})
		}
		id := mallory.Create("secret_work", nil)
		plain := a.attacker()
		if a.revision == wiretest.ModernRevision {
			plain.Caps = `{}`
		}
		ids := []string{id}
		for i := range 999 {
			ids = append(ids, fmt.Sprint("made-up", i))
		}
		for i := range 5 * most {
			open(mallory, "tools/call", map[string]any{"name": "secret_work", "arguments": map[string]any{}, "task": map[string]any{}})
			open(plain, "tools/call", map[string]any{"name": "secret_work", "arguments": map[string]any{}})
			open(mallory, "tools/call", map[string]any{"name": "lint_file", "arguments": map[string]any{"path": strings.Repeat("x", 3000)}})
			open(mallory, "tasks/result", map[string]any{"taskId": id})
			open(mallory, "tasks/get", map[string]any{"taskId": id})
			open(mallory, "tasks/list", nil)
			if a.revision == wiretest.LegacyRevision {
				continue
			}
			open(mallory, "subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": ids[:1+i*24]}})
			open(mallory, "subscriptions/listen", map[string]any{"notifications": map[string]any{"taskIds": ids[:1], "toolsListChanged": true}})
		}
		want := []string{"running", "arguments", "waiting"} // a slow machine may stay below the rate
		met := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return !slices.ContainsFunc(want, func(limit string) bool { return refused[limit] == 0 })
		}
		// Open requests stay open, however slow the machine is.
		for range 10 {
			a.victim.Task("tasks/get", a.asking).OK()
			time.Sleep(60 * time.Millisecond)
		}
		for end := time.Now().Add(wiretest.Patience); !met() && time.Now().Before(end); {
			time.Sleep(10 * time.Millisecond)
		}
		time.AfterFunc(time.Second, drop)
		all.Wait()
		drop()
		for _, limit := range want {
			if refused[limit] == 0 {
				t.Errorf("nothing is refused for %s: %v", limit, refused)
			}
		}
		// After the running tasks have ended, there is room again. A call without a task from a client of 2025-11-25
		// outlives its connection, but not its session.
		wiretest.ClosePeer(t, plain)
		for _, r := range a.records("mallory") {
			if !r.Done() {
				if _, _, err := a.tasks.Backend().Cancel(t.Context(), taskserver.Caller{Principal: "mallory"}, r.ID); err != nil {
					t.Error(err)
				}
			}
		}
		a.settled(func() bool {
			r := mallory.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 1}, "task": map[string]any{}})
			return r.Error == nil
		})
		a.settled(func() bool {
			for _, r := range a.records("mallory") {
				if !r.Done() {
					return false
				}
			}
			return true
		})
		a.tasksBefore = a.stored()
	})
}
