package edgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// serveOnly starts a server that speaks one of the released revisions.
func serveOnly(t *testing.T, revision string, tools ...mcptask.Tools) string {
	url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: taskserver.Options{Revisions: []string{revision}}, Tools: tools})
	return url
}

// wantUnsupported checks that a response refuses a revision, and names the one that the server speaks.
func wantUnsupported(t *testing.T, what string, r *wiretest.Response, requested, supported string) {
	t.Helper()
	r.Want(http.StatusBadRequest, wiretest.Unsupported)
	if want := fmt.Sprintf(`{"requested":%q,"supported":[%q]}`, requested, supported); r.Error == nil || !wiretest.SameJSON(string(r.Error.Data), want) {
		t.Errorf("%s: %s, want the data %s", what, r.Body, want)
	}
	if string(r.ID) == "" {
		t.Errorf("%s: the answer has no ID: %s", what, r.Body)
	}
}

// TestModernTurnedOff checks that a server whose options leave out 2026-07-28 serves no request of it, whatever the
// method. The answer makes clients go on in sessions.
func TestModernTurnedOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url := serveOnly(t, wiretest.LegacyRevision)
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		for _, method := range []string{"server/discover", "tools/list", "tools/call", "tasks/get", "tasks/result", "subscriptions/listen", "resources/list", "made/up"} {
			params := map[string]any{"name": "sdk_tool", "arguments": map[string]any{}, "taskId": "x"}
			for _, header := range []string{wiretest.ModernRevision, wiretest.LegacyRevision, ""} { // a connector sends the second
				r := p.Call(method, params, wiretest.WithHeader("MCP-Protocol-Version", header))
				wantUnsupported(t, method+" with the header "+header, r, wiretest.ModernRevision, wiretest.LegacyRevision)
			}
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method)
			wantUnsupported(t, method+" by its header alone", p.Post(body), wiretest.ModernRevision, wiretest.LegacyRevision)
		}
		for method, body := range map[string]string{"POST": `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "GET": "", "DELETE": ""} {
			if status := p.Status(method, body); status != http.StatusBadRequest {
				t.Errorf("%s of 2026-07-28: %d", method, status)
			}
		}
		conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if conn.Revision() != wiretest.LegacyRevision {
			t.Errorf("the client speaks %s", conn.Revision())
		}
	})
}

// TestSessionsTurnedOff checks that a server whose options name only 2026-07-28 opens no session, and does not say that
// it would.
func TestSessionsTurnedOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url := serveOnly(t, wiretest.ModernRevision)
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		if got := fmt.Sprint(p.Call("server/discover", nil).OK().Get("supportedVersions")); got != "[2026-07-28]" {
			t.Errorf("it supports %s", got)
		}
		p.Until(p.Create("raw", nil), "completed")
		for _, version := range []string{"2024-11-05", wiretest.BeforeTasks, wiretest.LegacyRevision, wiretest.ModernRevision} {
			old := wiretest.NewUnopenedPeer(t, url, version, "", "{}")
			old.Revision = version
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`, version)
			wantUnsupported(t, "initialize in "+version, old.Post(body, wiretest.WithHeader("MCP-Protocol-Version", "")), version, wiretest.ModernRevision)
		}
		old := wiretest.NewUnopenedPeer(t, url, wiretest.LegacyRevision, "", "{}")
		old.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`).Want(http.StatusBadRequest, wiretest.InvalidParams)
		wantUnsupported(t, "tools/list of a session", old.Post(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
			wiretest.WithHeader("MCP-Protocol-Version", wiretest.LegacyRevision), wiretest.WithHeader("Mcp-Session-Id", "s")),
			wiretest.LegacyRevision, wiretest.ModernRevision)
		for _, method := range []string{"GET", "DELETE"} {
			if status := old.Status(method, "", wiretest.WithHeader("Mcp-Session-Id", "s")); status != http.StatusMethodNotAllowed {
				t.Errorf("%s of a session: %d", method, status)
			}
		}
	})
}

// TestTurnedOffOnPipes is TestModernTurnedOff and TestSessionsTurnedOff on pipes.
func TestTurnedOffOnPipes(t *testing.T) {
	const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	t.Parallel()
	bubble.Run(t, "2026-07-28", func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{Revisions: []string{wiretest.LegacyRevision}})
		for _, method := range []string{"server/discover", "tools/list", "tasks/get", "made/up"} {
			got := p.Ask(`{"jsonrpc":"2.0","id":7,"method":%q,"params":{"taskId":"x",%s}}`, method, modernMeta)
			if !strings.Contains(got, `"id":7`) || !strings.Contains(got, "-32022") || !strings.Contains(got, `"supported":["2025-11-25"]`) {
				t.Errorf("%s: %s", method, got)
			}
		}
		if got := p.Ask(initialize, wiretest.ModernRevision); !strings.Contains(got, `"protocolVersion":"2025-11-25"`) {
			t.Errorf("initialize in 2026-07-28: %s", got)
		}
		p.Stop()
	})
	bubble.Run(t, "sessions", func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{Revisions: []string{wiretest.ModernRevision}})
		for _, version := range []string{"2024-11-05", wiretest.LegacyRevision} {
			if got := p.Ask(initialize, version); !strings.Contains(got, "-32022") || !strings.Contains(got, `"supported":["2026-07-28"]`) {
				t.Errorf("initialize in %s: %s", version, got)
			}
		}
		if got := p.Ask(`{"jsonrpc":"2.0","id":7,"method":"ping"}`); !strings.Contains(got, "-32602") {
			t.Errorf("a ping of a session: %s", got)
		}
		if got := p.Ask(`{"jsonrpc":"2.0","id":8,"method":"server/discover","params":{%s}}`, modernMeta); !strings.Contains(got, `"supportedVersions":["2026-07-28"]`) {
			t.Error(got)
		}
		p.Stop()
	})
}

// TestMadeUpSessions checks that a message about tasks without a session is refused with 400, one with a made-up session
// with 404, and that the answer to a request has its ID.
func TestMadeUpSessions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, known := range []bool{false, true} { // before and after the first session
			if known {
				wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
			}
			p := wiretest.NewUnopenedPeer(t, url, wiretest.LegacyRevision, "", "{}")
			for _, method := range []string{"tools/call", "tasks/get"} {
				body := fmt.Sprintf(`{"jsonrpc":"2.0","id":"seven","method":%q,"params":{"name":"run_pipeline","arguments":{},"taskId":"x"}}`, method)
				for session, status := range map[string]int{"": http.StatusBadRequest, "made-up": http.StatusNotFound} {
					if session == "" && !known && method != "tasks/get" {
						continue // the SDK may be one that gives its sessions no IDs
					}
					r := p.Post(body, wiretest.WithHeader("Mcp-Session-Id", session)).Want(status, wiretest.InvalidRequest)
					if string(r.ID) != `"seven"` {
						t.Errorf("%s, session %q: the answer has no ID: %s", method, session, r.Body)
					}
				}
			}
			for _, method := range []string{"GET", "DELETE"} {
				for session, want := range map[string]int{"": http.StatusBadRequest, "made-up": http.StatusNotFound} {
					if got := p.Status(method, "", wiretest.WithHeader("Mcp-Session-Id", session)); got != want {
						t.Errorf("%s of session %q: %d, want %d", method, session, got, want)
					}
				}
			}
		}
	})
}

// serveSDK serves an SDK server with these options, and with tasks in one revision, or in both if revision is "".
func serveSDK(t *testing.T, options *mcp.ServerOptions, revision string, tools ...mcptask.Tools) (url string) {
	tasks, err := taskserver.New(taskserver.Options{}, append(tools, wiretest.AllRevisionsCITools())...)
	if err != nil {
		t.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, options)
	mcp.AddTool(sdk, &mcp.Tool{Name: "sdk_tool"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{}}, nil, nil
	})
	gosdk.AddTools(sdk, tasks)
	handler := gosdk.NewRevisionHandler(tasks, revision, func(*http.Request) *mcp.Server { return sdk }, nil)
	server := memnet.NewServer(wirecheck.Handler(t, handler), nil)
	t.Cleanup(func() {
		_ = tasks.Close()
		server.Close()
		wiretest.EndSessions(sdk)
	})
	return server.URL
}

// TestUnspokenRevision checks that a handler declares tasks only in its revision. A client that calls a required task tool
// in another revision learns which revision has tasks, instead of a missing capability.
func TestUnspokenRevision(t *testing.T) {
	const tool = "must"
	must := mcptask.Tools{Service: "S", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: tool, InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskRequired}},
			func(context.Context, *mcptask.Task, struct{}) (struct{}, error) { return struct{}{}, nil }),
	}}
	call := map[string]any{"name": tool, "arguments": map[string]any{}, "task": map[string]any{}}
	t.Parallel()
	bubble.Run(t, wiretest.ModernRevision, func(t *testing.T) {
		p := wiretest.NewPeer(t, serveSDK(t, nil, wiretest.LegacyRevision, must), wiretest.ModernRevision, "")
		r := p.Call("server/discover", nil).OK()
		if r.Get("capabilities", "extensions", spec.ExtensionTasks) != nil || r.Text("resultType") != "complete" {
			t.Errorf("%s", r.Body)
		}
		r = p.Call("tools/call", call).Want(http.StatusBadRequest, spec.CodeMissingClientCapability)
		if r.Error != nil && !strings.Contains(r.Error.Message, "no tasks in 2026-07-28, only in 2025-11-25") {
			t.Error(r.Error.Message)
		}
	})
	bubble.Run(t, wiretest.LegacyRevision, func(t *testing.T) {
		p := wiretest.NewPeer(t, serveSDK(t, nil, wiretest.ModernRevision, must), wiretest.LegacyRevision, "")
		if p.Opened.Get("capabilities", "tasks") != nil {
			t.Errorf("%s", p.Opened.Body)
		}
		r := p.Call("tools/call", call).Want(http.StatusOK, mcptask.CodeMethodNotFound)
		if r.Error != nil && !strings.Contains(r.Error.Message, "no tasks in 2025-11-25, only in 2026-07-28") {
			t.Error(r.Error.Message)
		}
	})
}

// TestUnspokenFallback checks the error of the generated client for a call that goes on behind the
// fallback tools, in a revision without tasks. The error names the option that helps.
func TestUnspokenFallback(t *testing.T) {
	t.Parallel()
	for spoken, revision := range map[string]string{wiretest.LegacyRevision: wiretest.ModernRevision, wiretest.ModernRevision: wiretest.LegacyRevision} {
		bubble.Run(t, revision, func(t *testing.T) {
			gate := make(chan struct{})
			defer close(gate)
			conn, err := gosdk.Connect(t.Context(), serveSDK(t, nil, spoken, slowTools(time.Millisecond, gate)), gosdk.ClientOptions{Revision: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			_, err = mcptask.Run[slowReport](t.Context(), conn, "slow_sleep", wiretest.PonderInput{MS: -1})
			var refused *mcptask.Error
			if !errors.As(err, &refused) || refused.Code != mcptask.CodeMethodNotFound || !strings.Contains(err.Error(), "ClientOptions.Revision") {
				t.Error(err)
			}
		})
	}
}

// TestSessionlessSDK checks that an SDK server that gives its sessions no IDs is served as without the gateway.
func TestSessionlessSDK(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url := serveSDK(t, &mcp.ServerOptions{GetSessionID: func() string { return "" }}, "")
		for range 2 { // before and after an initialize
			p := wiretest.NewUnopenedPeer(t, url, wiretest.LegacyRevision, "", "{}")
			if got := p.Call("tools/list", nil).OK().Get("tools"); got == nil {
				t.Error("no tools")
			}
			p.Call("tools/call", map[string]any{"name": "sdk_tool", "arguments": map[string]any{}}).OK()
			p.SendInitialize()
		}
	})
}

// TestByteOrderMark checks that a byte order mark before a message is skipped, in a body and on a pipe.
func TestByteOrderMark(t *testing.T) {
	const mark = "\ufeff"
	t.Parallel()
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		p := wiretest.NewPeer(t, url, revision, "")
		body, edits := p.Request("tools/list", nil)
		p.Post(mark+body, edits...).OK()
	})
	bubble.Run(t, "pipe", func(t *testing.T) {
		p := wiretest.NewPiped(t)
		for range 2 { // a program may write one before each line
			if got := p.Ask(mark + `{"jsonrpc":"2.0","id":7,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`); !strings.Contains(got, `"id":7`) {
				t.Error(got)
			}
		}
		p.Say(mark) // a line with nothing else is empty
		if got := p.Ask(`{"jsonrpc":"2.0","id":8,"method":"ping"}`); got != `{"jsonrpc":"2.0","id":8,"result":{}}` {
			t.Error(got)
		}
		p.Stop()
	})
}

// TestUnreadableRequests checks that the answer to a request that cannot be served has its ID if that can be read, over
// HTTP and on a pipe.
func TestUnreadableRequests(t *testing.T) {
	long := strings.Repeat("x", 2*wiretest.PipeLimit)
	deep := strings.Repeat("[", 1002) + strings.Repeat("]", 1002)
	lines := map[string]string{
		"a number as method":   `{"jsonrpc":"2.0","id":7,"method":5}`,
		"no version":           `{"id":7,"method":"ping"}`,
		"a number as version":  `{"jsonrpc":2,"id":7,"method":"ping"}`,
		"an ambiguous method":  `{"jsonrpc":"2.0","id":7,"method":"ping","method":"pong"}`,
		"ambiguous params":     `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"a","name":"b"}}`,
		"too long":             `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"` + long + `"}}`,
		"too long, ID as text": `{"id":"7","jsonrpc":"2.0","method":"tools/call","params":{"name":"` + long + `"}}`,
		"too deep":             `{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":` + deep + `}}`,
	}
	hasID := func(answer []byte) bool {
		var read struct {
			ID    any
			Error *mcptask.Error
		}
		return json.Unmarshal(answer, &read) == nil && read.Error != nil && slices.Contains([]any{7.0, "7"}, read.ID)
	}
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		over := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		p := wiretest.NewPipedWith(t, taskserver.Options{MaxBody: 3 * wiretest.PipeLimit / 2})
		for what, line := range lines {
			if answer := p.Ask("%s", line); !hasID([]byte(answer)) {
				t.Errorf("%s, on a pipe: %s", what, answer)
			}
			if strings.HasPrefix(what, "too ") { // over HTTP a body that is too long is not read, and the SDK refuses the depth
				continue
			}
			if r := over.Post(line); !hasID(r.Body) {
				t.Errorf("%s, over HTTP: %s", what, r.Body)
			}
		}
		p.Stop()
	})
}
