package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// interop has the programs on the published TypeScript clients.
const interop = "../pipeline/interop"

const (
	// limit bounds the wait for a program that hangs.
	limit = time.Minute
	// tries is how often a call is made anew whose client has missed a report: mcp-go, and the TypeScript SDK 1.x, lose one
	// that comes right before the result, and a client that polls sees only what is there when it looks.
	tries = 5
)

// call is a call of a tool.
type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// served is a server of the examples over one transport.
type served struct {
	server  string
	isStdio bool
	header  string // that a proxy in front of the server sets
	value   string
	short   []call
	long    call
	want    string   // the text of the long call's result
	reports []string // the messages of its progress
	// modern is true if the version before speaks 2026-07-28. The version after always does.
	modern bool
}

var (
	ofBuilds  = []call{{"list_targets", map[string]any{}}, {"whoami", map[string]any{}}, {"whoami", map[string]any{"extra": 1}}}
	longBuild = call{"build", map[string]any{"target": "api"}}
	stages    = []string{"fetch", "compile", "test", "package"}
)

func all(t *testing.T) []served {
	t.Helper()
	orders := map[string]any{"database": "orders"}
	return []served{
		{server: "sessions", header: "X-Forwarded-User", value: "ann", short: ofBuilds, long: longBuild, reports: stages, want: `"user":"ann"`},
		{server: "sessions", isStdio: true, short: ofBuilds, long: longBuild, reports: stages, want: `"target":"api"`, modern: true},
		{
			server: "bearer", header: "Authorization", value: "Bearer token-of-ann", modern: true,
			short: []call{
				{"search_issues", map[string]any{"words": "oil"}}, {"get_issue", map[string]any{"project": "engine", "number": 2}},
				{"get_issue", map[string]any{"project": "engine", "number": "two"}},
			},
			long: call{"export_issues", map[string]any{"project": "wheels"}},
			want: `"#1 One is square"`, reports: []string{"One is square", "The spare is missing"},
		},
		{
			server: "restore", modern: true,
			short: []call{
				{"list_databases", map[string]any{}}, {"server_info", map[string]any{"extra": 1}}, {"list_snapshots", orders}, {"latest_snapshot", orders},
				{"count_parts", orders}, {"check_database", map[string]any{"database": 7}},
			},
			long: call{"restore_database", map[string]any{"database": "users", "output": filepath.Join(t.TempDir(), "users.db")}},
			want: "Restored users: 2 parts.", reports: []string{"part 1 of 2", "part 2 of 2"},
		},
		{
			server: "render", isStdio: true, modern: true,
			short: []call{{"count_scenes", map[string]any{"film": "short"}}, {"count_scenes", map[string]any{}}},
			long:  call{"render_film", map[string]any{"film": "short"}},
			want:  "Rendered short: 3 scenes.", reports: []string{"title", "fox", "credits"},
		},
	}
}

// eachServer runs a test with each server over each transport, at the same time.
func eachServer(t *testing.T, test func(*testing.T, served)) {
	for _, s := range all(t) {
		name := s.server + "/http"
		if s.isStdio {
			name = s.server + "/stdio"
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

// binaries is the directory of the built servers.
var binaries = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "brownfield")
	if err != nil {
		return "", err
	}
	args := []string{"build", "-ldflags=-s -w", "-o", dir + string(filepath.Separator)}
	for _, s := range servers {
		args = append(args, "./"+s.name+before, "./"+s.name+after)
	}
	out, err := exec.CommandContext(context.Background(), "go", args...).CombinedOutput()
	if err != nil {
		return dir, fmt.Errorf("build the servers: %w\n%s", err, out)
	}
	return dir, nil
})

// TestMain runs many tests at the same time, because most of them only wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "10"); err != nil {
		panic(err)
	}
	code := m.Run()
	if dir, _ := binaries(); dir != "" {
		_ = os.RemoveAll(dir)
	}
	os.Exit(code)
}

