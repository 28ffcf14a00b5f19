package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

const failedOutput = `{"content":[{"type":"text","text":"it does not build"}],"isError":true}`

// TestOutcomesOfPeers: the client reads the outcome of a task the same way in whichever form the server sends it (T-24,
// T-25).
func TestOutcomesOfPeers(t *testing.T) {
	const why = `"statusMessage":"m"`
	for _, tc := range []struct {
		name, revision, status string
		more                   string // of the task
		result                 reply  // to tasks/result
		want                   func(error) bool
	}{
		{"isError as failed", wiretest.LegacyRevision, "failed", why, result(failedOutput), isToolError},
		{"isError as completed", wiretest.LegacyRevision, "completed", why, result(failedOutput), isToolError},
		{"isError in 2026", wiretest.ModernRevision, "completed", `"result":` + failedOutput, reply{}, isToolError},
		{"an error", wiretest.LegacyRevision, "failed", why, refusal(-32050, ""), isError(-32050)},
		{"an error as completed", wiretest.LegacyRevision, "completed", why, refusal(-32050, ""), isError(-32050)},
		{"an error in 2026", wiretest.ModernRevision, "failed", `"error":` + refusal(-32050, "").err, reply{}, isError(-32050)},
		{"cancelled, an error", wiretest.LegacyRevision, "cancelled", why, refusal(wiretest.InternalError, ""), is(mcptask.ErrCancelled)},
		{"cancelled, an empty success", wiretest.LegacyRevision, "cancelled", why, result(`{"content":[]}`), is(mcptask.ErrCancelled)},
		{"cancelled in 2026", wiretest.ModernRevision, "cancelled", why, reply{}, is(mcptask.ErrCancelled)},
		{"cancelled, as failed", wiretest.LegacyRevision, "failed", why, refusal(wiretest.InternalError, `{"reason":"cancelled"}`), is(mcptask.ErrCancelled)},
	} {
		t.Run(tc.name, inBubble(func(t *testing.T) {
			s := polled(t, tc.revision, func(s *scripted, _ int) reply { return s.state("t", tc.status, tc.more) })
			s.on("tasks/result", func(call) reply { return tc.result })
			call := start(t, s.connect(gosdk.ClientOptions{}))
			if _, err := call.Wait(t.Context()); !tc.want(err) {
				t.Errorf("%v", err)
			}
			updates := 0
			for snapshot, err := range call.Updates(t.Context()) { // the server's status message is readable
				if err != nil || strings.Contains(tc.more, "statusMessage") && snapshot.Message != "m" {
					t.Errorf("%+v, %v", snapshot, err)
				}
				updates++
			}
			if updates != 1 {
				t.Errorf("%d updates of an ended task, want its last state", updates)
			}
		}))
	}
}

// TestResultIsReadAgain checks that a client reads the result of a completed task again if its first tasks/result fails
// for a reason that passes.
func TestResultIsReadAgain(t *testing.T) {
	for name, passing := range map[string]reply{
		"internal": refusal(wiretest.InternalError, ""),
		"limited":  refusal(mcptask.CodeInvalidRequest, `{"limit":"polls"}`),
	} {
		t.Run(name, inBubble(func(t *testing.T) {
			s := polled(t, wiretest.LegacyRevision, func(s *scripted, _ int) reply { return s.state("t", "completed", `"statusMessage":"m"`) })
			s.on("tasks/result", func(call) reply {
				if len(s.of("tasks/result")) == 1 {
					return passing
				}
				return result(failedOutput)
			})
			if _, err := start(t, s.connect(gosdk.ClientOptions{})).Wait(t.Context()); !isToolError(err) {
				t.Errorf("%v", err)
			}
		}))
	}
}

// TestFailureSaysWhy: a poll of a failed task says why it failed, in each revision's way.
func TestFailureSaysWhy(t *testing.T) {
	rules.Covers(t, "C-88", "B-84")
	everyRevision(t, func(t *testing.T, revision string) {
		ci := pipeline.NewCIClient(mcptasktest.Connect(wirecheck.RevisionTB(t, revision), revision, mcptasktest.Options{}, wiretest.AllRevisionsCITools()))
		for branch, want := range map[string]string{"broken": "the branch does not build", "refused": "the repository is locked"} {
			call, err := ci.StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: branch})
			if err != nil {
				t.Fatal(err)
			}
			var last mcptask.Snapshot
			for snapshot, err := range call.Updates(t.Context()) {
				if last = snapshot; err != nil {
					t.Fatal(err)
				}
			}
			if last.Status == mcptask.StatusFailed && !strings.Contains(last.Message, want) || revision != wiretest.ModernRevision && last.Status != mcptask.StatusFailed {
				t.Errorf("%s is %s with %q", branch, last.Status, last.Message)
			}
		}
	})
}

