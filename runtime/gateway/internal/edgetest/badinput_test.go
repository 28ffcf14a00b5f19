package edgetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// modernMeta is the _meta of a request of 2026-07-28.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"t","version":"1"},"io.modelcontextprotocol/clientCapabilities":` + wiretest.TasksExtension + `}`

// TestBadBodies sends bodies that are not valid requests. %M stands for the _meta of the revision.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	url, _ := wiretest.ServeWith(t, wiretest.Setup{})
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	const args = `"arguments":{"ms":0}`
	for _, test := range []struct {
		name, method, body string
		status, code       int // 0: any error of the SDK
	}{
		{"empty", "", " ", 400, wiretest.ParseError},
		{"not JSON", "", "{", 400, wiretest.ParseError},
		{"two messages", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, 400, wiretest.ParseError},
		{"trailing text", "", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, 400, wiretest.ParseError},
		{"NUL bytes", "", "\x00\x00", 400, wiretest.ParseError},
		{"two byte order marks", "", "\ufeff\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 400, wiretest.ParseError},
		{"invalid UTF-8", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"` + "\xff\xfe" + `"}}`, 400, wiretest.ParseError},
		{"invalid UTF-8 in a name", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder` + "\xc3" + `",%M}}`, 400, wiretest.ParseError},
		{"a string", "", `"ping"`, 400, wiretest.InvalidRequest},
		{"a number", "", `5`, 400, wiretest.InvalidRequest},
		{"null", "", `null`, 400, wiretest.InvalidRequest},
		{"an empty batch", "", `[]`, 400, wiretest.InvalidRequest},
		{"a batch", "tasks/get", `[{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",%M}}]`, 400, wiretest.InvalidRequest},
		{"a batch of a task tool", "tools/call", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder",` + args + `,"task":{},%M}}]`, 400, wiretest.InvalidRequest},
		{"an unclosed batch", "", `[{"jsonrpc":"2.0"}`, 400, wiretest.ParseError},
		{"no jsonrpc", "tasks/get", `{"id":1,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"jsonrpc 1.0", "tasks/get", `{"jsonrpc":"1.0","id":1,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"jsonrpc a number", "tasks/get", `{"jsonrpc":2.0,"id":1,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"id null", "tasks/get", `{"jsonrpc":"2.0","id":null,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"id 1.5", "tasks/get", `{"jsonrpc":"2.0","id":1.5,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"id 1e3", "tools/call", `{"jsonrpc":"2.0","id":1e3,"method":"tools/call","params":{"name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"id an object", "tools/call", `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"id an array", "tasks/get", `{"jsonrpc":"2.0","id":[1],"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"id true", "tasks/get", `{"jsonrpc":"2.0","id":true,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"method a number", "", `{"jsonrpc":"2.0","id":1,"method":5}`, 400, wiretest.InvalidRequest},
		{"method null", "", `{"jsonrpc":"2.0","id":1,"method":null}`, 0, 0},
		{"method empty", "", `{"jsonrpc":"2.0","id":1,"method":""}`, 0, 0},
		{"neither request nor response", "", `{"jsonrpc":"2.0"}`, 400, 0},
		{"an unknown method", "no/such", `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{%M}}`, 0, 0},
		{"an ID as a request without a method", "", `{"jsonrpc":"2.0","id":1,"params":{"taskId":"x"}}`, 0, 0},

		// Members that two readers could understand differently.
		{"method twice", "ping", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"Method beside method", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"METHOD only", "tools/call", `{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","params":{"name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"an escaped method twice", "ping", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"ping","params":{"name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"ID beside id", "tasks/get", `{"jsonrpc":"2.0","id":1,"ID":2,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, wiretest.InvalidRequest},
		{"params twice", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lint_file"},"params":{"name":"run_pipeline",` + args + `,%M}}`, 400, wiretest.InvalidRequest},
		{"name twice", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lint_file","name":"run_pipeline",` + args + `,%M}}`, 400, wiretest.InvalidParams},
		{"Name twice", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_pipeline","Name":"lint_file","Name":"ponder",` + args + `,%M}}`, 400, wiretest.InvalidParams},
		{"Name with a long s", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","ta\u017fk":{},` + args + `,%M}}`, 400, wiretest.InvalidParams},
		{"Task", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder",` + args + `,"Task":{},%M}}`, 400, wiretest.InvalidParams},
		{"taskId twice", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","taskId":"y",%M}}`, 400, wiretest.InvalidParams},
		{"TaskID", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"TaskID":"x",%M}}`, 400, wiretest.InvalidParams},
		{"_meta twice", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",%M,"_meta":{}}}`, 400, wiretest.InvalidParams},
		{"a version twice", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`, 400, wiretest.InvalidParams},

		{"no params", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, -1, wiretest.InvalidParams},
		{"no params for a call", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 0, 0},
		{"params an array", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":["x"]}`, -1, wiretest.InvalidParams},
		{"params a string", "tasks/cancel", `{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":"x"}`, -1, wiretest.InvalidParams},
		{"params null", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":null}`, -1, wiretest.InvalidParams},
		{"params a number", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":5}`, -1, wiretest.InvalidParams},
		{"a call's params an array", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["ponder"]}`, 0, 0},
		{"a call's params a string", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"ponder"}`, 0, 0},
		{"a call's params null", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, 0, 0},
		{"a name of another type", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5,%M}}`, 0, 0},
		{"no name", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{},%M}}`, 0, 0},
		{"an unknown tool", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nobody","arguments":{},"task":{},%M}}`, 0, 0},
		{"initialize without params", "initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, 0, 0},
		{"initialize with an array", "initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`, 0, 0},
		{"taskId missing", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{%M}}`, -1, wiretest.InvalidParams},
		{"taskId a number", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":5,%M}}`, -1, wiretest.InvalidParams},
		{"taskId null", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":null,%M}}`, -1, wiretest.InvalidParams},
		{"taskId an object", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":{},%M}}`, -1, wiretest.InvalidParams},
		{"nested too deeply", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{"ms":` + deep + `},%M}}`, 400, wiretest.ParseError},
		{"nested deeply", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{"ms":` + deep[99_000:101_000] + `},"task":{},%M}}`, 0, 0},
		{"nested", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{"ms":` + deep[99_600:100_400] + `},"task":{},%M}}`, 0, 0},
		{"nested elsewhere", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","x":` + deep + `,"params":{"taskId":"x"}}`, 400, wiretest.ParseError},
		{"nothing but nesting", "", strings.Repeat("[", 4<<20), 400, wiretest.ParseError},
		{"nothing but objects", "", strings.Repeat(`{"a":`, 800_000), 400, wiretest.ParseError},
	} {
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			t.Run(test.name+" "+revision, func(t *testing.T) {
				t.Parallel()
				p := wiretest.NewPeer(t, url, revision, "")
				meta := `"_meta":{}`
				var edits []wiretest.Edit
				if revision == wiretest.ModernRevision {
					meta = modernMeta
					edits = append(edits, wiretest.WithHeader("Mcp-Method", test.method), wiretest.WithHeader("Mcp-Name", "x"))
					if test.method == "tools/call" {
						edits = append(edits, wiretest.WithHeader("Mcp-Name", "ponder"))
					}
				}
				r := p.Post(strings.ReplaceAll(test.body, "%M", meta), edits...)
				status := test.status
				if status < 0 { // bad params: 200 or 400, by revision
					status = http.StatusOK
					if revision == wiretest.ModernRevision {
						status = http.StatusBadRequest
					}
				}
				switch {
				case test.code != 0:
					r.Want(status, test.code)
				case r.Status >= 500 || status > 0 && r.Status != status,
					r.Status == http.StatusOK && r.Error == nil && r.Get("isError") != true && test.name != "nested":
					t.Errorf("%d %.300s", r.Status, r.Body)
				}
				p.Check(test.method, r)
				if r.Error != nil && (strings.Contains(r.Error.Message, "struct") || strings.Contains(r.Error.Message, "Go ")) && test.code != 0 {
					t.Errorf("the message reveals internals: %s", r.Body)
				}
				if len(r.Body) > 2000 {
					t.Errorf("an answer of %d bytes: %.300s", len(r.Body), r.Body)
				}
			})
		}
	}
}

// TestOddTaskIDs sends odd task IDs. The server treats each as an unknown task.
func TestOddTaskIDs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		p := wiretest.NewPeer(t, url, wiretest.LegacyRevision, "")
		want := ""
		for _, id := range []string{"no-such-task", "", "\x00\x00", "a\x00b", "../../etc/passwd", "' OR 1=1 --", "\u2028", strings.Repeat("x", 1<<20)} {
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				r := p.Task(method, id).Want(200, wiretest.InvalidParams)
				if want == "" {
					want = r.Error.Message
				}
				if r.Error != nil && r.Error.Message != want {
					t.Errorf("%q: %s", id, r.Body)
				}
			}
		}
		m := wiretest.NewPeer(t, url, wiretest.ModernRevision, "")
		m.Task("tasks/get", "", wiretest.WithHeader("Mcp-Name", "")).Want(400, wiretest.InvalidParams)
		m.Task("tasks/get", strings.Repeat("x", 1<<20), wiretest.WithHeader("Mcp-Name", "x")).Want(400, wiretest.HeaderMismatch)
		m.Task("tasks/get", strings.Repeat("x", 1<<16)).Want(400, wiretest.InvalidParams)
	})
}

// TestTransport sends requests that the transport refuses for their size, type, origin or host.
func TestTransport(t *testing.T) {
	rules.Covers(t, "C-35")
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			body, edits := p.Request("tasks/get", map[string]any{"taskId": "x"})
			big := body[:len(body)-1] + `,"x":"` + strings.Repeat("x", 4<<20) + `"}`
			p.Read(p.SendTooBig(func() *http.Request { return p.NewRequest(t.Context(), http.MethodPost, big, edits...) })).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			with := func(e wiretest.Edit) *wiretest.Response { return p.Post(body, append(edits, e)...) }
			for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/json;;", "multipart/form-data; boundary=x"} {
				if r := with(wiretest.WithHeader("Content-Type", media)); r.Status != http.StatusUnsupportedMediaType {
					t.Errorf("%s: HTTP %d %s", media, r.Status, r.Body)
				}
			}
			for _, media := range []string{"application/json; charset=utf-8", "Application/JSON"} {
				if r := with(wiretest.WithHeader("Content-Type", media)); r.Error == nil || r.Error.Code != wiretest.InvalidParams {
					t.Errorf("%s: %s", media, r.Body)
				}
			}
			with(wiretest.WithHeader("Origin", "https://evil.example")).Want(http.StatusForbidden, wiretest.InvalidRequest) // TestOrigins tests that protection
			for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodOptions, http.MethodHead} {
				if status := p.Status(method, ""); status != http.StatusMethodNotAllowed {
					t.Errorf("%s: %d", method, status)
				}
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				if status := p.Status(method, "", wiretest.WithHeader("Mcp-Session-Id", "")); status/100 != 4 {
					t.Errorf("%s without a session: %d", method, status)
				}
			}
		}
	})
}

