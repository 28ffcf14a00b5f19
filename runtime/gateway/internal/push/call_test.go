package push

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// texts returns what a stream has to send.
func texts(c *Stream) string {
	synctest.Wait()
	var all strings.Builder
	for _, each := range c.Take() {
		all.Write(each)
	}
	return all.String()
}

// TestCallOfHiddenTask checks what a session gets of a task that it does not know: its questions while a call waits for it,
// and nothing else.
func TestCallOfHiddenTask(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		h := serve(t, store)
		p, other := newPeer(h, "p", elicits), newPeer(h, "p", elicits)
		own := p.Connect(nil, "")
		r := create(t, store, taskstore.Record{ID: "task", Phase: taskstore.PhaseInputRequired, Claim: taskstore.Claim{Worker: "w"}, Inputs: []taskstore.Input{newQuestion("one")}})
		ask := func(key string) {
			t.Helper()
			next := r
			next.Version, next.StatusMessage, next.Inputs = r.Version+1, key, append(next.Inputs[:len(next.Inputs):len(next.Inputs)], newQuestion(key))
			var err error
			if r, err = store.Update(t.Context(), r, next, taskstore.Quota{}); err != nil {
				t.Fatal(err)
			}
			h.Refresh("task")
		}
		call := func(m *Mailbox, isOpen bool) *Stream {
			return m.ConnectCall(legacy, r, func() { t.Error("given up") }, isOpen)
		}
		first := call(p.Mailbox, true)
		if got := texts(first); !strings.Contains(got, `"id":"mcptask/task/one"`) || strings.Contains(got, "related-task") {
			t.Errorf("%s", got)
		}
		first.Close()
		ask("two") // no call waits
		if got := texts(own); got != "" {
			t.Errorf("%s", got)
		}
		second := call(p.Mailbox, true)
		if got := texts(second); !strings.Contains(got, "task/two") || strings.Contains(got, "task/one") {
			t.Errorf("%s", got)
		}
		ask("three")
		second.Interrupt() // before the question is written
		if got := texts(own); !strings.Contains(got, "task/three") || strings.Contains(got, "task/two") || strings.Contains(got, "related-task") {
			t.Errorf("%s", got)
		}
		second.Close()
		closed := call(p.Mailbox, false)
		ask("four")
		if got := texts(own); !strings.Contains(got, "task/four") || strings.Contains(got, "notifications") {
			t.Errorf("%s", got)
		}
		closed.Close()
		if got := texts(call(other.Mailbox, true)); !strings.Contains(got, "task/one") || !strings.Contains(got, "task/two") {
			t.Errorf("%s", got)
		}
	})
}

// TestFollowUpOnCall checks that a request about a client's task is sent again if the stream of a call was to carry it.
func TestFollowUpOnCall(t *testing.T) {
	askInBubble(t, "", takesTasks, func(a *asked, q sentMessage) {
		r, err := a.hub.server.Peek(a.task)
		if err != nil {
			a.t.Fatal(err)
		}
		call := a.session.ConnectCall(legacy, r, func() {}, true)
		a.reply(q.ID, began("r", 0))
		if got := texts(call); !strings.Contains(got, "tasks/result") {
			a.t.Errorf("%s", got)
		}
		call.Close()
		time.Sleep(time.Minute)
		a.one("tasks/get")
	})
}

// TestSpareStream checks that a stream which is meant for calls carries other messages only if there is no other, and that a
// question which was posted without a stream waits for one.
func TestSpareStream(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		p := newPeer(serve(t, taskstore.NewMemory()), "p", elicits)
		p.Post("a", []byte("a"))
		p.Post("b", []byte("b"))
		if !p.Retract("a") {
			t.Error("not taken back")
		}
		spare := p.ConnectBeside(t.Context(), true)
		p.Send([]byte("c"))
		own := p.ConnectBeside(t.Context(), false)
		p.Post("d", []byte("d"))
		if got := texts(spare) + " " + texts(own); got != "bc d" || p.Retract("d") {
			t.Errorf("%q", got)
		}
	})
}
