package edgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/mcptaskgen/mcptaskgen/golden/failures"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// slowOutput has a reference to its root. A client must still be able to follow it if the schema is part of a larger
// one.
const slowOutput = `{"type":"object","properties":{"slept":{"$ref":"#/$defs/slept"}},"required":["slept"],` +
	`"$defs":{"slept":{"type":"integer","minimum":0}}}`

// noteSchema is the schema of the answer that slowTools ask for.
const noteSchema = `{"type":"object","properties":{"note":{"type":"string","maxLength":5}},"required":["note"]}`

type slowReport struct {
	Slept int `json:"slept"`
}

// slowTools take the time that their arguments say, and block a plain call for wait. With a negative time, they wait
// for gate.
func slowTools(wait time.Duration, gate <-chan struct{}) mcptask.Tools {
	policy := mcptask.Policy{Task: mcptask.TaskRequired, Wait: wait, Poll: 50 * time.Millisecond}
	optional := policy
	optional.Task = mcptask.TaskOptional
	note := mcptask.InputSpec{Name: "Note", Message: "A note?", Schema: noteSchema}
	return mcptask.Tools{Service: "Slow", Impl: struct{}{}, Fallback: mcptask.FallbackTools, Prefix: "slow_", Asks: true, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "slow_sleep", InputSchema: wiretest.OpenObject, OutputSchema: slowOutput, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, in wiretest.PonderInput) (slowReport, error) {
				task.Message(ctx, "sleeping")
				if in.MS < 0 {
					select {
					case <-gate:
						return slowReport{3000}, nil
					case <-ctx.Done():
						return slowReport{}, ctx.Err()
					}
				}
				select {
				case <-time.After(time.Duration(in.MS) * time.Millisecond):
					return slowReport{in.MS}, nil
				case <-ctx.Done():
					return slowReport{}, ctx.Err()
				}
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "slow_ask", InputSchema: wiretest.OpenObject, Policy: optional},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[wiretest.NoteInput](ctx, task, note, "note", "")
				return "noted " + answer.Note, err
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "slow_ask_first", InputSchema: wiretest.OpenObject, Policy: policy, Questions: []mcptask.InputSpec{note}},
			func(_ context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Asked[wiretest.NoteInput](task, 0)
				return "noted " + answer.Note, err
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "slow_sample", InputSchema: wiretest.OpenObject, Policy: optional},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				_, err := task.Sample(ctx, "sum", mcptask.SampleRequest{MaxTokens: 10,
					Messages: []mcptask.SampleMessage{{Role: "user", Content: []mcptask.Content{mcptask.TextContent("Sum up.")}}}})
				return "", err
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "slow_locked", InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				return "", mcptask.Errorf(4055, "the repository is locked")
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "slow_missing", InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				select {
				case <-gate:
				case <-ctx.Done():
				}
				return "", failures.NewNotFound("a01", nil)
			}),
	}}
}

// plainRevisions are the revisions in which clients can call tools without tasks.
var plainRevisions = []string{"2025-03-26", "2025-06-18", wiretest.LegacyRevision, wiretest.ModernRevision}

// eachSlow runs a test in these revisions. Each has a bubble with a server of slowTools. open opens
// their gate, once.
func eachSlow(t *testing.T, revisions []string, s wiretest.Setup, wait time.Duration, test func(t *testing.T, url, revision string, open func())) {
	t.Helper()
	for _, revision := range revisions {
		t.Run(revision, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				gate := make(chan struct{})
				s := s // bubbles run in parallel
				s.Tools = []mcptask.Tools{slowTools(wait, gate)}
				url, _ := wiretest.ServeWith(t, s)
				test(t, url, revision, func() { close(gate) })
			})
		})
	}
}

// eachPlainPeer is eachSlow with clients that do not support tasks.
func eachPlainPeer(t *testing.T, wait time.Duration, test func(t *testing.T, p *wiretest.Peer, open func())) {
	t.Helper()
	eachSlow(t, plainRevisions, wiretest.Setup{Bearer: true}, wait, func(t *testing.T, url, revision string, open func()) {
		test(t, wiretest.NewPeerWith(t, url, revision, "a", `{}`), open)
	})
}

