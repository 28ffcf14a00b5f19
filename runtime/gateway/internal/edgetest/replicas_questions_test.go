package edgetest

import (
	"fmt"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestQuestionOnOneStream checks that a client which has its own stream at one replica, and requests
// that wait for the task at others, gets each question from these requests alone.
func TestQuestionOnOneStream(t *testing.T) {
	rules.Covers(t, "C-51")
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 3, nil)
		a := all.peer("alice", wiretest.AllCapabilities)
		b, c := all.at(a, 1), all.at(a, 2)
		own := a.OpenGet()
		wantNothing := func() {
			t.Helper()
			time.Sleep(10 * time.Second)
			own.WantSilence()
		}
		for name, create := range map[string]*wiretest.Peer{"created beside the stream": a, "created elsewhere": c} {
			id := create.Create("ask", wiretest.AskArguments("one", "two"))
			c.Until(id, "input_required")
			result := b.Result(id)
			result.NextQuestion(id)
			wantNothing()
			result.Stop()
			wantNothing() // the client has to ask for the result again
			result = c.Result(id)
			a.Respond(result.NextQuestion(id).ID, wiretest.AcceptNote("first"))
			b.Respond(result.NextQuestion(id).ID, wiretest.AcceptNote("next"))
			if m := result.Next(); m.Result == nil || wiretest.ToolText(m.Result) != "first,next" {
				t.Errorf("%s: %s", name, m.Text)
			}
			wantNothing()
		}
	})
}

// TestQuestionOfPollingClient checks that a client gets a question on its own stream if it only
// polls, or asks for the result as JSON. It then gets the question once, and a retraction.
func TestQuestionOfPollingClient(t *testing.T) {
	rules.Covers(t, "C-53")
	inBubble(t, func(t *testing.T) {
		_, a, b := serveTwoReplicas(t, nil)
		own := a.OpenGet()
		id := b.Create("ask", wiretest.AskArguments("one"))
		b.Until(id, "input_required")
		var result sync.WaitGroup
		result.Go(func() { b.Task("tasks/result", id, wiretest.JSONOnly) })
		q := own.NextQuestion(id)
		time.Sleep(10 * time.Second)
		own.WantSilence()
		b.Task("tasks/cancel", id).OK()
		own.NextCancellation(q)
		result.Wait()
	})
}

// TestPlainQuestionWithKey checks the question of a plain call in a session with a key: it names no task, which
// clients that keep tasks would look for, and the gateway forgets the task if the call is cancelled.
func TestPlainQuestionWithKey(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		all := serveReplicas(t, 1, func(_ int, s *wiretest.Setup) {
			s.Tools = []mcptask.Tools{slowTools(time.Minute, make(chan struct{}))}
		})
		p := all.peer("alice", wiretest.AllCapabilities)
		ask := func() (f *wiretest.Feed, question wiretest.WireMessage) {
			f = p.Send("tools/call", map[string]any{"name": "slow_ask"})
			return f, f.NextQuestion("")
		}
		f, question := ask()
		p.Respond(question.ID, wiretest.AcceptNote("milk"))
		if m := f.Next(); m.Result == nil || wiretest.ToolText(m.Result) != "noted milk" {
			t.Errorf("%s", m.Text)
		}
		_, _ = ask()
		p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, p.IDs.Load()))
		wiretest.Eventually(t, "the gateway watches no task", func() bool { return all.gateways[0].Counts().Watched == 0 })
	})
}
