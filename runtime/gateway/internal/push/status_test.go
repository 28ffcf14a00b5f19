package push

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A stream whose client does not read holds one status for each task: the last.
func TestStatusesInQueue(t *testing.T) {
	store := taskstore.NewMemory()
	h := serve(t, store)
	s := newPeer(h, "p", `{}`)
	defer s.Close()
	tasks := make([]taskstore.Record, 3)
	for i := range tasks {
		tasks[i] = create(t, store, taskstore.Record{ID: fmt.Sprint("task", i), Phase: taskstore.PhaseQueued})
		s.Know(legacy, tasks[i])
	}
	c := s.Connect(nil, "")
	c.Take()
	for n := range 10_000 {
		for i := range tasks {
			tasks[i].Version, tasks[i].Phase, tasks[i].StatusMessage = tasks[i].Version+1, taskstore.PhaseRunning, fmt.Sprint("message ", n)
			tasks[i].Claim.Worker = "w"
			h.observe(tasks[i])
			late := tasks[i]
			late.Version, late.StatusMessage = late.Version-1, "late"
			h.observe(late)
		}
	}
	queue := c.Take()
	if len(queue) != len(tasks) {
		t.Fatalf("%d messages for %d tasks", len(queue), len(tasks))
	}
	for _, m := range queue {
		if !strings.Contains(string(m), "message 9999") {
			t.Errorf("%s", m)
		}
	}
	for i := range tasks {
		tasks[i].Version, tasks[i].Phase, tasks[i].Outcome = tasks[i].Version+1, taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
		h.observe(tasks[i])
	}
	if queue = c.Take(); len(queue) != len(tasks) || !strings.Contains(string(queue[0]), `"cancelled"`) {
		t.Errorf("%d messages", len(queue))
	}
	if len(h.topics)+len(s.views) > 0 { // nothing of an ended task stays
		t.Errorf("%v, %v", h.topics, s.views)
	}
}

// The server announces a task's end that no worker has handled yet, even if a poll shows it first.
func TestEndBesidePoll(t *testing.T) {
	bubble.Run(t, "", func(t *testing.T) {
		a, q := newAsked(t, elicits)
		a.hub.mu.Lock()
		a.hub.workers += maxWorkers // all of them are busy
		a.hub.mu.Unlock()
		a.reply(q.ID, yes)
		synctest.Wait()
		r, err := a.server.Backend().Get(t.Context(), a.caller, a.task)
		if err != nil || !r.Done() {
			t.Fatal(r.Phase, err)
		}
		a.session.KnowUnsettled(legacy, r)
		if told := a.stream.Take(); len(told) != 1 || !strings.Contains(string(told[0]), `"completed"`) {
			t.Errorf("%s", told)
		}
	})
}

// TestEndByAnotherProcess checks that a poll which shows the end of a task is news to the other
// sessions, but not to its own.
func TestEndByAnotherProcess(t *testing.T) {
	askInBubble(t, "", elicits, func(a *asked, q sentMessage) {
		r, err := a.server.Backend().Peek(a.task)
		if err != nil {
			a.t.Fatal(err)
		}
		polls := a.open(elicits)
		polls.Know(legacy, r)
		stream := polls.Connect(nil, "")
		r.Version++
		r.Phase, r.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
		polls.Know(legacy, r)
		if m := a.one("notifications/cancelled"); m.Params.RequestID != q.ID {
			a.t.Errorf("%+v", m)
		}
		if news := stream.Take(); len(news) > 0 {
			a.t.Errorf("%s", news)
		}
		a.keepsNothing()
	})
}
