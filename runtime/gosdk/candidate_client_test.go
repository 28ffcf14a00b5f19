package gosdk_test

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// A client of the release candidate asks for a task exactly where server and tool
// take one, in the candidate's words.
func TestCandidateAsksForATask(t *testing.T) {
	rules.Covers(t, "B-02", "B-03", "B-04", "B-08", "B-09", "B-11", "B-12", "B-15")
	const able, list = `{"tasks":{"requests":{"tools":{"call":{}}}}}`, `{"tasks":{"list":{},"cancel":{}}}`
	for _, tc := range []struct {
		capabilities, tool string // of tool, the members beside its name
		plain, want        bool
	}{
		{able, `"annotations":{"taskHint":"always"}`, false, true},
		{able, `"annotations":{"taskHint":"always"}`, true, true},
		{able, `"annotations":{"taskHint":"optional"}`, false, true},
		{able, `"annotations":{"taskHint":"optional"}`, true, false},
		{able, `"annotations":{"taskHint":"never"}`, false, false},
		{able, `"annotations":{}`, false, false},
		{able, `"annotations":{"taskHint":null}`, false, false},
		{able, `"annotations":{"taskHint":true}`, false, false}, // of an earlier draft
		{able, `"annotations":{"taskHint":"required"}`, false, false},
		{able, `"execution":{"taskSupport":"required"}`, false, false}, // of the release
		{able, `"title":"t"`, false, false},
		{`{"tasks":{"requests":{"tools":{"call":true}}}}`, `"annotations":{"taskHint":"always"}`, false, true},
		{`{"tasks":{"requests":{"tools":{"call":false}}}}`, `"annotations":{"taskHint":"always"}`, false, false},
		{`{"tasks":{"requests":{"tools":{"call":null}}}}`, `"annotations":{"taskHint":"optional"}`, false, false},
		{`{"tasks":{"requests":{"tools":{"call":1}}}}`, `"annotations":{"taskHint":"optional"}`, false, false},
		{list, `"annotations":{"taskHint":"always"}`, false, false},
		{`{}`, `"annotations":{"taskHint":"always"}`, false, false},
		{`{"tasks":{"requests":{"tools":{}}}}`, `"annotations":{"taskHint":"optional"}`, false, false},
	} {
		t.Run(fmt.Sprintf("%s %s plain %v", tc.capabilities, tc.tool, tc.plain), func(t *testing.T) {
			eachWay(t, func(t *testing.T, connect func(*scripted, gosdk.ClientOptions) mcptask.Conn) {
				s := &scripted{t: t, revision: wiretest.CandidateRevision}
				s.answer = func(c call) reply {
					switch c.method {
					case "initialize":
						return result(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"s","version":"1"}}`, s.protocol(), tc.capabilities)
					case "tools/list":
						return result(`{"tools":[{"name":"tool","inputSchema":{"type":"object"},%s}]}`, tc.tool)
					case "tools/call":
						if c.member("task") != "" {
							return s.created("t")
						}
						return result("%s", output(1))
					case "tasks/get":
						return s.state("t", "completed")
					case "tasks/result":
						return result("%s", output(1))
					}
					return reply{}
				}
				var options []mcptask.CallOption
				if tc.plain {
					options = append(options, mcptask.Plain())
				}
				call := start(t, connect(s, gosdk.ClientOptions{}), options...)
				if out, err := call.Wait(t.Context()); err != nil || out.N != 1 {
					t.Errorf("%+v, %v", out, err)
				}
				if asked := s.of("tools/call")[0].member("task") != ""; asked != tc.want {
					t.Errorf("asked for a task: %v", asked)
				}
			})
		})
	}
}

// Notifications of a task's status are no reason to poll less, whatever they say,
// nor is their absence a reason to poll more.
func TestCandidateStatusChangesNothing(t *testing.T) {
	rules.Covers(t, "B-43", "B-44", "B-81")
	for name, told := range map[string]string{"none": "", "true": "working", "false": "completed"} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := &scripted{t: t, revision: wiretest.CandidateRevision}
				var ended atomic.Bool
				s.answer = func(c call) reply {
					switch {
					case c.method == "HTTP GET" && told != "":
						return reply{stream: func(send func(string)) {
							for range 5 {
								time.Sleep(3 * time.Second)
								send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + s.task("t", told) + `}}`)
							}
							<-c.ctx.Done()
						}}
					case c.method == "tools/call":
						return s.created("t")
					case c.method == "tasks/get" && ended.Load():
						return refusal(wiretest.InvalidParams, "") // it is deleted
					case c.method == "tasks/get" && c.n <= 30:
						return s.state("t", "working")
					case c.method == "tasks/get":
						return s.state("t", "completed")
					case c.method == "tasks/result":
						return result("%s", output(1))
					}
					return reply{}
				}
				conn := s.connect(gosdk.ClientOptions{})
				call := start(t, conn)
				began := time.Now()
				if out, err := call.Wait(t.Context()); err != nil || out.N != 1 {
					t.Errorf("%+v, %v", out, err)
				}
				polls := s.of("tasks/get")
				if len(polls) != 31 || time.Since(began) < 30*time.Second {
					t.Errorf("%d polls in %v", len(polls), time.Since(began))
				}
				for _, gap := range gaps(polls) {
					if gap < time.Second {
						t.Errorf("polled after %v", gap)
					}
				}
				ended.Store(true)
				if _, err := start(t, conn).Wait(t.Context()); !errors.Is(err, mcptask.ErrNotFound) && !errors.Is(err, mcptask.ErrExpired) {
					t.Errorf("a task that is gone: %v", err)
				}
			})
		})
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
