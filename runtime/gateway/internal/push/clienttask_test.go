package push

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestClientTaskPolling checks that a client's task is polled at its interval if no tasks/result
// waits at the client.
func TestClientTaskPolling(t *testing.T) {
	rules.Covers(t, "C-16", "C-30", "C-31", "C-32", "C-46", "C-47", "C-51")
	for ms, want := range map[int64]time.Duration{0: time.Second, -1: time.Second, 5000: 5 * time.Second, 1: 100 * time.Millisecond} {
		askInBubble(t, fmt.Sprint("pollInterval ", ms), takesTasks, func(a *asked, q sentMessage) {
			a.reply(q.ID, began("r", ms))
			a.reply(a.one("tasks/result").ID, refusal)
			a.none()
			for range 5 {
				get := a.after(want, "tasks/get")
				if get.Params.TaskID != "r" {
					a.t.Errorf("%+v", get)
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
	keepInBubble(t, "the interval may change", func(a *asked, _, result sentMessage) {
		a.reply(result.ID, refusal)
		a.reply(a.after(time.Second, "tasks/get").ID, `"result":`+state("r", "working", 7000))
		a.reply(a.after(7*time.Second, "tasks/get").ID, `"result":`+state("r", "input_required", 7000))
		a.reply(a.one("tasks/result").ID, yes) // C-51
		a.ends("yes")
	})
	askInBubble(t, "an absurd interval", takesTasks, func(a *asked, q sentMessage) {
		a.reply(q.ID, began("r", 1<<53))
		a.reply(a.one("tasks/result").ID, refusal)
		time.Sleep(59 * time.Minute)
		a.none()
		if poll := a.session.followed()["r"].interval; poll != longestPoll {
			a.t.Error(poll)
		}
	})
	keepInBubble(t, "nothing is polled while tasks/result waits", func(a *asked, q, result sentMessage) {
		if ttl := q.Params.Task.TTL; ttl < 3_590_000 || ttl > 3_600_000 { // as long as the server's task lives
			a.t.Error(ttl)
		}
		a.state(replyWithin, "working") // the server asks again, because the reply may be lost
		a.state(replyWithin, "completed")
		again := a.one("tasks/result")
		if again.ID == result.ID {
			a.t.Error("an ID is used twice")
		}
		a.reply(result.ID, yes) // the reply was only late
		a.ends("yes")
		a.reply(again.ID, declined)
		a.ends("yes")
	})
	askInBubble(t, "a client that never answers", takesTasks, func(a *asked, q sentMessage) {
		a.reply(q.ID, began("r", 0))
		time.Sleep(time.Hour - time.Minute)
		messages := a.sent() // the client does not read the stream
		if len(messages) != 2 || messages[0].Method != "tasks/result" || messages[1].Method != "tasks/get" {
			a.t.Fatalf("%+v", messages)
		}
		time.Sleep(2 * time.Minute) // the retention of the server's task has ended
		got := a.sent()
		if last := got[len(got)-1]; last.Method != "tasks/cancel" || last.Params.TaskID != "r" {
			a.t.Fatalf("%+v", got)
		}
		a.keepsNothing()
	})
}

// TestClientTaskDrops checks that a stream may be dropped at any point.
func TestClientTaskDrops(t *testing.T) {
	rules.Covers(t, "C-32")
	askInBubble(t, "before the client has announced its task", takesTasks, func(a *asked, q sentMessage) {
		a.reconnect()
		if again := a.askedAgain(q); again.Params.Task == nil {
			a.t.Errorf("%+v", again)
		}
		a.drop()
		a.reply(q.ID, began("r", 0))
		time.Sleep(time.Minute) // without a stream, there is no poll
		a.connect()
		a.reply(a.one("tasks/result").ID, yes)
		a.ends("yes")
	})
	keepInBubble(t, "while tasks/result waits", func(a *asked, _, first sentMessage) {
		time.Sleep(400 * time.Millisecond)
		a.reconnect()
		a.none()
		a.state(600*time.Millisecond, "working")
		get := a.after(time.Second, "tasks/get")
		a.drop()
		a.reply(get.ID, `"result":`+state("r", "completed", 0)) // an outdated reply
		a.connect()
		a.none()
		a.state(time.Second, "completed")
		second := a.one("tasks/result")
		a.reconnect()
		a.state(time.Second, "completed")
		third := a.one("tasks/result")
		if first.ID == second.ID || second.ID == third.ID || first.ID == third.ID {
			a.t.Errorf("%s, %s, %s", first.ID, second.ID, third.ID)
		}
		a.reply(second.ID, yes)
		a.ends("yes")
	})
	keepInBubble(t, "the reply crosses the drop", func(a *asked, _, result sentMessage) {
		a.drop()
		a.reply(result.ID, yes)
		a.ends("yes")
		a.connect()
		a.none()
	})
	askInBubble(t, "two tasks of one question", takesTasks, func(a *asked, q sentMessage) {
		a.reconnect()
		a.askedAgain(q)
		a.reply(q.ID, began("r1", 0))
		a.reply(q.ID, began("r1", 0))
		result := a.one("tasks/result")
		a.reply(q.ID, began("r2", 0))
		a.cancels("r2")
		a.reply(result.ID, yes)
		a.ends("yes")
	})
	keepInBubble(t, "another session can be asked", func(a *asked, _, _ sentMessage) {
		a.drop()
		old := a.moveToNewSession()
		again := a.one("elicitation/create")
		a.reply(again.ID, began("r", 0)) // another client has IDs of its own
		a.one("tasks/result")
		fresh := a.stream
		a.stream = old.Connect(nil, "")
		a.cancels("r")
		a.stream = fresh
		a.drop()
		old.Close()
		a.session.Close()
		if len(old.followed()) > 0 {
			a.t.Error("kept in the old session")
		}
		a.keepsNothing()
	})
	askInBubble(t, "another session comes after the stream is dropped", takesTasks, func(a *asked, q sentMessage) {
		a.drop()
		a.reply(q.ID, began("r", 0))
		old := a.moveToNewSession()
		again := a.one("elicitation/create")
		a.stream = old.Connect(nil, "")
		a.cancels("r")
		a.reply(again.ID, yes)
		a.ends("yes")
	})
	keepInBubble(t, "the session is over before its stream", func(a *asked, _, _ sentMessage) {
		a.session.Close()
		before := a.store.countReads(a.task)
		time.Sleep(2 * replyWithin)
		if n := a.store.countReads(a.task) - before; n > 2 { // its handler looks once in taskserver.StoreWait
			a.t.Errorf("the task is read %d times to poll a client that has left", n)
		}
	})
	keepInBubble(t, "the session is over", func(a *asked, q, result sentMessage) {
		a.drop()
		a.session.Close()
		time.Sleep(time.Minute)
		a.reply(q.ID, began("s", 0))
		a.keepsNothing()
		a.reply(result.ID, yes) // from the owner of the task, in any process
		a.ends("yes")
	})
}

// TestClientTaskEnds checks how a client's task may end, and in which forms the client may report it.
func TestClientTaskEnds(t *testing.T) {
	const cannot, hasLeft = "the requestor cannot be asked", "the question was declined"
	const left = `"error":{"code":-1,"message":"the person has left"}`
	const noGet = `"error":{"code":-32601,"message":"Method not found"}`
	for name, test := range map[string]func(a *asked, q, result sentMessage){
		"failed, told by tasks/result": func(a *asked, _, result sentMessage) {
			a.reply(result.ID, left)
			a.none()
			a.state(time.Second, "failed")
			a.ends(hasLeft)
		},
		"failed, told by tasks/get": func(a *asked, _, result sentMessage) {
			a.state(replyWithin, "failed")
			a.reply(a.one("tasks/result").ID, left)
			a.ends(hasLeft)
		},
		"failed with an answer": func(a *asked, _, result sentMessage) {
			a.state(replyWithin, "failed")
			a.reply(a.one("tasks/result").ID, yes)
			a.ends("yes")
		},
		"cancelled by the client": func(a *asked, _, result sentMessage) {
			a.reply(result.ID, refusal)
			a.state(time.Second, "cancelled")
			a.ends(cannot)
		},
		"lost: asked again, plainly": func(a *asked, _, result sentMessage) {
			a.reply(result.ID, unknown)
			a.reply(a.after(time.Second, "tasks/get").ID, unknown)
			again := a.one("elicitation/create")
			if again.Params.Task != nil || again.ID == result.ID {
				a.t.Errorf("%+v", again)
			}
			a.reconnect()
			a.askedAgain(again)
			a.reply(again.ID, yes)
			a.ends("yes")
		},
		"lost twice": func(a *asked, _, result sentMessage) {
			a.reply(a.after(replyWithin, "tasks/get").ID, unknown)
			a.reply(a.one("elicitation/create").ID, began("s", 0)) // the server has not asked for a task
			a.ends("isError")
		},
		"lost, and the first question answered after all": func(a *asked, q, _ sentMessage) {
			a.reply(a.after(replyWithin, "tasks/get").ID, unknown)
			a.one("elicitation/create")
			a.reply(q.ID, began("s", 0))
			a.cancels("s")
			a.reply(q.ID, yes)
			a.ends("yes")
		},
		"a client without tasks/get": func(a *asked, _, result sentMessage) {
			a.reply(result.ID, refusal)
			for range 3 {
				a.reply(a.after(time.Second, "tasks/get").ID, noGet)
			}
			if got := a.outcome(); !strings.Contains(got, cannot) {
				a.t.Error(got)
			}
			a.one("tasks/cancel") // the client may know this method
		},
		"a client without tasks/get whose tasks/result waits": func(a *asked, _, result sentMessage) {
			for range 5 {
				a.reply(a.after(replyWithin, "tasks/get").ID, noGet)
			}
			a.reply(result.ID, yes)
			a.ends("yes")
		},
	} {
		keepInBubble(t, name, test)
	}
	for status, why := range map[string]string{"completed": "without a result", "input_required": "for ever"} {
		keepInBubble(t, status+" "+why, func(a *asked, _, result sentMessage) {
			a.reply(result.ID, refusal)
			for range 2 {
				a.state(time.Second, status)
				a.reply(a.one("tasks/result").ID, refusal)
			}
			a.ends(cannot)
		})
	}
	for response, want := range map[string]string{
		declined: "declined",
		`"result":{"action":"accept","content":{"note":5}}`: "isError", // does not fit
		began("s", 0):   "isError", // a task as a task's answer
		`"result":null`: "isError",
	} {
		keepInBubble(t, "result "+response[:min(len(response), 60)], func(a *asked, _, result sentMessage) {
			a.reply(result.ID, response)
			a.ends(want)
		})
	}
}

// TestClientTaskMalformed checks that the question fails or stays open, whatever a client says about its task, and that
// the log says so.
func TestClientTaskMalformed(t *testing.T) {
	long := strings.Repeat("x", longestTaskID+1)
	const notFollowed = "is not followed"
	for response, logged := range map[string]string{
		`"result":{"task":{}}`:                                 notFollowed,
		`"result":{"task":{"taskId":""}}`:                      notFollowed,
		`"result":{"task":{"taskId":5,"status":"working"}}`:    notFollowed,
		`"result":{"task":` + state("r", "shrugging", 0) + `}`: notFollowed,
		`"result":{"task":` + state(long, "working", 0) + `}`:  notFollowed,
		`"result":{"task":5}`:                                  "", `"result":{"task":null}`: "", // no tasks
		`"result":{"task":[]}`: "", `"result":5`: "",
	} {
		askInBubble(t, "created "+response[:min(len(response), 60)], takesTasks, func(a *asked, q sentMessage) {
			a.reply(q.ID, response)
			a.ends("isError")
			if !strings.Contains(a.log.String(), logged) {
				a.t.Error(a.log)
			}
		})
	}
	for _, response := range []string{
		`"result":` + state("other", "completed", 0), `"result":{}`, `"result":null`, `"result":[]`,
		`"result":` + state("r", "done", 0), `"error":{"code":-32603,"message":""}`,
	} {
		keepInBubble(t, "tasks/get "+response[:min(len(response), 60)], func(a *asked, _, result sentMessage) {
			a.reply(result.ID, refusal)
			a.reply(a.after(time.Second, "tasks/get").ID, response)
			a.none()
			a.state(time.Second, "completed")
			a.reply(a.one("tasks/result").ID, yes)
			a.ends("yes")
			if !strings.Contains(a.log.String(), "does not tell") {
				a.t.Error(a.log)
			}
		})
	}
	askInBubble(t, "replies to no request", takesTasks, func(a *asked, q sentMessage) {
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
	keepInBubble(t, "one refusal, said often", func(a *asked, _, result sentMessage) {
		for range 2 * maxFailures {
			a.reply(result.ID, refusal)
		}
		for range 2 * maxFailures { // never three in a row
			for range maxFailures - 1 {
				a.reply(a.after(time.Second, "tasks/get").ID, refusal)
			}
			a.state(time.Second, "working")
		}
		a.reply(result.ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "a task of a stranger's", takesTasks, func(a *asked, q sentMessage) {
		mallory := a.open(takesTasks)
		a.caller.Principal, mallory.principal = "mallory", "mallory"
		a.replyFrom(mallory, q.ID, began("m", 0))
		a.replyFrom(mallory, "mcptask:result:1/"+a.task+"/one", yes)
		a.none()
		if len(mallory.followed()) > 0 {
			a.t.Error("a stranger is followed")
		}
		a.caller.Principal = "p"
		a.reply(q.ID, yes)
		a.ends("yes")
	})
	askInBubble(t, "one task for two questions", takesTasks, func(a *asked, q sentMessage) {
		reply, err := a.server.Backend().Call(a.t.Context(), a.caller, "ask", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
		if err != nil {
			a.t.Fatal(err)
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
	askInBubble(t, "floods", takesTasks, func(a *asked, q sentMessage) {
		const flood = 1000
		for i := range flood {
			a.reply(q.ID, began(fmt.Sprint("r", i), 0))
		}
		if messages := a.sent(); len(messages) != 2 || messages[0].Method != "tasks/result" || messages[1].Params.TaskID != fmt.Sprint("r", flood-1) {
			a.t.Errorf("unread: %+v", messages)
		}
		a.reply(q.ID, yes)
		a.ends("yes")
	})
}

// TestClientTaskCancelled checks that the server cancels a client's task that is no longer needed, if the client
// supports that.
func TestClientTaskCancelled(t *testing.T) {
	rules.Covers(t, "C-73", "C-74", "C-80")
	askInBubble(t, "before it is a task", takesTasks, func(a *asked, q sentMessage) {
		a.cancel()
		if m := a.one("notifications/cancelled"); m.Params.RequestID != q.ID {
			a.t.Errorf("%+v", m)
		}
		for range 3 {
			a.reply(q.ID, began("r", 0)) // the messages have crossed
		}
		a.cancels("r")
		a.ends("cancelled")
	})
	keepInBubble(t, "after it has become one", func(a *asked, _, result sentMessage) {
		a.cancel()
		m := a.cancels("r")
		a.reply(result.ID, refusal)
		a.reply(m.ID, unknown)
		a.reconnect()
		a.none()
		a.ends("cancelled")
	})
	askInBubble(t, "before tasks/result has left", takesTasks, func(a *asked, q sentMessage) {
		a.reply(q.ID, began("r", 0))
		a.cancel()
		a.cancels("r")
	})
	askInBubble(t, "on a stream that stays", takesTasks, func(a *asked, q sentMessage) {
		blocked := a.session.Connect(nil, a.task)
		a.reply(q.ID, began("r", 0))
		if messages := blocked.Take(); len(messages) != 1 || !strings.Contains(string(messages[0]), "tasks/result") {
			a.t.Errorf("%v", messages)
		}
		a.cancel()
		a.cancels("r")
		blocked.Close()
		a.none()
	})
	keepInBubble(t, "answered elsewhere", func(a *asked, q, _ sentMessage) {
		a.replyFrom(a.open(elicits), q.ID, yes)
		a.cancels("r")
		a.ends("yes")
	})
	askInBubble(t, "a client without tasks/cancel", strings.Replace(takesTasks, `"cancel":{},`, "", 1), func(a *asked, q sentMessage) {
		a.reply(q.ID, began("r", 0))
		a.one("tasks/result")
		a.cancel()
		a.none()
		a.reconnect()
		a.none()
		a.ends("cancelled")
	})
}
