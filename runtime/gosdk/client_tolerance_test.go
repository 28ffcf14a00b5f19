package gosdk_test

import (
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
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

const failedOutput = `{"content":[{"type":"text","text":"it does not build"}],"isError":true}`

// TestOutcomesOfPeers: how a task ended is read the same way however a peer puts
// it (T-24, T-25).
func TestOutcomesOfPeers(t *testing.T) {
	for _, tc := range []struct {
		name, revision, status string
		more                   string // of the task
		result                 reply  // to tasks/result
		want                   func(error) bool
	}{
		{"isError as failed", wiretest.LegacyRevision, "failed", `"statusMessage":"m"`, result(failedOutput), isToolError},
		{"isError as completed", wiretest.LegacyRevision, "completed", `"statusMessage":"m"`, result(failedOutput), isToolError},
		{"isError in 2026", wiretest.ModernRevision, "completed", `"result":` + failedOutput, reply{}, isToolError},
		{"an error", wiretest.LegacyRevision, "failed", `"statusMessage":"m"`, refusal(-32050, ""), isError(-32050)},
		{"an error as completed", wiretest.LegacyRevision, "completed", `"statusMessage":"m"`, refusal(-32050, ""), isError(-32050)},
		{"an error in 2026", wiretest.ModernRevision, "failed", `"error":` + refusal(-32050, "").err, reply{}, isError(-32050)},
		{"cancelled, an error", wiretest.LegacyRevision, "cancelled", `"statusMessage":"m"`, refusal(wiretest.InternalError, ""), is(mcptask.ErrCancelled)},
		{"cancelled, an empty success", wiretest.LegacyRevision, "cancelled", `"statusMessage":"m"`, result(`{"content":[]}`), is(mcptask.ErrCancelled)},
		{"cancelled in 2026", wiretest.ModernRevision, "cancelled", `"statusMessage":"m"`, reply{}, is(mcptask.ErrCancelled)},
		{"cancelled, as failed", wiretest.LegacyRevision, "failed", `"statusMessage":"m"`, refusal(wiretest.InternalError, `{"reason":"cancelled"}`), is(mcptask.ErrCancelled)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := &scripted{t: t, revision: tc.revision}
				s.answer = func(c call) reply {
					switch c.method {
					case "tools/call":
						return s.created("t")
					case "tasks/get":
						return s.state("t", tc.status, tc.more)
					case "tasks/result":
						return tc.result
					}
					return reply{}
				}
				call := start(t, s.connect(gosdk.ClientOptions{}))
				if _, err := call.Wait(t.Context()); !tc.want(err) {
					t.Errorf("%v", err)
				}
				for snapshot, err := range call.Updates(t.Context()) { // what the server says of it is there to be read
					if err != nil || strings.Contains(tc.more, "statusMessage") && snapshot.Message != "m" {
						t.Errorf("%+v, %v", snapshot, err)
					}
				}
			})
		})
	}
}

// TestFailureSaysWhy: a task that fails says why where it is polled, in each
// revision's way.
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

