package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestStory tells all parts that need no second process. In a bubble it misses no stage.
func TestStory(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "out")
		out, err := os.Create(file)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = out.Close() }() // it has been read
		ctx, leave := context.WithCancelCause(t.Context())
		s := newStory(nil, out, leave)
		defer s.t.Close()
		s.connect = func(_ context.Context, revision string, answer mcptask.Answerer) (mcptask.Conn, error) {
			return mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Answer: answer}, pipeline.CITools(ci{})), nil
		}
		if err := s.tell(ctx); err != nil {
			t.Error(err)
		}
		told, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{
			"its generated client, in MCP 2026-07-28", "run_pipeline is task ", "run_pipeline: 2/4 test\n",
			"The task is completed: 4 stages in 2.0 s.",
			"Ship api to production? Without a terminal, the demo answers yes itself.", "Version 1.4.2 is shipped.", "The task is cancelled",
			"StageFailed: build: main.go:12:3", "the repository shop is locked (code 4050)",
			"A tool error makes the task failed.", "The client chooses which calls are tasks.", "A question is a request of its own.",
		} {
			if !strings.Contains(string(told), want) {
				t.Errorf("%q is missing in\n%s", want, told)
			}
		}
	})
}

// TestInterrupt presses Ctrl-C while a task says that this cancels it, and once more.
func TestInterrupt(t *testing.T) {
	ctx, leave := context.WithCancelCause(t.Context())
	s := newStory(nil, os.Stderr, leave)
	cancelled := false
	s.setInterrupt(func() { cancelled = true })
	s.interrupt()
	if !cancelled || ctx.Err() != nil {
		t.Errorf("cancelled: %v, left: %v", cancelled, ctx.Err())
	}
	s.interrupt()
	if !errors.Is(context.Cause(ctx), errLeft) {
		t.Errorf("left: %v", context.Cause(ctx))
	}
}

// TestCast cuts characters in the middle.
func TestCast(t *testing.T) {
	var written strings.Builder
	c := newCast(&written)
	for _, part := range []string{"a\xe2", "\x94\x81", "\xff", "b\xf0\x9f\x98", "\x80"} {
		if n, err := c.Write([]byte(part)); n != len(part) || err != nil {
			t.Error(n, err)
		}
	}
	var shown strings.Builder
	for line := range strings.Lines(written.String()) {
		var at float64
		var kind, data string
		if err := json.Unmarshal([]byte(line), &[]any{&at, &kind, &data}); err != nil || kind != "o" {
			t.Errorf("%s: %v", line, err)
		}
		shown.WriteString(data)
	}
	if got, want := shown.String(), "a━\ufffdb😀"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestFlagsExclude(t *testing.T) {
	for _, m := range []mode{
		{addr: "127.0.0.1:0", url: "http://127.0.0.1/mcp"},
		{addr: "127.0.0.1:0", stdio: true},
		{url: "http://127.0.0.1/mcp", stdio: true},
		{record: "demo.cast", stdio: true},
		{keep: keeping{store: "sqlite:tasks.db"}},
	} {
		if err := run(t.Context(), os.Stdout, m); err == nil {
			t.Errorf("%+v: two modes at once", m)
		}
	}
}
