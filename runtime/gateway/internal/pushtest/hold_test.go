package pushtest

import (
	"encoding/json"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// settling is how long the gateway holds back what a client does not know yet.
const settling = time.Second

// TestQuestionsFollowTheirTask is about clients that dismiss a question of an unknown task. On the
// session's own stream a question must not overtake the reply that tells the task's ID.
func TestQuestionsFollowTheirTask(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"of a client that polls": true, "of one that only listens": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				url, _ := wiretest.Serve(t, mcptask.Options{})
				p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "", `{"elicitation":{}}`)
				messages, stop := p.Listen()
				defer stop()

				began := time.Now()
				id := p.Create("two_notes", nil) // asks both at once
				var early []json.RawMessage
				select {
				case m := <-messages:
					if time.Since(began) < settling {
						t.Fatalf("at once: %s", m)
					}
					early = append(early, m) // the reply has taken long
				case <-time.After(100 * time.Millisecond):
				}
				if polls {
					p.Until(id, "input_required")
				}
				late := time.After(wiretest.Patience)
				asked := map[string]bool{}
				for range 2 {
					var m json.RawMessage
					if len(early) > 0 {
						m, early = early[0], nil
					} else {
						select {
						case m = <-messages:
						case <-late:
							t.Fatalf("asked only %v", asked)
						}
					}
					var question struct{ ID, Method string }
					if err := json.Unmarshal(m, &question); err != nil || question.Method != "elicitation/create" {
						t.Errorf("%v: %s", err, m)
					}
					asked[question.ID] = true
				}
				if len(asked) != 2 {
					t.Errorf("asked %v, not two different questions", asked)
				}
				p.Task("tasks/cancel", id).OK()
			})
		})
	}
}