// TestLimitBody checks that HTTP bodies are limited by either option, also if the declared length is
// false.
func TestLimitBody(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for _, setup := range []wiretest.Setup{{Options: taskserver.Options{MaxBody: 1000}}, {HTTP: &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 1000}}} {
			url, _ := wiretest.ServeWith(t, setup)
			for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
				p := wiretest.NewPeer(t, url, revision, "")
				if r := p.Task("tasks/get", strings.Repeat("x", 1000)).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest); !strings.Contains(string(r.Body), "send less") {
					t.Errorf("the error does not say what helps: %s", r.Body)
				}
				p.Read(p.SendTooBig(func() *http.Request {
					r := p.NewRequest(t.Context(), http.MethodPost, "x")
					r.Body, r.ContentLength = io.NopCloser(endless{}), -1
					return r
				})).Want(http.StatusRequestEntityTooLarge, wiretest.InvalidRequest)
			}
		}
	})
}

// endless is a body without an end.
type endless struct{}

// Read implements io.Reader.
func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = ' '
	}
	return len(p), nil
}

// TestBatches checks that no session accepts batches, also none of 2025-03-26, which has them.
func TestBatches(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{})
		for _, revision := range []string{wiretest.LegacyRevision, "2025-03-26"} {
			p := wiretest.NewPeer(t, url, revision, "")
			for _, tool := range []string{"ponder", "sdk_tool"} {
				batch := `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + tool + `","arguments":{}}}]`
				if r := p.Post(batch); tool == "sdk_tool" && revision == "2025-03-26" {
					r.OK()
				} else {
					r.Want(400, wiretest.InvalidRequest).WantIn("batches")
				}
				p.Post(batch, wiretest.WithHeader("MCP-Protocol-Version", ""), wiretest.WithHeader("Mcp-Session-Id", "")).Want(400, wiretest.InvalidRequest)
			}
		}
	})
}

