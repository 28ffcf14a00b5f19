package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestProposedCancel: the client cancels a task by cancelling the request that made it, also while the task asks. A
// waiting caller polls until it sees the end. Then the client hangs up the call and sends nothing more.
func TestProposedCancel(t *testing.T) {
	rules.Covers(t, "A-38", "A-45", "A-47")
	for name, answers := range map[string]bool{"and is answered": true, "and is not": false} {
		t.Run(name, overEachWay(func(t *testing.T, connect connector) {
			answered := make(chan struct{})
			s := scriptProposal(t, func(c call) reply {
				switch {
				case c.method == "tools/call" && answers:
					return held(c, answered, refusal(-32800, ""))
				case c.method == "tools/call":
					return held(c, nil, reply{})
				case c.n <= 3:
					return stands(c, "input_required")
				case c.n <= 8:
					return stands(c, "working")
				}
				return stands(c, "cancelled")
			})
			call := start(t, connect(s, gosdk.ClientOptions{}))
			time.AfterFunc(2500*time.Millisecond, func() {
				for range 2 { // twice, which must not matter
					cancel(t, call)
				}
				close(answered)
			})
			wantEnd(t, call, mcptask.ErrCancelled)
			time.Sleep(time.Hour)
			if err := call.Cancel(t.Context()); err != nil { // the task has ended
				t.Error(err)
			}
			sent, made := s.of("notifications/cancelled"), s.of("tools/call")[0]
			if len(sent) != 2 {
				t.Fatalf("%d cancellations", len(sent))
			}
			for _, c := range sent {
				if c.member("requestId") != string(made.id) || c.member("_meta", relatedProposed, "taskId") != made.named() {
					t.Errorf("request %s of %s is cancelled by %s", made.id, made.named(), c.params)
				}
			}
			if polls := s.of("tasks/get"); len(polls) < 9 || len(s.of("tasks/result"))+len(s.of("tasks/cancel")) != 0 {
				t.Errorf("%d polls", len(polls))
			}
		}))
	}
}

// TestProposedCancelUnheard: after a cancellation, the client hangs up the call after a while, even if the server says
// nothing and no caller waits.
func TestProposedCancelUnheard(t *testing.T) {
	rules.Covers(t, "A-48")
	bubble.Test(t, func(t *testing.T) {
		s := scriptProposal(t, func(call) reply { return reply{} })
		call := start(t, s.connect(gosdk.ClientOptions{}))
		cancel(t, call)
		made := s.of("tools/call")[0]
		time.Sleep(30 * time.Second)
		if made.ctx.Err() != nil {
			t.Error("hung up at once")
		}
		time.Sleep(time.Minute)
		if n := len(s.of("notifications/cancelled")); made.ctx.Err() == nil || n != 1 {
			t.Errorf("open: %v, cancelled %d times", made.ctx.Err() == nil, n)
		}
	})
}

// TestProposedCancelTooLate: if the call is answered after the cancellation, that answer is the outcome.
func TestProposedCancelTooLate(t *testing.T) {
	eachWay(t, func(t *testing.T, connect connector) {
		answered := make(chan struct{})
		s := scriptProposal(t, func(c call) reply {
			if c.method == "tools/call" {
				return held(c, answered, result("%s", output(4)))
			}
			return stands(c, "working")
		})
		call := start(t, connect(s, gosdk.ClientOptions{}))
		cancel(t, call)
		time.AfterFunc(2500*time.Millisecond, func() { close(answered) })
		wantNumber(t, call, 4)
	})
}

// TestProposedCancelElsewhere: a call that was resumed by its token has no request to cancel. Cancel fails and the call
// goes on.
func TestProposedCancelElsewhere(t *testing.T) {
	eachWay(t, func(t *testing.T, connect connector) {
		s := scriptProposal(t, func(c call) reply {
			if c.method == "tasks/get" && c.n < 4 {
				return stands(c, "working")
			}
			return reply{}
		})
		conn := connect(s, gosdk.ClientOptions{})
		call := resume(t, conn, tokenFor(t, "elsewhere"))
		if err := call.Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), "the request that made it") || errors.Is(err, mcptask.ErrCancelled) {
			t.Error(err)
		}
		wantNumber(t, call, 1)
		if n := len(s.of("notifications/cancelled")); n != 0 || s.of("tasks/get")[0].named() != `"elsewhere"` {
			t.Errorf("%d cancellations, %s", n, s.of("tasks/get")[0].params)
		}
	})
}

// tokenFor returns the token of a call that became the task of this ID in another process.
func tokenFor(t *testing.T, taskID string) mcptask.Token {
	t.Helper()
	call, err := mcptask.Start[number](t.Context(), elsewhere{taskID: taskID}, "tool", number{})
	if err != nil {
		t.Fatal(err)
	}
	token, _ := call.Token()
	return token
}

// elsewhere is a connection of another process.
type elsewhere struct {
	mcptask.Conn
	taskID string
}