// TestFallbackInTime checks that a task which ends within the wait gives an ordinary result and
// leaves no task.
func TestFallbackInTime(t *testing.T) {
	eachPlainPeer(t, time.Minute, func(t *testing.T, p *wiretest.Peer, _ func()) {
		r := p.CallTool("slow_sleep", map[string]any{"ms": 1}).OK()
		if fmt.Sprint(r.Get("structuredContent", "slept")) != "1" || r.Get("_meta", "io.github.mcptaskgen/task") != nil {
			t.Errorf("%s", r.Body)
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 0 {
			t.Errorf("left: %v", tasks)
		}
		p.CallTool("slow_sleep", map[string]any{"ms": "one"}).WantText(true, "invalid arguments")
	})
}

// TestFallbackImmediate checks that the immediate text of a tool is a sentence of its own.
func TestFallbackImmediate(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var tools []mcptask.Tool
		for name, text := range map[string]string{"sentence": "It runs.", "phrase": "It runs"} {
			policy := mcptask.Policy{Task: mcptask.TaskOptional, Wait: time.Second, Immediate: text}
			tools = append(tools, mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, Policy: policy},
				func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
					task.Message(ctx, "step one")
					<-ctx.Done()
					return "", ctx.Err()
				}))
		}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{{Service: "Said", Impl: 1, Fallback: mcptask.FallbackTools, Tools: tools}}})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", `{}`)
		for _, name := range []string{"sentence", "phrase"} {
			r := p.CallTool(name, nil)
			r.WantText(false, " (working: step one). It runs. In about a second call ")
			p.CallTool("task_cancel", map[string]any{"task": r.Text("structuredContent", "task")}).OK()
		}
	})
}

// TestFallback takes tasks from the still-running result of a call to their ends with the fallback
// tools.
func TestFallback(t *testing.T) {
	const wait = 400 * time.Millisecond
	eachPlainPeer(t, wait, func(t *testing.T, p *wiretest.Peer, open func()) {
		started := time.Now()
		r := p.CallTool("slow_sleep", map[string]any{"ms": -1}) // the work takes until the test opens the gate
		r.WantMembers(`{"structuredContent":{"statusMessage":"sleeping","questions":null,"next":{"tool":"slow_task_result","arguments":{"task":%q}}}}`, r.Text("structuredContent", "task"))
		if took := time.Since(started); took < wait {
			t.Errorf("answered after %v", took)
		}
		locked := p.CallTool("slow_locked", nil).WantTask("working")
		missing := p.CallTool("slow_missing", nil).WantTask("working")
		id := r.WantTask("working")
		if got := p.CallTool("slow_task_status", map[string]any{"task": id}).WantTask("working"); got != id {
			t.Errorf("the status of %s", got)
		}
		for rounds := range 20 {
			if rounds == 2 {
				open()
			}
			if r = p.CallTool("slow_task_result", map[string]any{"task": id}); r.Get("structuredContent", "slept") != nil {
				break
			}
			r.WantTask("working")
			if text := r.Content(); rounds == 1 && !strings.Contains(text, "sleeping") {
				t.Errorf("no status message in %s", text)
			}
		}
		if fmt.Sprint(r.Get("structuredContent", "slept")) != "3000" {
			t.Errorf("%s", r.Body)
		}
		p.CallTool("slow_task_status", map[string]any{"task": id}).WantText(false, "has ended")
		p.CallTool("slow_task_cancel", map[string]any{"task": id}).WantText(false, "has ended")

		// The model reads whose task it is and what is wrong.
		other := wiretest.NewPeerWith(t, p.URL, p.Revision, "b", `{}`)
		for _, tool := range []string{"slow_task_status", "slow_task_result", "slow_task_cancel", "slow_task_answer"} {
			stranger := other.CallTool(tool, map[string]any{"task": id})
			stranger.WantText(true, "There is no task")
			if unknown := other.CallTool(tool, map[string]any{"task": "x"}).Content(); strings.ReplaceAll(stranger.Content(), id, "x") != unknown {
				t.Errorf("%s distinguishes a stranger's task from an unknown one: %s", tool, stranger.Content())
			}
			for _, arguments := range []map[string]any{{}, {"task": 5}, {"task": nil}, nil} {
				p.CallTool(tool, arguments).WantText(true, `{"task":"…"}`)
			}
			p.CallTool(tool, map[string]any{"task": strings.Repeat("x", 100000)}).WantText(true, "There is no task")
		}

		// A cancelled task, and a task that ends with an error.
		id = p.CallTool("slow_sleep", map[string]any{"ms": 600000}).WantTask("working")
		p.CallTool("slow_task_cancel", map[string]any{"task": id}).WantText(false, "is cancelled")
		p.CallTool("slow_task_result", map[string]any{"task": id}).WantText(true, "was cancelled")
		for rounds := range 20 {
			if r = p.CallTool("slow_task_result", map[string]any{"task": locked}); r.Get("isError") != nil || rounds == 19 {
				break
			}
			r.WantTask("working")
		}
		r.WantText(true, "the repository is locked")
		r = p.CallTool("slow_task_result", map[string]any{"task": missing})
		r.WantText(true, "there is no asset a01")
		r.WantMembers(`{"_meta":{"io.github.mcptaskgen/error":{"code":"not_found","data":{"asset":"a01"}}}}`)
	})
}

