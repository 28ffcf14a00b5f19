package gosdk_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestProposedIDs: no two calls have the same ID, not even many at once on one connection. Each call gets its own
// answer, in whatever order the answers come.
func TestProposedIDs(t *testing.T) {
	rules.Covers(t, "A-12", "A-13", "A-14")
	eachWay(t, func(t *testing.T, connect connector) {
		s := scriptProposal(t, func(c call) reply {
			n := 0
			if err := json.Unmarshal([]byte(c.member("arguments", "n")), &n); err != nil {
				return stands(c, "working")
			}
			ended := make(chan struct{})
			time.AfterFunc(time.Duration(60-n)*time.Second, func() { close(ended) })
			return held(c, ended, result("%s", output(n)))
		})
		conn := connect(s, gosdk.ClientOptions{})
		var running sync.WaitGroup
		for n := range 50 {
			running.Go(func() {
				if out, err := mcptask.Run[number](t.Context(), conn, "tool", number{n}); err != nil || out.N != n {
					t.Errorf("%d: %+v, %v", n, out, err)
				}
			})
		}
		running.Wait()
		var ids []string
		for _, c := range s.of("tools/call") {
			ids = append(ids, c.named())
		}
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != 50 {
			t.Errorf("%d IDs", n)
		}
	})
}

// TestProposedKeys: the same key with the same arguments gives the same ID in every process. While the first call is open,
// the second one joins it. If the server refuses a later call as a duplicate, the client resumes the first one's task.
func TestProposedKeys(t *testing.T) {
	rules.Covers(t, "A-07")
	const key = "0123456789abcdef"
	eachWay(t, func(t *testing.T, connect connector) {
		var ids []string
		for range 2 { // two processes
			known := map[string]bool{}
			ended := make(chan struct{})
			s := scriptProposal(t, func(c call) reply {
				switch {
				case c.method == "tools/call" && known[c.named()]:
					return refusal(wiretest.InvalidParams, "")
				case c.method == "tools/call" && c.member("arguments", "n") == "3":
					return reply{err: `{"code":-32602,"message":"n must not be 3"}`}
				case c.method == "tools/call":
					known[c.named()] = true
					return held(c, ended, result("%s", output(1)))
				case c.method == "tasks/result":
					return reply{}
				case !known[c.named()]:
					return refusal(wiretest.InvalidParams, "")
				case c.n < 5:
					return stands(c, "working")
				}
				return reply{}
			})
			conn := connect(s, gosdk.ClientOptions{})
			first := start(t, conn, mcptask.IdempotencyKey(key))
			second := start(t, conn, mcptask.IdempotencyKey(key))
			a, _ := first.Token()
			if b, ok := second.Token(); !ok || a != b {
				t.Errorf("the tokens %s and %s", a, b)
			}
			if n := len(s.of("tools/call")); n != 1 {
				t.Errorf("%d calls", n)
			}
			wantNumber(t, second, 1)
			close(ended)
			wantNumber(t, first, 1)
			third := start(t, conn, mcptask.IdempotencyKey(key)) // the server refuses it
			if c, ok := third.Token(); !ok || a != c {
				t.Errorf("the tokens %s and %s", a, c)
			}
			wantNumber(t, third, 1)
			_, err := mcptask.Start[number](t.Context(), conn, "tool", number{3}, mcptask.IdempotencyKey(key))
			var wire *mcptask.Error
			if !errors.As(err, &wire) || wire.Message != "n must not be 3" { // not taken for a duplicate
				t.Error(err)
			}
			_ = start(t, conn, mcptask.IdempotencyKey(key+"x"))
			calls := s.of("tools/call")
			for i, want := range []string{key, key, key, key + "x"} {
				if got := calls[i].member("_meta", spec.MetaIdempotencyKey); got != fmt.Sprintf("%q", want) {
					t.Errorf("call %d has the key %s", i, got)
				}
			}
			if calls[0].named() != calls[1].named() || strings.Contains(calls[0].named(), key) {
				t.Errorf("the IDs %s and %s", calls[0].named(), calls[1].named())
			}
			ids = append(ids, calls[0].named(), calls[2].named(), calls[3].named())
		}
		slices.Sort(ids)
		if n := len(slices.Compact(ids)); n != 3 {
			t.Errorf("%d IDs of three calls in two processes", n)
		}
	})
}

