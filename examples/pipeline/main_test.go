package main

import (
	"bytes"
	"context"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// TestDemo runs what `go run ./examples/pipeline` runs, and holds what a person
// reads against what each revision prescribes.
func TestDemo(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	// A busy machine may miss a stage between two polls, or the grace: not every time.
	brief := map[string]bool{"2025-11-25 progress  working  test (2/4)": true, "2026-07-28 progress  working  test (2/4)": true, "2026-07-28 answered at once": true}
	for range 10 {
		holdDemo(ctx, t, brief)
		if len(brief) == 0 {
			return
		}
	}
	t.Errorf("never seen: %v", brief)
}

// holdDemo runs it once. What it shows of what may be missed is taken out of brief.
func holdDemo(ctx context.Context, t *testing.T, brief map[string]bool) {
	t.Helper()
	var out bytes.Buffer
	if err := run(ctx, &out, mode{}); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	parts := regexp.MustCompile(`(?m)^(2025-11-25|2026-07-28)$`).Split(out.String(), -1)
	if len(parts) != 3 {
		t.Fatalf("not one part for each revision:\n%s", out.String())
	}
	for i, revision := range []struct{ name, toolError, deploy string }{
		{"2025-11-25", "failed  isError: build: main.go:12:3", "as the task that the client asked for"},
		{"2026-07-28", "completed  isError: build: main.go:12:3", "version 1.4.2, "},
	} {
		text := parts[i+1]
		maps.DeleteFunc(brief, func(line string, _ bool) bool {
			of, want, _ := strings.Cut(line, " ")
			return of == revision.name && strings.Contains(text, want)
		})
		for _, want := range []string{
			"created   working  task ", "result    completed  4 stages in ",
			"token     ", "result    cancelled  after ", "result    " + revision.toolError,
			"failed  the repository shop is locked (code -32050)", "README.md is not a Go file", revision.deploy,
			"question  Ship api to production?  yes", "question  Ship billing to production?  no", "isError: billing was not shipped",
		} {
			if !strings.Contains(text, want) {
				t.Errorf("%s: %q is missing in\n%s", revision.name, want, text)
			}
		}
	}
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

// TestServeAndCall runs the two halves as two programs would: -http and -call.
func TestServeAndCall(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	lines := make(chan string, 1)
	serving, stop := context.WithCancel(ctx)
	served := make(chan error, 1)
	go func() { served <- run(serving, firstLine(lines), mode{addr: "127.0.0.1:0"}) }()
	url := peer.Tap(t, strings.TrimSpace(strings.TrimPrefix(<-lines, "serving ")))
	var out bytes.Buffer
	if err := run(ctx, &out, mode{url: url}); err != nil {
		t.Errorf("%v\n%s", err, out.String())
	}
	stop()
	if err := <-served; err != nil {
		t.Error(err)
	}
}

// firstLine is a writer that sends what is written first.
type firstLine chan string

// Write implements io.Writer.
func (c firstLine) Write(p []byte) (int, error) {
	select {
	case c <- string(p):
	default:
	}
	return len(p), nil
}