// TestFallbackProgress checks that progress travels on the call's stream while the call is open,
// and stops afterwards.
func TestFallbackProgress(t *testing.T) {
	eachPlainPeer(t, 2*time.Second, func(t *testing.T, p *wiretest.Peer, _ func()) {
		body, edits := p.Request("tools/call", map[string]any{"name": "slow_sleep", "arguments": map[string]any{"ms": -1},
			"_meta": map[string]any{"progressToken": "p"}})
		res, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodPost, body, edits...))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var all []string
		for message := range wiretest.Events(res.Body) {
			all = append(all, string(message))
		}
		if len(all) != 2 || !strings.Contains(all[0], `"notifications/progress"`) || !strings.Contains(all[0], "sleeping") ||
			strings.Contains(all[0], "related-task") || !strings.Contains(all[1], "slow_task_result") {
			t.Errorf("%q", all)
		}
	})
}

// TestFallbackExpires checks that a ttl shorter than the wait ends the work, and that the model
// reads the reason.
func TestFallbackExpires(t *testing.T) {
	t.Parallel()
	bubble.Run(t, "within the call", func(t *testing.T) {
		brief := mcptask.NewTool(mcptask.ToolSpec{Name: "brief", InputSchema: wiretest.OpenObject,
			Policy: mcptask.Policy{Task: mcptask.TaskOptional, TTL: 200 * time.Millisecond, Wait: 10 * time.Second}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{{Service: "Brief", Impl: 1, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{brief}}}})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", `{}`)
		p.CallTool("brief", nil).WantText(true, "did not finish within the 200ms")
	})
	bubble.Run(t, "after the call", func(t *testing.T) {
		brief := mcptask.NewTool(mcptask.ToolSpec{Name: "brief", InputSchema: wiretest.OpenObject,
			Policy: mcptask.Policy{Task: mcptask.TaskOptional, TTL: 5 * time.Second, Wait: time.Second}},
			func(ctx context.Context, _ *mcptask.Task, _ struct{}) (string, error) {
				<-ctx.Done()
				return "", ctx.Err()
			})
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{{Service: "Brief", Impl: 1, Fallback: mcptask.FallbackTools, Tools: []mcptask.Tool{brief}}}})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", `{}`)
		id := p.CallTool("brief", nil).OK().Text("structuredContent", "task")
		for range 2 { // at the end of its ttl, and when its record is deleted
			time.Sleep(time.Minute)
			for _, tool := range []string{"task_status", "task_result", "task_cancel"} {
				p.CallTool(tool, map[string]any{"task": id}).WantText(true, "has expired")
			}
		}
		p.CallTool("task_result", map[string]any{"task": id + "X"}).WantText(true, "or the server was restarted: it keeps tasks in memory only")
	})
}

