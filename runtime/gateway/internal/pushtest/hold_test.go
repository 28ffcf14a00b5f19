package pushtest

import (
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// settling is how long the gateway holds back messages about a task that the client does not know yet.
const settling = time.Second

// TestNewsFollowTheTask is about clients that dismiss a question of an unknown task. On the
// session's own stream no question and no status may overtake the reply that tells the task's ID. A
// client that only listens gets them after a while.
func TestNewsFollowTheTask(t *testing.T) {
	t.Parallel()
	for name, polls := range map[string]bool{"of a client that polls": true, "of one that only listens": false} {
		// create returns a new task when messages about it may come.
		create := func(t *testing.T, p *wiretest.Peer, f *wiretest.Feed, tool, status string) (id string, began time.Time) {
			t.Helper()
			began = time.Now()
			id = p.Create(tool, map[string]any{})
			f.WantSilence()
			if polls {
				p.Until(id, status)
			} else {
				time.Sleep(settling - time.Since(began) - 100*time.Millisecond)
				f.WantSilence()
			}
			return id, began
		}
		inBubble(t, "questions "+name, func(t *testing.T) {
			url, _ := wiretest.Serve(t, taskserver.Options{})
			p := wiretest.NewAskedPeer(t, url, wiretest.LegacyRevision, "", `{"elicitation":{}}`)
			f := p.OpenGet()
			id, began := create(t, p, f, "two_notes", "input_required") // asks both at once
			one, two := f.NextQuestion(id), f.NextQuestion(id)
			if one.Method != "elicitation/create" || two.Method != "elicitation/create" || string(one.ID) == string(two.ID) {
				t.Errorf("not two different questions: %s, %s", one.Text, two.Text)
			}
			if took := time.Since(began); polls != (took < settling) {
				t.Errorf("asked after %v", took)
			}
			p.Task("tasks/cancel", id).OK()
		})
		inBubble(t, "status "+name, func(t *testing.T) {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{})
			p := watcher(t, url, wiretest.LegacyRevision, "")
			f := p.OpenGet()
			id, _ := create(t, p, f, "raw", "completed") // ends at once
			if !polls {                                  // if not, the reply has shown the end
				if task := f.Next().Status(t); task["status"] != "completed" || task["taskId"] != id {
					t.Errorf("%v", task)
				}
			}
			f.WantSilence()
		})
	}
}
