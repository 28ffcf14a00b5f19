package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":` + tasksExtension + `}`

// TestBadBodies sends what is no request. %M is the _meta of the revision.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	url, _ := serveWith(t, setup{})
	deep := strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)
	const args = `"arguments":{"ms":0}`
	for _, test := range []struct {
		name, method, body string
		status, code       int // 0: whatever the SDK says, as long as it refuses
	}{
		{"empty", "", " ", 400, parseError},
		{"not JSON", "", "{", 400, parseError},
		{"two messages", "", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, 400, parseError},
		{"trailing text", "", `{"jsonrpc":"2.0","id":1,"method":"ping"} x`, 400, parseError},
		{"NUL bytes", "", "\x00\x00", 400, parseError},
		{"a byte order mark", "", "\ufeff" + `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 400, parseError},
		{"invalid UTF-8", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"` + "\xff\xfe" + `"}}`, 400, parseError},
		{"invalid UTF-8 in a name", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder` + "\xc3" + `",%M}}`, 400, parseError},
		{"a string", "", `"ping"`, 400, invalidRequest},
		{"a number", "", `5`, 400, invalidRequest},
		{"null", "", `null`, 400, invalidRequest},
		{"an empty batch", "", `[]`, 400, invalidRequest},
		{"a batch", "tasks/get", `[{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",%M}}]`, 400, invalidRequest},
		{"a batch of a task tool", "tools/call", `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder",` + args + `,"task":{},%M}}]`, 400, invalidRequest},
		{"an unclosed batch", "", `[{"jsonrpc":"2.0"}`, 400, parseError},
		{"no jsonrpc", "tasks/get", `{"id":1,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"jsonrpc 1.0", "tasks/get", `{"jsonrpc":"1.0","id":1,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"jsonrpc a number", "tasks/get", `{"jsonrpc":2.0,"id":1,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"id null", "tasks/get", `{"jsonrpc":"2.0","id":null,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"id 1.5", "tasks/get", `{"jsonrpc":"2.0","id":1.5,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"id 1e3", "tools/call", `{"jsonrpc":"2.0","id":1e3,"method":"tools/call","params":{"name":"ponder",` + args + `,%M}}`, 400, invalidRequest},
		{"id an object", "tools/call", `{"jsonrpc":"2.0","id":{},"method":"tools/call","params":{"name":"ponder",` + args + `,%M}}`, 400, invalidRequest},
		{"id an array", "tasks/get", `{"jsonrpc":"2.0","id":[1],"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"id true", "tasks/get", `{"jsonrpc":"2.0","id":true,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"method a number", "", `{"jsonrpc":"2.0","id":1,"method":5}`, 400, invalidRequest},
		{"method null", "", `{"jsonrpc":"2.0","id":1,"method":null}`, 0, 0},
		{"method empty", "", `{"jsonrpc":"2.0","id":1,"method":""}`, 0, 0},
		{"neither request nor response", "", `{"jsonrpc":"2.0"}`, 400, 0},
		{"an unknown method", "no/such", `{"jsonrpc":"2.0","id":1,"method":"no/such","params":{%M}}`, 0, 0},
		{"an ID as a request without a method", "", `{"jsonrpc":"2.0","id":1,"params":{"taskId":"x"}}`, 0, 0},

		// What two readers could take for different things.
		{"method twice", "ping", `{"jsonrpc":"2.0","id":1,"method":"tools/call","method":"ping","params":{"name":"ponder",` + args + `,%M}}`, 400, invalidRequest},
		{"Method beside method", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","Method":"ping","params":{"name":"ponder",` + args + `,%M}}`, 400, invalidRequest},
		{"METHOD only", "tools/call", `{"jsonrpc":"2.0","id":1,"METHOD":"tools/call","params":{"name":"ponder",` + args + `,%M}}`, 400, invalidRequest},
		{"an escaped method twice", "ping", `{"jsonrpc":"2.0","id":1,"method":"tools/call","\u006dethod":"ping","params":{"name":"ponder",` + args + `,%M}}`, 400, invalidRequest},
		{"ID beside id", "tasks/get", `{"jsonrpc":"2.0","id":1,"ID":2,"method":"tasks/get","params":{"taskId":"x",%M}}`, 400, invalidRequest},
		{"params twice", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lint_file"},"params":{"name":"run_pipeline",` + args + `,%M}}`, 400, invalidRequest},
		{"name twice", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"lint_file","name":"run_pipeline",` + args + `,%M}}`, 400, invalidParams},
		{"Name twice", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"run_pipeline","Name":"lint_file","Name":"ponder",` + args + `,%M}}`, 400, invalidParams},
		{"Name with a long s", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","ta\u017fk":{},` + args + `,%M}}`, 400, invalidParams},
		{"Task", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder",` + args + `,"Task":{},%M}}`, 400, invalidParams},
		{"taskId twice", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","taskId":"y",%M}}`, 400, invalidParams},
		{"TaskID", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"TaskID":"x",%M}}`, 400, invalidParams},
		{"_meta twice", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x",%M,"_meta":{}}}`, 400, invalidParams},
		{"a version twice", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":"x","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/protocolVersion":"2025-11-25"}}}`, 400, invalidParams},

		{"no params", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get"}`, -1, invalidParams},
		{"no params for a call", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call"}`, 0, 0},
		{"params an array", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":["x"]}`, -1, invalidParams},
		{"params a string", "tasks/cancel", `{"jsonrpc":"2.0","id":1,"method":"tasks/cancel","params":"x"}`, -1, invalidParams},
		{"params null", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":null}`, -1, invalidParams},
		{"params a number", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":5}`, -1, invalidParams},
		{"a call's params an array", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["ponder"]}`, 0, 0},
		{"a call's params a string", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"ponder"}`, 0, 0},
		{"a call's params null", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, 0, 0},
		{"a name of another type", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5,%M}}`, 0, 0},
		{"no name", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"arguments":{},%M}}`, 0, 0},
		{"an unknown tool", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nobody","arguments":{},"task":{},%M}}`, 0, 0},
		{"initialize without params", "initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize"}`, 0, 0},
		{"initialize with an array", "initialize", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":[]}`, 0, 0},
		{"taskId missing", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{%M}}`, -1, invalidParams},
		{"taskId a number", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":5,%M}}`, -1, invalidParams},
		{"taskId null", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":null,%M}}`, -1, invalidParams},
		{"taskId an object", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","params":{"taskId":{},%M}}`, -1, invalidParams},
		{"nested too deeply", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{"ms":` + deep + `},%M}}`, 400, parseError},
		{"nested deeply", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{"ms":` + deep[99_000:101_000] + `},"task":{},%M}}`, 0, 0},
		{"nested", "tools/call", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{"ms":` + deep[99_600:100_400] + `},"task":{},%M}}`, 0, 0},
		{"nested elsewhere", "tasks/get", `{"jsonrpc":"2.0","id":1,"method":"tasks/get","x":` + deep + `,"params":{"taskId":"x"}}`, 400, parseError},
		{"nothing but nesting", "", strings.Repeat("[", 4<<20), 400, parseError},
		{"nothing but objects", "", strings.Repeat(`{"a":`, 800_000), 400, parseError},
	} {
		for _, revision := range []string{legacyRevision, modernRevision} {
			t.Run(test.name+" "+revision, func(t *testing.T) {
				t.Parallel()
				p := newPeer(t, url, revision, "")
				meta := `"_meta":{}`
				var edits []edit
				if revision == modernRevision {
					meta = modernMeta
					edits = append(edits, withHeader("Mcp-Method", test.method), withHeader("Mcp-Name", "x"))
					if test.method == "tools/call" {
						edits = append(edits, withHeader("Mcp-Name", "ponder"))
					}
				}
				r := p.post(strings.ReplaceAll(test.body, "%M", meta), edits...)
				status := test.status
				if status < 0 { // bad params: 200 or 400, by revision
					status = http.StatusOK
					if revision == modernRevision {
						status = http.StatusBadRequest
					}
				}
				switch {
				case test.code != 0:
					r.want(status, test.code)
				case r.status >= 500 || status > 0 && r.status != status,
					r.status == http.StatusOK && r.Error == nil && r.get("isError") != true && test.name != "nested":
					t.Errorf("%d %.300s", r.status, r.body)
				}
				p.check(test.method, r)
				if r.Error != nil && (strings.Contains(r.Error.Message, "struct") || strings.Contains(r.Error.Message, "Go ")) && test.code != 0 {
					t.Errorf("internals in %s", r.body)
				}
				if len(r.body) > 2000 {
					t.Errorf("an answer of %d bytes: %.300s", len(r.body), r.body)
				}
			})
		}
	}
}

// Task IDs of every kind are an unknown task, no more.
func TestOddTaskIDs(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		p := newPeer(t, url, legacyRevision, "")
		want := ""
		for _, id := range []string{"no-such-task", "", "\x00\x00", "a\x00b", "../../etc/passwd", "' OR 1=1 --", "\u2028", strings.Repeat("x", 1<<20)} {
			for _, method := range []string{"tasks/get", "tasks/result", "tasks/cancel"} {
				r := p.task(method, id).want(200, invalidParams)
				if want == "" {
					want = r.Error.Message
				}
				if r.Error != nil && r.Error.Message != want {
					t.Errorf("%q: %s", id, r.body)
				}
			}
		}
		m := newPeer(t, url, modernRevision, "")
		m.task("tasks/get", "", withHeader("Mcp-Name", "")).want(400, invalidParams)
		m.task("tasks/get", strings.Repeat("x", 1<<20), withHeader("Mcp-Name", "x")).want(400, headerMismatch)
		m.task("tasks/get", strings.Repeat("x", 1<<16)).want(400, invalidParams)
	})
}

// What the transport refuses: size, type, origin, host.
func TestTransport(t *testing.T) {
	rules.Covers(t, "C-35")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{})
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			body, edits := p.request("tasks/get", map[string]any{"taskId": "x"})
			big := body[:len(body)-1] + `,"x":"` + strings.Repeat("x", 4<<20) + `"}`
			p.read(p.tooBig(func() *http.Request { return p.start(t.Context(), http.MethodPost, big, edits...) })).want(http.StatusRequestEntityTooLarge, invalidRequest)
			with := func(e edit) *response { return p.post(body, append(edits, e)...) }
			for _, media := range []string{"", "text/plain", "application/x-www-form-urlencoded", "application/jsonx", "application/json;;", "multipart/form-data; boundary=x"} {
				with(withHeader("Content-Type", media)).want(http.StatusUnsupportedMediaType, invalidRequest)
			}
			for _, media := range []string{"application/json; charset=utf-8", "Application/JSON"} {
				if r := with(withHeader("Content-Type", media)); r.Error == nil || r.Error.Code != invalidParams {
					t.Errorf("%s: %s", media, r.body)
				}
			}
			with(withHeader("Origin", "https://evil.example")).want(http.StatusForbidden, invalidRequest)
			with(withHeader("Origin", "null")).want(http.StatusForbidden, invalidRequest)
			with(withHeader("Sec-Fetch-Site", "cross-site")).want(http.StatusForbidden, invalidRequest)
			for _, host := range []string{"evil.example", "evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0"} {
				with(func(r *http.Request) { r.Host = host }).want(http.StatusForbidden, invalidRequest)
				res, err := p.client.Do(p.start(t.Context(), http.MethodGet, "", func(r *http.Request) { r.Host = host }))
				if err != nil || res.StatusCode != http.StatusForbidden {
					t.Errorf("GET for %s: %v %v", host, res, err)
				}
				res.Body.Close()
			}
			for _, host := range []string{"localhost", "localhost:9", "LOCALHOST", "[::1]:80", "127.0.0.1"} {
				if r := with(func(r *http.Request) { r.Host = host }); r.Error == nil || r.Error.Code != invalidParams {
					t.Errorf("%s: %d %s", host, r.status, r.body)
				}
			}
			for _, method := range []string{http.MethodPut, http.MethodPatch, http.MethodOptions, http.MethodHead} {
				res, err := p.client.Do(p.start(t.Context(), method, ""))
				if err != nil || res.StatusCode != http.StatusMethodNotAllowed {
					t.Errorf("%s: %v %v", method, res, err)
				}
				res.Body.Close()
			}
			for _, method := range []string{http.MethodGet, http.MethodDelete} {
				res, err := p.client.Do(p.start(t.Context(), method, "", withHeader("Mcp-Session-Id", "")))
				if err != nil || res.StatusCode/100 != 4 {
					t.Errorf("%s without a session: %v %v", method, res, err)
				}
				res.Body.Close()
			}
		}
		limited, _ := serveWith(t, setup{http: &mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 1000}})
		p := newPeer(t, limited, modernRevision, "")
		if r := p.task("tasks/get", strings.Repeat("x", 1000)).want(http.StatusRequestEntityTooLarge, invalidRequest); !strings.Contains(string(r.body), "send less") {
			t.Errorf("it does not say what helps: %s", r.body)
		}
	})
}

// tooBig sends a request that is refused before its body is read. The connection
// ends with the refusal, so a client that is still writing may see that end
// first, and net/http then drops the refusal: it is sent again.
func (p *peer) tooBig(request func() *http.Request) *http.Response {
	p.t.Helper()
	for try := 1; ; try++ {
		res, err := p.client.Do(request())
		if err == nil {
			return res
		}
		if try == 10 {
			p.t.Fatal(err)
		}
	}
}

// A flow is the gateway's to open: a client's token of its own is nothing, and
// a session of 2025-11-25 without a version header has no batches either.
func TestForgedFlow(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, tasks := serveWith(t, setup{})
		token, closeFlow := gateway.OpenFlow(tasks, &gateway.Flow{Caller: mcptask.Caller{Principal: "root"}, Tool: "ponder",
			Encode: nil, Decorate: nil})
		defer closeFlow()
		for _, revision := range []string{legacyRevision, modernRevision} {
			p := newPeer(t, url, revision, "")
			for _, name := range []string{"Mcptask-Flow", "mcptask-flow", "MCPTASK-FLOW"} {
				forged := func(r *http.Request) { r.Header[name] = []string{token, token} }
				p.call("tools/call", map[string]any{"name": "ponder", "arguments": map[string]any{}}, forged).ok()
				p.call("tools/call", map[string]any{"name": "sdk_tool", "arguments": map[string]any{}}, forged).ok()
				p.call("tools/list", nil, forged).ok()
			}
		}
		if gateway.TakeFlow(tasks, token) == nil {
			t.Error("the forged token was taken")
		}
		p := newPeer(t, url, legacyRevision, "")
		const batch = `[{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"ponder","arguments":{}}}]`
		p.post(batch, withHeader("MCP-Protocol-Version", "")).want(400, invalidRequest)
		p.post(batch, withHeader("MCP-Protocol-Version", "2025-03-26")).want(400, invalidRequest)
		p.post(batch, withHeader("MCP-Protocol-Version", ""), withHeader("Mcp-Session-Id", "")).want(400, invalidRequest)
		// 2025-03-26 has batches, but no task traffic: the tool fails closed.
		old := newPeer(t, url, "2025-03-26", "")
		if r := old.post(batch); r.Error == nil && r.get("isError") != true {
			t.Errorf("%d %s", r.status, r.body)
		}
	})
}

// A handler of the SDK's without the gateway: nobody has said whose call it is.
func TestBareHandler(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tasks, err := mcptask.NewServer(mcptask.Options{}, pipeline.CITools(ci{}), extraTools())
		if err != nil {
			t.Fatal(err)
		}
		sdk := mcp.NewServer(&mcp.Implementation{Name: "ci", Version: "1"}, nil)
		gosdk.AddTools(sdk, tasks)
		for _, revision := range []string{legacyRevision, modernRevision} {
			bare := wiretest.NewServer(wirecheck.Handler(t, mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdk },
				&mcp.StreamableHTTPOptions{Stateless: revision == modernRevision})), nil)
			p := newPeer(t, bare.URL, revision, "")
			for _, tool := range []string{"ponder", "run_pipeline", "lint_file"} {
				for _, token := range []string{"", "AAAAAAAAAAAAAAAAAAAAAAAAAA"} {
					body, edits := p.request("tools/call", map[string]any{"name": tool, "arguments": pipelineArgs("main"), "task": map[string]any{}})
					r := p.post(body, append(edits, withHeader("Mcptask-Flow", token))...)
					if r.Error == nil || r.Error.Code != internalError {
						t.Errorf("%s: %d %s", tool, r.status, r.body)
					}
				}
			}
			p.client.CloseIdleConnections()
			bare.Close()
			endSessions(sdk)
		}
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A request whose principal cannot be told is refused, whatever it is.
func TestPrincipalError(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := serveWith(t, setup{options: mcptask.Options{Principal: func(context.Context) (string, error) {
			return "", errors.New("secret: the directory is down")
		}}})
		p := &peer{t: t, url: url, revision: modernRevision, caps: tasksExtension, client: &http.Client{Timeout: patience}}
		for _, method := range []string{"tasks/get", "server/discover", "initialize", "tools/list"} {
			r := p.call(method, map[string]any{"taskId": "x"}).want(http.StatusForbidden, invalidRequest)
			if strings.Contains(string(r.body), "secret") {
				t.Errorf("%s", r.body)
			}
		}
		res, err := p.client.Do(p.start(t.Context(), http.MethodGet, ""))
		if err != nil || res.StatusCode != http.StatusForbidden {
			t.Errorf("GET: %v %v", fmt.Sprint(res), err)
		}
		res.Body.Close()
	})
}