// command returns the command of a version. step is how long each step of its work takes.
func (s served) command(t *testing.T, version, step string) []string {
	t.Helper()
	dir, err := binaries()
	if err != nil {
		t.Fatal(err)
	}
	command := []string{filepath.Join(dir, s.server+version), "-step", step}
	if s.server == "restore" && version == after {
		command = append(command, "-tasks", filepath.Join(t.TempDir(), "tasks.db"))
	}
	return command
}

const (
	before = "-before"
	after  = "-after"
	quick  = "20ms"
	// slow is for the TypeScript clients, so that they seldom miss a report.
	slow = "1s"
)

// start starts a version and returns the URL of a proxy before it, or its command.
func (s served) start(t *testing.T, version, step string) []string {
	t.Helper()
	command := s.command(t, version, step)
	if s.isStdio {
		return command
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), command[0], append(command[1:], "-http", "127.0.0.1:0")...)
	cmd.Stderr = t.Output()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		killer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		defer killer.Stop()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server did not stop cleanly: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !ok {
		t.Fatalf("the server said %q instead of its URL: %v", line, err)
	}
	return []string{s.newProxy(t, address)}
}

// newProxy starts a proxy that sets the header.
func (s served) newProxy(t *testing.T, address string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{FlushInterval: -1, Rewrite: func(r *httputil.ProxyRequest) {
		r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, target.Host
		if s.header != "" {
			r.Out.Header.Set(s.header, s.value)
		}
	}}
	proxy := httptest.NewServer(wirecheck.Handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A proxy that still reads the body when the reply begins would drop the reply.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})))
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy.URL + target.Path
}

// run is a run of the program on the TypeScript clients.
type run struct {
	SDK      int      `json:"sdk"`
	Revision string   `json:"revision"`
	AsTask   bool     `json:"asTask"`
	Target   []string `json:"target"`
}

// ran is what the program prints of a run.
type ran struct {
	Tools    []map[string]any
	Short    []any
	Result   any
	Messages []string // of the progress, or of the task
}

// runTypeScript runs the program on the TypeScript clients.
func (s served) runTypeScript(t *testing.T, runs []run) (done []ran) {
	t.Helper()
	if _, err := os.Stat(filepath.Join(interop, "node_modules/@modelcontextprotocol/ext-tasks")); err != nil {
		peer.Missing(t, "a published client is missing: run npm ci in examples/pipeline/interop")
	}
	orders, err := json.Marshal(map[string]any{"short": s.short[:2], "long": s.long, "reports": len(s.reports), "tries": tries, "runs": runs})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), peer.Node(t, "../conformance"), filepath.Join(interop, "adopted.mjs"), string(orders))
	cmd.Stderr, cmd.WaitDelay = t.Output(), time.Second
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(out, &done); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return done
}

// TestTypeScript calls the tools of each server with the published TypeScript clients: before and after, the plain
// call has the same result and the same progress. After, the tool runs as a task too.
func TestTypeScript(t *testing.T) {
	eachServer(t, func(t *testing.T, s served) {
		old, adopted := s.start(t, before, slow), s.start(t, after, slow)
		type client struct {
			sdk      int
			revision string
		}
		clients := []client{{1, "2025-11-25"}, {2, "2025-11-25"}}
		if !s.isStdio { // there the client has no tasks in this revision
			clients = append(clients, client{2, "2026-07-28"})
		}
		var runs []run
		for _, c := range clients {
			runs = append(runs, run{c.sdk, c.revision, true, adopted}, run{c.sdk, c.revision, false, adopted})
			if c.revision == "2025-11-25" || s.modern {
				runs = append(runs, run{c.sdk, c.revision, false, old})
			}
		}
		var now ran
		for i, got := range s.runTypeScript(t, runs) {
			r := runs[i]
			t.Run(fmt.Sprintf("%d SDK %d in %s", i, r.SDK, r.Revision), func(t *testing.T) {
				s.checkResult(t, got.Result)
				switch {
				case r.AsTask:
					isReport := func(message string) bool {
						report, _, _ := strings.Cut(message, " (") // then it says how much is done
						return slices.Contains(s.reports, report)
					}
					if !slices.ContainsFunc(got.Messages, isReport) {
						t.Errorf("the status messages of the task are %q, want some of %q", got.Messages, s.reports)
					}
				case slices.Equal(r.Target, adopted):
					now = got
					compareJSON(t, "progress", s.reports, got.Messages)
				default:
					compareJSON(t, "progress", now.Messages, got.Messages)
					compareJSON(t, "results", now.Result, got.Result)
					compareJSON(t, "results of short tools", now.Short, got.Short)
					compareJSON(t, "entries of short tools", s.findShort(now.Tools), s.findShort(got.Tools))
				}
			})
		}
	})
}

