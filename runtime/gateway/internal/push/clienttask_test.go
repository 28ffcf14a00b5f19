package push

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestClientTaskPolling: where nothing waits at the client, its task is polled, at
// its interval.
func TestClientTaskPolling(t *testing.T) {
	rules.Covers(t, "C-16", "C-30", "C-31", "C-32", "C-46", "C-47", "C-51")
	for ms, want := range map[int64]time.Duration{0: time.Second, -1: time.Second, 5000: 5 * time.Second, 1: 100 * time.Millisecond} {
		inBubble(t, fmt.Sprint("pollInterval ", ms), func(t *testing.T) {
			a, q := newAsked(t, takesTasks)
			a.reply(q.ID, began("r", ms))
			a.reply(a.one("tasks/result").ID, refusal)
			a.none()
			for range 5 {
				get := a.after(want, "tasks/get")
				if get.Params.TaskID != "r" {
					t.Errorf("%+v", get)
				}
				a.reply(get.ID, `"result":`+state("r", "working", ms))
			}
			a.reply(a.after(want, "tasks/get").ID, `"result":`+state("r", "completed", ms))
			a.reply(a.one("tasks/result").ID, yes)
			a.ends("yes")
			time.Sleep(time.Hour)
			a.none()
		})
	}
	inBubble(t, "the interval may change", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1000))
		a.reply(a.one("tasks/result").ID, refusal)
		a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "working", 7000))
		a.reply(a.after(7*time.Second, "tasks/get").ID, `"result":`+state("r", "input_required", 7000))
		a.reply(a.one("tasks/result").ID, yes) // C-51
		a.ends("yes")
	})
	inBubble(t, "an absurd interval", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1<<53))
		a.reply(a.one("tasks/result").ID, refusal)
		time.Sleep(59 * time.Minute)
		a.none()
		if poll := a.session.followed()["r"].interval; poll != longestPoll {
			t.Error(poll)
		}
	})
	inBubble(t, "nothing is polled while tasks/result waits", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		if ttl := q.Params.Task.TTL; ttl < 3_590_000 || ttl > 3_600_000 { // as long as our task
			t.Error(ttl)
		}
		a.reply(q.ID, began("r", 1000))
		result := a.one("tasks/result")
		get := a.after(replyWithin, "tasks/get") // a lost reply is found out about
		a.reply(get.ID, `"result":`+state("r", "working", 1000))
		a.reply(a.after(replyWithin, "tasks/get").ID, `"result":`+state("r", "completed", 1000))
		again := a.one("tasks/result")
		if again.ID == result.ID {
			t.Error("an ID is used twice")
		}
		a.reply(result.ID, yes) // it was only late
		a.ends("yes")
		a.reply(again.ID, `"result":{"action":"decline"}`)
		a.ends("yes")
	})
	inBubble(t, "a client that never answers", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1000))
		time.Sleep(time.Hour - time.Minute)
		messages := a.sent() // the stream is not read
		if len(messages) != 2 || messages[0].Method != "tasks/result" || messages[1].Method != "tasks/get" {
			t.Fatalf("%+v", messages)
		}
		time.Sleep(2 * time.Minute) // our task's retention is over
		got := a.sent()
		if last := got[len(got)-1]; last.Method != "tasks/cancel" || last.Params.TaskID != "r" {
			t.Fatalf("%+v", got)
		}
		if len(a.hub.topics) > 0 || len(a.session.followed()) > 0 {
			t.Error("kept")
		}
	})
}