// TestFallbackList checks which fallback tools tools/list shows to which client.
func TestFallbackList(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Fallback: true, Tools: []mcptask.Tools{slowTools(time.Second, nil)}})
		without, _ := wiretest.ServeWith(t, wiretest.Setup{})
		helpers := []string{"slow_task_answer", "slow_task_cancel", "slow_task_result", "slow_task_status", "task_answer", "task_cancel", "task_result", "task_status"}
		for _, test := range []struct {
			revision, caps string
			sees           bool // the fallback tools
			plain          bool // that calls may be plain
		}{
			{"2025-03-26", `{}`, true, true},
			{"2025-06-18", `{}`, true, true},
			{wiretest.LegacyRevision, `{}`, true, true},
			{wiretest.LegacyRevision, `{"tasks":{"list":{}}}`, true, true},
			{wiretest.ModernRevision, `{}`, true, true},
			{wiretest.ModernRevision, `{"elicitation":{}}`, true, true},
			{wiretest.ModernRevision, wiretest.WithQuestions, false, false},
			{wiretest.ModernRevision, wiretest.TasksExtension, true, false}, // it cannot show a question
			{wiretest.ModernRevision, `{"elicitation":{"url":{}},"sampling":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`, true, false},
		} {
			p := wiretest.NewPeerWith(t, url, test.revision, "", test.caps)
			r := p.Call("tools/list", nil).OK()
			var seen []string
			for _, entry := range r.Get("tools").([]any) {
				tool := entry.(map[string]any)
				name := tool["name"].(string)
				if slices.Contains(helpers, name) {
					seen = append(seen, name)
				}
				execution, _ := tool["execution"].(map[string]any)
				if name == "slow_sleep" && test.revision == wiretest.LegacyRevision && execution["taskSupport"] != "optional" {
					t.Errorf("%s %s: %s is %v", test.revision, test.caps, name, execution)
				}
				if name == "slow_sleep" {
					for content, want := range map[string]bool{
						`{"slept":5}`: true, `{"slept":-1}`: false, `{}`: false, `{"task":"t","status":"working","pollIntervalMs":50}`: test.plain,
					} {
						if err := fits(t, tool["outputSchema"], content); (err == nil) != want {
							t.Errorf("%s %s: %s: %v", test.revision, test.caps, content, err)
						}
					}
				}
			}
			slices.Sort(seen)
			if want := helpers; test.sees && !slices.Equal(seen, want) || !test.sees && len(seen) > 0 {
				t.Errorf("%s %s: %v", test.revision, test.caps, seen)
			}
			if scope := r.Text("cacheScope"); test.revision == wiretest.ModernRevision && scope != "private" {
				t.Errorf("cacheScope %q", scope)
			}
		}
		if r := wiretest.NewPeer(t, without, wiretest.ModernRevision, "").Call("tools/list", nil).OK(); r.Text("cacheScope") != "public" || strings.Contains(string(r.Body), "task_status") {
			t.Errorf("without a fallback: %s", r.Body)
		}
	})
}

func fits(t *testing.T, schema any, content string) error {
	t.Helper()
	data, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema:tool", document); err != nil {
		t.Fatal(err)
	}
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("schema:tool").Validate(value)
}

