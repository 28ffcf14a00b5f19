package gateway

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// A stream that nobody reads holds one status for each task, the last.
func TestStatusesInAnOutbox(t *testing.T) {
	server, err := mcptask.NewServer(mcptask.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	q := newQuestions(server, dialect.Server20251125{})
	s := &session{principal: "a", ended: context.Background()}
	tasks := make([]mcptask.Record, 3)
	for i := range tasks {
		tasks[i] = mcptask.Record{ID: fmt.Sprint("task", i), Version: 1, Principal: "a", Phase: mcptask.PhaseQueued, ExpiresAt: time.Now().Add(time.Hour)}
		// As know does for a task of a store.
		q.known[tasks[i].ID] = &knownTask{sessions: map[*session]dialect.Teller{s: q.legacy}, sent: map[string]*channel{}}
		q.changed(tasks[i])
	}
	c := q.connect(s, "")
	for n := range 10_000 {
		for i := range tasks {
			tasks[i].Version, tasks[i].Phase, tasks[i].StatusMessage = tasks[i].Version+1, mcptask.PhaseRunning, fmt.Sprint("message ", n)
			q.changed(tasks[i])
			late := tasks[i]
			late.Version, late.StatusMessage = late.Version-1, "late"
			q.changed(late)
		}
	}
	queue := c.take()
	if len(queue) != len(tasks) {
		t.Fatalf("%d messages for %d tasks", len(queue), len(tasks))
	}
	for _, m := range queue {
		if !strings.Contains(string(m.data), "message 9999") {
			t.Errorf("%s", m.data)
		}
	}
	for i := range tasks {
		tasks[i].Version, tasks[i].Phase, tasks[i].Outcome = tasks[i].Version+1, mcptask.PhaseDone, &mcptask.Outcome{Kind: mcptask.OutcomeCancelled}
		q.changed(tasks[i])
	}
	if queue = c.take(); len(queue) != len(tasks) || !strings.Contains(string(queue[0].data), `"cancelled"`) {
		t.Errorf("%d messages", len(queue))
	}
	if len(q.known)+len(q.status.told)+len(q.status.late) > 0 { // nothing stays of a task that is done
		t.Errorf("%v, %v", q.known, q.status)
	}
}
