package edgetest

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestLimitLasting checks that a message which stays in memory with its session or its wait must be
// small, even if large bodies are allowed. There may be thousands of them.
func TestLimitLasting(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		const bytes = 64 << 10
		padded := func(more map[string]any) map[string]any {
			more["padding"] = strings.Repeat("x", bytes)
			return more
		}
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		id := p.Create("run_pipeline", wiretest.PipelineArgs("endless"))
		p.Call("tasks/result", padded(map[string]any{"taskId": id})).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		q := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		q.Call("subscriptions/listen", padded(map[string]any{"notifications": map[string]any{"taskIds": []string{id}}})).
			Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		q.Call("subscriptions/listen", padded(map[string]any{"notifications": map[string]any{"toolsListChanged": true}})).
			Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		named := func(r *http.Request) { r.Header.Set("Mcp-Name", "run_pipeline") }
		for _, p := range []*wiretest.Peer{p, q} {
			p.Call("tools/call", padded(map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("quick")}), named).
				Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			long := wiretest.PipelineArgs("quick")
			long["unknown"] = strings.Repeat("x", bytes)
			if r := p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": long}, named); r.Status == http.StatusRequestEntityTooLarge {
				t.Errorf("long arguments: %s", r.Body)
			}
		}
		crumbs := map[string]any{"taskId": id}
		for i := range 2000 {
			crumbs[fmt.Sprint(i)] = 0
		}
		p.Call("tasks/result", crumbs).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		delete(crumbs, "taskId")
		q.Call("subscriptions/listen", map[string]any{"notifications": crumbs}).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		for _, p := range []*wiretest.Peer{p, q} {
			p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("quick"), "x": crumbs}, named).
				Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			if r := p.Call("tools/call", map[string]any{"name": "run_pipeline", "arguments": crumbs}, named); r.Status == http.StatusRequestEntityTooLarge {
				t.Errorf("many arguments: %s", r.Body)
			}
		}

		fresh := &wiretest.Peer{T: t, URL: url, Client: p.Client, Revision: wiretest.LegacyRevision}
		initialize := func(experimental string) *wiretest.Response {
			return fresh.Post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{"experimental":{"x":%s}},"clientInfo":{"name":"t","version":"1"}}}`, experimental))
		}
		initialize(`{"y":"`+strings.Repeat("x", bytes)+`"}`).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		initialize(`{"y":[{}`+strings.Repeat(`,{}`, 1000)+`]}`).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
		initialize(`{"y":"` + strings.Repeat(`,{[\"`, 1001) + `"}`).OK() // one value
	})
}

// TestPipeLimitLasting checks the same on a pipe.
func TestPipeLimitLasting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := wiretest.NewPipedWith(t, mcptask.Options{})
		p.Initialize()
		for _, method := range []string{"tasks/result", "initialize"} {
			line := p.Ask(`{"jsonrpc":"2.0","id":"long","method":%q,"params":{"padding":%q}}`, method, strings.Repeat("x", 64<<10))
			if !strings.Contains(line, `"id":"long"`) || !strings.Contains(line, `exceeds 65536 bytes`) {
				t.Errorf("%.300s", line)
			}
		}
	})
}

// TestLimitProgressToken checks that a progress token must be short: it stays until the task ends,
// and no other limit counts it.
func TestLimitProgressToken(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			call := func(token string) *wiretest.Response {
				params := map[string]any{"name": "run_pipeline", "arguments": wiretest.PipelineArgs("endless"), "_meta": map[string]any{"progressToken": token}}
				if revision == wiretest.LegacyRevision {
					params["task"] = map[string]any{}
				}
				return p.Call("tools/call", params)
			}
			call(strings.Repeat("x", 1<<10)).OK()
			if r := call(strings.Repeat("x", 1<<10+1)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
				t.Errorf("%s: %.300s", revision, r.Body)
			}
		}
	})
}
