package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// What another process ends or deletes is forgotten here, at the latest when its
// ttl is over. Other sessions hear of an end that one has asked for; the reply
// tells that one.
func TestForgetsWhatOthersEnd(t *testing.T) {
	begin := func(t *testing.T) (a *asked, asks *session) {
		t.Helper()
		a, _ = newAsked(t, `{"elicitation":{}}`)
		asks = a.open(`{"elicitation":{}}`)
		r, err := a.store.Get(t.Context(), a.task)
		if err != nil {
			t.Fatal(err)
		}
		a.g.questions.know(asks, a.g.legacy, r)
		a.stream.take()
		if c := a.g.Counts(); c.Watched != 1 {
			t.Fatalf("%+v", c)
		}
		return a, asks
	}
	forgotten := func(t *testing.T, a *asked, want bool) {
		t.Helper()
		q := a.g.questions
		if got := a.g.Counts().Watched == 0 && len(q.known)+len(q.shown)+len(q.fresh)+len(q.status.told)+len(q.status.late) == 0; got != want {
			t.Errorf("forgotten: %v, %+v", got, a.g.Counts())
		}
	}
	get := func(t *testing.T, a *asked, s *session) {
		t.Helper()
		params, err := json.Marshal(map[string]string{"taskId": a.task})
		if err != nil {
			t.Fatal(err)
		}
		r, err := a.g.shown(t.Context(), a.caller, s, a.g.legacy, &message{Message: &wire.Message{Method: "tasks/get", Params: wire.NewObject(params)}})
		if err != nil {
			t.Fatal(err)
		}
		a.g.questions.settle(s, a.task, &r) // the reply is written
	}
	inBubble(t, "ended", func(t *testing.T) {
		a, asks := begin(t)
		r, err := a.store.Get(t.Context(), a.task)
		if err != nil {
			t.Fatal(err)
		}
		r.Phase, r.Outcome = mcptask.PhaseDone, &mcptask.Outcome{Kind: mcptask.OutcomeCancelled}
		if _, err := a.store.Update(t.Context(), r, mcptask.Quota{}); err != nil {
			t.Fatal(err)
		}
		own := a.g.questions.connect(asks, "")
		defer a.g.questions.disconnect(own)
		_ = own.take() // of the question
		get(t, a, asks)
		told := func(c *channel) bool {
			return slices.ContainsFunc(c.take(), func(m outgoing) bool { return strings.Contains(string(m.data), `"status":"cancelled"`) })
		}
		if !told(a.stream) {
			t.Error("the other session does not hear of it")
		}
		if told(own) {
			t.Error("the session that asks hears of it beside the reply")
		}
		forgotten(t, a, true)
	})
	gone := func(t *testing.T) (*asked, *session) {
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
	inBubble(t, "deleted", func(t *testing.T) {
		a, asks := gone(t)
		get(t, a, asks)
		forgotten(t, a, true)
	})
	inBubble(t, "deleted, and asked for by a session that does not know it", func(t *testing.T) {
		a, _ := gone(t)
		get(t, a, a.open(`{}`))
		forgotten(t, a, false)
	})
	inBubble(t, "nobody asks", func(t *testing.T) {
		a, _ := gone(t)
		time.Sleep(time.Hour - time.Minute)
		forgotten(t, a, false)
		time.Sleep(2*sweepEvery + time.Second)
		forgotten(t, a, true)
		if a.g.questions.sweeper != nil {
			t.Error("the sweeper goes on")
		}
	})
}