// checkResult compares the text of a result.
func (s served) checkResult(t *testing.T, result any) {
	t.Helper()
	data, err := json.Marshal(result)
	if err != nil {
		t.Fatal(err)
	}
	if text := strings.ReplaceAll(string(data), `\"`, `"`); !strings.Contains(text, s.want) {
		t.Errorf("the result is %s, want %s in it", data, s.want)
	}
}

// findShort returns the entries of the tools that are called at once. That of the long tool has more: how it runs as a
// task.
func (s served) findShort(tools []map[string]any) []map[string]any {
	return slices.DeleteFunc(tools, func(entry map[string]any) bool {
		return !slices.ContainsFunc(s.short, func(c call) bool { return c.Name == entry["name"] })
	})
}

func compareJSON(t *testing.T, what string, after, before any) {
	t.Helper()
	if diff := cmp.Diff(after, before); diff != "" {
		t.Errorf("%s differ (-after +before):\n%s", what, diff)
	}
}

// connect connects the client of the official Go SDK. reports gets the messages of progress.
func (s served) connect(t *testing.T, revision string, target []string, reports chan<- string) *mcp.ClientSession {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "brownfield", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { reports <- r.Params.Message },
	})
	var over mcp.Transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
	if s.isStdio {
		cmd := exec.CommandContext(context.WithoutCancel(t.Context()), target[0], target[1:]...)
		cmd.Stderr = t.Output()
		over = &mcp.CommandTransport{Command: cmd}
	}
	session, err := client.Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client speaks %s, want %s", got, revision)
	}
	return session
}

// newCall returns the parameters of a call that wants progress.
func (c call) newParams() *mcp.CallToolParams {
	params := &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments}
	params.SetProgressToken("progress")
	return params
}

// TestGoSDK calls the long tool of each server plainly with the client of the official Go SDK, in both revisions.
func TestGoSDK(t *testing.T) {
	eachServer(t, func(t *testing.T, s served) {
		for _, version := range []string{before, after} {
			target := s.start(t, version, quick)
			for _, revision := range []string{"2025-11-25", "2026-07-28"} {
				if revision == "2026-07-28" && version == before && !s.modern {
					continue
				}
				reports := make(chan string, 100)
				session := s.connect(t, revision, target, reports)
				var got []string
				for try := 0; try < tries && !slices.Equal(got, s.reports); try++ {
					got = s.callWithProgress(t, session, reports)
				}
				compareJSON(t, fmt.Sprintf("%s in %s: progress", version, revision), s.reports, got)
				if err := session.Close(); err != nil {
					t.Error(err)
				}
			}
		}
	})
}

// callWithProgress calls the long tool, and returns the messages of its progress.
func (s served) callWithProgress(t *testing.T, session *mcp.ClientSession, reports <-chan string) (got []string) {
	t.Helper()
	result, err := session.CallTool(t.Context(), s.long.newParams())
	if err != nil {
		t.Fatal(err)
	}
	s.checkResult(t, result)
	for range s.reports {
		select {
		case report := <-reports:
			got = append(got, report)
		case <-time.After(limit / 10):
			return got
		}
	}
	return got
}

