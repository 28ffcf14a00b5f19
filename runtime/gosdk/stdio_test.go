package gosdk_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/spec"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestCommandThatEnds: the client does not wait for a server that is gone.
func TestCommandThatEnds(t *testing.T) {
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		for name, use := range map[string]func(ctx context.Context, ci *pipeline.CIClient) error{
			"during a call": func(ctx context.Context, ci *pipeline.CIClient) error {
				_, err := ci.LintFile(ctx, pipeline.LintInput{Path: "x"})
				return err
			},
			"during a task": func(ctx context.Context, ci *pipeline.CIClient) error {
				_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r"})
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx := within(t, wiretest.Patience)
				cmd := wiretest.StdioServer(t)
				cmd.Env = append(os.Environ(), wiretest.EnvServer+"=broken")
				conn, err := gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{Revision: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				ci := pipeline.NewCIClient(conn)
				for range 2 { // the next call fails in the same way
					if err := use(ctx, ci); !errors.Is(err, mcptask.ErrDisconnected) || !strings.Contains(err.Error(), "the server has ended") {
						t.Error(err)
					}
				}
				if conn.Revision() != revision {
					t.Errorf("the revision was %q", conn.Revision())
				}
			})
		}
	})
}

// TestStdioStray checks that a call goes on when the server prints a line that is no message, and that the log has the line.
func TestStdioStray(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		ctx := within(t, wiretest.Patience)
		cmd := wiretest.StdioServer(t)
		cmd.Env = append(os.Environ(), wiretest.EnvServer+"=broken")
		var log wiretest.SafeBuffer
		conn, err := gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{Revision: revision, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		ci := pipeline.NewCIClient(conn)
		for range 2 {
			if _, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "stray"}); err != nil {
				t.Error(err)
			}
		}
		if err := conn.Close(); err != nil { // nothing is logged after that
			t.Error(err)
		}
		if n := strings.Count(log.String(), "line=stray"); n != 1 {
			t.Errorf("the log has the line %d times: %s", n, &log)
		}
	})
}

func TestStdioWithGeneratedClient(t *testing.T) {
	t.Parallel()
	wiretest.EachRevisionLive(t, func(t *testing.T, revision string) {
		ctx := within(t, wiretest.Patience)
		conn, err := gosdk.ConnectCommand(ctx, wiretest.StdioServer(t), gosdk.ClientOptions{
			Revision: revision,
			Answer:   approve,
		})
		if err != nil {
			t.Fatal(err)
		}
		checkPipeline(t, pipeline.NewCIClient(conn), true)
		if err := conn.Close(); err != nil {
			t.Error("the server did not end in order:", err)
		}
	})
}

func TestStdioLiteral20251125(t *testing.T) {
	rules.Covers(t, "C-01", "C-50")
	checkStdio(t, wiretest.LegacyRevision)
}

func TestStdioLiteral20251125RC(t *testing.T) {
	rules.Covers(t, "B-01", "B-47")
	checkStdio(t, wiretest.CandidateRevision)
}

func checkStdio(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	p := wiretest.NewPipesIn(t, revision)
	p.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	init := p.Response(1)
	if wiretest.Dig(t, init, "result", "capabilities", "tasks", "list") == nil {
		t.Errorf("the client is local, so it may list: %v", init)
	}
	p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	support, other := "taskSupport:optional", "taskHint"
	if revision == wiretest.CandidateRevision {
		support, other = "taskHint:optional", "taskSupport"
	}
	if list := fmt.Sprint(p.Response(2)); !strings.Contains(list, support) || strings.Contains(list, other) {
		t.Errorf("%v", list)
	}
	p.Say(`this is no JSON`)
	if code := wiretest.Dig(t, p.Hear(func(m map[string]any) bool { return m["error"] != nil }), "error", "code"); code != float64(mcptask.CodeParseError) {
		t.Errorf("%v", code)
	}
	p.Say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"deploy_service","arguments":{"service":"api","environment":"production"},"task":{}}}`)
	id := wiretest.Dig(t, p.Response(3), "result", "task", "taskId")
	question := p.Hear(func(m map[string]any) bool { return m["method"] == "elicitation/create" })
	if related := wiretest.Dig(t, question, "params", "_meta", "io.modelcontextprotocol/related-task", "taskId"); related != id {
		t.Errorf("related to %v, not to %v", related, id)
	}
	p.Say(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":%q}}`, id)
	p.Say(`{"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":%q}}`, id)
	got := p.Response(5)
	if status := wiretest.Dig(t, got, "result", "status"); status != "input_required" {
		t.Errorf("%v", status)
	}
	if updated := wiretest.Dig(t, got, "result", "lastUpdatedAt"); (updated == nil) != (revision == wiretest.CandidateRevision) {
		t.Errorf("%v", got)
	}
	p.Say(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"approve":true}}}`, question["id"])
	if version := wiretest.Dig(t, p.Response(4), "result", "structuredContent", "version"); version != "1.2.3" {
		t.Errorf("%v", version)
	}
	p.Say(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}}}`)
	endless := wiretest.Dig(t, p.Response(6), "result", "task", "taskId")
	p.Say(`{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":%q}}`, endless)
	if err := p.Close(); err != nil { // while tasks/result waits
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server did not end in order: %v", err)
		}
	case <-time.After(wiretest.Patience):
		_ = p.Cmd.Process.Kill()
		t.Error("the server goes on without its client")
	}
}

