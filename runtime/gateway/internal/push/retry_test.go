package push

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// A store that fails for a while costs only time. No question is lost, and one whose answer could not be stored is asked
// again.
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
	askInBubble(t, "a question moves to another stream", elicits, func(a *asked, q sentMessage) {
		a.store.broken.Store(true)
		a.reconnect()
		repaired(a)
		a.askedAgain(q)
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "a question moves to a stream that comes later", elicits, func(a *asked, q sentMessage) {
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
	askInBubble(t, "an answer", elicits, func(a *asked, q sentMessage) {
		a.store.broken.Store(true)
		a.reply(q.ID, yes)
		repaired(a)
		a.askedAgain(q)
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "an answer that is a task", takesTasks, func(a *asked, q sentMessage) {
		a.store.broken.Store(true)
		a.reply(q.ID, began("r", 0))
		repaired(a)
		a.askedAgain(q)
		a.reply(q.ID, began("s", 0))
		a.reply(a.one("tasks/result").ID, yes)
		a.ends("yes")
	})
	keepInBubble(t, "the answer of a client's task", func(a *asked, _, result sentMessage) {
		a.store.broken.Store(true)
		a.reply(result.ID, yes)
		time.Sleep(outage)
		a.store.broken.Store(false)
		time.Sleep(longestRetry)
		a.reply(a.one("tasks/get").ID, `"result":`+state("r", "completed", 0))
		a.reply(a.one("tasks/result").ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "a stranger's answer", elicits, func(a *asked, q sentMessage) {
		mallory := a.open(elicits)
		mallory.principal = "mallory"
		a.store.broken.Store(true)
		owner := a.caller
		a.caller.Principal = "mallory"
		a.replyFrom(mallory, q.ID, declined)
		a.caller = owner
		repaired(a)
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "the server closes", elicits, func(a *asked, _ sentMessage) {
		a.store.broken.Store(true)
		a.reconnect()
		time.Sleep(outage)
		a.store.broken.Store(false)
		if err := a.server.Close(); err != nil {
			a.t.Fatal(err)
		}
		time.Sleep(2 * longestRetry)
		a.hub.mu.Lock()
		defer a.hub.mu.Unlock()
		if topic := a.hub.topics[a.task]; topic != nil && topic.retries {
			a.t.Error("the task is still retried")
		}
	})
	askInBubble(t, "a store that panics", elicits, func(a *asked, q sentMessage) {
		a.store.broken.Store(true)
		a.reconnect()
		a.store.panics.Store(true)
		time.Sleep(outage)
		a.store.panics.Store(false)
		repaired(a)
		a.askedAgain(q)
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "new failures do not hurry old ones", elicits, func(a *asked, _ sentMessage) {
		a.store.broken.Store(true)
		a.drop()
		time.Sleep(outage)
		before := a.store.countReads(a.task)
		begin := time.Now()
		for i := 0; time.Since(begin) < longestRetry; i++ { // each of these is read for a second
			a.session.Know(legacy, taskstore.Record{ID: fmt.Sprint("task", i), Principal: "p", ExpiresAt: time.Now().Add(time.Hour)})
		}
		first := a.store.countReads("task0")
		if n := a.store.countReads(a.task) - before; 2*n > first {
			a.t.Errorf("read %d times within its longest pause, while a new task was read %d times", n, first)
		}
	})
	askInBubble(t, "a new failure does not wait for old ones", elicits, func(a *asked, _ sentMessage) {
		a.store.broken.Store(true)
		a.drop()
		time.Sleep(outage)
		a.session.Know(legacy, taskstore.Record{ID: "new", Principal: "p", ExpiresAt: time.Now().Add(time.Hour)})
		before := a.store.countReads("new")
		const soon = longestRetry / 2 // a round for the old one may have begun
		for waited := time.Duration(0); a.store.countReads("new") == before; waited += firstRetry {
			if waited > soon {
				a.t.Fatalf("not read again within %v", soon)
			}
			time.Sleep(firstRetry)
			synctest.Wait()
		}
	})
	askInBubble(t, "a store that fails again", elicits, func(a *asked, q sentMessage) {
		a.store.broken.Store(true)
		a.reconnect()
		repaired(a)
		a.askedAgain(q)
		a.store.broken.Store(true)
		a.reconnect()
		a.store.broken.Store(false)
		time.Sleep(longestRetry / 2) // the pauses are short again
		a.askedAgain(q)
	})
}
