package push

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The hub forgets a task that another process ends or deletes, at the latest at the end of its ttl. If a session's
// request shows the end, the other sessions are notified. That session has its reply.
func TestForgetsWhatOthersEnd(t *testing.T) {
	begin := func(t *testing.T) (a *asked, asks *peer) {
		t.Helper()
		a, _ = newAsked(t, elicits)
		asks = a.open(elicits)
		r, err := a.store.Get(t.Context(), a.task)
		if err != nil {
			t.Fatal(err)
		}
		asks.Know(legacy, r)
		a.stream.Take()
		if c := a.hub.Count(); c.Watched != 1 {
			t.Fatalf("%+v", c)
		}
		return a, asks
	}
	forgotten := func(t *testing.T, a *asked, want bool) {
		t.Helper()
		synctest.Wait()
		views := 0
		for m := range a.hub.mailboxes {
			views += len(m.views)
		}
		if got := a.hub.Count().Watched == 0 && views == 0; got != want {
			t.Errorf("forgotten: %v, %+v, %d views", got, a.hub.Count(), views)
		}
	}
	get := func(t *testing.T, a *asked, s *peer) {
		t.Helper()
		r, err := a.server.Backend().Get(t.Context(), a.caller, a.task)
		if err != nil {
			s.Forget(a.task)
			return
		}
		s.KnowUnsettled(legacy, r)
		s.Settle(a.task, &r) // the reply was written
	}
	bubble.Run(t, "ended", func(t *testing.T) {
		a, asks := begin(t)
		r, err := a.store.Get(t.Context(), a.task)
		if err != nil {
			t.Fatal(err)
		}
		r.Phase, r.Outcome = taskstore.PhaseDone, &taskstore.Outcome{Kind: taskstore.OutcomeCancelled}
		if _, err := a.store.Update(t.Context(), r, r, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
		own := asks.Connect(nil, "")
		defer own.Close()
		_ = own.Take() // the question
		get(t, a, asks)
		told := func(c *Stream) bool {
			return slices.ContainsFunc(c.Take(), func(m []byte) bool { return strings.Contains(string(m), `"status":"cancelled"`) })
		}
		if !told(a.stream) {
			t.Error("the other session is not notified")
		}
		if told(own) {
			t.Error("the session that asks is notified beside the reply")
		}
		forgotten(t, a, true)
	})
	gone := func(t *testing.T) (*asked, *peer) {
		t.Helper()
		a, asks := begin(t)
		r, err := a.store.Get(t.Context(), a.task)
		if err == nil {
			err = a.store.Delete(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		a.sent()
		return a, asks
	}
	bubble.Run(t, "deleted", func(t *testing.T) {
		a, asks := gone(t)
		get(t, a, asks)
		forgotten(t, a, true)
	})
	bubble.Run(t, "deleted, and requested by a session that does not know it", func(t *testing.T) {
		a, _ := gone(t)
		get(t, a, a.open(`{}`))
		forgotten(t, a, false)
	})
	bubble.Run(t, "no session asks", func(t *testing.T) {
		a, _ := gone(t)
		time.Sleep(time.Hour - time.Minute)
		forgotten(t, a, false)
		time.Sleep(2*expiryInterval + time.Second)
		forgotten(t, a, true)
		if a.hub.expiryTimer != nil {
			t.Error("the sweeper goes on")
		}
	})
}