// TestProposedDelete: with DeleteTasks, the client deletes a task exactly once, after it has read the end, whether the
// end came from a poll or as the answer. A refused deletion does no harm.
func TestProposedDelete(t *testing.T) {
	rules.Covers(t, "A-38", "A-56")
	for name, tc := range map[string]struct {
		answered time.Duration // 0 is never
		state    string
		deleted  reply
		want     string
	}{
		"polled":           {0, "completed", result(`{}`), ""},
		"failed":           {0, "failed", result(`{}`), "does not say why"},
		"answered":         {2500 * time.Millisecond, "working", result(`{}`), ""},
		"answered at once": {1, "working", result(`{}`), ""},
		"refused":          {0, "completed", refusal(-32600, ""), ""},
		"not supported":    {0, "completed", refusal(wiretest.MethodNotFound, ""), ""},
		"no answer": {0, "completed", reply{stream: func(func(string)) {
			time.Sleep(time.Minute)
		}}, ""},
	} {
		t.Run(name, overEachWay(func(t *testing.T, connect connector) {
			for _, deletes := range []bool{true, false} {
				s := scriptProposal(t, func(c call) reply {
					switch c.method {
					case "tools/call":
						ended := make(chan struct{})
						if tc.answered > 0 {
							time.AfterFunc(tc.answered, func() { close(ended) })
						}
						return held(c, ended, result("%s", output(1)))
					case "tasks/get":
						if c.n < 4 {
							return stands(c, "working")
						}
						return stands(c, tc.state)
					case "tasks/delete":
						return tc.deleted
					}
					return reply{}
				})
				conn := connect(s, gosdk.ClientOptions{DeleteTasks: deletes})
				for range 2 {
					call := start(t, conn)
					time.Sleep(time.Millisecond)
					out, err := call.Wait(t.Context())
					if (tc.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), tc.want) || err == nil && out.N != 1 {
						t.Errorf("%+v, %v", out, err)
					}
				}
				calls, sent := s.of("tools/call"), s.of("tasks/delete")
				if want := map[bool]int{true: 2}[deletes]; len(sent) != want {
					t.Fatalf("%d deletions", len(sent))
				}
				for i, c := range sent {
					if c.named() != calls[i].named() {
						t.Errorf("deleted %s, not %s", c.named(), calls[i].named())
					}
				}
				if gets := s.of("tasks/get"); len(sent) > 0 && len(gets) > 0 && slices.ContainsFunc(gets, func(c call) bool { return c.named() == sent[0].named() && c.at.After(sent[0].at) }) {
					t.Error("polled after the deletion")
				}
			}
		}))
	}
}

// TestProposedLog: the log names each task by its ID.
func TestProposedLog(t *testing.T) {
	rules.Covers(t, "A-76")
	bubble.Test(t, func(t *testing.T) {
		var log wiretest.SafeBuffer
		ended := make(chan struct{})
		s := scriptProposal(t, func(c call) reply {
			if c.method == "tools/call" {
				return held(c, ended, result("%s", output(1)))
			}
			return stands(c, "working")
		})
		conn := s.connect(gosdk.ClientOptions{DeleteTasks: true, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		call := start(t, conn)
		cancel(t, call)
		time.AfterFunc(5*time.Second, func() { close(ended) })
		if _, err := call.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		id := strings.Trim(s.of("tools/call")[0].named(), `"`)
		for _, event := range []string{`"task created"`, `"task cancelled"`, `"task settled"`, `"task deleted"`} {
			if n := strings.Count(log.String(), "msg="+event+" task="+id); n != 1 {
				t.Errorf("%s is logged %d times, want once:\n%s", event, n, log.String())
			}
		}
	})
}

// TestProposedHostile: the client ignores announcements of unknown tasks and malformed announcements.
func TestProposedHostile(t *testing.T) {
	rules.Covers(t, "A-11")
	eachWay(t, func(t *testing.T, connect connector) {
		ended := make(chan struct{})
		s := scriptProposal(t, func(c call) reply {
			switch c.method {
			case "tools/call":
				return reply{stream: func(send func(string)) {
					for _, params := range []string{
						`null`, `[]`, `5`, `"x"`, `{}`, `{"_meta":null}`, `{"_meta":5}`, `{"taskId":"T"}`, `{"_meta":{"taskId":"T"}}`,
						`{"_meta":{"modelcontextprotocol.io/related-task":null}}`, `{"_meta":{"modelcontextprotocol.io/related-task":"T"}}`,
						`{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":5}}}`, `{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":""}}}`,
						`{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":"somebody else's"}}}`,
						fmt.Sprintf(`{"_meta":{"modelcontextprotocol.io/related-task":{"taskId":%q}}}`, strings.Repeat("x", 100_000)),
					} {
						send(`{"jsonrpc":"2.0","method":"notifications/tasks/created","params":` + params + `}`)
					}
					send(`{"jsonrpc":"2.0","method":"notifications/tasks/created"}`)
					send(`{"jsonrpc":"2.0","id":"r","method":"notifications/tasks/created","params":{}}`) // a request, which the SDK refuses
					time.Sleep(3 * time.Second)
					for range 3 {
						send(announcement(c))
					}
					<-ended
				}, result: output(1)}
			case "tasks/get":
				return result(`{"taskId":"another","status":"completed","keepAlive":null}`)
			}
			return reply{status: http.StatusAccepted}
		})
		began := time.Now()
		call := start(t, connect(s, gosdk.ClientOptions{}))
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("announced after %v", took)
		}
		if _, err := call.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "another") {
			t.Error(err)
		}
		close(ended)
	})
}

// TestProposedOnlyWhereNamed: in every other revision, the client neither sends the proposal's members nor reads its
// announcements.
func TestProposedOnlyWhereNamed(t *testing.T) {
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			s := newScript(t, revision, "tools/call", func(*scripted, call) reply {
				return reply{result: output(1), stream: func(send func(string)) {
					send(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{"_meta":{%q:{"taskId":"T"}}}}`, relatedProposed))
					time.Sleep(time.Minute)
				}}
			})
			began := time.Now()
			call := start(t, s.connect(gosdk.ClientOptions{DeleteTasks: true}))
			if _, ok := call.Token(); ok || time.Since(began) != time.Minute {
				t.Errorf("an announcement counted, after %v", time.Since(began))
			}
			if c := s.of("tools/call")[0]; strings.Contains(string(c.params), "modelcontextprotocol.io/task") || len(s.of("tasks/delete")) != 0 {
				t.Errorf("%s", c.params)
			}
		})
	})
}