// TestClientTaskDrops: a stream may be dropped at any point.
func TestClientTaskDrops(t *testing.T) {
	rules.Covers(t, "C-32")
	inBubble(t, "before the task is told of", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.drop()
		a.connect()
		if again := a.one("elicitation/create"); again.ID != q.ID || again.Params.Task == nil {
			t.Errorf("%+v", again)
		}
		a.drop()
		a.reply(q.ID, began("r", 1000))
		time.Sleep(time.Minute) // nobody is there to be polled
		a.connect()
		a.reply(a.one("tasks/result").ID, yes)
		a.ends("yes")
	})
	inBubble(t, "while tasks/result waits", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1000))
		first := a.one("tasks/result")
		time.Sleep(400 * time.Millisecond)
		a.drop()
		a.connect()
		a.none()
		a.reply(a.after(600*time.Millisecond, "tasks/get").ID, `"result":`+state("r", "working", 1000))
		get := a.after(time.Second, "tasks/get")
		a.drop()
		a.reply(get.ID, `"result":`+state("r", "completed", 1000)) // a reply that is stale
		a.connect()
		a.none()
		a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "completed", 1000))
		second := a.one("tasks/result")
		a.drop()
		a.connect()
		a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "completed", 1000))
		third := a.one("tasks/result")
		if ids := []string{first.ID, second.ID, third.ID}; len(slices.Compact(ids)) != 3 {
			t.Errorf("%v", ids)
		}
		a.reply(second.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "the reply crosses the drop", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1000))
		result := a.one("tasks/result")
		a.drop()
		a.reply(result.ID, yes)
		a.ends("yes")
		a.connect()
		a.none()
	})
	inBubble(t, "two tasks of one question", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.drop()
		a.connect()
		a.one("elicitation/create")
		a.reply(q.ID, began("r1", 1000))
		a.reply(q.ID, began("r1", 1000))
		result := a.one("tasks/result")
		a.reply(q.ID, began("r2", 1000))
		if cancel := a.one("tasks/cancel"); cancel.Params.TaskID != "r2" {
			t.Errorf("%+v", cancel)
		}
		a.reply(result.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "another session can be asked", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1000))
		a.one("tasks/result")
		a.drop()
		old := a.session
		a.session = a.open(takesTasks)
		r, err := a.server.Peek(a.task)
		if err != nil {
			t.Fatal(err)
		}
		a.session.Know(legacy, r)
		a.connect()
		again := a.one("elicitation/create")
		a.reply(again.ID, began("r", 1000)) // another client has IDs of its own
		a.one("tasks/result")
		fresh := a.stream
		a.stream = old.Connect(nil, "")
		if cancel := a.one("tasks/cancel"); cancel.Params.TaskID != "r" {
			t.Errorf("%+v", cancel)
		}
		a.stream = fresh
		a.drop()
		old.Close()
		a.session.Close()
		if len(a.hub.topics)+len(old.followed())+len(old.pendingCancels)+len(a.session.followed()) > 0 {
			t.Error("kept")
		}
	})
	inBubble(t, "another session comes after the stream is dropped", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.drop()
		a.reply(q.ID, began("r", 1000))
		old := a.session
		a.session = a.open(takesTasks)
		r, err := a.server.Peek(a.task)
		if err != nil {
			t.Fatal(err)
		}
		a.session.Know(legacy, r)
		a.connect()
		again := a.one("elicitation/create")
		a.stream = old.Connect(nil, "")
		if cancel := a.one("tasks/cancel"); cancel.Params.TaskID != "r" {
			t.Errorf("%+v", cancel)
		}
		a.reply(again.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "the session is over", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 1000))
		result := a.one("tasks/result")
		a.drop()
		a.session.Close()
		time.Sleep(time.Minute)
		a.reply(q.ID, began("s", 1000))
		if len(a.hub.topics)+len(a.session.followed())+len(a.session.pendingCancels) > 0 {
			t.Error("kept")
		}
		a.reply(result.ID, yes) // by whoever owns the task, in whatever process
		a.ends("yes")
	})
}

