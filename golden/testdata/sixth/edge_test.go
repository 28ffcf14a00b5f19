// Package sixth_test runs in a copy of the module that has the revision 2027-03-01:
// see golden/sixth_test.go.
package sixth_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/sixth/pipeline"
)

const (
	own  = "2027-03-01"
	base = "2026-07-28"
)

// tasksOf is what a client declares in each.
var tasksOf = map[string]string{
	own:  `{"elicitation":{},"extensions":{"io.modelcontextprotocol/durable-tasks":{}}}`,
	base: `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`,
}

// ci asks before it deploys to production, runs "endless" until it is cancelled and
// fails on "broken".
type ci struct{}

func (ci) RunPipeline(ctx context.Context, _ *mcptask.Task, in pipeline.RunInput) (pipeline.RunReport, error) {
	switch in.Branch {
	case "endless":
		<-ctx.Done()
		return pipeline.RunReport{}, ctx.Err()
	case "broken":
		return pipeline.RunReport{}, mcptask.Errorf(-32000, "the branch is broken")
	}
	return pipeline.RunReport{Passed: true}, nil
}

func (ci) DeployService(ctx context.Context, task *mcptask.Task, in pipeline.DeployInput) (pipeline.DeployReport, error) {
	a, err := pipeline.AskApproval(ctx, task, "ship", "Ship "+in.Service+"?")
	if err != nil || !a.Approve {
		return pipeline.DeployReport{}, errors.Join(errors.New("not approved"), err)
	}
	return pipeline.DeployReport{Version: in.Version, URL: in.Environment}, nil
}

func (ci) LintFile(context.Context, pipeline.LintInput) (pipeline.LintReport, error) {
	return pipeline.LintReport{}, nil
}

// members are a user's own, and are called as members of tasks are in either
// revision.
type members struct {
	TTLMs       int            `json:"ttlMs"`
	RetentionMs int            `json:"retentionMs"`
	Status      string         `json:"status"`
	Answers     map[string]any `json:"answers"`
	Kind        string         `json:"resultType"`
}

func newServer(t testing.TB, revisions ...string) (*mcptask.Server, *mcp.Server) {
	tools := pipeline.CITools(ci{})
	if len(revisions) != 1 || revisions[0] != own {
		tools.Capabilities = mcptask.Declared() // as it would be generated for others too
	}
	tasks, err := mcptask.NewServer(mcptask.Options{
		Revisions: revisions,
		Principal: func(context.Context) (string, error) { return "somebody", nil },
	}, tools)
	if err != nil {
		t.Fatal(err)
	}
	sdk := mcp.NewServer(&mcp.Implementation{Name: "sixth", Version: "1"}, nil)
	gosdk.AddTools(sdk, tasks)
	echo := func(_ context.Context, _ *mcp.CallToolRequest, in members) (*mcp.CallToolResult, members, error) {
		return nil, in, nil
	}
	if err := gosdk.AddTaskTool(sdk, tasks, &mcp.Tool{Name: "echo"}, echo, mcptask.Policy{Task: mcptask.TaskRequired}); err != nil {
		t.Fatal(err)
	}
	return tasks, sdk
}

// TestMain is the server on standard input and output where a test starts it so.
func TestMain(m *testing.M) {
	if os.Getenv("SIXTH_SERVES") == "" {
		os.Exit(m.Run())
	}
	var t exits
	tasks, sdk := newServer(&t, own)
	if err := sdk.Run(context.Background(), gosdk.StdioTransport(tasks)); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
	}
	_ = tasks.Close()
}

// exits is a test that is a process.
type exits struct{ testing.TB }

func (*exits) Fatal(args ...any) { fmt.Fprintln(os.Stderr, args...); os.Exit(1) }

// heard is what has gone over the wire.
type heard struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (h *heard) Write(data []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(data)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

// serveHTTP is the server on a URL, and what came in and went out.
func serveHTTP(t *testing.T, revisions ...string) (url string, wire *heard) {
	tasks, sdk := newServer(t, revisions...)
	handler := gosdk.NewHandler(tasks, func(*http.Request) *mcp.Server { return sdk }, nil)
	wire = &heard{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = io.NopCloser(io.TeeReader(r.Body, wire))
		handler.ServeHTTP(tee{w, wire}, r)
	}))
	t.Cleanup(func() { server.Close(); _ = tasks.Close() })
	return server.URL, wire
}

