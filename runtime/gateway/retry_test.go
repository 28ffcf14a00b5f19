package gateway

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// A store that fails for a while costs time only: no question and no answer is lost, and
// nobody is asked twice.
func TestStoreFailsForAWhile(t *testing.T) {
	const outage = time.Minute
	repaired := func(a *asked) {
		a.t.Helper()
		a.none()
		time.Sleep(outage)
		a.none()
		a.store.broken.Store(false)
		time.Sleep(longestRetry)
	}
	inBubble(t, "a question moves to another stream", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		a.store.broken.Store(true)
		a.drop()
		a.connect()
		repaired(a)
		if again := a.one("elicitation/create"); again.ID != q.ID {
			t.Errorf("%+v", again)
		}
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "a question moves to a stream that comes later", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		a.store.broken.Store(true)
		a.drop()
		time.Sleep(outage)
		a.store.broken.Store(false)
		time.Sleep(longestRetry)
		a.connect()
		a.one("elicitation/create")
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "an answer", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		a.store.broken.Store(true)
		a.reply(q.ID, yes)
		a.reply(q.ID, `"result":{"action":"decline"}`) // the first one counts
		a.drop()
		a.connect()
		repaired(a)
		a.none()
		a.ends("yes")
	})
	inBubble(t, "an answer of a client that has left", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		a.store.broken.Store(true)
		a.reply(q.ID, yes)
		a.session.end()
		a.g.questions.end(a.session)
		repaired(a)
		a.ends("yes")
	})
	inBubble(t, "an answer that is a task", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.store.broken.Store(true)
		a.reply(q.ID, began("r", 0))
		repaired(a)
		a.reply(a.one("tasks/result").ID, yes)
		a.ends("yes")
	})
	inBubble(t, "the answer of a client's task", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 0))
		result := a.one("tasks/result")
		a.store.broken.Store(true)
		a.reply(result.ID, yes)
		repaired(a)
		a.none()
		a.ends("yes")
	})
	inBubble(t, "a stranger's answer is not kept", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		mallory := a.open(`{"elicitation":{}}`)
		mallory.principal = "mallory"
		a.store.broken.Store(true)
		owner := a.caller
		a.caller.Principal = "mallory"
		a.replyFrom(mallory, q.ID, `"result":{"action":"decline"}`)
		a.caller = owner
		a.reply(q.ID, yes)
		repaired(a)
		a.ends("yes")
	})
	inBubble(t, "the server closes", func(t *testing.T) {
		a, _ := newAsked(t, `{"elicitation":{}}`)
		a.store.broken.Store(true)
		a.drop()
		a.connect()
		time.Sleep(outage)
		a.store.broken.Store(false)
		if err := a.g.server.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * longestRetry)
		a.g.questions.mu.Lock()
		defer a.g.questions.mu.Unlock()
		if n := len(a.g.questions.retries.due); n > 0 {
			t.Errorf("%d tasks are tried for ever", n)
		}
	})
	inBubble(t, "what is to be kept is bounded", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		a.g.questions.retries.held = mostHeld
		a.store.broken.Store(true)
		a.reply(q.ID, yes)
		a.g.questions.retries.held = 0
		repaired(a)
		a.one("elicitation/create") // asked again, since the answer was not kept
		a.reply(q.ID, yes)
		a.ends("yes")
	})
}

// A tasks/result that comes while the store fails waits for its task once it is
// sound, with a stream for the task's questions.
func TestResultWaitsForTheStore(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		a, _ := newAsked(t, `{"elicitation":{}}`)
		params, err := json.Marshal(map[string]string{"taskId": a.task})
		if err != nil {
			t.Fatal(err)
		}
		a.store.broken.Store(true)
		var got mcptask.Record
		found := make(chan error, 1)
		go func() {
			var err error
			got, err = a.g.shown(t.Context(), a.caller, a.session, a.g.legacy, &message{Message: &wire.Message{Method: "tasks/result", Params: wire.NewObject(params)}})
			found <- err
		}()
		time.Sleep(time.Minute)
		select {
		case err := <-found:
			t.Fatalf("it has not waited: %v", err)
		default:
		}
		a.store.broken.Store(false)
		if err := <-found; err != nil || got.ID != a.task {
			t.Errorf("%q, %v", got.ID, err)
		}
		a.store.broken.Store(true) // a poll is told, and comes again
		if _, err := a.g.shown(t.Context(), a.caller, a.session, a.g.legacy, &message{Message: &wire.Message{Method: "tasks/get", Params: wire.NewObject(params)}}); err == nil ||
			!strings.Contains(err.Error(), "could not be read") {
			t.Error(err)
		}
		a.store.broken.Store(false)
		if a.g.Counts().Watched != 1 {
			t.Error("the task is forgotten")
		}
	})
}

// A subscription outlives a store that fails for a while, and tells what has changed
// meanwhile.
func TestSubscriptionOutlivesTheStore(t *testing.T) {
	inBubble(t, "", func(t *testing.T) {
		a, q := newAsked(t, `{"elicitation":{}}`)
		s := &subscription{g: a.g, caller: a.caller, id: json.RawMessage("1"), tasks: []string{a.task}}
		var last string
		ended := make(chan error, 1)
		go func() { ended <- s.follow(t.Context(), func(data []byte) { last = string(data) }) }()
		synctest.Wait()
		r, err := a.store.Get(t.Context(), a.task)
		if err != nil {
			t.Fatal(err)
		}
		a.store.broken.Store(true)
		if _, err := a.store.Store.Update(t.Context(), r, mcptask.Quota{}); err != nil { // wakes the subscription, which then reads
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		a.reply(q.ID, yes)
		synctest.Wait()
		select {
		case err := <-ended:
			t.Fatalf("it has ended: %v", err)
		default:
		}
		a.store.broken.Store(false)
		if err := <-ended; err != nil || !strings.Contains(last, `"completed"`) {
			t.Errorf("%v, %s", err, last)
		}
	})
}
