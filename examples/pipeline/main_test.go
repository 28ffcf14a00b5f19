package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// TestDemo shows the calls in a bubble, so that it misses no stage. It checks the words that each revision prescribes
// for people.
func TestDemo(t *testing.T) {
	of := map[string][]string{
		"2025-11-25": {"failed  isError: build: main.go:12:3", "as the task that the client asked for"},
		"2026-07-28": {"completed  isError: build: main.go:12:3", "version 1.4.2, answered at once"},
	}
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			var out strings.Builder
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Answer: answerApproval(&out)}, pipeline.CITools(ci{}))
			if err := showCalls(t.Context(), &out, conn); err != nil {
				t.Errorf("%v\n%s", err, out.String())
			}
			for _, want := range append([]string{
				revision, "created   working  task ", "progress  working  test (2/4)", "result    completed  4 stages in 1.0 s",
				"token     ", "result    cancelled  after ", "failed  the repository shop is locked (code -32050)", "README.md is not a Go file",
				"question  Ship api to production?  yes", "question  Ship billing to production?  no", "isError: billing was not shipped",
			}, of[revision]...) {
				if !strings.Contains(out.String(), want) {
					t.Errorf("%q is missing in\n%s", want, out.String())
				}
			}
		})
	})
}

func TestFlagsExclude(t *testing.T) {
	for _, m := range []mode{
		{addr: "127.0.0.1:0", url: "http://127.0.0.1/mcp"},
		{addr: "127.0.0.1:0", stdio: true},
		{url: "http://127.0.0.1/mcp", stdio: true},
	} {
		if err := run(t.Context(), new(bytes.Buffer), m); err == nil {
			t.Errorf("%+v: two modes at once", m)
		}
	}
}
