package gosdk_test

import (
	"errors"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// Notifications of a task's status are no reason to poll less, whatever they say,
// nor is their absence a reason to poll more.
func TestCandidateStatusChangesNothing(t *testing.T) {
	rules.Covers(t, "B-43", "B-44", "B-81")
	for name, told := range map[string]string{"none": "", "true": "working", "false": "completed"} {
		t.Run(name, inBubble(func(t *testing.T) {
			ended := false
			s := polled(t, wiretest.CandidateRevision, func(s *scripted, n int) (r reply) {
				switch {
				case ended:
					r = refusal(wiretest.InvalidParams, "") // it is deleted
				case n <= 30:
					r = s.state("t", "working")
				}
				return r
			})
			if told != "" {
				s.on("HTTP GET", func(c call) reply {
					return reply{stream: func(send func(string)) {
						for range 5 {
							time.Sleep(3 * time.Second)
							send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + s.task("t", told) + `}}`)
						}
						<-c.ctx.Done()
					}}
				})
			}
			conn := s.connect(gosdk.ClientOptions{})
			call := start(t, conn)
			began := time.Now()
			wantNumber(t, call, 1)
			polls := s.of("tasks/get")
			if len(polls) != 31 || time.Since(began) < 30*time.Second {
				t.Errorf("%d polls in %v", len(polls), time.Since(began))
			}
			for _, gap := range gaps(polls) {
				if gap < time.Second {
					t.Errorf("polled after %v", gap)
				}
			}
			ended = true
			if _, err := start(t, conn).Wait(t.Context()); !errors.Is(err, mcptask.ErrNotFound) && !errors.Is(err, mcptask.ErrExpired) {
				t.Errorf("a task that is gone: %v", err)
			}
		}))
	}
}

// A server that may ask for tasks reads what its client declares as leniently.
func TestCandidateRemoteDeclared(t *testing.T) {
	rules.Covers(t, "B-02", "B-03", "B-04")
	t.Parallel()
	url := wiretest.ServeAsk(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
	for tasks, augmented := range map[string]bool{
		`{"requests":{"elicitation":{"create":{}}}}`: true, `{"requests":{"elicitation":{"create":true}}}`: true,
		`{"requests":{"elicitation":{"create":false}}}`: false, `{"requests":{"elicitation":{"create":null}}}`: false,
		`{"requests":{"elicitation":{"create":1}}}`: false, `{"requests":{"elicitation":true}}`: false,
		`{"requests":{"sampling":{"createMessage":true}}}`: false, `{}`: false, `true`: false, `null`: false,
	} {
		t.Run(tasks, func(t *testing.T) {
			t.Parallel()
			p := wiretest.NewAskedPeer(t, url, wiretest.CandidateRevision, "a", wiretest.TaskCapabilities(tasks))
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			q := f.NextQuestion(id)
			if (q.Params.Task != nil) != augmented {
				t.Errorf("%s", q.Text)
			}
			p.Respond(q.ID, wiretest.AcceptNote("now"))
			if got := p.TaskText(id); got != "now" {
				t.Error(got)
			}
		})
	}
}