func (e elsewhere) CallTool(context.Context, mcptask.ToolCall) (mcptask.Snapshot, error) {
	return mcptask.Snapshot{TaskID: e.taskID, Status: mcptask.StatusWorking, TTL: -1}, nil
}

// TestProposedLeaves: a caller that leaves before there is a task cancels the call, even if it closes the connection
// right afterwards. With a key, the call goes on, because the caller may come back. Closing the connection alone
// cancels nothing.
func TestProposedLeaves(t *testing.T) {
	for name, tc := range map[string]struct {
		options   []mcptask.CallOption
		announced bool
		cancelled int
	}{
		"at once":  {nil, false, 1},
		"with key": {[]mcptask.CallOption{mcptask.IdempotencyKey("0123456789abcdef")}, false, 0},
		"a task":   {nil, true, 0},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			for way, dial := range map[string]func(*scripted, gosdk.ClientOptions) (mcptask.Conn, error){"HTTP": (*scripted).dial, "pipe": (*scripted).dialPipe} {
				over := make(chan struct{})
				s := scriptProposal(t, func(c call) reply {
					switch {
					case c.method != "tools/call":
						return stands(c, "working")
					case tc.announced:
						return held(c, over, result("%s", output(1)))
					}
					return reply{stream: func(func(string)) {
						select {
						case <-over:
						case <-c.ctx.Done():
						}
					}}
				})
				conn, err := dial(s, gosdk.ClientOptions{})
				if err != nil {
					t.Fatal(err)
				}
				ctx, leave := context.WithTimeout(t.Context(), time.Second)
				_, err = mcptask.Start[number](ctx, conn, "tool", number{}, tc.options...)
				if tc.announced != (err == nil) || err != nil && !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				if err := conn.Close(); err != nil {
					t.Error(err)
				}
				leave()
				synctest.Wait()
				sent := s.of("notifications/cancelled")
				if len(sent) != tc.cancelled {
					t.Errorf("%s: %d cancellations", way, len(sent))
				}
				for _, c := range sent {
					if c.member("requestId") != string(s.of("tools/call")[0].id) {
						t.Errorf("%s: %s", way, c.params)
					}
				}
				close(over)
				s.work.Wait()
			}
		}))
	}
}

// TestProposedCut: if the stream of a call is cut, the client finds the task and does not repeat the call. If it finds
// no task, it reports that the tool may have been called.
func TestProposedCut(t *testing.T) {
	for name, tc := range map[string]struct {
		announced bool
		refused   int // the HTTP status that the call is refused with
		lost      int // polls that find no task
		failing   int // polls that fail on the way
		want      string
	}{
		"after the announcement": {announced: true},
		"before it":              {},
		"before its header":      {refused: http.StatusGatewayTimeout},
		"refused, and no task":   {refused: http.StatusGatewayTimeout, lost: 1, want: "HTTP status 504"},
		"and hard to reach":      {failing: 3},
		"and no task":            {lost: 1, want: "may have been called"},
		"and out of reach":       {failing: 100, want: "may have been called"},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := scriptProposal(t, func(c call) reply {
				switch {
				case c.method == "tools/call" && tc.refused != 0:
					return reply{status: tc.refused, text: "no"}
				case c.method == "tools/call":
					return reply{stream: func(send func(string)) {
						if tc.announced {
							send(announcement(c))
						}
						time.Sleep(100 * time.Millisecond)
					}}
				case c.method != "tasks/get":
					return reply{}
				case c.n <= tc.failing:
					return reply{status: http.StatusBadGateway, text: "no"}
				case c.n <= tc.lost:
					return refusal(wiretest.InvalidParams, "")
				case c.n < 4:
					return stands(c, "working")
				}
				return reply{}
			})
			call, err := mcptask.Start[number](t.Context(), s.connect(gosdk.ClientOptions{}), "tool", number{})
			if tc.want != "" {
				if err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Error(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if tc.failing == 0 { // the client still knows the request
				cancel(t, call)
				if sent := s.of("notifications/cancelled"); len(sent) != 1 || sent[0].member("requestId") != string(s.of("tools/call")[0].id) {
					t.Errorf("%v", sent)
				}
			}
			wantNumber(t, call, 1)
			if n := len(s.of("tools/call")); n != 1 {
				t.Errorf("%d calls", n)
			}
		}))
	}
}

// TestProposedSessionLost: a task outlives the session of its call. Its call can no longer be cancelled.
func TestProposedSessionLost(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cut := make(chan struct{})
		s := scriptProposal(t, func(c call) reply {
			switch {
			case c.method == "tools/call":
				return held(c, cut, reply{})
			case c.method == "tasks/get" && c.n == 2:
				return reply{status: http.StatusNotFound, text: "no session"}
			case c.method == "tasks/get" && c.n < 8:
				return stands(c, "working")
			}
			return reply{}
		})
		s.on("initialize", func(c call) reply {
			r := s.answer(c)
			r.header = map[string]string{"Mcp-Session-Id": fmt.Sprint("s", c.n)}
			return r
		})
		call := start(t, s.connect(gosdk.ClientOptions{}))
		time.AfterFunc(1500*time.Millisecond, func() { close(cut) })
		refused := false
		time.AfterFunc(5*time.Second, func() {
			refused = true
			if err := call.Cancel(t.Context()); err == nil || !strings.Contains(err.Error(), "the request that made it") {
				t.Error(err)
			}
		})
		wantNumber(t, call, 1)
		if sessions := len(s.of("initialize")); sessions != 2 || !refused {
			t.Errorf("%d sessions, refused: %v", sessions, refused)
		}
	})
}

