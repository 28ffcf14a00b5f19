package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// asksRoots is middleware that asks for the client's roots, and answers with the first. It waits for as long as wait, with a
// context of its own.
func asksRoots(wait time.Duration, asked chan<- error) mcp.Middleware {
	return around(func(ctx context.Context, req *mcp.CallToolRequest, _ func() (mcp.Result, error)) (mcp.Result, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
		defer cancel()
		roots, err := req.Session.ListRoots(ctx, nil)
		if asked != nil {
			asked <- err
		}
		if err != nil {
			return nil, err
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: roots.Roots[0].URI}}}, nil
	})
}

const rootsAnswer = `{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///r"}]}}`

// everybody is the principal of all users.
func everybody(context.Context) (string, error) { return "everybody", nil }

// TestCallIsOfItsUser checks that another user of the same principal can neither answer the question of a call nor
// cancel it, as the SDK refuses that user in the session.
func TestCallIsOfItsUser(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Options: taskserver.Options{Principal: everybody}, Tools: []mcptask.Tools{endlessTool(ended)},
			Middleware: around(func(ctx context.Context, req *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error) {
				if _, err := req.Session.ListRoots(ctx, nil); err != nil {
					return nil, err
				}
				return next()
			})})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "alice", `{"roots":{}}`)
		asMallory := wiretest.WithHeader("Authorization", "Bearer mallory")
		call := p.Send("tools/call", map[string]any{"name": "endless", "arguments": map[string]any{}})
		id := p.IDs.Load()
		answer := fmt.Sprintf(rootsAnswer, call.Next().ID)
		cancel := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, id)
		for _, message := range []string{answer, cancel} {
			if r := p.Post(message, asMallory); r.Status != http.StatusForbidden {
				t.Errorf("%d %s", r.Status, r.Body)
			}
		}
		if r := p.Post(answer); r.Status != http.StatusAccepted {
			t.Errorf("%d %s", r.Status, r.Body)
		}
		p.Post(cancel, asMallory)
		time.Sleep(time.Minute)
		select {
		case err := <-ended:
			t.Errorf("another user has ended the call: %v", err)
		default:
		}
		p.Post(cancel)
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		call.Next()
	})
}

// TestQuestionEndsWithSession checks that a question that waits with a context of its own ends with the client's session.
func TestQuestionEndsWithSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		asked := make(chan error, 1)
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Middleware: asksRoots(24*time.Hour, asked)})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", `{"roots":{}}`)
		p.Send("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}}).Next()
		began := time.Now()
		response, err := p.Client.Do(p.NewRequest(t.Context(), http.MethodDelete, ""))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if err := <-asked; err == nil || time.Since(began) > time.Minute {
			t.Errorf("the question ended after %v with %v", time.Since(began), err)
		}
	})
}

// heapSize returns the bytes of the reachable heap.
func heapSize() int64 {
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

// TestQuestionsAreForgotten checks that a call does not keep its former questions.
func TestQuestionsAreForgotten(t *testing.T) {
	const questions, size = 60, 100_000
	bubble.Test(t, func(t *testing.T) {
		var grown int64
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Middleware: around(func(ctx context.Context, req *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error) {
			before := heapSize()
			for range questions {
				each, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
				if _, err := req.Session.Elicit(each, &mcp.ElicitParams{Message: strings.Repeat("x", size), RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)}); !errors.Is(err, context.DeadlineExceeded) {
					t.Error(err)
				}
				cancel()
			}
			time.Sleep(time.Second)
			grown = heapSize() - before
			return next()
		})})
		p := wiretest.NewPeerWith(t, url, wiretest.LegacyRevision, "", `{"elicitation":{}}`)
		p.Post(`{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"raw","arguments":{}}}`)
		if grown > questions*size/3 {
			t.Errorf("%d bytes are kept of %d questions", grown, questions)
		}
	})
}