// tee writes twice.
type tee struct {
	http.ResponseWriter
	wire io.Writer
}

func (w tee) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w tee) Write(data []byte) (int, error) {
	_, _ = w.wire.Write(data)
	return w.ResponseWriter.Write(data)
}

// peer sends literal requests.
type peer interface {
	// send returns the response's whole JSON.
	send(method, params string) string
}

// request is a request with its _meta.
func request(id int, version, capabilities, method, params string) string {
	meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":%s}`, version, capabilities)
	if params != "" {
		meta += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`, id, method, meta, params)
}

// httpPeer sends over HTTP.
type httpPeer struct {
	t            *testing.T
	url          string
	version      string
	capabilities string
	status       int               // of the last response
	header       map[string]string // beside those that the request needs
}

func (p *httpPeer) send(method, params string) string {
	p.t.Helper()
	response := p.post(method, params)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	p.status = response.StatusCode
	text := string(data)
	for line := range strings.Lines(text) {
		if message, ok := strings.CutPrefix(line, "data: "); ok {
			text = message
		}
	}
	return strings.TrimSpace(text)
}

func (p *httpPeer) post(method, params string) *http.Response {
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url, strings.NewReader(request(1, p.version, p.capabilities, method, params)))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("MCP-Protocol-Version", p.version)
	r.Header.Set("Mcp-Method", method)
	var names struct{ Name, TaskID string }
	_ = json.Unmarshal([]byte("{"+params+"}"), &names)
	if name := names.Name + names.TaskID; name != "" {
		r.Header.Set("Mcp-Name", name)
	}
	for name, value := range p.header {
		r.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	return response
}

// linePeer sends over a pipe.
type linePeer struct {
	t       *testing.T
	in      io.Writer
	out     *bufio.Reader
	version string
	id      int
	// notes are the notifications that came between.
	notes []string
}

func (p *linePeer) send(method, params string) string {
	p.t.Helper()
	p.id++
	p.write(p.id, method, params)
	return p.answer(p.id)
}

func (p *linePeer) write(id int, method, params string) {
	if _, err := fmt.Fprintln(p.in, request(id, p.version, tasksOf[p.version], method, params)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *linePeer) answer(id int) string {
	p.t.Helper()
	for {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.t.Fatal(err)
		}
		if line = strings.TrimSpace(line); value(line, "id") == fmt.Sprint(id) {
			return line
		}
		p.notes = append(p.notes, line)
	}
}

func startLines(t *testing.T, version string) *linePeer {
	cmd := serverCommand(t)
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
	return &linePeer{t: t, in: in, out: bufio.NewReader(out), version: version}
}

func serverCommand(t *testing.T) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SIXTH_SERVES=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// value is what stands in JSON at a path of names, as text.
func value(text string, path ...string) string {
	data := json.RawMessage(text)
	for _, name := range path {
		var object map[string]json.RawMessage
		if json.Unmarshal(data, &object) != nil {
			return ""
		}
		data = object[name]
	}
	var plain string
	if json.Unmarshal(data, &plain) == nil {
		return plain
	}
	return string(data)
}

// holds fails where a text lacks one of these, or has one that begins with "!".
func holds(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if not, ok := strings.CutPrefix(part, "!"); ok == strings.Contains(text, strings.TrimPrefix(part, "!")) {
			t.Errorf("%q, %v in %s", not, ok, text)
		}
	}
}

// definitions are those of the invented revision.
var definitions = sync.OnceValue(func() *jsonschema.Compiler {
	compiler := jsonschema.NewCompiler()
	data, err := os.Open("../schema/2027-03-01/tasks.schema.json")
	if err != nil {
		panic(err)
	}
	defer data.Close()
	document, err := jsonschema.UnmarshalJSON(data)
	if err != nil {
		panic(err)
	}
	if err := compiler.AddResource("mem:tasks", document); err != nil {
		panic(err)
	}
	return compiler
})

// fits holds what stands at a path against a definition of the revision.
func fits(t *testing.T, definition, text string, path ...string) {
	t.Helper()
	form, err := definitions().Compile("mem:tasks#/$defs/" + definition)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(strings.NewReader(value(text, path...)))
	if err == nil {
		err = form.Validate(instance)
	}
	if err != nil {
		t.Errorf("no %s: %v: %s", definition, err, text)
	}
}

// until polls a task.
func until(t *testing.T, p peer, id, status string) string {
	t.Helper()
	for range 2000 {
		text := p.send("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
		if value(text, "result", "kind") != "" {
			fits(t, "GetTaskResult", text, "result")
		}
		if value(text, "result", "status") == status {
			return text
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("%s never is %s", id, status)
	return ""
}

// old are names of 2026-07-28 that nobody may hear.
var old = []string{`!"ttlMs"`, `!"pollIntervalMs"`, `!"resultType"`, `!"input_required"`, `!"inputResponses"`, `!/tasks"`, `!"` + base + `"`}

// TestWire says what there is to say, in literal JSON, over both transports.
func TestWire(t *testing.T) {
	url, _ := serveHTTP(t, own)
	for name, p := range map[string]peer{
		"http":  &httpPeer{t: t, url: url, version: own, capabilities: tasksOf[own]},
		"stdio": startLines(t, own),
	} {
		t.Run(name, func(t *testing.T) { conversation(t, p) })
	}
}

func conversation(t *testing.T, p peer) {
	holds(t, p.send("server/discover", ""), `"`+own+`"`, `"io.modelcontextprotocol/durable-tasks":{}`, `"kind":"complete"`, `!"io.modelcontextprotocol/tasks"`, `!"resultType"`)
	holds(t, p.send("tools/list", ""), `"deploy_service"`, `"kind":"complete"`, `!"resultType":"complete"`, `!"ci_task_status"`)

	// A question, and its answer.
	text := p.send("tools/call", `"name":"deploy_service","arguments":{"service":"api","environment":"production","version":"3"}`)
	holds(t, text, append(old, `"kind":"task"`, `"retentionMs":86400000`, `"pollMs":1000`, `!"priority"`)...)
	fits(t, "CreateTaskResult", text, "result")
	id := value(text, "result", "taskId")
	text = until(t, p, id, "awaiting_input")
	holds(t, text, append(old, `"kind":"complete"`, `"Ship api?"`, `"method":"elicitation/create"`)...)
	answer := `{"ship":{"action":"accept","content":{"approve":true}}}`
	text = p.send("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, answer))
	holds(t, text, `-32601`, `the method tasks/update does not exist in `+own)
	holds(t, p.send("tasks/answer", fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, answer)), `-32602`)
	holds(t, p.send("tasks/answer", fmt.Sprintf(`"taskId":%q,"answers":%s,"priority":5`, id, answer)), `"kind":"complete"`)
	fits(t, "UpdateTaskRequest", request(1, own, tasksOf[own], "tasks/answer", fmt.Sprintf(`"taskId":%q,"answers":%s`, id, answer)))
	text = until(t, p, id, "completed")
	holds(t, text, append(old, `"retentionMs":86400000`, `"structuredContent":{"version":"3"`, `"kind":"complete"`)...)
	if value(text, "result", "result", "kind") != "complete" {
		t.Errorf("the result in the task: %s", text)
	}

	// Cancelled, and failed.
	id = value(p.send("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com","branch":"endless"}`), "result", "taskId")
	holds(t, p.send("tasks/cancel", fmt.Sprintf(`"taskId":%q`, id)), `"kind":"complete"`)
	until(t, p, id, "cancelled")
	id = value(p.send("tools/call", `"name":"run_pipeline","arguments":{"repository":"https://example.com","branch":"broken"}`), "result", "taskId")
	holds(t, until(t, p, id, "failed"), `"error":{"code":-32000,"message":"the branch is broken"}`)
	holds(t, p.send("tasks/get", `"taskId":"none"`), `"code":-32602`)

	// What is a user's has the names that the user gave it.
	arguments := `{"ttlMs":1,"retentionMs":2,"status":"awaiting_input","answers":{"resultType":"input_required","kind":"tasks/update"},"resultType":"task"}`
	id = value(p.send("tools/call", `"name":"echo","arguments":`+arguments), "result", "taskId")
	text = until(t, p, id, "completed")
	var got, want any
	if json.Unmarshal([]byte(value(text, "result", "result", "structuredContent")), &got) != nil || json.Unmarshal([]byte(arguments), &want) != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v\n%v", got, want)
	}
}

// TestHTTP is what only HTTP has: statuses, headers, streams.
func TestHTTP(t *testing.T) {
	url, _ := serveHTTP(t, own)
	p := &httpPeer{t: t, url: url, version: own, capabilities: `{}`}
	text := p.send("tasks/get", `"taskId":"none"`)
	fits(t, "MissingRequiredClientCapabilityError", text)
	holds(t, text, `"code":-32031`, `"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/durable-tasks":{}}}`)
	if p.status != http.StatusBadRequest {
		t.Errorf("HTTP %d", p.status)
	}
	p.capabilities = tasksOf[base] // which means nothing here
	holds(t, p.send("tasks/get", `"taskId":"none"`), `"code":-32031`)
	p.capabilities = tasksOf[own]
	if p.send("tasks/update", `"taskId":"none"`); p.status != http.StatusNotFound {
		t.Errorf("HTTP %d", p.status)
	}
	for name, value := range map[string]string{"MCP-Protocol-Version": base, "Mcp-Method": "tasks/update", "Mcp-Name": "another"} {
		p.header = map[string]string{name: value}
		text := p.send("tasks/answer", `"taskId":"none","answers":{}`)
		if holds(t, text, `"code":-32020`); p.status != http.StatusBadRequest {
			t.Errorf("%s: HTTP %d", name, p.status)
		}
	}
	p.header = nil
	other := &httpPeer{t: t, url: url, version: "2099-01-01", capabilities: `{}`}
	holds(t, other.send("prompts/list", ""), `"code":-32022`, `"`+own+`"`, `"requested":"2099-01-01"`)
	for _, others := range []string{"", `,"toolsListChanged":true`} {
		subscription(t, p, others)
	}
}

// subscription follows a task, and perhaps other things.
func subscription(t *testing.T, p *httpPeer, others string) {
	id := value(p.send("tools/call", `"name":"deploy_service","arguments":{"service":"api","environment":"production"}`), "result", "taskId")
	stream := p.post("subscriptions/listen", fmt.Sprintf(`"notifications":{"watched":[%q]%s}`, id, others))
	defer stream.Body.Close()
	lines := bufio.NewScanner(stream.Body)
	next := func() string {
		for lines.Scan() {
			if message, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return message
			}
		}
		t.Fatal("the stream has ended")
		return ""
	}
	holds(t, next(), `"method":"notifications/subscriptions/acknowledged"`, fmt.Sprintf(`"watched":[%q]`, id), `"io.modelcontextprotocol/subscription":1`)
	p.send("tasks/cancel", fmt.Sprintf(`"taskId":%q`, id))
	for {
		message := next()
		holds(t, message, append(old, `"io.modelcontextprotocol/subscription":1`)...)
		if value(message, "method") == "" {
			holds(t, message, `"kind":"complete"`)
			break
		}
		holds(t, message, `"method":"notifications/tasks/changed"`, `"retentionMs":86400000`)
		fits(t, "TaskStatusNotification", message)
		if others != "" && value(message, "params", "status") == "cancelled" {
			break // for other things it goes on
		}
	}
}

// TestPipeSubscription is the same on a pipe.
func TestPipeSubscription(t *testing.T) {
	p := startLines(t, own)
	p.write(76, "subscriptions/listen", `"notifications":{"watched":[],"toolsListChanged":true}`)
	id := value(p.send("tools/call", `"name":"deploy_service","arguments":{"service":"api","environment":"production"}`), "result", "taskId")
	p.write(77, "subscriptions/listen", fmt.Sprintf(`"notifications":{"watched":[%q]}`, id))
	p.write(78, "tasks/cancel", fmt.Sprintf(`"taskId":%q`, id))
	holds(t, p.answer(77), `"kind":"complete"`, `"io.modelcontextprotocol/subscription":77`)
	all := strings.Join(p.notes, "\n")
	holds(t, all, append(old, `"method":"notifications/subscriptions/acknowledged"`, fmt.Sprintf(`"watched":[%q]`, id),
		`"method":"notifications/tasks/changed"`, `"io.modelcontextprotocol/subscription":77`)...)
}

// TestBeside is a server that speaks both: what one revision makes the other sees,
// each by its names. A server that speaks one has no tasks in the other.
func TestBeside(t *testing.T) {
	url, _ := serveHTTP(t, base, own)
	mine := &httpPeer{t: t, url: url, version: own, capabilities: tasksOf[own]}
	theirs := &httpPeer{t: t, url: url, version: base, capabilities: tasksOf[base]}
	id := value(mine.send("tools/call", `"name":"deploy_service","arguments":{"service":"api","environment":"production"}`), "result", "taskId")
	holds(t, until(t, theirs, id, "input_required"), `"ttlMs":86400000`, `"resultType":"complete"`, `!"retentionMs"`)
	holds(t, until(t, mine, id, "awaiting_input"), `"retentionMs":86400000`, `!"ttlMs"`)
	holds(t, theirs.send("tasks/answer", fmt.Sprintf(`"taskId":%q`, id)), `the method tasks/answer does not exist in `+base)
	holds(t, theirs.send("server/discover", ""), `"`+own+`"`, `"`+base+`"`, `"io.modelcontextprotocol/tasks":{}`, `!durable`)

	for alone, other := range map[string]string{own: base, base: own} {
		url, _ := serveHTTP(t, alone)
		p := &httpPeer{t: t, url: url, version: other, capabilities: tasksOf[other]}
		if text := p.send("tasks/get", `"taskId":"none"`); value(text, "error", "code") == "-32602" {
			t.Errorf("%s is spoken where only %s is: %s", other, alone, text)
		}
	}
}

func answers(context.Context, mcptask.Question) (pipeline.Approval, error) {
	return pipeline.Approval{Approve: true}, nil
}

// TestClient is the generated client over both transports: an answer, a cancel, a
// failure.
func TestClient(t *testing.T) {
	options := gosdk.ClientOptions{Revision: own, Answer: pipeline.AnswerApproval(answers)}
	url, wire := serveHTTP(t, own)
	for name, connect := range map[string]func() (mcptask.Conn, error){
		"http":  func() (mcptask.Conn, error) { return gosdk.Connect(t.Context(), url, options) },
		"stdio": func() (mcptask.Conn, error) { return gosdk.ConnectCommand(t.Context(), serverCommand(t), options) },
		"test": func() (mcptask.Conn, error) {
			return mcptasktest.Connect(t, own, mcptasktest.Options{Answer: pipeline.AnswerApproval(answers)}, pipeline.CITools(ci{})), nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := connect()
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if conn.Revision() != own {
				t.Errorf("it speaks %s", conn.Revision())
			}
			client := pipeline.NewCIClient(conn)
			ctx := t.Context()
			call, err := client.StartDeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production", Version: "4"})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := call.Token(); !ok {
				t.Error("there is no task")
			}
			if report, err := call.Wait(ctx); err != nil || report.Version != "4" || report.URL != "production" {
				t.Errorf("%+v, %v", report, err)
			}
			endless, err := client.StartRunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com", Branch: "endless"})
			if err != nil {
				t.Fatal(err)
			}
			if err := endless.Cancel(ctx); err != nil {
				t.Error(err)
			}
			if _, err := endless.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
				t.Errorf("cancelled: %v", err)
			}
			_, err = client.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com", Branch: "broken"})
			var failure *mcptask.Error
			if !errors.As(err, &failure) || failure.Code != -32000 {
				t.Errorf("broken: %v", err)
			}
			if _, err := client.LintFile(ctx, pipeline.LintInput{Path: "a.go"}); err != nil {
				t.Error(err)
			}
		})
	}
	holds(t, wire.String(), `!"tasks/update"`, `!"inputResponses"`, `!"input_required"`, `!"pollIntervalMs"`, `!"resultType"`, `"tasks/answer"`, `"awaiting_input"`, `"retentionMs"`, `"io.modelcontextprotocol/durable-tasks"`, `"answers":{`)
}

// TestClientRefused: a server that does not speak the revision is not spoken to in
// another.
func TestClientRefused(t *testing.T) {
	url, _ := serveHTTP(t, base)
	_, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: own})
	if err == nil || !strings.Contains(err.Error(), own) || strings.Contains(err.Error(), base) {
		t.Errorf("%v", err)
	}
}