// TestPrincipalError checks that every request is refused if its principal cannot be determined.
func TestPrincipalError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Options: taskserver.Options{Principal: func(context.Context) (string, error) {
			return "", errors.New("secret: the directory is down")
		}}})
		p := &wiretest.Peer{T: t, URL: url, Revision: wiretest.ModernRevision, Caps: wiretest.TasksExtension, Client: &http.Client{Timeout: wiretest.Patience}}
		for _, method := range []string{"tasks/get", "server/discover", "initialize", "tools/list"} {
			r := p.Call(method, map[string]any{"taskId": "x"}).Want(http.StatusForbidden, wiretest.InvalidRequest)
			if strings.Contains(string(r.Body), "secret") {
				t.Errorf("%s", r.Body)
			}
		}
		if status := p.Status(http.MethodGet, ""); status != http.StatusForbidden {
			t.Errorf("GET: %d", status)
		}
	})
}

type ownParams struct{ mcp.ParamsBase }

type ownResult struct{ mcp.ResultBase }

// TestReservedMethods checks that methods below tasks/ and notifications/tasks/ belong to the
// protocol. User handlers for them, which the SDK would call, are never reached.
func TestReservedMethods(t *testing.T) {
	rules.Covers(t, "E-89")
	inBubble(t, func(t *testing.T) {
		own := []string{"tasks/mine", "tasks/get/more", "tasks/result", "tasks/update", "notifications/tasks/mine", "notifications/tasks"}
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Wrap: func(handler http.Handler, sdk *mcp.Server) http.Handler {
			for _, method := range own {
				err := mcp.AddReceivingCustomMethod(sdk, method, func(context.Context, *mcp.ServerSession, *ownParams) (*ownResult, error) {
					t.Errorf("%s reached the user's handler", method)
					return &ownResult{}, nil
				})
				if err != nil {
					t.Error(err)
				}
			}
			return handler
		}})
		for _, revision := range []string{wiretest.LegacyRevision, wiretest.ModernRevision} {
			p := wiretest.NewPeer(t, url, revision, "")
			for _, method := range own {
				if r := p.Task(method, "x"); r.Error == nil {
					t.Errorf("%s in %s: %s", method, revision, r.Body)
				}
				if r := p.Post(fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":{"taskId":"x"}}`, method), wiretest.WithHeader("Mcp-Method", method)); r.Status == http.StatusOK {
					t.Errorf("%s in %s as a notification: %s", method, revision, r.Body)
				}
			}
		}
	})
}

