package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestProposedPolls: the client names the task, waits for its announcement, polls as often as the server wishes and
// reads the result. Then it hangs up the open call and sends nothing more.
func TestProposedPolls(t *testing.T) {
	rules.Covers(t, "A-02", "A-03", "A-07", "A-11", "A-12", "A-13", "A-32", "A-38")
	eachWay(t, func(t *testing.T, connect connector) {
		frequencies := []int{3000, 10000, 200, 45000}
		announced := make(chan struct{})
		s := scriptProposal(t, func(c call) reply {
			switch c.method {
			case "tools/call":
				r := held(c, nil, reply{})
				stream := r.stream
				r.stream = func(send func(string)) {
					time.Sleep(3 * time.Second)
					close(announced)
					stream(send)
				}
				return r
			case "tasks/get":
				if c.n > len(frequencies) {
					return reply{}
				}
				return stands(c, []string{"submitted", "working"}[min(c.n-1, 1)], fmt.Sprintf(`"pollFrequency":%d`, frequencies[c.n-1]))
			case "tasks/result":
				return result(`{"content":[],"structuredContent":{"n":7},"_meta":{%q:{"taskId":%s}}}`, relatedProposed, c.named())
			}
			return reply{}
		})
		conn := connect(s, gosdk.ClientOptions{})
		call := start(t, conn, mcptask.TTL(time.Minute))
		<-announced // Start returns because of the announcement
		for snapshot, err := range call.Updates(t.Context()) {
			if err != nil || !snapshot.Done() && snapshot.Status != mcptask.StatusWorking {
				t.Errorf("%+v, %v", snapshot, err)
			}
		}
		wantNumber(t, call, 7)
		calls := s.of("tools/call")
		if len(calls) != 1 || calls[0].member("_meta", askedProposed, "keepAlive") != "60000" || len(calls[0].named()) < 22 {
			t.Errorf("%d calls, the first %s", len(calls), calls[0].params)
		}
		polls := s.of("tasks/get")
		for i, gap := range gaps(polls) {
			interval := time.Duration(frequencies[i]) * time.Millisecond
			if gap < interval || gap > interval+interval/10+1 {
				t.Errorf("poll %d came after %v, the server said %v", i+2, gap, interval)
			}
		}
		for _, c := range append(polls, s.of("tasks/result")...) {
			if c.named() != calls[0].named() || c.at.Sub(calls[0].at) < 3*time.Second {
				t.Errorf("%s of %s after %v", c.method, c.named(), c.at.Sub(calls[0].at))
			}
		}
		synctest.Wait()
		if calls[0].header != nil && calls[0].ctx.Err() == nil {
			t.Error("the call is still open")
		}
		if n := len(s.of("notifications/cancelled")); n != 0 || len(polls) != len(frequencies)+1 || len(s.of("tasks/delete")) != 0 {
			t.Errorf("%d cancellations, %d polls", n, len(polls))
		}
	})
}

// TestProposedAnswer: if the answer to the call comes first, it is the task's outcome: a result at once and without
// another poll, an error at the next poll.
func TestProposedAnswer(t *testing.T) {
	rules.Covers(t, "A-06", "A-07")
	for name, tc := range map[string]struct {
		answer reply
		after  time.Duration
		check  func(out number, err error) bool
	}{
		"a result":        {result("%s", output(3)), 40500 * time.Millisecond, func(out number, err error) bool { return out.N == 3 && err == nil }},
		"before any poll": {result("%s", output(3)), 10 * time.Millisecond, func(out number, err error) bool { return out.N == 3 && err == nil }},
		"a tool's error": {result(`{"content":[{"type":"text","text":"no"}],"isError":true}`), 9 * time.Second, func(_ number, err error) bool {
			var tool *mcptask.ToolError
			return errors.As(err, &tool) && tool.Result.Text() == "no"
		}},
		"an error": {refusal(-32042, `{"a":1}`), 9 * time.Second, func(_ number, err error) bool {
			var wire *mcptask.Error
			return errors.As(err, &wire) && wire.Code == -32042 && string(wire.Data) == `{"a":1}`
		}},
	} {
		t.Run(name, overEachWay(func(t *testing.T, connect connector) {
			ended := make(chan struct{})
			s := scriptProposal(t, func(c call) reply {
				switch {
				case c.method == "tools/call":
					return held(c, ended, tc.answer)
				case c.method != "tasks/get":
					return reply{}
				}
				select {
				case <-ended:
					return stands(c, "failed", `"error":"less than the answer"`)
				default:
					return stands(c, "working", `"pollFrequency":4000`)
				}
			})
			conn := connect(s, gosdk.ClientOptions{})
			began := time.Now()
			time.AfterFunc(tc.after, func() { close(ended) })
			call := start(t, conn)
			wiretest.RunTogether(3, func(int) {
				if out, err := call.Wait(t.Context()); !tc.check(out, err) {
					t.Errorf("%+v, %v", out, err)
				}
				took, late := time.Since(began), time.Duration(0)
				if tc.answer.err != "" {
					late = 4400 * time.Millisecond // a poll
				}
				if (took < tc.after || took > tc.after+late) && tc.after > time.Second {
					t.Errorf("known after %v", took)
				}
			})
			if n := len(s.of("tasks/result")) + len(s.of("notifications/cancelled")); n != 0 {
				t.Errorf("%d more messages", n)
			}
		}))
	}
}