// TestTasksOfPeers: a task whose fields a peer leaves out or writes otherwise is
// still a task.
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
		t.Run(name, func(t *testing.T) {
			everyRevision(t, func(t *testing.T, revision string) {
				names := strings.NewReplacer(`"TTL"`, `"ttlMs"`, `"POLL"`, `"pollIntervalMs"`)
				wrap := `{"resultType":"task",%s}`
				if revision != wiretest.ModernRevision {
					names = strings.NewReplacer(`"TTL"`, `"ttl"`, `"POLL"`, `"pollInterval"`)
					wrap = `{"task":{%s}}`
				}
				task := `"taskId":"t","status":"working",` + names.Replace(tc.task)
				s := &scripted{t: t, revision: revision}
				s.answer = func(c call) reply {
					switch {
					case c.method == "tools/call":
						return result(wrap, task)
					case c.method == "tasks/get" && c.n < 3:
						return result(`{%s,%s}`, complete, task)
					case c.method == "tasks/get":
						return s.done()
					case c.method == "tasks/result":
						return result("%s", output(1))
					}
					return reply{}
				}
				conn := s.connect(gosdk.ClientOptions{})
				created, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "tool"})
				if err != nil || created.TTL != tc.ttl || created.Poll != tc.poll {
					t.Errorf("%+v, %v", created, err)
				}
				if out, err := start(t, conn).Wait(t.Context()); err != nil || out.N != 1 {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

// TestAfterCancel: a task that was cancelled may be gone at once, go on for a
// while, or end otherwise; and one that has ended cannot be cancelled (C-75).
func TestAfterCancel(t *testing.T) {
	rules.Covers(t, "C-73", "C-74", "C-80", "E-53", "E-56", "E-57", "E-59")
	for _, tc := range []struct {
		name   string
		cancel reply
		poll   func(s *scripted, n int) reply
		want   func(error) bool
	}{
		{"gone", reply{}, func(*scripted, int) reply { return refusal(wiretest.InvalidParams, "") }, is(mcptask.ErrCancelled)},
		{"cancelled", reply{}, func(s *scripted, _ int) reply { return s.state("t", "cancelled") }, is(mcptask.ErrCancelled)},
		{"still working, then cancelled", reply{}, func(s *scripted, n int) reply {
			if n < 4 {
				return s.state("t", "working")
			}
			return s.state("t", "cancelled")
		}, is(mcptask.ErrCancelled)},
		{"still working, then gone", reply{}, func(s *scripted, n int) reply {
			if n < 4 {
				return s.state("t", "working")
			}
			return refusal(wiretest.InvalidParams, "")
		}, is(mcptask.ErrCancelled)},
		{"completed all the same", reply{}, func(s *scripted, n int) reply { return s.done() }, is(nil)},
		{"it had ended", refusal(wiretest.InvalidParams, ""), func(s *scripted, n int) reply { return s.done() }, is(nil)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everyRevision(t, func(t *testing.T, revision string) {
				s := polled(t, revision, tc.poll)
				answer := s.answer
				s.answer = func(c call) reply {
					if c.method != "tasks/cancel" {
						return answer(c)
					}
					if tc.cancel.err == "" && revision != wiretest.ModernRevision {
						return s.state("t", "cancelled")
					}
					return tc.cancel
				}
				call := start(t, s.connect(gosdk.ClientOptions{}))
				for range 2 { // to say it again is no error
					if err := call.Cancel(t.Context()); err != nil {
						t.Errorf("cancel: %v", err)
					}
				}
				_, err := call.Wait(t.Context())
				if !tc.want(err) {
					t.Errorf("%v", err)
				}
				if err := call.Cancel(t.Context()); err != nil {
					t.Errorf("cancel: %v", err)
				}
				if len(s.of("tasks/cancel")) < 1 || len(s.of("notifications/cancelled")) > 0 {
					t.Errorf("%d tasks/cancel, %d notifications/cancelled", len(s.of("tasks/cancel")), len(s.of("notifications/cancelled")))
				}
			})
		})
	}
	t.Run("an abandoned run", func(t *testing.T) { // C-74: not by the ID of the call
		everyRevision(t, func(t *testing.T, revision string) {
			s := polled(t, revision, func(s *scripted, _ int) reply { return s.state("t", "working") })
			ctx, cancel := wiretest.WithTimeout(t, 5*time.Second)
			defer cancel()
			if _, err := mcptask.Run[number](ctx, s.connect(gosdk.ClientOptions{}), "tool", number{}); err == nil {
				t.Error("it ended")
			}
			synctest.Wait()
			call := s.of("tools/call")[0]
			for _, n := range s.of("notifications/cancelled") {
				if n.member("requestId") == string(call.id) {
					t.Errorf("%s", n.params)
				}
			}
			if cancels := s.of("tasks/cancel"); len(cancels) != 1 || cancels[0].member("taskId") != `"t"` {
				t.Errorf("%v", cancels)
			}
		})
	})
}

// TestDraftCode: -32003 with its data is what is -32021 now (0.3); bare
// it is nothing that we know.
func TestDraftCode(t *testing.T) {
	for data, want := range map[string]int{
		`{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`: wiretest.MissingCapability,
		`{}`: -32003, ``: -32003, `{"requiredCapabilities":null}`: -32003, `[]`: -32003,
	} {
		t.Run(data, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := &scripted{t: t, revision: wiretest.ModernRevision}
				s.answer = func(c call) reply {
					switch c.method {
					case "tools/call":
						if !strings.Contains(c.member("_meta"), "io.modelcontextprotocol/tasks") {
							r := refusal(-32003, data)
							r.status = 400
							return r
						}
						return s.created("t")
					case "tasks/get":
						return s.done()
					}
					return reply{}
				}
				// Plain asks for no task; a tool that requires one says so.
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
				if out, err := call.Wait(t.Context()); err != nil || out.N != 1 {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

// TestCodesOfTheSDK: an error of the server's is the server's, also where the SDK
// has its code for its own: nothing is sent again.
func TestCodesOfTheSDK(t *testing.T) {
	for _, code := range []int{-32000, -32001, -32002, -32003, -32004, -32005, -32006} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			eachWay(t, func(t *testing.T, connect func(*scripted, gosdk.ClientOptions) mcptask.Conn) {
				for _, form := range []reply{{}, {status: 400}, {stream: func(func(string)) {}}} {
					for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
						s := &scripted{t: t, revision: revision}
						s.answer = func(c call) reply {
							if c.method != "tools/call" {
								return reply{}
							}
							r := form
							r.err = refusal(code, `{"by":"the server"}`).err
							return r
						}
						_, err := mcptask.Start[number](t.Context(), connect(s, gosdk.ClientOptions{}), "tool", number{})
						var wire *mcptask.Error
						if !errors.As(err, &wire) || wire.Code != code || string(wire.Data) != `{"by":"the server"}` || len(s.of("tools/call")) != 1 {
							t.Errorf("%v after %d calls", err, len(s.of("tools/call")))
						}
					}
				}
			})
		})
	}
}

// TestKindsOfResults: a task in answer to what cannot become one, and a result
// of a type that nobody knows, are no results.
func TestKindsOfResults(t *testing.T) {
	rules.Covers(t, "E-03", "E-04", "E-06", "E-07", "E-14")
	for _, method := range []string{"tools/list", "tasks/get", "tasks/cancel", "tasks/update"} {
		for name, kind := range map[string]string{"a task": "task", "unknown": "future"} {
			t.Run(method+" "+name, func(t *testing.T) {
				eachWay(t, func(t *testing.T, connect func(*scripted, gosdk.ClientOptions) mcptask.Conn) {
					s := &scripted{t: t, revision: wiretest.ModernRevision}
					s.answer = func(c call) (r reply) {
						if c.method == method {
							r = result(`{"resultType":%q,%s,"tools":[],"result":%s}`, kind, s.task("t", "working"), output(1))
						}
						return r
					}
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
				})
			})
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
		t.Run("tools/call "+name, func(t *testing.T) {
			eachWay(t, func(t *testing.T, connect func(*scripted, gosdk.ClientOptions) mcptask.Conn) {
				s := polled(t, wiretest.ModernRevision, func(s *scripted, _ int) reply { return s.done() })
				answer := s.answer
				s.answer = func(c call) reply {
					if c.method == "tools/call" && tc.result != "" {
						return result("%s", tc.result)
					}
					return answer(c)
				}
				out, err := mcptask.Run[number](t.Context(), connect(s, gosdk.ClientOptions{}), "tool", number{})
				if (err == nil && out.N == 1) != tc.ok {
					t.Errorf("%+v, %v", out, err)
				}
			})
		})
	}
}

// TestKindOfDiscover: the same holds for what the SDK asks by itself.
func TestKindOfDiscover(t *testing.T) {
	rules.Covers(t, "E-07", "E-14")
	for kind, want := range map[string]bool{`"complete"`: true, `null`: true, `"task"`: false, `"future"`: false} {
		for name, tc := range map[string]struct {
			dial   func(*scripted, gosdk.ClientOptions) (mcptask.Conn, error)
			stream bool
		}{"HTTP": {(*scripted).dial, false}, "HTTP, a stream": {(*scripted).dial, true}, "pipe": {(*scripted).dialPipe, false}} {
			t.Run(kind+" over "+name, func(t *testing.T) {
				bubble.Test(t, func(t *testing.T) {
					s := &scripted{t: t, revision: wiretest.ModernRevision}
					s.answer = func(c call) reply {
						switch c.method {
						case "server/discover":
							r := result(`{"resultType":%s,%s,"supportedVersions":[%q],"capabilities":{}}`, kind, s.task("t", "working"), wiretest.ModernRevision)
							if tc.stream {
								r.stream = func(func(string)) {}
							}
							return r
						case "initialize":
							return refusal(wiretest.MethodNotFound, "")
						}
						return reply{}
					}
					conn, err := tc.dial(s, gosdk.ClientOptions{})
					if (err == nil) != want {
						t.Errorf("%v", err)
					}
					if conn != nil {
						_ = conn.Close()
					}
					s.work.Wait()
				})
			})
		}
	}
}