// TestShortTools sends the same bytes to both versions of each server, which answer with the same bytes.
func TestShortTools(t *testing.T) {
	eachServer(t, func(t *testing.T, s served) {
		revisions := []string{"2025-11-25"}
		if s.modern {
			revisions = append(revisions, "2026-07-28")
		}
		was, now := s.start(t, before, quick), s.start(t, after, quick)
		for _, revision := range revisions {
			want, got := s.openWire(t, revision, was), s.openWire(t, revision, now)
			for _, c := range s.short {
				message := c.encode(t, revision)
				if want, got := want(c.Name, message), got(c.Name, message); want != got || !strings.Contains(want, "result") && !strings.Contains(want, "error") {
					t.Errorf("%s is answered with\n%s\nbefore, and after with\n%s", message, want, got)
				}
			}
		}
	})
}

// encode returns the message of the call.
func (c call) encode(t *testing.T, revision string) string {
	t.Helper()
	params := map[string]any{"name": c.Name, "arguments": c.Arguments}
	if revision == "2026-07-28" {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion": revision, "io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "wire", "version": "1"},
		}
	}
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params})
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

const (
	initialize  = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"wire","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// openWire opens a session and returns a function that sends a message in it and returns the answer.
func (s served) openWire(t *testing.T, revision string, target []string) func(tool, message string) string {
	t.Helper()
	send := openHTTP(t, revision, target[0])
	if s.isStdio {
		send = openPipe(t, target)
	}
	if revision == "2025-11-25" {
		send("", initialize)
		send("", initialized)
	}
	return send
}

// openPipe starts a server on standard input and output.
func openPipe(t *testing.T, command []string) func(tool, message string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Stderr = t.Output()
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
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	return func(_, message string) string {
		if _, err := fmt.Fprintln(in, message); err != nil {
			t.Fatal(err)
		}
		if message == initialized {
			return ""
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return line
	}
}

// openHTTP sends messages to a URL.
func openHTTP(t *testing.T, revision, url string) func(tool, message string) string {
	session := ""
	return func(tool, message string) string {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(message))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		r.Header.Set("MCP-Protocol-Version", revision)
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
		}
		if revision == "2026-07-28" {
			r.Header.Set("Mcp-Method", "tools/call")
			r.Header.Set("Mcp-Name", tool)
		}
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		body, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		if message == initialize {
			session = response.Header.Get("Mcp-Session-Id")
		}
		return response.Status + "\n" + string(body)
	}
}

// TestCallerLeaves gives up a plain call whose work goes on, and finds its task by task_list.
func TestCallerLeaves(t *testing.T) {
	for _, s := range all(t)[:2] {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(fmt.Sprintf("%s in %s, stdio %v", s.server, revision, s.isStdio), func(t *testing.T) {
				t.Parallel()
				reports := make(chan string, 100)
				session := s.connect(t, revision, s.start(t, after, quick), reports)
				ctx, leave := context.WithCancel(t.Context())
				left := make(chan error, 1)
				go func() {
					_, err := session.CallTool(ctx, call{"build", map[string]any{"target": "release"}}.newParams())
					left <- err
				}()
				select {
				case <-reports:
				case <-time.After(limit):
					t.Fatal("the build does not begin")
				}
				leave()
				if err := <-left; err == nil {
					t.Fatal("the build was over before the caller left")
				}
				var list struct {
					Tasks []struct{ Task, Tool string }
				}
				callInto(t, session, call{"task_list", map[string]any{}}, &list)
				if len(list.Tasks) != 1 || list.Tasks[0].Tool != "build" {
					t.Fatalf("task_list has %+v, want the build", list)
				}
				var built struct{ Stages []string }
				for len(built.Stages) == 0 { // until it is there
					callInto(t, session, call{"task_result", map[string]any{"task": list.Tasks[0].Task}}, &built)
				}
				if last := built.Stages[len(built.Stages)-1]; last != "sign" {
					t.Errorf("the last stage is %q, want sign", last)
				}
			})
		}
	}
}

// callInto calls a tool and decodes its structured result.
func callInto(t *testing.T, session *mcp.ClientSession, c call, value any) {
	t.Helper()
	result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil || result.IsError {
		t.Fatalf("%s failed: %v %s", c.Name, err, data)
	}
	if err := json.Unmarshal(data, value); err != nil {
		t.Fatal(err)
	}
}