func is(want error) func(error) bool { return func(err error) bool { return errors.Is(err, want) } }

func isToolError(err error) bool {
	var tool *mcptask.ToolError
	return errors.As(err, &tool) && strings.Contains(err.Error(), "it does not build")
}

func isError(code int) func(error) bool {
	return func(err error) bool {
		var wire *mcptask.Error
		return errors.As(err, &wire) && wire.Code == code
	}
}

// TestTasksOfPeers: the client accepts a task whose fields are missing or in another form.
func TestTasksOfPeers(t *testing.T) {
	for name, tc := range map[string]struct {
		task      string
		ttl, poll time.Duration
	}{
		"as it should be":    {`"createdAt":"2026-01-02T03:04:05Z","lastUpdatedAt":"2026-01-02T03:04:05Z","TTL":60000,"POLL":2000`, time.Minute, 2 * time.Second},
		"no lastUpdatedAt":   {`"createdAt":"2026-01-02T03:04:05Z","TTL":60000,"POLL":2000`, time.Minute, 2 * time.Second},
		"no times":           {`"TTL":60000,"POLL":2000`, time.Minute, 2 * time.Second},
		"odd times":          {`"createdAt":"yesterday","lastUpdatedAt":"","TTL":60000,"POLL":2000`, time.Minute, 2 * time.Second},
		"fractions":          {`"createdAt":"2026-01-02","TTL":59999.5,"POLL":2e3`, time.Minute, 2 * time.Second},
		"text":               {`"createdAt":"2026-01-02T03:04:05","TTL":"60000","POLL":"2000.0"`, time.Minute, 2 * time.Second},
		"no numbers":         {`"TTL":"soon","POLL":{}`, -1, 0},
		"neither":            {`"statusMessage":"m"`, -1, 0},
		"null":               {`"TTL":null,"POLL":null`, -1, 0},
		"out of any measure": {`"TTL":1e300,"POLL":-5`, time.Duration(1<<63 - 1).Truncate(time.Millisecond), 0},
	} {
		t.Run(name, inEveryRevision(func(t *testing.T, revision string) {
			names := strings.NewReplacer(`"TTL"`, `"ttlMs"`, `"POLL"`, `"pollIntervalMs"`)
			wrap := `{"resultType":"task",%s}`
			if revision != wiretest.ModernRevision {
				names = strings.NewReplacer(`"TTL"`, `"ttl"`, `"POLL"`, `"pollInterval"`)
				wrap = `{"task":{%s}}`
			}
			task := `"taskId":"t","status":"working",` + names.Replace(tc.task)
			s := newScript(t, revision, "tasks/get", func(_ *scripted, c call) (r reply) {
				if c.n < 3 {
					r = result(`{%s,%s}`, complete, task)
				}
				return r
			})
			s.on("tools/call", func(call) reply { return result(wrap, task) })
			conn := s.connect(gosdk.ClientOptions{})
			created, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "tool"})
			if err != nil || created.TTL != tc.ttl || created.Poll != tc.poll {
				t.Errorf("%+v, %v", created, err)
			}
			wantNumber(t, start(t, conn), 1)
		}))
	}
}

