package gosdk_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// guided is a script of a server of the guide's tasks that accepts any ID. It has functions for the nth poll of a task
// and for tasks/result.
func guided(t testing.TB, support string, poll func(id string, n int) reply, ended func(id string) reply) *scripted {
	s := &scripted{t: t, revision: wirecheck.Patterns}
	s.answer = func(c call) reply {
		id := strings.Trim(c.member("id"), `"`)
		switch c.method {
		case "tools/list":
			return result(`{"tools":[{"name":"tool","inputSchema":{"type":"object"}%s}]}`, support)
		case "tools/call":
			if made := c.member("_meta", "taskId"); made != "" {
				return result(`{"_meta":{"task":{%s,"ttl":90}}}`, guidedTask(strings.Trim(made, `"`), "working", 1000))
			}
			return result("%s", output(0))
		case "tasks/get":
			return poll(id, c.n)
		case "tasks/result":
			return ended(id)
		case "tasks/cancel":
			return result(`{"id":%q,"status":"cancelled"}`, id)
		}
		return reply{}
	}
	return s
}

// guidedTask is a task with the guide's members.
func guidedTask(id, status string, poll int) string {
	return fmt.Sprintf(`"id":%q,"status":%q,"createdAt":%q,"lastUpdatedAt":%q,"pollInterval":%d`, id, status, stamp(), stamp(), poll)
}

func supports(value string) string { return fmt.Sprintf(`,"execution":{"taskSupport":%q}`, value) }

// wrapped answers tasks/result for a task that returns a number.
func wrapped(id string) reply {
	return result(`{"id":%q,"status":"completed","result":%s}`, id, output(1))
}

// The client calls a tool as a task if the tool requires it, and never if the tool says nothing.
func TestPatternsClientSupport(t *testing.T) {
	rules.Covers(t, "D-02", "D-03", "D-04", "D-05")
	for _, test := range []struct {
		support string
		options []mcptask.CallOption
		asked   bool
	}{
		{supports("required"), nil, true},
		{supports("required"), []mcptask.CallOption{mcptask.Plain()}, true},
		{supports("optional"), nil, true},
		{supports("optional"), []mcptask.CallOption{mcptask.Plain()}, false},
		{supports("forbidden"), nil, false},
		{"", nil, false},
	} {
		t.Run(test.support, inBubble(func(t *testing.T) {
			s := guided(t, test.support, func(id string, n int) reply { return result(`{%s}`, guidedTask(id, "completed", 1000)) }, wrapped)
			call := start(t, s.connect(gosdk.ClientOptions{}), test.options...)
			out, err := call.Wait(t.Context())
			if want := map[bool]int{true: 1}[test.asked]; err != nil || out.N != want {
				t.Errorf("%+v, %v", out, err)
			}
			sent := s.of("tools/call")[0]
			made := sent.member("_meta", "taskId")
			if (made != "") != test.asked || sent.member("task") != "" {
				t.Errorf("sent %s", sent.params)
			}
			if test.asked && (len(made) < 26 || made[0] != '"') { // at least 128 random bits
				t.Errorf("the ID %s", made)
			}
		}))
	}
}

// The client makes a new ID for each call, or one from the call's key.
func TestPatternsClientIDs(t *testing.T) {
	rules.Covers(t, "D-05", "D-18")
	bubble.Test(t, func(t *testing.T) {
		s := guided(t, supports("optional"), func(id string, n int) reply { return result(`{%s}`, guidedTask(id, "completed", 1000)) }, wrapped)
		conn := s.connect(gosdk.ClientOptions{})
		key := mcptask.IdempotencyKey("a key of sixteen bytes")
		for _, options := range [][]mcptask.CallOption{nil, nil, {key}, {key}, {mcptask.IdempotencyKey("another key of the same")}} {
			start(t, conn, options...)
		}
		var ids []string
		for _, c := range s.of("tools/call") {
			ids = append(ids, c.member("_meta", "taskId"))
		}
		different := map[string]bool{}
		for _, id := range ids {
			different[id] = true
		}
		if len(different) != 4 || ids[2] != ids[3] || strings.Contains(ids[2], "key") {
			t.Errorf("%v", ids)
		}
	})
}

