package edgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// keepTools have onleave=keep. The tools build until gate is closed. keep_quick has a grace.
func keepTools(gate <-chan struct{}) mcptask.Tools {
	tools := mcptask.Tools{Service: "Keep", Impl: 1, Fallback: mcptask.FallbackTools, Prefix: "keep_", Capabilities: mcptask.Declared()}
	for name, grace := range map[string]time.Duration{"keep_build": 0, "keep_quick": 30 * time.Second} {
		policy := mcptask.Policy{Task: mcptask.TaskOptional, Wait: time.Minute, Grace: grace, OnLeave: mcptask.KeepOnLeave}
		tools.Tools = append(tools.Tools, mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				task.Message(ctx, "building")
				select {
				case <-gate:
					return "built", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}))
	}
	return tools
}

// listed returns the structured content of a task_list.
func listed(t *testing.T, r *wiretest.Response) (list struct {
	Tasks []struct {
		Tool, Task, Status, StatusMessage string
		AgeSeconds                        int
		Next                              struct {
			Tool      string
			Arguments map[string]any
		}
	}
	More bool
}) {
	t.Helper()
	if err := json.Unmarshal(structured(t, r), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// structured returns the structured content of a result.
func structured(t *testing.T, r *wiretest.Response) json.RawMessage {
	t.Helper()
	var result mcptask.Result
	if err := json.Unmarshal(r.OK().Result, &result); err != nil {
		t.Fatal(err)
	}
	return result.Structured
}

// TestLeaveKeeps leaves calls of tools with onleave=keep, in each way that the revision has. The work goes on, and
// task_list finds it, before and after its end.
func TestLeaveKeeps(t *testing.T) {
	for _, test := range []struct {
		name, revision, caps, tool string
		cancels                    bool // the client says that it leaves
	}{
		{"2025-11-25, disconnected", wiretest.LegacyRevision, `{}`, "keep_build", false},
		{"2025-11-25, disconnected, with grace", wiretest.LegacyRevision, `{}`, "keep_quick", false},
		{"2025-11-25, cancelled", wiretest.LegacyRevision, `{}`, "keep_build", true},
		{"2025-06-18, cancelled", "2025-06-18", `{}`, "keep_build", true},
		{"2026-07-28", wiretest.ModernRevision, `{}`, "keep_build", false},
		{"2026-07-28, with grace", wiretest.ModernRevision, `{}`, "keep_quick", false},
		{"2026-07-28, with tasks and grace", wiretest.ModernRevision, wiretest.TasksExtension, "keep_quick", false},
		{"2026-07-28, asked by the answer", wiretest.ModernRevision, `{"elicitation":{}}`, "keep_build", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{keepTools(gate)}})
				p := wiretest.NewPeerWith(t, url, test.revision, "a", test.caps)
				ctx, disconnect := context.WithCancel(t.Context())
				over := make(chan struct{})
				body, edits := p.Request("tools/call", map[string]any{"name": test.tool, "arguments": map[string]any{}})
				id := p.IDs.Load()
				go func() {
					defer close(over)
					if res, err := p.Client.Do(p.NewRequest(ctx, http.MethodPost, body, edits...)); err == nil {
						for range wiretest.Events(res.Body) { // an error, if the call was cancelled
						}
						_ = res.Body.Close()
					}
				}()
				time.Sleep(3 * time.Second) // the host gives up
				if test.cancels {
					p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id))
				} else {
					disconnect()
				}
				<-over
				disconnect()
				synctest.Wait()

				p = wiretest.NewPeerWith(t, url, test.revision, "a", `{}`)
				r := p.CallTool("keep_task_list", nil)
				list := listed(t, r)
				if len(list.Tasks) != 1 || list.More {
					t.Fatalf("%s", r.Body)
				}
				task := list.Tasks[0]
				if task.Tool != test.tool || task.Status != "working" || task.StatusMessage != "building" || task.AgeSeconds != 3 || task.Next.Tool != "keep_task_result" {
					t.Errorf("%+v", task)
				}
				r.WantText(false, fmt.Sprintf(`%s: working, created 3s ago: building. Next, call keep_task_result with {"task":%q}`, test.tool, task.Task))
				close(gate)
				synctest.Wait()
				if list := listed(t, p.CallTool("keep_task_list", nil)); len(list.Tasks) != 1 || list.Tasks[0].Status != "completed" {
					t.Errorf("%+v", list)
				}
				p.CallTool(task.Next.Tool, task.Next.Arguments).WantText(false, "built")
				time.Sleep(time.Hour)
				p.CallTool("keep_task_list", nil).WantText(false, "You have no task here")
				p = wiretest.NewPeerWith(t, url, test.revision, "a", `{}`) // the session may have ended
				p.CallTool(task.Next.Tool, task.Next.Arguments).WantText(false, "built")

				p.CallTool(test.tool, nil).WantText(false, "built")
				if list := listed(t, p.CallTool("keep_task_list", nil)); len(list.Tasks) != 0 {
					t.Errorf("a call that was answered leaves a task: %+v", list)
				}
			})
		})
	}
}