// TestAfterCancel: a cancelled task may be gone at once, go on for a while, or end otherwise. A task that has ended
// cannot be cancelled (C-75).
func TestAfterCancel(t *testing.T) {
	rules.Covers(t, "C-73", "C-80", "E-53", "E-56", "E-57", "E-59")
	then := func(status string) func(*scripted, int) reply {
		return func(s *scripted, n int) reply {
			switch {
			case n < 4:
				return s.state("t", "working")
			case status == "":
				return refusal(wiretest.InvalidParams, "")
			}
			return s.state("t", status)
		}
	}
	for _, tc := range []struct {
		name   string
		cancel reply
		poll   func(s *scripted, n int) reply
		want   error
	}{
		{"gone", reply{}, func(*scripted, int) reply { return refusal(wiretest.InvalidParams, "") }, mcptask.ErrCancelled},
		{"cancelled", reply{}, func(s *scripted, _ int) reply { return s.state("t", "cancelled") }, mcptask.ErrCancelled},
		{"still working, then cancelled", reply{}, then("cancelled"), mcptask.ErrCancelled},
		{"still working, then gone", reply{}, then(""), mcptask.ErrCancelled},
		{"completed all the same", reply{}, func(s *scripted, _ int) reply { return s.done() }, nil},
		{"it had ended", refusal(wiretest.InvalidParams, ""), func(s *scripted, _ int) reply { return s.done() }, nil},
	} {
		t.Run(tc.name, inEveryRevision(func(t *testing.T, revision string) {
			s := polled(t, revision, tc.poll)
			s.on("tasks/cancel", func(call) reply {
				if tc.cancel.err == "" && revision != wiretest.ModernRevision {
					return s.state("t", "cancelled")
				}
				return tc.cancel
			})
			call := start(t, s.connect(gosdk.ClientOptions{}))
			for range 2 { // a second Cancel is no error
				if err := call.Cancel(t.Context()); err != nil {
					t.Errorf("cancel: %v", err)
				}
			}
			if _, err := call.Wait(t.Context()); !errors.Is(err, tc.want) {
				t.Errorf("%v", err)
			}
			if err := call.Cancel(t.Context()); err != nil {
				t.Errorf("cancel: %v", err)
			}
			if len(s.of("tasks/cancel")) < 1 || len(s.of("notifications/cancelled")) > 0 {
				t.Errorf("%d tasks/cancel, %d notifications/cancelled", len(s.of("tasks/cancel")), len(s.of("notifications/cancelled")))
			}
		}))
	}
}

// TestClientCancels: the client cancels a task by the task's own ID, never by that of the call. It does so after
// Cancel, and if the caller leaves in the middle of a poll. Its messages about a task have no related-task metadata.
func TestClientCancels(t *testing.T) {
	rules.Covers(t, "C-64", "C-73", "C-74", "B-59", "B-68", "B-69", "E-53")
	everyRevision(t, func(t *testing.T, revision string) {
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		s := newScript(t, revision, "tasks/get", func(s *scripted, c call) reply {
			if c.n <= 5 {
				return s.state("t", "working")
			}
			leave()
			return silent(c)
		})
		if revision != wiretest.ModernRevision {
			s.on("tasks/cancel", func(call) reply { return s.state("t", "cancelled") })
		}
		conn := s.connect(gosdk.ClientOptions{})
		if err := start(t, conn).Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := mcptask.Run[number](ctx, conn, "tool", number{}); err == nil {
			t.Error("a task without an end has ended")
		}
		synctest.Wait()
		calls := s.of("tools/call")
		if n := len(s.of("tasks/cancel")); n != 2 || len(calls) != 2 {
			t.Errorf("%d calls, %d times tasks/cancel", len(calls), n)
		}
		for _, c := range append(s.of("tasks/get"), s.of("tasks/cancel")...) {
			if c.member("taskId") != `"t"` || strings.Contains(c.member("_meta"), "related-task") {
				t.Errorf("%s: %s", c.method, c.params)
			}
		}
		for _, c := range s.of("notifications/cancelled") {
			for _, made := range calls {
				if c.member("requestId") == string(made.id) {
					t.Errorf("the call of a task was cancelled: %s", c.params)
				}
			}
		}
	})
}