// TestFallbackLeave checks that the task of a call is cancelled if the client disconnects within
// the wait or cancels the call, because the client does not know the task. A task with an
// idempotency key continues, because the client may repeat the call.
func TestFallbackLeave(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{slowTools(time.Minute, nil)}})
		p := wiretest.NewPeerWith(t, url, wiretest.ModernRevision, "a", `{}`)
		leave := func(meta map[string]any) { // once the task is there
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			body, edits := p.Request("tools/call", map[string]any{"name": "slow_sleep", "arguments": map[string]any{"ms": 60000}, "_meta": meta})
			res, err := p.Client.Do(p.NewRequest(ctx, http.MethodPost, body, edits...))
			if err == nil {
				for message := range wiretest.Events(res.Body) {
					t.Errorf("an answer: %s", message)
				}
				res.Body.Close()
			}
		}
		leave(nil)
		wiretest.Eventually(t, "the task is gone", func() bool { return len(wiretest.ListTasks(t, p)) == 0 })
		for range 2 { // the key's owner may come back
			leave(map[string]any{"io.github.mcptaskgen/idempotency-key": "k"})
		}
		if tasks := wiretest.ListTasks(t, p); len(tasks) != 1 || tasks[0]["status"] != "working" {
			t.Errorf("%v", tasks)
		}
		// A client of 2025-11-25 cancels its call.
		legacy := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "b", `{}`)
		var gone sync.WaitGroup
		gone.Go(func() {
			body, edits := legacy.Request("tools/call", map[string]any{"name": "slow_sleep", "arguments": map[string]any{"ms": 60000}})
			legacy.Post(body, edits...)
		})
		synctest.Wait()
		if tasks := wiretest.ListTasks(t, legacy); len(tasks) != 1 {
			t.Fatalf("%v", tasks)
		}
		legacy.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, legacy.IDs.Load()))
		wiretest.Eventually(t, "a cancelled call ends", func() bool { return len(wiretest.ListTasks(t, legacy)) == 0 })
		gone.Wait()
	})
}

// TestFallbackSDKClient checks that the SDK's own client gets the result of a task that outlasts
// the call: the text of each result tells the model which tool to call next.
func TestFallbackSDKClient(t *testing.T) {
	eachSlow(t, plainRevisions[1:], wiretest.Setup{}, 300*time.Millisecond, func(t *testing.T, url, revision string, open func()) {
		client := mcp.NewClient(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: url}, &mcp.ClientSessionOptions{ProtocolVersion: revision})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = session.Close() }()
		if got := session.InitializeResult().ProtocolVersion; got != revision {
			t.Fatalf("speaks %s", got)
		}
		call := func(tool string, arguments any) *mcp.CallToolResult {
			t.Helper()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
			if err != nil || result.IsError {
				t.Fatalf("%s: %+v, %v", tool, result, err)
			}
			return result
		}
		result := call("slow_sleep", map[string]any{"ms": -1})
		for calls := 1; calls < 20; calls++ {
			content := result.StructuredContent.(map[string]any)
			if content["slept"] != nil {
				break
			}
			text := result.Content[0].(*mcp.TextContent).Text
			// A model reads which tool to call, and its arguments.
			_, rest, ok := strings.Cut(text, "call the tool ")
			tool, rest, ok2 := strings.Cut(rest, " with ")
			end := strings.IndexByte(rest, '}')
			if !ok || !ok2 || end < 0 {
				t.Fatalf("the text does not say how to go on: %s", text)
			}
			switch calls {
			case 1:
				t.Log(text)
			case 3: // no earlier call could wait for the end
				open()
			}
			result = call(tool, json.RawMessage(rest[:end+1]))
		}
		if fmt.Sprint(result.StructuredContent) != "map[slept:3000]" {
			t.Errorf("%v", result.StructuredContent)
		}
	})
}