// TestLeaveKeepsOnPipe leaves a call on a pipe: the client cancels it, or the pipe ends. The same person finds the work on
// another pipe of the process.
func TestLeaveKeepsOnPipe(t *testing.T) {
	const modern = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	for revision, meta := range map[string]string{wiretest.LegacyRevision: "", wiretest.ModernRevision: modern} {
		for _, cancels := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, cancelled %v", revision, cancels), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					gate := make(chan struct{})
					tasks, err := taskserver.New(taskserver.Options{}, keepTools(gate))
					if err != nil {
						t.Fatal(err)
					}
					defer tasks.Close()
					open := func() *wiretest.Piped {
						p := wiretest.PipeTo(t, tasks, 100)
						if meta == "" {
							p.Initialize()
						}
						return p
					}
					p := open()
					p.Say(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"keep_build","arguments":{}%s}}`, meta)
					time.Sleep(3 * time.Second)
					if cancels {
						p.Say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1%s}}`, meta)
					} else {
						_ = p.In.Close()
						p.WantEnd()
					}
					synctest.Wait()
					p = open()
					list := p.Ask(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"keep_task_list","arguments":{}%s}}`, meta)
					if !strings.Contains(list, "keep_build: working, created ") {
						t.Error(list)
					}
					close(gate)
					synctest.Wait()
					list = p.Ask(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"keep_task_list","arguments":{}%s}}`, meta)
					if !strings.Contains(list, "keep_build: completed") {
						t.Error(list)
					}
				})
			})
		}
	}
}

// TestLeaveKeepsAtShutdown closes the server during a call of a tool with onleave=keep. The next server with its store
// goes on with the work.
func TestLeaveKeepsAtShutdown(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		gate := make(chan struct{})
		tools := keepTools(gate).With("keep_build", func(p *mcptask.Policy) { p.OnLost = mcptask.RestartWhenLost })
		s := wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{tools}, Options: taskserver.Options{Store: taskstore.NewMemory()}}
		url, tasks := wiretest.ServeWith(t, s)
		p := wiretest.NewPeerWith(t, url, revision, "a", `{}`)
		over := make(chan struct{})
		go func() {
			defer close(over)
			p.CallTool("keep_build", nil)
		}()
		synctest.Wait()
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		<-over
		url, _ = wiretest.ServeWith(t, s)
		p = wiretest.NewPeerWith(t, url, revision, "a", `{}`)
		list := listed(t, p.CallTool("keep_task_list", nil))
		if len(list.Tasks) != 1 {
			t.Fatalf("%+v", list)
		}
		close(gate)
		p.CallTool(list.Tasks[0].Next.Tool, list.Tasks[0].Next.Arguments).WantText(false, "built")
	})
}

