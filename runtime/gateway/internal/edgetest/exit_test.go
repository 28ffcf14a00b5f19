package edgetest

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// exitTool is a tool whose handler ends its goroutine, as testing.T.FailNow does.
func exitTool() mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: "exit", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
		func(context.Context, *mcptask.Task, struct{}) (string, error) {
			runtime.Goexit()
			return "", nil
		})
}

// TestExitIsAnswered checks that a handler, a hook or a function of the options that ends its goroutine harms nobody: the
// call is answered, its slot and its place among the open calls are free again, and the log says so.
func TestExitIsAnswered(t *testing.T) {
	exits := mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{exitTool()}}
	const internal = -32603
	for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
		bubble.Run(t, revision, func(t *testing.T) {
			logs := &wiretest.SafeBuffer{}
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Panics: true, Tools: []mcptask.Tools{exits}, Options: taskserver.Options{
				Concurrency: 1, Limits: taskserver.Limits{Running: 1, Polls: -1}, Logger: slog.New(slog.NewTextHandler(logs, nil)),
			}})
			p := wiretest.NewPeer(t, url, revision, "")
			plain := wiretest.NewPeerWith(t, url, revision, "", `{}`)
			for range 2 {
				plain.CallTool("exit", map[string]any{}).Want(200, internal)
				p.Until(p.Create("exit", map[string]any{}), "failed")
			}
			if text := logs.String(); strings.Count(text, "handler ended its goroutine") != 4 || !strings.Contains(text, "tool=exit") {
				t.Errorf("the log: %s", text)
			}
		})
	}
	bubble.Run(t, "pipe", func(t *testing.T) {
		p := wiretest.NewPipedWith(t, taskserver.Options{Limits: wiretest.NoPollLimits}, exitTool())
		p.Initialize()
		for i := range 2 {
			p.Say(`{"jsonrpc":"2.0","id":"x%d","method":"tools/call","params":{"name":"exit","arguments":{}}}`, i)
			if m := p.NextMessage(); m.ID != fmt.Sprint("x", i) || !strings.Contains(m.Line, "-32603") {
				t.Errorf("the answer is %s", m.Line)
			}
		}
	})
	hooks := taskserver.Hooks{
		Request: func(context.Context, taskserver.RequestInfo) (context.Context, func(taskserver.RequestResult)) {
			runtime.Goexit()
			return nil, nil
		},
		Run: func(ctx context.Context, _ taskserver.RunInfo) (context.Context, func(taskserver.RunResult)) {
			return ctx, func(taskserver.RunResult) { runtime.Goexit() }
		},
		Store: func(context.Context, string) (context.Context, func(error)) { runtime.Goexit(); return nil, nil },
		Task:  func(context.Context, taskserver.TaskEvent) { runtime.Goexit() },
	}
	bubble.Run(t, "hooks", func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Panics: true, Options: taskserver.Options{Hooks: []taskserver.Hooks{hooks}, Concurrency: 1}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			for range 2 {
				p.Until(p.Create("raw", nil), "completed")
			}
		}
	})
	bubble.Run(t, "context", func(t *testing.T) {
		leaves := func(context.Context, string) (context.Context, error) { runtime.Goexit(); return nil, nil }
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Panics: true, Options: taskserver.Options{Context: leaves, Concurrency: 1}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			for range 2 {
				p.Until(p.Create("raw", nil), "failed")
				wiretest.NewPeerWith(t, url, revision, "", `{}`).CallTool("raw", nil).Want(200, internal)
			}
		}
	})
	bubble.Run(t, "principal", func(t *testing.T) {
		leave := false
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Panics: true, Options: taskserver.Options{Principal: func(context.Context) (string, error) {
			if leave {
				runtime.Goexit()
			}
			return "a", nil
		}}})
		p := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		id := p.Create("raw", nil)
		leave = true
		p.Task("tasks/get", id).Want(403, wiretest.InvalidRequest)
		leave = false
		p.Until(id, "completed")
	})
}
