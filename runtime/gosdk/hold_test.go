package gosdk_test

import (
	"encoding/json"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestQuestionsFollowTheirTask is for clients that dismiss a question of a task
// that they do not know yet: on the session's own stream it must not overtake
// the reply that tells the task's ID.
func TestQuestionsFollowTheirTask(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"of a client that polls": true, "of one that only listens": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, _ := serve(t, mcptask.Options{})
			p := newPeer(t, url, legacyRevision, "")
			p.session = ""
			opened := p.call("initialize", map[string]any{
				"protocolVersion": legacyRevision, "clientInfo": map[string]any{"name": "wire", "version": "1"},
				"capabilities": map[string]any{"elicitation": map[string]any{}},
			}).ok()
			p.session = opened.header.Get("Mcp-Session-Id")
			p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
			messages, stop := p.listen()
			defer stop()

			id := p.create("two_notes", nil) // asks both at once
			select {
			case m := <-messages:
				t.Fatalf("at once: %s", m)
			case <-time.After(100 * time.Millisecond):
			}
			if polls {
				p.until(id, "input_required")
			}
			late := time.After(5 * time.Second)
			asked := map[string]bool{}
			for range 2 {
				select {
				case m := <-messages:
					var question struct{ ID, Method string }
					if err := json.Unmarshal(m, &question); err != nil || question.Method != "elicitation/create" {
						t.Errorf("%v: %s", err, m)
					}
					asked[question.ID] = true
				case <-late:
					t.Fatalf("asked only %v", asked)
				}
			}
			if len(asked) != 2 {
				t.Errorf("asked %v, not two different questions", asked)
			}
			p.task("tasks/cancel", id).ok()
		})
	}
}