// TestClientTaskEnds: how a client's task may end, and how it may be told of.
func TestClientTaskEnds(t *testing.T) {
	const cannot = "the requestor cannot be asked"
	// Each gets the first tasks/result.
	for name, test := range map[string]func(a *asked, result sentMessage){
		"failed, told by tasks/result": func(a *asked, result sentMessage) {
			a.reply(result.ID, `"error":{"code":-1,"message":"the person has left"}`)
			a.none()
			a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "failed", 0))
			a.ends(cannot)
		},
		"failed, told by tasks/get": func(a *asked, result sentMessage) {
			a.reply(a.after(replyWithin, "tasks/get").ID, `"result":`+state("r", "failed", 0))
			a.reply(a.one("tasks/result").ID, `"error":{"code":-1,"message":"the person has left"}`)
			a.ends(cannot)
		},
		"failed with an answer": func(a *asked, result sentMessage) {
			a.reply(a.after(replyWithin, "tasks/get").ID, `"result":`+state("r", "failed", 0))
			a.reply(a.one("tasks/result").ID, yes)
			a.ends("yes")
		},
		"cancelled by the client": func(a *asked, result sentMessage) {
			a.reply(result.ID, refusal)
			a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "cancelled", 0))
			a.ends(cannot)
		},
		"completed, without a result to be had": func(a *asked, result sentMessage) {
			a.reply(result.ID, refusal)
			for range 2 {
				a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "completed", 0))
				a.reply(a.one("tasks/result").ID, refusal)
			}
			a.ends(cannot)
		},
		"declined": func(a *asked, result sentMessage) {
			a.reply(result.ID, `"result":{"action":"decline"}`)
			a.ends("declined")
		},
		"an answer that does not fit": func(a *asked, result sentMessage) {
			a.reply(result.ID, `"result":{"action":"accept","content":{"note":5}}`)
			a.ends("isError")
		},
		"a task as the answer of a task": func(a *asked, result sentMessage) {
			a.reply(result.ID, began("s", 0))
			a.ends("isError")
		},
		"null": func(a *asked, result sentMessage) {
			a.reply(result.ID, `"result":null`)
			a.ends("isError")
		},
		"input required for ever": func(a *asked, result sentMessage) {
			a.reply(result.ID, refusal)
			for range 2 {
				a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "input_required", 0))
				a.reply(a.one("tasks/result").ID, refusal)
			}
			a.ends(cannot)
		},
		"lost: asked again, plainly": func(a *asked, result sentMessage) {
			a.reply(result.ID, unknown)
			a.reply(a.after(time.Second, "tasks/get").ID, unknown)
			again := a.one("elicitation/create")
			if again.Params.Task != nil || again.ID == result.ID {
				a.t.Errorf("%+v", again)
			}
			a.drop()
			a.connect()
			if same := a.one("elicitation/create"); same.ID != again.ID {
				a.t.Errorf("%+v", same)
			}
			a.reply(again.ID, yes)
			a.ends("yes")
		},
		"lost twice": func(a *asked, result sentMessage) {
			a.reply(a.after(replyWithin, "tasks/get").ID, unknown)
			a.reply(a.one("elicitation/create").ID, began("s", 0)) // which it was not asked for
			a.ends("isError")
		},
		"lost, and the first question answered after all": func(a *asked, result sentMessage) {
			a.reply(a.after(replyWithin, "tasks/get").ID, unknown)
			a.one("elicitation/create")
			a.reply("mcptask/"+a.task+"/one", began("s", 0))
			if cancel := a.one("tasks/cancel"); cancel.Params.TaskID != "s" {
				a.t.Errorf("%+v", cancel)
			}
			a.reply("mcptask/"+a.task+"/one", yes)
			a.ends("yes")
		},
		"a client without tasks/get": func(a *asked, result sentMessage) {
			a.reply(result.ID, refusal)
			for range 3 {
				a.reply(a.after(time.Second, "tasks/get").ID, `"error":{"code":-32601,"message":"Method not found"}`)
			}
			if got := a.outcome(); !strings.Contains(got, cannot) {
				a.t.Error(got)
			}
			a.one("tasks/cancel") // it may know that
		},
		"a client without tasks/get whose tasks/result waits": func(a *asked, result sentMessage) {
			for range 5 {
				a.reply(a.after(replyWithin, "tasks/get").ID, `"error":{"code":-32601,"message":"Method not found"}`)
			}
			a.reply(result.ID, yes)
			a.ends("yes")
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			a, q := newAsked(t, takesTasks)
			a.reply(q.ID, began("r", 0))
			test(a, a.one("tasks/result"))
		})
	}
}