// TestFallbackPlainStart checks that the generated client gets a token for an ordinary call that
// goes on as a task.
func TestFallbackPlainStart(t *testing.T) {
	eachSlow(t, plainRevisions[2:], wiretest.Setup{}, 100*time.Millisecond, func(t *testing.T, url, revision string, open func()) {
		conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: revision})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		ctx := t.Context()
		call, err := mcptask.Start[slowReport](ctx, conn, "slow_sleep", wiretest.PonderInput{MS: -1}, mcptask.Plain())
		if err != nil {
			t.Fatal(err)
		}
		if token, ok := call.Token(); !ok || token == "" {
			t.Error("no token")
		}
		stopped, err := mcptask.Start[slowReport](ctx, conn, "slow_sleep", wiretest.PonderInput{MS: -1}, mcptask.Plain())
		if err != nil {
			t.Fatal(err)
		}
		if err := stopped.Cancel(ctx); err != nil {
			t.Error(err)
		}
		if _, err := stopped.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
			t.Errorf("%v", err)
		}
		open()
		if report, err := call.Wait(ctx); err != nil || report.Slept != 3000 {
			t.Errorf("%+v, %v", report, err)
		}
		if report, err := mcptask.Run[slowReport](ctx, conn, "slow_sleep", wiretest.PonderInput{MS: -1}, mcptask.Plain()); err != nil || report.Slept != 3000 {
			t.Errorf("at once: %+v, %v", report, err)
		}
	})
}

// TestFallbackQuestions checks that a client without elicitation answers questions with the fallback
// tools.
func TestFallbackQuestions(t *testing.T) {
	const wait = time.Minute // much longer than anything in this test takes
	eachPlainPeer(t, wait, func(t *testing.T, p *wiretest.Peer, _ func()) {
		var widened any
		for _, entry := range p.Call("tools/list", nil).OK().Get("tools").([]any) {
			if tool := entry.(map[string]any); tool["name"] == "slow_sleep" {
				widened = tool["outputSchema"] // as of any tool that may go on as a task
			}
		}
		for tool, key := range map[string]string{"slow_ask": "note", "slow_ask_first": "before/Note"} {
			begun := time.Now()
			r := p.CallTool(tool, nil)
			id := r.WantTask("input_required")
			r.WantMembers(`{"structuredContent":{"statusMessage":"A note?","questions":[{"key":%q,"text":"A note?","schema":%s}],
				"next":{"tool":"slow_task_answer","arguments":{"task":%q,"question":%[1]q}}}}`, key, noteSchema, id)
			var content struct{ StructuredContent json.RawMessage }
			if err := json.Unmarshal(r.Result, &content); err != nil {
				t.Fatal(err)
			}
			if err := fits(t, widened, string(content.StructuredContent)); err != nil {
				t.Error(err)
			}
			if text := r.Content(); !strings.Contains(text, "A note?") || !strings.Contains(text, `slow_task_answer with {"question":"`+key+`","task":"`+id+`"}`) ||
				!strings.Contains(text, `"maxLength":5`) {
				t.Errorf("the text does not say how to answer: %s", text)
			}
			if p.CallTool("slow_task_result", map[string]any{"task": id}).WantTask("input_required"); time.Since(begun) >= wait {
				t.Errorf("waited for an answer that cannot come")
			}
			answer := func(question string, value any) *wiretest.Response {
				return p.CallTool("slow_task_answer", map[string]any{"task": id, "question": question, "answer": value})
			}
			answer("other", map[string]any{"note": "a"}).WantText(true, "no question")
			answer(key, map[string]any{"note": "too long"}).WantText(true, "still open")
			answer(key, "text").WantText(true, "still open")
			answer(key, map[string]any{"note": "milk"}).OK()
			p.CallTool("slow_task_result", map[string]any{"task": id}).WantText(false, "noted milk")
			answer(key, map[string]any{"note": "late"}).WantText(true, "no question")

			id = p.CallTool(tool, nil).WantTask("input_required")
			answer(key, nil).OK()
			p.CallTool("slow_task_result", map[string]any{"task": id}).WantText(true, "declined")
		}
	})
}

