package gosdk_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestHeadersNameTheTask: the headers of each request name its method and task. A value that a header cannot carry is
// in Base64.
func TestHeadersNameTheTask(t *testing.T) {
	rules.Covers(t, "E-69", "E-70", "E-71")
	for _, id := range []string{
		"786512e2-9e0d-44bd-8f29-789f320fe840", "plain with spaces", "ü", "日本", "a\nb", "a\r\nX-Evil: 1", "\x00", " ", " first", "last ", "\t", "a\tb", "\x7f",
		"=?base64?eA==?=", "=?base64?", `quote"d`,
	} {
		t.Run(id, inBubble(func(t *testing.T) {
			quoted, err := json.Marshal(id)
			if err != nil {
				t.Fatal(err)
			}
			s := polled(t, wiretest.ModernRevision, func(*scripted, int) reply {
				return result(`{%s,"taskId":%s,"status":"working","ttlMs":null}`, complete, quoted)
			})
			conn := s.connect(gosdk.ClientOptions{})
			if s, err := conn.Task(t.Context(), id); err != nil || s.TaskID != id {
				t.Errorf("%+v, %v", s, err)
			}
			if err := conn.CancelTask(t.Context(), id); err != nil {
				t.Error(err)
			}
			if err := conn.Respond(t.Context(), id, map[string]json.RawMessage{}); err != nil {
				t.Error(err)
			}
			for _, method := range []string{"tasks/get", "tasks/cancel", "tasks/update"} {
				for _, c := range s.of(method) {
					name := c.header.Get("Mcp-Name")
					for i := range len(name) {
						if name[i] < ' ' || name[i] > '~' {
							t.Errorf("%s: the header is %q", method, name)
						}
					}
					if name != strings.TrimSpace(name) {
						t.Errorf("%s: a proxy would cut %q", method, name)
					}
					if encoded, ok := strings.CutPrefix(name, "=?base64?"); ok {
						data, err := base64.StdEncoding.DecodeString(strings.TrimSuffix(encoded, "?="))
						if err != nil {
							t.Error(err)
						}
						name = string(data)
					}
					if name != id || c.header.Get("Mcp-Method") != method || c.header.Get("MCP-Protocol-Version") != wiretest.ModernRevision {
						t.Errorf("%v", c.header)
					}
				}
				if len(s.of(method)) != 1 {
					t.Errorf("%d calls of %s", len(s.of(method)), method)
				}
			}
		}))
	}
	t.Run("every request", inBubble(func(t *testing.T) {
		b := newBoard(t)
		conn := b.connect(gosdk.ClientOptions{})
		if _, err := conn.ListTools(t.Context()); err != nil {
			t.Error(err)
		}
		ctx := within(t, 3e9)
		_, _ = mcptask.Run[number](ctx, conn, "tool", number{})
		b.scripted.mu.Lock()
		defer b.scripted.mu.Unlock()
		seen := map[string]bool{}
		for _, c := range b.scripted.calls {
			seen[c.method] = true
			if c.id != nil && c.header.Get("Mcp-Method") != c.method {
				t.Errorf("%s has Mcp-Method %q", c.method, c.header.Get("Mcp-Method"))
			}
		}
		for _, method := range []string{"server/discover", "tools/list", "tools/call", "tasks/get", "tasks/cancel", "subscriptions/listen"} {
			if !seen[method] {
				t.Errorf("no %s", method)
			}
		}
	}))
	t.Run("not in 2025-11-25", inBubble(func(t *testing.T) {
		s := &scripted{t: t, revision: wiretest.LegacyRevision}
		if _, err := start(t, s.connect(gosdk.ClientOptions{})).Wait(t.Context()); err != nil {
			t.Error(err)
		}
		for _, c := range s.of("tasks/get") {
			if c.header.Get("Mcp-Name")+c.header.Get("Mcp-Method") != "" || c.header.Get("MCP-Protocol-Version") != wiretest.LegacyRevision {
				t.Errorf("%v", c.header)
			}
		}
	}))
}