// TestClientTaskMalformed: whatever a client says of its task, the question fails or
// stays open, and the log says so.
func TestClientTaskMalformed(t *testing.T) {
	long := strings.Repeat("x", longestTaskID+1)
	for _, response := range []string{
		`"result":{"task":{}}`, `"result":{"task":{"taskId":""}}`, `"result":{"task":{"taskId":5,"status":"working"}}`,
		`"result":{"task":` + state("r", "shrugging", 0) + `}`, `"result":{"task":` + state(long, "working", 0) + `}`,
	} {
		inBubble(t, "created "+response[:min(len(response), 60)], func(t *testing.T) {
			a, q := newAsked(t, takesTasks)
			a.reply(q.ID, response)
			a.ends("isError")
			if !strings.Contains(a.log.String(), "is not followed") {
				t.Error(a.log)
			}
		})
	}
	for _, response := range []string{`"result":{"task":5}`, `"result":{"task":null}`, `"result":{"task":[]}`, `"result":5`} {
		inBubble(t, "no task "+response, func(t *testing.T) {
			a, q := newAsked(t, takesTasks)
			a.reply(q.ID, response)
			a.ends("isError")
		})
	}
	for _, response := range []string{
		`"result":` + state("other", "completed", 0), `"result":{}`, `"result":null`, `"result":[]`,
		`"result":` + state("r", "done", 0), `"error":{"code":-32603,"message":""}`,
	} {
		inBubble(t, "tasks/get "+response[:min(len(response), 60)], func(t *testing.T) {
			a, q := newAsked(t, takesTasks)
			a.reply(q.ID, began("r", 0))
			a.reply(a.one("tasks/result").ID, refusal)
			a.reply(a.after(time.Second, "tasks/get").ID, response)
			a.none()
			a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "completed", 0))
			a.reply(a.one("tasks/result").ID, yes)
			a.ends("yes")
			if !strings.Contains(a.log.String(), "does not tell") {
				t.Error(a.log)
			}
		})
	}
	inBubble(t, "replies that nobody waits for", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		for _, kind := range []string{"get", "result", "cancel"} {
			id := "mcptask:" + kind + ":1/" + a.task + "/one"
			a.reply(id, refusal)
			a.reply(id, unknown)
			if kind != "result" {
				a.reply(id, `"result":`+state("r", "cancelled", 0))
			}
			a.reply("mcptask:"+kind+":18446744073709551615/none/one", refusal)
		}
		a.none()
		a.reply(q.ID, began("r", 0))
		result := a.one("tasks/result")
		get := a.after(replyWithin, "tasks/get")
		other := a.open(takesTasks)
		a.replyFrom(other, get.ID, unknown) // another session's client knows other tasks
		a.replyFrom(other, result.ID, refusal)
		a.none()
		a.reply(get.ID, `"result":`+state("r", "working", 0))
		a.reply(get.ID, `"result":`+state("r", "cancelled", 0)) // twice
		a.none()
		a.reply(result.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "one refusal, said often", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 0))
		result := a.one("tasks/result")
		for range 2 * maxFailures {
			a.reply(result.ID, refusal)
		}
		for range 2 * maxFailures { // and not three in a row
			for range maxFailures - 1 {
				a.reply(a.after(time.Second, "tasks/get").ID, refusal)
			}
			a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "working", 0))
		}
		a.reply(result.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "a task of somebody else's", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		mallory := a.open(takesTasks)
		a.caller.Principal, mallory.principal = "mallory", "mallory"
		a.replyFrom(mallory, q.ID, began("m", 0))
		a.replyFrom(mallory, "mcptask:result:1/"+a.task+"/one", yes)
		a.none()
		if len(mallory.followed())+len(mallory.pendingCancels) > 0 {
			t.Error("a stranger is followed")
		}
		a.caller.Principal = "p"
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	inBubble(t, "one task for two questions", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		reply, err := a.server.Call(t.Context(), a.caller, "ask", json.RawMessage(`{}`), mcptask.CallRequest{Mode: mcptask.ModeTask})
		if err != nil {
			t.Fatal(err)
		}
		a.session.Know(legacy, *reply.Task)
		second := a.one("elicitation/create")
		a.reply(q.ID, began("r", 0))
		result := a.one("tasks/result")
		a.reply(second.ID, began("r", 0))
		a.none()
		a.reply(result.ID, yes)
		first := a.task
		a.task = reply.Task.ID
		a.ends("isError")
		a.task = first
		a.ends("yes")
	})
	inBubble(t, "floods", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		for i := range 3 * maxPendingCancels {
			a.reply(q.ID, began(fmt.Sprint("r", i), 0))
		}
		if n := len(a.session.pendingCancels); n != maxPendingCancels {
			t.Errorf("%d are owed", n)
		}
		for range 2 {
			for range 2 * maxCancels { // a client that never answers
				a.drop()
				a.connect()
				a.sent()
			}
		}
		if n := len(a.session.pendingCancels); n != 0 {
			t.Errorf("%d are owed", n)
		}
		a.reply(q.ID, yes)
		a.ends("yes")
	})
}