// TestTwoTaskServers checks that a call keeps its task server if an SDK server has the tools of two, so that the task of a
// call that middleware refuses is cancelled.
func TestTwoTaskServers(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		first, err := taskserver.New(taskserver.Options{Limits: wiretest.NoPollLimits, Principal: everybody}, wiretest.ExtraTools())
		if err != nil {
			t.Fatal(err)
		}
		second, err := taskserver.New(taskserver.Options{}, endlessTool(nil))
		if err != nil {
			t.Fatal(err)
		}
		sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, nil)
		sdk.AddReceivingMiddleware(around(func(_ context.Context, _ *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error) {
			_, _ = next()
			return nil, errors.New("denied")
		}))
		gosdk.AddTools(sdk, first)
		gosdk.AddTools(sdk, second)
		server := memnet.NewServer(wirecheck.Handler(t, gosdk.NewHandler(first, func(*http.Request) *mcp.Server { return sdk }, nil)), nil)
		t.Cleanup(func() {
			_, _ = first.Close(), second.Close()
			server.Close()
			wiretest.EndSessions(sdk)
		})
		p := wiretest.NewPeer(t, server.URL, wiretest.LegacyRevision, "")
		p.Call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{"ms": 3_600_000}, "task": map[string]any{}})
		time.Sleep(time.Second)
		tasks := wiretest.ListTasks(t, p)
		if len(tasks) != 1 || !strings.Contains(fmt.Sprint(tasks), "cancelled") {
			t.Errorf("%v", tasks)
		}
	})
}

// TestMiddlewareWithOwnContext checks that middleware may go on with a context of its own.
func TestMiddlewareWithOwnContext(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{SDK: func(sdk *mcp.Server) {
			sdk.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
				return func(_ context.Context, method string, req mcp.Request) (mcp.Result, error) {
					return next(context.Background(), method, req)
				}
			})
		}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			p.Call("tools/list", nil).OK()
			p.Until(p.Create("raw", nil), "completed")
		}
	})
}

// TestChangedToolsDuringCall checks that a client hears of a new tool once, and the log of nothing, while a call has sent a
// message.
func TestChangedToolsDuringCall(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var logs bytes.Buffer
		tasks, err := taskserver.New(taskserver.Options{Limits: wiretest.NoPollLimits}, wiretest.ExtraTools())
		if err != nil {
			t.Fatal(err)
		}
		sdk := mcp.NewServer(&mcp.Implementation{Name: "s", Version: "1"}, &mcp.ServerOptions{Logger: slog.New(slog.NewTextHandler(&logs, nil))})
		sdk.AddReceivingMiddleware(around(func(ctx context.Context, req *mcp.CallToolRequest, next func() (mcp.Result, error)) (mcp.Result, error) {
			_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: "p"})
			sdk.AddTool(&mcp.Tool{Name: "new", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return nil, nil })
			time.Sleep(time.Second)
			return next()
		}))
		gosdk.AddTools(sdk, tasks)
		server := memnet.NewServer(wirecheck.Handler(t, gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)), nil)
		t.Cleanup(func() {
			_ = tasks.Close()
			server.Close()
			wiretest.EndSessions(sdk)
		})
		p := wiretest.NewPeer(t, server.URL, wiretest.LegacyRevision, "")
		stream := p.OpenGet()
		call := p.Send("tools/call", map[string]any{"name": "raw", "arguments": map[string]any{}})
		if m := call.Next(); m.Method != "notifications/progress" {
			t.Errorf("%s", m.Text)
		}
		if m := call.Next(); m.Method != "" {
			t.Errorf("%s", m.Text)
		}
		if m := stream.Next(); m.Method != "notifications/tools/list_changed" {
			t.Errorf("%s", m.Text)
		}
		if text := logs.String(); strings.Contains(text, "WARN") || strings.Contains(text, "ERROR") {
			t.Error(text)
		}
	})
}