func TestStdioLiteral20260728(t *testing.T) {
	rules.Covers(t, "E-01", "E-93")
	t.Parallel()
	p := wiretest.NewPipes(t)
	defer func() { _ = p.Close(); _ = p.Wait() }()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	p.Say(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}`, meta)
	if wiretest.Dig(t, p.Response(1), "result", "capabilities", "extensions", spec.ExtensionTasks) == nil {
		t.Error("the extension is not declared")
	}
	p.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy_service","arguments":{"service":"api","environment":"production"},%s}}`, meta)
	created := p.Response(2)
	if wiretest.Dig(t, created, "result", "resultType") != "task" {
		t.Fatalf("%v", created)
	}
	id := wiretest.Dig(t, created, "result", "taskId")
	n := 10.0
	until := func(status string) map[string]any {
		for end := time.Now().Add(wiretest.Patience); ; time.Sleep(5 * time.Millisecond) {
			n++
			p.Say(`{"jsonrpc":"2.0","id":%v,"method":"tasks/get","params":{"taskId":%q,%s}}`, n, id, meta)
			if r := p.Response(n); wiretest.Dig(t, r, "result", "status") == status {
				return r
			} else if time.Now().After(end) {
				t.Fatalf("never %s: %v", status, r)
			}
		}
	}
	until("input_required")
	p.Say(`{"jsonrpc":"2.0","id":3,"method":"tasks/update","params":{"taskId":%q,"inputResponses":{"ship":{"action":"accept","content":{"approve":true}}},%s}}`, id, meta)
	if got := wiretest.Dig(t, p.Response(3), "result", "resultType"); got != "complete" {
		t.Errorf("%v", got)
	}
	if r := until("completed"); wiretest.Dig(t, r, "result", "result", "structuredContent", "version") != "1.2.3" {
		t.Errorf("%v", r)
	}
	p.Say(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":%q,%s}}`, id, meta)
	if code := wiretest.Dig(t, p.Response(4), "error", "code"); code != float64(mcptask.CodeMethodNotFound) {
		t.Errorf("%v", code)
	}
}

// A client of an older revision without tasks uses standard input and output.
func TestStdioFallback(t *testing.T) {
	t.Parallel()
	p := wiretest.NewPipes(t)
	p.Say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	p.Response(1)
	p.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.Say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if list := fmt.Sprint(p.Response(2)); !strings.Contains(list, "name:task_answer") || strings.Contains(list, "taskSupport") {
		t.Errorf("%v", list)
	}
	p.Say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"deploy_service","arguments":{"service":"api","environment":"production"}}}`)
	id := wiretest.Dig(t, p.Response(3), "result", "structuredContent", "task")
	p.Say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"task_answer","arguments":{"task":%q,"question":"ship","answer":{"approve":true}}}}`, id)
	p.Response(4)
	p.Say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"task_result","arguments":{"task":%q}}}`, id)
	if version := wiretest.Dig(t, p.Response(5), "result", "structuredContent", "version"); version != "1.2.3" {
		t.Errorf("%v", version)
	}
	if err := errors.Join(p.Close(), p.Wait()); err != nil {
		t.Error(err)
	}
}

// TestStdioAnswersWhatWasAsked: the server answers every request, even if the input ends before, as with printf into a
// pipe.
func TestStdioAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	for range 5 {
		cmd := wiretest.StdioServer(t)
		cmd.Stdin = strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":"list","method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tasks/list"}`) // no line break at the end
		begin := time.Now()
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		text := string(out)
		for _, want := range []string{`"id":1`, `"id":"list"`, `"taskSupport":"optional"`, `"id":3`} {
			if !strings.Contains(text, want) {
				t.Errorf("%s is missing in %.500s", want, text)
			}
		}
		if took := time.Since(begin); took > wiretest.Patience {
			t.Errorf("it took %v", took)
		}
	}
}

// TestPrintingHandler checks that output of a handler, a logger and a child to standard output does not reach the client,
// and that the program has its standard output back after the session.
func TestPrintingHandler(t *testing.T) {
	t.Parallel()
	cmd := wiretest.StdioServer(t)
	cmd.Env = append(os.Environ(), wiretest.EnvServer+"=prints")
	var stray strings.Builder
	cmd.Stderr = &stray
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i, message := range []string{
		`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"print","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"print","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":3,"method":"ping"}`,
	} {
		if _, err := fmt.Fprintln(in, message); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			_, _ = fmt.Fprintln(in, `{"jsonrpc":"2.0","method":"notifications/initialized"}`) // the next write would fail too
		}
		if lines.Scan(); !strings.HasPrefix(lines.Text(), fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":`, i)) {
			t.Errorf("after message %d: %s", i, lines.Text())
		}
	}
	_ = in.Close() // the server sees the end
	if lines.Scan(); lines.Text() != "after the session" {
		t.Errorf("after the session: %s", lines.Text())
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for _, want := range []string{"from fmt", "from a logger", "from a child"} {
		if strings.Count(stray.String(), want) != 2 {
			t.Errorf("standard error has %q, want %q in it twice", stray.String(), want)
		}
	}
}