// TestClientTaskCancelled: a client's task that nobody needs is cancelled as a task
// is, where the client takes that.
func TestClientTaskCancelled(t *testing.T) {
	rules.Covers(t, "C-73", "C-74", "C-80")
	cancel := func(a *asked) {
		a.t.Helper()
		if _, _, err := a.server.Cancel(a.t.Context(), a.caller, a.task); err != nil {
			a.t.Fatal(err)
		}
	}
	inBubble(t, "before it is a task", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		cancel(a)
		if m := a.one("notifications/cancelled"); m.Params.RequestID != q.ID {
			t.Errorf("%+v", m)
		}
		for range 3 {
			a.reply(q.ID, began("r", 0)) // they have crossed
		}
		if m := a.one("tasks/cancel"); m.Params.TaskID != "r" {
			t.Errorf("%+v", m)
		}
		a.ends("cancelled")
	})
	inBubble(t, "once it is one", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 0))
		result := a.one("tasks/result")
		cancel(a)
		m := a.one("tasks/cancel")
		if m.Params.TaskID != "r" {
			t.Errorf("%+v", m)
		}
		a.reply(result.ID, refusal)
		a.drop()
		a.connect()
		a.one("tasks/cancel") // it may not have arrived
		a.reply(m.ID, unknown)
		a.drop()
		a.connect()
		a.none()
		a.ends("cancelled")
	})
	inBubble(t, "before tasks/result has left", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 0))
		cancel(a)
		a.one("tasks/cancel")
	})
	inBubble(t, "without a stream", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 0))
		a.drop()
		cancel(a)
		time.Sleep(time.Hour)
		a.connect()
		a.one("tasks/cancel")
	})
	inBubble(t, "on a stream that stays", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		blocked := a.session.Connect(nil, a.task)
		a.reply(q.ID, began("r", 0))
		if messages := blocked.Take(); len(messages) != 1 || !strings.Contains(string(messages[0]), "tasks/result") {
			t.Errorf("%v", messages)
		}
		cancel(a)
		a.one("tasks/cancel")
		blocked.Close()
		a.none()
	})
	inBubble(t, "answered elsewhere", func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		a.reply(q.ID, began("r", 0))
		a.one("tasks/result")
		a.replyFrom(a.open(`{"elicitation":{}}`), q.ID, yes)
		a.one("tasks/cancel")
		a.ends("yes")
	})
	inBubble(t, "a client without tasks/cancel", func(t *testing.T) {
		a, q := newAsked(t, strings.Replace(takesTasks, `"cancel":{},`, "", 1))
		a.reply(q.ID, began("r", 0))
		a.one("tasks/result")
		cancel(a)
		a.none()
		a.drop()
		a.connect()
		a.none()
		a.ends("cancelled")
	})
}