// TestLeaveKeepsInMiddleware uses middleware that answers in place of a tool with onleave=keep. The client never learns of
// its task, which goes on.
func TestLeaveKeepsInMiddleware(t *testing.T) {
	m := wiretest.WrapCalls(func(next func() (mcp.Result, error), req *mcp.CallToolRequest) (mcp.Result, error) {
		result, err := next()
		if req.Params.Name == "keep_build" {
			return nil, errors.New("it takes too long")
		}
		return result, err
	})
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		gate := make(chan struct{})
		defer close(gate)
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Middleware: m, Tools: []mcptask.Tools{keepTools(gate)}})
		p := wiretest.NewPeer(t, url, revision, "a")
		if r := p.Call("tools/call", map[string]any{"name": "keep_build", "arguments": map[string]any{}, "task": map[string]any{}}); r.Error == nil {
			t.Errorf("%s", r.Body)
		}
		synctest.Wait()
		if list := listed(t, p.CallTool("keep_task_list", nil)); len(list.Tasks) != 1 || list.Tasks[0].Status != "working" {
			t.Errorf("%+v", list)
		}
	})
}

// TestTaskList checks who sees task_list, and what is in the list: the caller's own tasks of the tools behind the
// prefix, at most ten, newest first.
func TestTaskList(t *testing.T) {
	for _, revision := range plainRevisions {
		t.Run(revision, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				defer close(gate)
				s := wiretest.Setup{Fallback: true, Tools: []mcptask.Tools{keepTools(gate), slowTools(time.Millisecond, gate)}}
				anonymous, _ := wiretest.ServeWith(t, s)
				p := wiretest.NewPeerWith(t, anonymous, revision, "", `{}`)
				if list := string(p.Call("tools/list", nil).OK().Result); strings.Contains(list, `task_list"`) || !strings.Contains(list, `"keep_task_status"`) {
					t.Errorf("the list of an anonymous caller: %s", list)
				}
				p.CallTool("keep_task_list", nil).WantText(true, "this call has no authentication")

				s.Bearer, s.Options = true, taskserver.Options{Limits: taskserver.Limits{Lists: 1}}
				url, _ := wiretest.ServeWith(t, s)
				p, other := wiretest.NewPeerWith(t, url, revision, "a", `{}`), wiretest.NewPeerWith(t, url, revision, "b", `{}`)
				var schema json.RawMessage
				for _, entry := range p.Call("tools/list", nil).OK().Get("tools").([]any) {
					if tool := entry.(map[string]any); tool["name"] == "slow_task_list" {
						schema, _ = json.Marshal(tool["outputSchema"])
					}
				}
				other.CallTool("slow_sleep", map[string]any{"ms": -1}).WantTask("working")
				p.CallTool("slow_ask", nil).OK()
				var want []string // newest first
				for range 11 {
					time.Sleep(time.Minute)
					want = append([]string{p.CallTool("slow_sleep", map[string]any{"ms": -1}).WantTask("working")}, want...)
				}
				p.CallTool("slow_task_cancel", map[string]any{"task": want[0]}).OK()
				r := p.CallTool("slow_task_list", nil)
				list := listed(t, r)
				if !list.More || len(list.Tasks) != 10 {
					t.Fatalf("%s", r.Body)
				}
				for i, task := range list.Tasks {
					status := map[bool]string{true: "cancelled", false: "working"}[i == 0]
					if task.Task != want[i] || task.Status != status {
						t.Errorf("%d: %+v", i, task)
					}
				}
				r.WantText(false, "There may be older ones")
				if err := fits(t, schema, string(structured(t, r))); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Minute)
				if list := listed(t, p.CallTool("keep_task_list", nil)); len(list.Tasks) != 0 {
					t.Errorf("tasks behind another prefix: %+v", list)
				}
				if list := listed(t, other.CallTool("slow_task_list", nil)); len(list.Tasks) != 1 || list.More {
					t.Errorf("%+v", list)
				}
				wiretest.FloodUntil(t, func() *wiretest.Response { return p.CallTool("slow_task_list", nil) },
					func(r *wiretest.Response) bool { return r.Error != nil }).WantLimit(http.StatusOK, "lists", 1)
			})
		})
	}
}