// TestProposedEnds: the end of a server process ends every call.
func TestProposedEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := scriptProposal(t, func(c call) reply {
			if c.member("arguments", "n") == "2" {
				return reply{stream: func(func(string)) { <-c.ctx.Done() }}
			}
			return reply{}
		})
		wire, end := s.pipes()
		conn, err := gosdk.ConnectOver(t.Context(), wire, gosdk.ClientOptions{Revision: s.revision})
		if err != nil {
			t.Fatal(err)
		}
		call := start(t, conn)
		time.AfterFunc(time.Second, end)
		if _, err := mcptask.Start[number](t.Context(), conn, "tool", number{2}); !errors.Is(err, mcptask.ErrDisconnected) {
			t.Error(err)
		}
		wantEnd(t, call, mcptask.ErrDisconnected)
		if err := call.Cancel(t.Context()); !errors.Is(err, mcptask.ErrDisconnected) {
			t.Error(err)
		}
		_ = conn.Close() // its pipes are closed
		s.work.Wait()
	})
}

// TestProposedQuestions: a task's questions come on the open call. The answer names the task under the key that the
// question used. The client ignores that a question asks to be a task itself.
func TestProposedQuestions(t *testing.T) {
	rules.Covers(t, "A-04", "A-10", "A-38")
	eachWay(t, func(t *testing.T, connect connector) {
		var asked atomic.Int32
		answered := make(chan struct{}, 9)
		s := scriptProposal(t, func(c call) reply {
			if c.method != "tools/call" {
				return stands(c, "input_required", `"pollFrequency":60000`)
			}
			r := result("%s", output(1))
			r.stream = func(send func(string)) {
				send(announcement(c))
				for i, meta := range []string{
					fmt.Sprintf(`{%q:{"taskId":%s}}`, relatedProposed, c.named()),
					fmt.Sprintf(`{%q:{"taskId":%s},%q:{"taskId":"q","keepAlive":5}}`, relatedProposed, c.named(), askedProposed),
					fmt.Sprintf(`{%q:{"taskId":%s}}`, spec.MetaRelatedTask, c.named()),
					`{"other":1}`,
				} {
					send(fmt.Sprintf(`{"jsonrpc":"2.0","id":"q%d","method":"elicitation/create","params":{"mode":"form","message":"hi?","requestedSchema":%s,"_meta":%s}}`, i, wiretest.NoteSpec.Schema, meta))
					<-answered
				}
			}
			return r
		})
		s.on("", func(call) reply { return reply{status: http.StatusAccepted} }) // of a response
		s.heard = func(body []byte) {
			var m struct {
				ID     string
				Result struct {
					Action string
					Meta   map[string]struct{ TaskID string } `json:"_meta"`
				}
			}
			if json.Unmarshal(body, &m) != nil || !strings.HasPrefix(m.ID, "q") {
				return
			}
			id := strings.Trim(s.of("tools/call")[0].named(), `"`)
			want := map[string]string{"q0": relatedProposed, "q1": relatedProposed, "q2": spec.MetaRelatedTask}[m.ID]
			if m.Result.Action != "accept" || len(m.Result.Meta) > 1 || want != "" && m.Result.Meta[want].TaskID != id || want == "" && len(m.Result.Meta) != 0 {
				t.Errorf("answered %s", body)
			}
			answered <- struct{}{}
		}
		var tasks []string
		call := start(t, connect(s, gosdk.ClientOptions{Answer: mcptask.Answer(wiretest.NoteSpec, func(_ context.Context, q mcptask.Question) (wiretest.NoteInput, error) {
			asked.Add(1)
			tasks = append(tasks, q.TaskID) // one question at a time
			return wiretest.NoteInput{Note: "yes"}, nil
		})}))
		if out, err := call.Wait(t.Context()); err != nil || out.N != 1 || asked.Load() != 4 {
			t.Errorf("%+v, %v, asked %d times", out, err, asked.Load())
		}
		id := strings.Trim(s.of("tools/call")[0].named(), `"`)
		if got := fmt.Sprint(tasks); got != fmt.Sprint([]string{id, id, id, ""}) {
			t.Errorf("asked for %s", got)
		}
		for _, c := range s.of("initialize") {
			if strings.Contains(c.member("capabilities"), `"tasks":`) {
				t.Errorf("declared %s", c.member("capabilities"))
			}
		}
		if n := len(s.of("notifications/tasks/created")); n != 0 {
			t.Errorf("%d announcements of the client's", n)
		}
	})
}
