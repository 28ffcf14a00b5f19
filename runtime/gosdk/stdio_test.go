package gosdk_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// serveStdio is what the test binary does as a subprocess: it is a server.
func serveStdio() error {
	var impl pipeline.CI = ci{}
	if os.Getenv(asServer) == "broken" {
		impl = broken{}
	}
	options, tools := mcptask.Options{Limits: hurried}, pipeline.CITools(impl)
	negotiated := legacyRevision
	if revision := os.Getenv(stdioRevision); revision != "" {
		options.Revisions, tools.Capabilities = []string{revision}, mcptask.Declared()
		if revision != mcptask.RevisionSEP1686 { // which its requests show
			negotiated = revision
		}
	}
	tasks, err := mcptask.NewServer(options, tools)
	if err != nil {
		return err
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1.0.0"}, nil)
	gosdk.AddTools(sdk, tasks)
	in, out, faults, err := wirecheck.Process(negotiated, os.Stdin, os.Stdout)
	if err != nil {
		return err
	}
	err = sdk.Run(context.Background(), gosdk.PipeTransport(tasks, in, out))
	if text := faults(); text != "" { // the tests' own process reads it
		file := filepath.Join(os.Getenv(wireFaults), strconv.Itoa(os.Getpid()))
		err = errors.Join(err, errors.New(text), os.WriteFile(file, []byte(text), 0o600))
	}
	return errors.Join(err, tasks.Close())
}

// wireFaults is the folder in which a server that is a process of its own says
// what it should not have sent.
const wireFaults = "GOSDK_TEST_WIRE_FAULTS"

const asServer = "GOSDK_TEST_STDIO_SERVER"

// stdioRevision names the one revision that the server speaks, where it is set.
const stdioRevision = "GOSDK_TEST_STDIO_REVISION"

// broken ends the process, or spoils its standard output.
type broken struct{ ci }

func (broken) RunPipeline(ctx context.Context, _ *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	time.Sleep(200 * time.Millisecond)
	if in.Branch == "stray" {
		fmt.Println("stray")
		<-ctx.Done()
		return pipeline.RunReport{}, ctx.Err()
	}
	os.Exit(3)
	return pipeline.RunReport{}, nil
}

func (broken) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	os.Exit(3)
	return pipeline.LintReport{}, nil
}