// The client reads, polls and cancels a task by params.id, and unwraps the result from tasks/result.
func TestPatternsClientPolls(t *testing.T) {
	rules.Covers(t, "D-10", "D-17")
	bubble.Test(t, func(t *testing.T) {
		intervals := []int{3000, 200, 45000, 1000}
		s := guided(t, supports("required"), func(id string, n int) reply {
			if n > len(intervals) {
				return result(`{%s}`, guidedTask(id, "completed", 1000))
			}
			return result(`{%s}`, guidedTask(id, "working", intervals[n-1]))
		}, wrapped)
		call := start(t, s.connect(gosdk.ClientOptions{}))
		token, ok := call.Token()
		if !ok {
			t.Fatal("no token")
		}
		wantNumber(t, call, 1)
		polls := s.of("tasks/get")
		for i, gap := range gaps(polls) {
			interval := time.Duration(intervals[i]) * time.Millisecond
			if gap < interval || gap > interval+interval/10+1 {
				t.Errorf("poll %d came after %v, the server said %v", i+2, gap, interval)
			}
		}
		made := s.of("tools/call")[0].member("_meta", "taskId")
		for _, c := range append(polls, s.of("tasks/result")...) {
			if c.member("id") != made || c.member("taskId") != "" {
				t.Errorf("%s %s", c.method, c.params)
			}
		}
		again := resume(t, s.connect(gosdk.ClientOptions{}), token)
		if out, err := again.Wait(t.Context()); err != nil || out.N != 1 {
			t.Errorf("resumed: %+v, %v", out, err)
		}
		if err := start(t, s.connect(gosdk.ClientOptions{})).Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if c := s.of("tasks/cancel"); len(c) != 1 || c[0].member("id") == "" {
			t.Errorf("%v", c)
		}
	})
}

// How tasks end, and the server's mistakes that the client accepts.
func TestPatternsClientEnds(t *testing.T) {
	for name, test := range map[string]struct {
		status, answer string // of tasks/get and tasks/result
		want           func(error) bool
	}{
		"failed": {"failed", `{"id":%q,"status":"failed","error":{"code":-32050,"message":"locked"}}`, func(err error) bool {
			var wire *mcptask.Error
			return errors.As(err, &wire) && wire.Code == -32050 && wire.Message == "locked"
		}},
		"failed without a code": {"failed", `{"id":%q,"status":"failed","error":{"message":"locked"}}`, func(err error) bool {
			var wire *mcptask.Error
			return errors.As(err, &wire) && wire.Code == mcptask.CodeInternalError
		}},
		"a tool error": {"completed", `{"id":%q,"status":"completed","result":{"isError":true,"content":[{"type":"text","text":"no"}]}}`, func(err error) bool {
			var tool *mcptask.ToolError
			return errors.As(err, &tool) && tool.Result.Text() == "no"
		}},
		"cancelled":        {"cancelled", `{"id":%q}`, func(err error) bool { return errors.Is(err, mcptask.ErrCancelled) }},
		"bare":             {"completed", `{"_meta":{"x":%q},"content":[]}`, malformed},
		"nothing":          {"completed", `{"id":%q,"status":"completed"}`, malformed},
		"no object":        {"completed", `{"id":%q,"status":"completed","result":5}`, malformed},
		"an unknown state": {"shrugging", `{"id":%q}`, func(err error) bool { return err != nil && strings.Contains(err.Error(), "shrugging") }},
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := guided(t, supports("required"), func(id string, n int) reply { return result(`{%s}`, guidedTask(id, test.status, 1000)) },
				func(id string) reply { return result(test.answer, id) })
			ctx := within(t, time.Hour)
			if out, err := start(t, s.connect(gosdk.ClientOptions{})).Wait(ctx); !test.want(err) {
				t.Errorf("%+v, %v", out, err)
			}
		}))
	}
}

func malformed(err error) bool { return err != nil && strings.Contains(err.Error(), "malformed") }

// The client reads a task's ttl in seconds.
func TestPatternsClientTTL(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := guided(t, supports("required"), func(id string, n int) reply { return result(`{%s}`, guidedTask(id, "working", 1000)) }, wrapped)
		for _, c := range []struct {
			ttl  string
			want time.Duration
		}{{`90`, 90 * time.Second}, {`0`, 0}, {`9007199254740993`, 1<<63 - 1}, {`1.5`, 2 * time.Second}, {`null`, -1}, {`-5`, -1}, {`"soon"`, -1}} {
			s.on("tools/call", func(call) reply {
				return result(`{"_meta":{"task":{%s,"ttl":%s}}}`, guidedTask("t", "working", 1000), c.ttl)
			})
			conn := s.connect(gosdk.ClientOptions{})
			got, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "tool", Arguments: []byte(`{}`)})
			if off := got.TTL - c.want; err != nil || got.TaskID != "t" || off < -time.Second || off > time.Second {
				t.Errorf("%s: %v, %v, want %v", c.ttl, got.TTL, err, c.want)
			}
		}
	})
}