// poisonTools accept and ask for numbers between 0 and 10.
func poisonTools() mcptask.Tools {
	type number struct {
		N json.Number `json:"n"`
	}
	const schema = `{"type":"object","properties":{"n":{"type":"number","minimum":0,"maximum":10}}}`
	spec := mcptask.InputSpec{Name: "Number", Message: "How many?", Schema: schema}
	policy := mcptask.Policy{Task: mcptask.TaskOptional}
	return mcptask.Tools{Service: "Poison", Impl: struct{}{}, Fallback: mcptask.FallbackNone, Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "take_number", InputSchema: schema, Policy: policy},
			func(_ context.Context, _ *mcptask.Task, in number) (string, error) {
				return "took " + in.N.String(), nil
			}),
		mcptask.NewTool(mcptask.ToolSpec{Name: "ask_number", InputSchema: wiretest.OpenObject, Policy: policy},
			func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				answer, err := mcptask.Ask[number](ctx, task, spec, "step", "")
				return "got " + answer.N.String(), err
			}),
	}}
}

// TestPoisonNumbersOverHTTP sends a number that has crashed servers, as an argument and as the
// answer of an unknown client. A panic in the log fails the test.
func TestPoisonNumbersOverHTTP(t *testing.T) {
	t.Parallel()
	const want = "n: the number 1e-9999999 is out of range"
	poison := json.RawMessage(`{"n":1e-9999999}`)
	answer := func(content string) string { return `{"action":"accept","content":` + content + `}` }
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Tools: []mcptask.Tools{poisonTools()}})
		p := wiretest.NewAskedPeer(t, url, revision, "", wiretest.AllCapabilities)
		for _, literal := range []string{"1e-9999999", "1E400", "5e-324"} { // the SDK cannot read the last two
			p.CallTool("take_number", map[string]any{"n": json.RawMessage(literal)}).WantText(true, "n: the number "+literal+" is out of range")
		}
		if revision == wiretest.LegacyRevision {
			r := p.Call("tools/call", map[string]any{"name": "take_number", "arguments": poison, "task": map[string]any{}}).Want(http.StatusOK, wiretest.InvalidParams)
			if !strings.Contains(r.Error.Message, want) {
				t.Errorf("a task: %s", r.Body)
			}
		}

		id := p.Create("ask_number", nil)
		p.Until(id, "input_required")
		if revision == wiretest.LegacyRevision {
			feed := p.Result(id)
			p.Respond(feed.NextQuestion(id).ID, `"result":`+answer(string(poison)))
			if last := feed.Next(); !strings.Contains(wiretest.ToolText(last.Result), want) {
				t.Errorf("an answer: %s", last.Text)
			}
		} else {
			update := func(content string) *wiretest.Response {
				return p.Call("tasks/update", map[string]any{"taskId": id, "inputResponses": map[string]any{"step": json.RawMessage(answer(content))}})
			}
			if r := update(string(poison)); r.Error == nil || r.Error.Code != wiretest.InvalidParams || !strings.Contains(r.Error.Message, want) {
				t.Errorf("an answer: %s", r.Body)
			}
			update(`{"n":7.50}`).OK()
			if got := p.TaskText(id); got != "got 7.50" {
				t.Errorf("after a good answer: %s", got)
			}
		}

		if got := p.TaskText(p.Create("take_number", map[string]any{"n": json.RawMessage("1e0")})); got != "took 1e0" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// TestErrorDataIsNoJSON checks that a handler's error whose data is not JSON loses only that data,
// and does not end the session.
func TestErrorDataIsNoJSON(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		p := wiretest.NewPiped(t, mcptask.NewTool(mcptask.ToolSpec{Name: "broken", InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}},
			func(context.Context, *mcptask.Task, struct{}) (struct{}, error) {
				return struct{}{}, &mcptask.Error{Code: 4000, Message: "br\xffoken", Data: json.RawMessage(`{"a":`)}
			}))
		p.Initialize()
		for range 2 {
			if reply := p.Ask(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"broken"}}`); !strings.Contains(reply, `"code":4000`) {
				t.Errorf("%s", reply)
			}
		}
	})
}