// TestCommandThatEnds does not wait for a server that is gone.
func TestCommandThatEnds(t *testing.T) {
	eachLive(t, func(t *testing.T, revision string) {
		for name, use := range map[string]func(ctx context.Context, ci *pipeline.CIClient) error{
			"during a call": func(ctx context.Context, ci *pipeline.CIClient) error {
				_, err := ci.LintFile(ctx, pipeline.LintInput{Path: "x"})
				return err
			},
			"during a task": func(ctx context.Context, ci *pipeline.CIClient) error {
				_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r"})
				return err
			},
			"spoiled": func(ctx context.Context, ci *pipeline.CIClient) error {
				_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "stray"})
				return err
			},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				defer cancel()
				cmd := stdioServer(t)
				cmd.Env = append(os.Environ(), asServer+"=broken")
				conn, err := gosdk.ConnectCommand(ctx, cmd, gosdk.ClientOptions{Revision: revision})
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				ci := pipeline.NewCIClient(conn)
				want := "the server has ended"
				if name == "spoiled" {
					want = "not protocol"
				}
				for range 2 { // the next call fails in the same way
					if err := use(ctx, ci); !errors.Is(err, mcptask.ErrDisconnected) || !strings.Contains(err.Error(), want) {
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

func stdioServer(t *testing.T) *exec.Cmd {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Env = append(os.Environ(), asServer+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

func TestStdioWithGeneratedClient(t *testing.T) {
	eachLive(t, func(t *testing.T, revision string) {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		conn, err := gosdk.ConnectCommand(ctx, stdioServer(t), gosdk.ClientOptions{
			Revision: revision,
			Answer: pipeline.AnswerApproval(func(context.Context, mcptask.Question) (pipeline.Approval, error) {
				return pipeline.Approval{Approve: true}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		ci := pipeline.NewCIClient(conn)
		call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Steps: []string{"build"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := call.Token(); !ok {
			t.Error("not a task")
		}
		if report, err := call.Wait(ctx); err != nil || len(report.Steps) != 1 {
			t.Errorf("%+v, %v", report, err)
		}
		if report, err := ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"}); err != nil || report.Version != "1.2.3" {
			t.Errorf("asked: %+v, %v", report, err)
		}
		endless, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "endless"})
		if err != nil {
			t.Fatal(err)
		}
		if err := endless.Cancel(ctx); err != nil {
			t.Error(err)
		}
		if _, err := endless.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
			t.Error(err)
		}
		if _, err := ci.LintFile(ctx, pipeline.LintInput{Path: "x"}); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error("the server did not end in order:", err)
		}
	})
}

// pipes is a literal client of a subprocess.
type pipes struct {
	early []map[string]any // heard and not asked for yet
	t     *testing.T
	cmd   *exec.Cmd
	in    interface{ Write([]byte) (int, error) }
	close func() error
	lines chan map[string]any
}

func newPipes(t *testing.T) *pipes {
	t.Helper()
	return newPipesIn(t, legacyRevision)
}

// newPipesIn is newPipes for a server that speaks the candidate, where it is the
// revision.
func newPipesIn(t *testing.T, revision string) *pipes {
	t.Helper()
	cmd := stdioServer(t)
	if revision == candidateRevision {
		cmd.Env = append(cmd.Env, stdioRevision+"="+revision)
	}
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
	p := &pipes{t: t, cmd: cmd, in: in, close: in.Close, lines: make(chan map[string]any, 1000)}
	go func() {
		defer close(p.lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			var m map[string]any
			if err := json.Unmarshal(s.Bytes(), &m); err != nil || m["jsonrpc"] != "2.0" {
				t.Errorf("not protocol on standard output: %s", s.Text())
			}
			p.lines <- m
		}
	}()
	return p
}

func (p *pipes) say(format string, args ...any) {
	p.t.Helper()
	if _, err := p.in.Write([]byte(fmt.Sprintf(format, args...) + "\n")); err != nil {
		p.t.Fatal(err)
	}
}

// hear returns the next message that fits.
func (p *pipes) hear(fits func(map[string]any) bool) map[string]any {
	p.t.Helper()
	for i, m := range p.early {
		if fits(m) {
			p.early = slices.Delete(p.early, i, i+1)
			return m
		}
	}
	timeout := time.After(patience)
	for {
		select {
		case m, ok := <-p.lines:
			if !ok {
				p.t.Fatal("the server has ended")
			}
			if fits(m) {
				return m
			}
			p.early = append(p.early, m) // a question may overtake the response to its call
		case <-timeout:
			p.t.Fatalf("nothing heard but %v", p.early)
		}
	}
}

// wait waits for the end of the server: of its output first, which cmd.Wait cuts off.
func (p *pipes) wait() error {
	for range p.lines {
	}
	return p.cmd.Wait()
}

func (p *pipes) response(id float64) map[string]any {
	p.t.Helper()
	return p.hear(func(m map[string]any) bool { return m["id"] == id && m["method"] == nil })
}

func dig(t *testing.T, m map[string]any, path ...string) any {
	t.Helper()
	var v any = m
	for _, name := range path {
		object, ok := v.(map[string]any)
		if !ok {
			t.Fatalf("no %v in %v", path, m)
		}
		v = object[name]
	}
	return v
}

func TestStdioLiteral20251125(t *testing.T) {
	rules.Covers(t, "C-01", "C-50")
	checkStdio(t, legacyRevision)
}

func TestStdioLiteral20251125RC(t *testing.T) {
	rules.Covers(t, "B-01", "B-47")
	checkStdio(t, candidateRevision)
}

func checkStdio(t *testing.T, revision string) {
	t.Helper()
	t.Parallel()
	p := newPipesIn(t, revision)
	p.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"t","version":"1"}}}`)
	init := p.response(1)
	if dig(t, init, "result", "capabilities", "tasks", "list") == nil {
		t.Errorf("the client is local, so it may list: %v", init)
	}
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	support, other := "taskSupport:optional", "taskHint"
	if revision == candidateRevision {
		support, other = "taskHint:optional", "taskSupport"
	}
	if list := fmt.Sprint(p.response(2)); !strings.Contains(list, support) || strings.Contains(list, other) {
		t.Errorf("%v", list)
	}
	p.say(`this is no JSON`)
	if code := dig(t, p.hear(func(m map[string]any) bool { return m["error"] != nil }), "error", "code"); code != float64(mcptask.CodeParseError) {
		t.Errorf("%v", code)
	}
	p.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"deploy_service","arguments":{"service":"api","environment":"production"},"task":{}}}`)
	id := dig(t, p.response(3), "result", "task", "taskId")
	question := p.hear(func(m map[string]any) bool { return m["method"] == "elicitation/create" })
	if related := dig(t, question, "params", "_meta", "io.modelcontextprotocol/related-task", "taskId"); related != id {
		t.Errorf("related to %v, not to %v", related, id)
	}
	p.say(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":%q}}`, id)
	p.say(`{"jsonrpc":"2.0","id":5,"method":"tasks/get","params":{"taskId":%q}}`, id)
	got := p.response(5)
	if status := dig(t, got, "result", "status"); status != "input_required" {
		t.Errorf("%v", status)
	}
	if updated := dig(t, got, "result", "lastUpdatedAt"); (updated == nil) != (revision == candidateRevision) {
		t.Errorf("%v", got)
	}
	p.say(`{"jsonrpc":"2.0","id":%q,"result":{"action":"accept","content":{"approve":true}}}`, question["id"])
	if version := dig(t, p.response(4), "result", "structuredContent", "version"); version != "1.2.3" {
		t.Errorf("%v", version)
	}
	p.say(`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"run_pipeline","arguments":{"repository":"https://example.com/r","branch":"endless"},"task":{}}}`)
	endless := dig(t, p.response(6), "result", "task", "taskId")
	p.say(`{"jsonrpc":"2.0","id":7,"method":"tasks/result","params":{"taskId":%q}}`, endless)
	if err := p.close(); err != nil { // while tasks/result waits
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.wait() }()
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the server did not end in order: %v", err)
		}
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		t.Error("the server goes on without its client")
	}
}

func TestStdioLiteral20260728(t *testing.T) {
	rules.Covers(t, "E-01", "E-93")
	t.Parallel()
	p := newPipes(t)
	defer func() { _ = p.close(); _ = p.wait() }()
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	p.say(`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{%s}}`, meta)
	if dig(t, p.response(1), "result", "capabilities", "extensions", mcptask.ExtensionTasks) == nil {
		t.Error("the extension is not declared")
	}
	p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"deploy_service","arguments":{"service":"api","environment":"production"},%s}}`, meta)
	created := p.response(2)
	if dig(t, created, "result", "resultType") != "task" {
		t.Fatalf("%v", created)
	}
	id := dig(t, created, "result", "taskId")
	n := 10.0
	until := func(status string) map[string]any {
		for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			n++
			p.say(`{"jsonrpc":"2.0","id":%v,"method":"tasks/get","params":{"taskId":%q,%s}}`, n, id, meta)
			if r := p.response(n); dig(t, r, "result", "status") == status {
				return r
			} else if time.Now().After(end) {
				t.Fatalf("never %s: %v", status, r)
			}
		}
	}
	until("input_required")
	p.say(`{"jsonrpc":"2.0","id":3,"method":"tasks/update","params":{"taskId":%q,"inputResponses":{"ship":{"action":"accept","content":{"approve":true}}},%s}}`, id, meta)
	if got := dig(t, p.response(3), "result", "resultType"); got != "complete" {
		t.Errorf("%v", got)
	}
	if r := until("completed"); dig(t, r, "result", "result", "structuredContent", "version") != "1.2.3" {
		t.Errorf("%v", r)
	}
	p.say(`{"jsonrpc":"2.0","id":4,"method":"tasks/result","params":{"taskId":%q,%s}}`, id, meta)
	if code := dig(t, p.response(4), "error", "code"); code != float64(mcptask.CodeMethodNotFound) {
		t.Errorf("%v", code)
	}
}

// A client of an older revision, without tasks, over standard input and output.
func TestStdioFallback(t *testing.T) {
	t.Parallel()
	p := newPipes(t)
	p.say(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`)
	p.response(1)
	p.say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	p.say(`{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)
	if list := fmt.Sprint(p.response(2)); !strings.Contains(list, "name:task_answer") || strings.Contains(list, "taskSupport") {
		t.Errorf("%v", list)
	}
	p.say(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"deploy_service","arguments":{"service":"api","environment":"production"}}}`)
	id := dig(t, p.response(3), "result", "structuredContent", "task")
	p.say(`{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"task_answer","arguments":{"task":%q,"question":"ship","answer":{"approve":true}}}}`, id)
	p.response(4)
	p.say(`{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"task_result","arguments":{"task":%q}}}`, id)
	if version := dig(t, p.response(5), "result", "structuredContent", "version"); version != "1.2.3" {
		t.Errorf("%v", version)
	}
	if err := errors.Join(p.close(), p.wait()); err != nil {
		t.Error(err)
	}
}

// TestStdioAnswersWhatWasAsked is printf into a pipe: the input ends before the
// replies are there.
func TestStdioAnswersWhatWasAsked(t *testing.T) {
	t.Parallel()
	for range 5 {
		cmd := stdioServer(t)
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
		if took := time.Since(begin); took > patience {
			t.Errorf("it took %v", took)
		}
	}
}