// TestProposedUnread: an answer that comes while no caller waits is kept for the next Wait.
func TestProposedUnread(t *testing.T) {
	rules.Covers(t, "A-07")
	eachWay(t, func(t *testing.T, connect connector) {
		ended := make(chan struct{})
		s := scriptProposal(t, func(c call) reply {
			if c.method == "tools/call" {
				return held(c, ended, result("%s", output(3)))
			}
			return refusal(wiretest.InvalidParams, "") // the server deleted it at once
		})
		call := start(t, connect(s, gosdk.ClientOptions{}))
		close(ended)
		time.Sleep(time.Hour)
		wantNumber(t, call, 3)
		token, ok := call.Token()
		if !ok {
			t.Fatal("no token")
		}
		if n := len(s.of("tasks/get")); n != 0 {
			t.Errorf("%d polls", n)
		}
		other := scriptProposal(t, gone)
		again := resume(t, connect(other, gosdk.ClientOptions{}), token)
		if _, err := again.Wait(t.Context()); !errors.Is(err, mcptask.ErrNotFound) {
			t.Error(err)
		}
	})
}

// TestProposedErrorThatIsNoEnd: a server that stops refuses its open calls. Their tasks go on.
func TestProposedErrorThatIsNoEnd(t *testing.T) {
	for name, tc := range map[string]struct {
		after time.Duration // the refusal comes then
		calls int
	}{
		"later": {2500 * time.Millisecond, 1},
		// The announcement and the refusal come together.
		"at once": {0, 30},
	} {
		t.Run(name, overEachWay(func(t *testing.T, connect connector) {
			stopping := make(chan struct{})
			s := scriptProposal(t, func(c call) reply {
				switch {
				case c.method == "tools/call":
					return held(c, stopping, refusal(wiretest.InternalError, ""))
				case c.method == "tasks/get" && c.n%9 != 0:
					return stands(c, "working", `"pollFrequency":1000`)
				}
				return reply{}
			})
			conn := connect(s, gosdk.ClientOptions{})
			if tc.after == 0 {
				close(stopping)
			} else {
				time.AfterFunc(tc.after, func() { close(stopping) })
			}
			for range tc.calls {
				wantNumber(t, start(t, conn), 1)
			}
		}))
	}
}

// TestProposedIgnored: a server without tasks answers as usual. The client does not poll it if the answer takes no
// longer than usual.
func TestProposedIgnored(t *testing.T) {
	rules.Covers(t, "A-11")
	eachWay(t, func(t *testing.T, connect connector) {
		s := scriptProposal(t, func(c call) reply {
			if c.method == "tools/call" {
				time.Sleep(4 * time.Second)
				if c.n == 3 {
					return refusal(wiretest.InvalidParams, "")
				}
				return result("%s", output(1))
			}
			return refusal(wiretest.MethodNotFound, "")
		})
		conn := connect(s, gosdk.ClientOptions{})
		for _, options := range [][]mcptask.CallOption{nil, {mcptask.Plain()}} {
			call := start(t, conn, options...)
			if _, ok := call.Token(); ok {
				t.Error("there is a token without a task")
			}
			wantNumber(t, call, 1)
		}
		if _, err := mcptask.Run[number](t.Context(), conn, "tool", number{}); !isError(wiretest.InvalidParams)(err) {
			t.Error(err)
		}
		calls := s.of("tools/call")
		if calls[0].named() == "" || calls[1].member("_meta", askedProposed) != "" {
			t.Errorf("%s, plainly %s", calls[0].params, calls[1].params)
		}
		if n := len(s.of("tasks/get")); n != 0 {
			t.Errorf("%d polls", n)
		}
	})
}

