package gosdk_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// What stays in memory for as long as a session or a wait does is small, however much a body may
// have: there may be thousands of them.
func TestLimitLasting(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serve(t, mcptask.Options{})
		const bytes = 64 << 10
		padded := func(more map[string]any) map[string]any {
			more["padding"] = strings.Repeat("x", bytes)
			return more
		}
		p := newPeer(t, url, legacyRevision, "")
		id := p.create("run_pipeline", pipelineArgs("endless"))
		p.call("tasks/result", padded(map[string]any{"taskId": id})).want(http.StatusRequestEntityTooLarge, invalidRequest)
		q := newPeer(t, url, modernRevision, "")
		q.call("subscriptions/listen", padded(map[string]any{"notifications": map[string]any{"taskIds": []string{id}}})).
			want(http.StatusRequestEntityTooLarge, invalidRequest)
		q.call("subscriptions/listen", padded(map[string]any{"notifications": map[string]any{"toolsListChanged": true}})).
			want(http.StatusRequestEntityTooLarge, invalidRequest)
		named := func(r *http.Request) { r.Header.Set("Mcp-Name", "run_pipeline") }
		for _, p := range []*peer{p, q} {
			p.call("tools/call", padded(map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("quick")}), named).
				want(http.StatusRequestEntityTooLarge, invalidRequest)
			long := pipelineArgs("quick")
			long["unknown"] = strings.Repeat("x", bytes)
			if r := p.call("tools/call", map[string]any{"name": "run_pipeline", "arguments": long}, named); r.status == http.StatusRequestEntityTooLarge {
				t.Errorf("long arguments: %s", r.body)
			}
		}

		fresh := &peer{t: t, url: url, client: p.client, revision: legacyRevision}
		initialize := func(experimental string) *response {
			return fresh.post(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",`+
				`"capabilities":{"experimental":{"x":%s}},"clientInfo":{"name":"t","version":"1"}}}`, experimental))
		}
		initialize(`{"y":"`+strings.Repeat("x", bytes)+`"}`).want(http.StatusRequestEntityTooLarge, invalidRequest)
		initialize(`{"y":[{}`+strings.Repeat(`,{}`, 1000)+`]}`).want(http.StatusRequestEntityTooLarge, invalidRequest)
		initialize(`{"y":"` + strings.Repeat(`,{[\"`, 1001) + `"}`).ok() // one value
	})
}

// The same holds on a pipe.
func TestPipeLimitLasting(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPipedWith(t, mcptask.Options{})
		p.initialize()
		for _, method := range []string{"tasks/result", "initialize"} {
			line := p.ask(`{"jsonrpc":"2.0","id":"long","method":%q,"params":{"padding":%q}}`, method, strings.Repeat("x", 64<<10))
			if !strings.Contains(line, `"id":"long"`) || !strings.Contains(line, `exceeds 65536 bytes`) {
				t.Errorf("%.300s", line)
			}
		}
	})
}

// A progress token stays until the task ends, and no limit counts it: it has to be short.
func TestLimitProgressToken(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serve(t, mcptask.Options{})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			call := func(token string) *response {
				params := map[string]any{"name": "run_pipeline", "arguments": pipelineArgs("endless"), "_meta": map[string]any{"progressToken": token}}
				if revision == legacyRevision {
					params["task"] = map[string]any{}
				}
				return p.call("tools/call", params)
			}
			call(strings.Repeat("x", 1<<10)).ok()
			if r := call(strings.Repeat("x", 1<<10+1)); r.Error == nil || r.Error.Code != invalidParams {
				t.Errorf("%s: %.300s", revision, r.body)
			}
		}
	})
}