// TestFallbackBesideTasks checks that a client with tasks and without elicitation answers the
// questions of its tasks with a fallback tool, which the status message names.
func TestFallbackBesideTasks(t *testing.T) {
	rules.Covers(t, "E-20", "E-30", "C-49", "C-52")
	eachSlow(t, plainRevisions[2:], wiretest.Setup{Bearer: true}, time.Minute, func(t *testing.T, url, revision string, _ func()) {
		p := wiretest.NewPeer(t, url, revision, "a")
		waiting := map[string]string{wiretest.LegacyRevision: "input_required", wiretest.ModernRevision: "working"}[revision]
		for tool, key := range map[string]string{"slow_ask": "note", "slow_ask_first": "before/Note"} {
			id := p.Create(tool, nil)
			wantMessage := fmt.Sprintf(`A note? To answer, call the tool slow_task_answer with {"task":%q,"question":%q,"answer":{"note":<string>}}.`, id, key)
			wiretest.Eventually(t, "the question is in the status message", func() bool {
				return p.Task("tasks/get", id).Text("statusMessage") == wantMessage
			})
			p.Task("tasks/get", id).WantMembers(`{"status":%q,"inputRequests":null}`, waiting)
			for _, listed := range wiretest.ListTasks(t, p) {
				if listed["taskId"] == id && (listed["statusMessage"] != wantMessage || listed["status"] != "input_required") {
					t.Errorf("%v", listed)
				}
			}
			p.CallTool("slow_task_status", map[string]any{"task": id}).WantTask("input_required")
			// A client that can show the question gets it.
			able := wiretest.NewPeerWith(t, url, wiretest.ModernRevision, "a", wiretest.WithQuestions)
			able.Task("tasks/get", id).WantMembers(`{"status":"input_required","statusMessage":"A note?","inputRequests":{%q:{"params":{"message":"A note?"}}}}`, key)

			p.CallTool("slow_task_answer", map[string]any{"task": id, "question": key, "answer": map[string]any{"note": "milk"}}).OK()
			if got := p.TaskText(id); got != "noted milk" {
				t.Errorf("%s", got)
			}
		}
		// A question that no tool answers returns an error to the handler.
		id := p.Create("slow_sample", nil)
		if got := p.TaskText(id); !strings.Contains(got, "has not declared that it answers sampling/createMessage") {
			t.Errorf("%s", got)
		}
	})
}

// TestFallbackMute checks what a model reads of a question that it cannot pass on.
func TestFallbackMute(t *testing.T) {
	eachSlow(t, plainRevisions[1:], wiretest.Setup{Bearer: true}, time.Minute, func(t *testing.T, url, revision string, _ func()) {
		able := wiretest.NewAskedPeer(t, url, wiretest.ModernRevision, "a", wiretest.AllCapabilities)
		id := able.Create("slow_sample", nil)
		able.Until(id, "input_required")
		p := wiretest.NewPeerWith(t, url, revision, "a", `{}`)
		r := p.CallTool("slow_task_result", map[string]any{"task": id})
		if r.WantTask("input_required"); p.Revision == wiretest.LegacyRevision {
			p.Task("tasks/get", id).WantMembers(`{"status":"input_required","statusMessage":"The tool asks the client's model for a message. It is to answer: Sum up."}`)
		}
		r.WantText(false, "The tool asks the client's model for a message. It is to answer: Sum up. This client has not declared that it can do that")
		r.WantMembers(`{"structuredContent":{"questions":[{"key":"sum","text":"The tool asks the client's model for a message. It is to answer: Sum up."}],
			"hint":"slow_sample goes on as this task. Do not call it again: tell the user that another client has to answer its question, and call slow_task_result then.","next":null}}`)
		p.CallTool("slow_task_answer", map[string]any{"task": id, "question": "sum", "answer": map[string]any{}}).WantText(true, "no question")
	})
}

// TestFallbackHiddenStatus checks that a program that shows no status messages gets no task that may ask
// what it cannot show. Nobody would learn of the question.
func TestFallbackHiddenStatus(t *testing.T) {
	hides := taskserver.Options{ClientProfile: func(client taskserver.ClientInfo) taskserver.ClientProfile {
		return taskserver.ClientProfile{HidesStatus: client == taskserver.ClientInfo{Name: "wire", Version: "1"}}
	}}
	eachSlow(t, []string{wiretest.ModernRevision}, wiretest.Setup{Options: hides}, time.Second, func(t *testing.T, url, revision string, _ func()) {
		p := wiretest.NewPeer(t, url, revision, "")
		if listed := p.Call("tools/list", nil).OK(); !strings.Contains(string(listed.Body), "The call has not finished: it goes on as a task.") {
			t.Errorf("the output schemas do not admit a task that goes on: %s", listed.Body)
		}
		r := p.CallTool("slow_ask", nil)
		id := r.WantTask("input_required")
		r.WantMembers(`{"structuredContent":{"next":{"tool":"slow_task_answer","arguments":{"task":%q,"question":"note"}}}}`, id)
		wiretest.NewPeerWith(t, url, revision, "", wiretest.WithQuestions).Create("slow_ask", nil)
		p.Create("slow_sleep", map[string]any{"ms": -1}) // it does not ask within the wait
	})
}