// TestProposedSilence: if neither the answer nor the announcement comes, the client looks for the task, less and less
// often. If the server has no tasks at all, it looks once.
func TestProposedSilence(t *testing.T) {
	rules.Covers(t, "A-11")
	eachWay(t, func(t *testing.T, connect connector) {
		for name, tc := range map[string]struct {
			refused int
			polls   int
		}{"a task": {wiretest.InvalidParams, 5}, "no tasks": {wiretest.MethodNotFound, 1}} {
			silent := make(chan struct{})
			s := scriptProposal(t, func(c call) reply {
				switch {
				case c.method == "tools/call":
					select {
					case <-time.After(2 * time.Hour):
					case <-silent:
					}
					return result("%s", output(1))
				case c.method == "tasks/get" && c.n < 5:
					return refusal(tc.refused, "")
				}
				return reply{}
			})
			wantNumber(t, start(t, connect(s, gosdk.ClientOptions{})), 1)
			polls := s.of("tasks/get")
			if len(polls) != tc.polls {
				t.Errorf("%s: %d polls", name, len(polls))
			}
			last := polls[0].at.Sub(s.of("tools/call")[0].at)
			if last != 5*time.Second {
				t.Errorf("%s: the first after %v", name, last)
			}
			for _, gap := range gaps(polls) {
				if gap <= last {
					t.Errorf("%s: %v, after %v", name, gap, last)
				}
				last = gap
			}
			close(silent)
		}
	})
}