// TestDraftCode: -32003 with its data has the meaning that -32021 has now (0.3). Without the data, the client does not
// interpret it.
func TestDraftCode(t *testing.T) {
	for data, want := range map[string]int{
		`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`: wiretest.MissingCapability,
		`{}`: -32003, ``: -32003, `{"requiredCapabilities":null}`: -32003, `[]`: -32003,
	} {
		t.Run(data, inBubble(func(t *testing.T) {
			s := newScript(t, wiretest.ModernRevision, "tools/call", func(_ *scripted, c call) (r reply) {
				if !strings.Contains(c.member("_meta"), "io.modelcontextprotocol/tasks") {
					r = refusal(-32003, data)
					r.status = 400
				}
				return r
			})
			// Plain asks for no task. A tool that requires a task refuses with this error.
			call, err := mcptask.Start[number](t.Context(), s.connect(gosdk.ClientOptions{}), "tool", number{}, mcptask.Plain())
			if want != wiretest.MissingCapability {
				if !isError(want)(err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			wantNumber(t, call, 1)
		}))
	}
}

// TestCodesOfTheSDK: the client returns a server's error unchanged and does not repeat the call, even if the SDK uses
// the same code for an error of its own.
func TestCodesOfTheSDK(t *testing.T) {
	for _, code := range []int{-32000, -32001, -32002, -32003, -32004, -32005, -32006} {
		t.Run(fmt.Sprint(code), overEachWay(func(t *testing.T, connect connector) {
			for _, form := range []reply{{}, {status: 400}, {stream: func(func(string)) {}}} {
				for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
					s := newScript(t, revision, "tools/call", func(*scripted, call) reply {
						r := form
						r.err = refusal(code, `{"by":"the server"}`).err
						return r
					})
					_, err := mcptask.Start[number](t.Context(), connect(s, gosdk.ClientOptions{}), "tool", number{})
					var wire *mcptask.Error
					if !errors.As(err, &wire) || wire.Code != code || string(wire.Data) != `{"by":"the server"}` || len(s.of("tools/call")) != 1 {
						t.Errorf("%v after %d calls", err, len(s.of("tools/call")))
					}
				}
			}
		}))
	}
}

// TestKindsOfResults: the client refuses a task in answer to a request that cannot become one, and a result of an
// unknown type.
func TestKindsOfResults(t *testing.T) {
	rules.Covers(t, "E-03", "E-04", "E-06", "E-07", "E-14")
	for _, method := range []string{"tools/list", "tasks/get", "tasks/cancel", "tasks/update"} {
		for name, kind := range map[string]string{"a task": "task", "unknown": "future"} {
			t.Run(method+" "+name, overEachWay(func(t *testing.T, connect connector) {
				s := newScript(t, wiretest.ModernRevision, method, func(s *scripted, _ call) reply {
					return result(`{"resultType":%q,%s,"tools":[],"result":%s}`, kind, s.task("t", "working"), output(1))
				})
				conn := connect(s, gosdk.ClientOptions{})
				var err error
				switch method {
				case "tools/list":
					_, err = conn.ListTools(t.Context())
				case "tasks/get":
					_, err = conn.Task(t.Context(), "t")
				case "tasks/cancel":
					err = conn.CancelTask(t.Context(), "t")
				default:
					err = conn.Respond(t.Context(), "t", nil)
				}
				if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("a result of type %q", kind)) {
					t.Errorf("%v", err)
				}
			}))
		}
	}
	for name, tc := range map[string]struct {
		result string
		ok     bool
	}{
		"a task": {"", true}, // E-06
		"plain":  {`{"resultType":"complete","content":[],"structuredContent":{"n":1}}`, true},
		"absent": {output(1), true}, // E-14
		"future": {`{"resultType":"future","content":[],"structuredContent":{"n":1}}`, false},
		"none":   {`{"resultType":5,"content":[],"structuredContent":{"n":1}}`, false},
	} {
		t.Run("tools/call "+name, overEachWay(func(t *testing.T, connect connector) {
			s := newScript(t, wiretest.ModernRevision, "tools/call", func(*scripted, call) reply { return reply{result: tc.result} })
			out, err := mcptask.Run[number](t.Context(), connect(s, gosdk.ClientOptions{}), "tool", number{})
			if (err == nil && out.N == 1) != tc.ok {
				t.Errorf("%+v, %v", out, err)
			}
		}))
	}
}

// TestKindOfDiscover: the same holds for the request that the SDK sends by itself.
func TestKindOfDiscover(t *testing.T) {
	rules.Covers(t, "E-07", "E-14")
	for kind, want := range map[string]bool{`"complete"`: true, `null`: true, `"task"`: false, `"future"`: false} {
		for name, tc := range map[string]struct {
			dial   func(*scripted, gosdk.ClientOptions) (mcptask.Conn, error)
			stream bool
		}{"HTTP": {(*scripted).dial, false}, "HTTP, a stream": {(*scripted).dial, true}, "pipe": {(*scripted).dialPipe, false}} {
			t.Run(kind+" over "+name, inBubble(func(t *testing.T) {
				s := newScript(t, wiretest.ModernRevision, "server/discover", func(s *scripted, _ call) reply {
					r := result(`{"resultType":%s,%s,"supportedVersions":[%q],"capabilities":{}}`, kind, s.task("t", "working"), s.revision)
					if tc.stream {
						r.stream = func(func(string)) {}
					}
					return r
				})
				s.on("initialize", func(call) reply { return refusal(wiretest.MethodNotFound, "") })
				conn, err := tc.dial(s, gosdk.ClientOptions{})
				if (err == nil) != want {
					t.Errorf("%v", err)
				}
				if conn != nil {
					_ = conn.Close()
				}
				s.work.Wait()
			}))
		}
	}
}