// TestFallbackElicitation checks that a client with elicitation is asked on the stream of its open
// call.
func TestFallbackElicitation(t *testing.T) {
	const wait = 5 * time.Second
	asking := func(t *testing.T, url, revision string) *wiretest.Peer {
		return wiretest.NewPeerWith(t, url, revision, "", `{"elicitation":{}}`)
	}
	eachSlow(t, plainRevisions[1:3], wiretest.Setup{}, wait, func(t *testing.T, url, revision string, _ func()) {
		p := asking(t, url, revision)
		send := func(tool string, arguments map[string]any) *wiretest.Feed {
			return p.Send("tools/call", map[string]any{"name": tool, "arguments": arguments})
		}
		reply := func(f *wiretest.Feed) *wiretest.Response {
			last := f.Next()
			return &wiretest.Response{T: t, Status: http.StatusOK, Body: []byte(last.Text), Result: last.Result}
		}
		asked := func(tool, response string) *wiretest.Response {
			t.Helper()
			f := send(tool, nil)
			p.Respond(f.NextQuestion("").ID, response)
			return reply(f)
		}
		for _, tool := range []string{"slow_ask", "slow_ask_first"} {
			asked(tool, wiretest.AcceptNote("milk")).WantText(false, "noted milk")
			// If the client cannot show the question, the model may pass it on.
			started := time.Now()
			r := asked(tool, `"error":{"code":-32603,"message":"no window"}`)
			if r.WantTask("input_required"); time.Since(started) >= wait || !strings.Contains(r.Content(), "slow_task_answer") {
				t.Errorf("%v: %s", time.Since(started), r.Content())
			}
			// If the person takes longer than the call, the question stays open, and is not asked again.
			f := send(tool, nil)
			question := f.NextQuestion("")
			r = reply(f)
			id := r.WantTask("input_required")
			if text := r.Content(); !strings.Contains(text, "being asked: call slow_task_result to wait for the answer") {
				t.Errorf("%s", text)
			}
			reply(send("slow_task_result", map[string]any{"task": id})).WantTask("input_required")
			f = send("slow_task_result", map[string]any{"task": id})
			p.Respond(question.ID, wiretest.AcceptNote("eggs"))
			reply(f).WantText(false, "noted eggs")
		}
	})
	eachSlow(t, plainRevisions[3:], wiretest.Setup{}, wait, func(t *testing.T, url, revision string, _ func()) {
		p := asking(t, url, revision)
		id := wiretest.NewPeerWith(t, url, revision, "", `{}`).CallTool("slow_ask", nil).WantTask("input_required")
		result := map[string]any{"name": "slow_task_result", "arguments": map[string]any{"task": id}}
		r := p.Call("tools/call", result).OK()
		if r.Text("resultType") != "input_required" || r.Text("inputRequests", "note", "params", "message") != "A note?" {
			t.Fatalf("%s", r.Body)
		}
		result["inputResponses"] = map[string]any{"note": map[string]any{"action": "accept", "content": map[string]any{"note": "milk"}}}
		p.Call("tools/call", result).WantText(false, "noted milk")
		// Before the task, the server asks in the revision's own way.
		if r := p.CallTool("slow_ask_first", nil).OK(); r.Text("resultType") != "input_required" {
			t.Errorf("%s", r.Body)
		}
	})
}