// TestProposedStates checks the outcome that a waiting caller gets for each state of the proposal.
func TestProposedStates(t *testing.T) {
	for status, tc := range map[string]struct {
		more, result reply
		check        func(s mcptask.Snapshot, err error) bool
	}{
		"failed": {result(`"error":"out of luck"`), reply{}, func(s mcptask.Snapshot, err error) bool {
			return err == nil && s.Status == mcptask.StatusFailed && s.Error.Code == wiretest.InternalError && s.Error.Message == "out of luck"
		}},
		"failed ": {result(`"error":{"code":5}`), reply{}, func(s mcptask.Snapshot, err error) bool {
			return err == nil && s.Status == mcptask.StatusFailed && s.Error.Code == wiretest.InternalError && strings.Contains(s.Error.Message, "why")
		}},
		"unknown": {reply{}, reply{}, func(s mcptask.Snapshot, err error) bool {
			return err == nil && s.Status == mcptask.StatusFailed && s.Error.Reason() == "unknown" && strings.Contains(s.Error.Message, "does not know")
		}},
		"cancelled": {reply{}, reply{}, func(s mcptask.Snapshot, err error) bool {
			return err == nil && s.Status == mcptask.StatusCancelled && s.Error == nil && s.Result == nil
		}},
		"completed": {reply{}, result(`{"content":[],"isError":true}`), func(s mcptask.Snapshot, err error) bool {
			return err == nil && s.Status == mcptask.StatusCompleted && s.Result.IsError
		}},
		"completed ": {reply{}, refusal(wiretest.InvalidParams, ""), func(_ mcptask.Snapshot, err error) bool {
			return errors.Is(err, mcptask.ErrNotFound) // deleted before the result was read
		}},
		"submitted ":      {result(`"pollFrequency":"often"`), reply{}, func(_ mcptask.Snapshot, err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"input_required ": {result(`"pollFrequency":-1`), reply{}, func(_ mcptask.Snapshot, err error) bool { return errors.Is(err, context.DeadlineExceeded) }},
		"paused": {reply{}, reply{}, func(_ mcptask.Snapshot, err error) bool {
			return err != nil && strings.Contains(err.Error(), `"paused"`)
		}},
	} {
		t.Run(strings.ReplaceAll(status, " ", "_"), inBubble(func(t *testing.T) {
			s := scriptProposal(t, func(c call) reply {
				switch c.method {
				case "tools/call":
					return reply{}
				case "tasks/get":
					if tc.more.result == "" {
						return stands(c, strings.TrimSpace(status))
					}
					return stands(c, strings.TrimSpace(status), tc.more.result)
				}
				return tc.result
			})
			call := start(t, s.connect(gosdk.ClientOptions{}))
			ctx := within(t, 10*time.Minute)
			var last mcptask.Snapshot
			var err error
			for last, err = range call.Updates(ctx) {
				if !slices.Contains([]mcptask.Status{mcptask.StatusWorking, mcptask.StatusInputRequired, mcptask.StatusCompleted, mcptask.StatusFailed, mcptask.StatusCancelled}, last.Status) {
					t.Errorf("the status %q", last.Status)
				}
			}
			if !tc.check(last, err) {
				t.Errorf("%+v, %v", last, err)
			}
		}))
	}
}

// scriptProposal returns a script that speaks the proposal SEP-1686. It checks whatever the client sends against the
// proposal's schema.
func scriptProposal(t testing.TB, answer func(c call) reply) *scripted {
	t.Helper()
	s := &scripted{t: t, revision: mcptask.RevisionSEP1686}
	s.answer = func(c call) reply {
		switch c.method {
		case "initialize":
			return result(`{"protocolVersion":%q,"capabilities":{"tools":{},"tasks":{"requests":{"tools":{"call":true}}}},"serverInfo":{"name":"script","version":"1"}}`, wiretest.LegacyRevision)
		case "HTTP GET", "HTTP DELETE":
			return reply{status: http.StatusMethodNotAllowed}
		}
		return answer(c)
	}
	t.Cleanup(func() {
		checker, err := wirecheck.New()
		if err != nil {
			t.Fatal(err)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		made := map[string]bool{}
		for _, c := range s.calls {
			if c.method == "tools/call" {
				made[string(c.id)] = true
			}
			if c.method == "notifications/cancelled" && !made[c.member("requestId")] {
				continue // cancels a request about a task, not the task's own
			}
			definition, data := proposedDefinitions[c.method], []byte(c.params)
			if definition == "" {
				continue
			}
			if !strings.HasSuffix(definition, "Params") {
				if data, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": c.method, "params": c.params}); err != nil {
					t.Fatal(err)
				}
			}
			if err := checker.Fits(s.revision, definition, data); err != nil {
				t.Errorf("the client sent %s: %v", data, err)
			}
			if id := c.member("_meta", relatedProposed, "taskId"); c.method != "tools/call" && (id == "" || strings.HasPrefix(c.method, "tasks/") && id != c.member("taskId")) {
				t.Errorf("%s is related to %s: %s", c.method, id, c.params)
			}
		}
	})
	return s
}

var proposedDefinitions = map[string]string{
	"tools/call": "TaskAugmentedRequestParams", "tasks/get": "GetTaskRequest", "tasks/result": "GetTaskPayloadRequest",
	"tasks/list": "ListTasksRequest", "tasks/delete": "DeleteTaskRequest", "notifications/cancelled": "CancelledNotification",
}

const (
	relatedProposed = "modelcontextprotocol.io/related-task"
	askedProposed   = "modelcontextprotocol.io/task"
)

// named returns the ID of the task that a message is about, as JSON, or "" if it names none.
func (c call) named() string {
	if id := c.member("taskId"); id != "" {
		return id
	}
	return c.member("_meta", askedProposed, "taskId")
}

// announcement returns the notification that announces the task of a call.
func announcement(c call) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/tasks/created","params":{"_meta":{%q:{"taskId":%s}}}}`, relatedProposed, c.named())
}

// held announces the task of a call, and leaves the call open until a channel is closed or the client is gone. Then it
// answers with last.
func held(c call, until <-chan struct{}, last reply) reply {
	last.stream = func(send func(string)) {
		send(announcement(c))
		select {
		case <-until:
		case <-c.ctx.Done():
		}
	}
	return last
}

// stands answers a poll in the proposal's form.
func stands(c call, status string, more ...string) reply {
	members := append([]string{fmt.Sprintf(`"taskId":%s,"status":%q,"keepAlive":null,"_meta":{%q:{"taskId":%[1]s}}`, c.named(), status, relatedProposed)}, more...)
	return result(`{%s}`, strings.Join(members, ","))
}

// gone answers every request like a server that does not know the task.
func gone(call) reply { return refusal(wiretest.InvalidParams, "") }
