package passthrough

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// sessionKind is the session that a request names.
type sessionKind int

const (
	noSession       sessionKind = iota
	ownSession                  // one that is open
	formerSession               // one that a former process of the server has opened
	endedSession                // one that the client has deleted
	madeUpSession               // an ID of the form that the SDK gives its sessions
	malformedID                 // an ID of another form
	sessionlessPeer             // no session, from a client that has never initialized one
)

// request is one request of the corpus.
type request struct {
	name    string
	method  string // POST if it is ""
	path    string
	body    string
	headers map[string]string // beside the usual ones; "" removes a header
	session sessionKind
	// then is sent in the session of a GET, whose stream ends with the first event, or at once if then is leaves.
	then string
}

// revisions are those in which the corpus is sent.
var revisions = []string{"2025-03-26", "2025-06-18", mcptask.Revision20251125, mcptask.Revision20260728}

const (
	leaves        = "leaves"
	askingTool    = "asks"
	typedTool     = "typed"
	failingTool   = "fails"
	changesTool   = "changes" // adds a tool to the server, which the server announces
	clientCanAsk  = `{"elicitation":{},"sampling":{},"roots":{"listChanged":true}}`
	clientInfo    = `{"name":"corpus","version":"1.0.0"}`
	versionHeader = "MCP-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
)

// message returns a request of a revision. It adds the metadata that 2026-07-28 has in each request.
func message(revision, method, params string) string {
	if revision == mcptask.Revision20260728 {
		if params == "" {
			params = "{}"
		}
		meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + revision + `","io.modelcontextprotocol/clientInfo":` + clientInfo +
			`,"io.modelcontextprotocol/clientCapabilities":` + clientCanAsk
		if rest, ok := strings.CutPrefix(params, `{"_meta":{`); ok {
			params = "{" + meta + "," + rest
		} else if params == "{}" {
			params = "{" + meta + "}}"
		} else {
			params = "{" + meta + "}," + params[1:]
		}
	}
	if params != "" {
		params = `,"params":` + params
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q%s}`, method, params)
}

// initializing returns the request that opens a session.
func initializing(version string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":%s,"clientInfo":%s}}`, version, clientCanAsk, clientInfo)
}

// call returns a call of a tool.
func call(revision, tool, arguments string) string {
	return message(revision, "tools/call", fmt.Sprintf(`{"name":%q,"arguments":%s}`, tool, arguments))
}

// corpus returns the requests of a revision.
func corpus(revision string) []request {
	modern := revision == mcptask.Revision20260728
	own := ownSession
	if modern {
		own = noSession
	}
	var all []request
	add := func(r request) {
		if r.method == "" {
			r.method = http.MethodPost
		}
		if r.method == http.MethodGet && r.then == "" {
			r.then = leaves
		}
		headers := map[string]string{versionHeader: revision}
		if r.method == http.MethodPost {
			headers["Content-Type"], headers["Accept"] = "application/json", "application/json, text/event-stream"
			if modern {
				maps.Copy(headers, routingHeaders(r.body))
			}
		}
		maps.Copy(headers, r.headers)
		r.headers = headers
		all = append(all, r)
	}
	post := func(name, method, params string) {
		add(request{name: name, body: message(revision, method, params), session: own})
	}
	calls := func(name, tool, arguments string) {
		add(request{name: name, body: call(revision, tool, arguments), session: own})
	}
	ping := message(revision, "ping", "")
	list := message(revision, "tools/list", "")
	typed := call(revision, typedTool, `{"text":"x"}`)

	// What a server is and has.
	unversioned := map[string]string{versionHeader: ""}
	if !modern {
		add(request{name: "initialize", body: initializing(revision), headers: unversioned})
		add(request{name: "initialize with the header", body: initializing(revision)})
		add(request{name: "initialize with an old session", body: initializing(revision), headers: unversioned, session: formerSession})
		add(request{name: "initialize of an unknown revision", body: initializing("1999-01-01"), headers: unversioned})
		add(request{name: "initialize without params", body: `{"jsonrpc":"2.0","id":0,"method":"initialize"}`, headers: unversioned})
	}
	post("server/discover", "server/discover", "")
	post("tools/list", "tools/list", "")
	post("tools/list with a bad cursor", "tools/list", `{"cursor":"?"}`)
	post("resources/list", "resources/list", "")
	post("resources/templates/list", "resources/templates/list", "")
	post("resources/read", "resources/read", `{"uri":"corpus://one"}`)
	post("resources/read of none", "resources/read", `{"uri":"corpus://none"}`)
	post("resources/subscribe", "resources/subscribe", `{"uri":"corpus://one"}`)
	post("prompts/list", "prompts/list", "")
	post("prompts/get", "prompts/get", `{"name":"greets","arguments":{"name":"x"}}`)
	post("prompts/get of none", "prompts/get", `{"name":"none"}`)
	post("completion/complete", "completion/complete", `{"ref":{"type":"ref/prompt","name":"greets"},"argument":{"name":"name","value":"x"}}`)
	post("logging/setLevel", "logging/setLevel", `{"level":"debug"}`)
	post("ping", "ping", "")
	post("an unknown method", "corpus/none", "")

	// Calls.
	calls("a call", typedTool, `{"text":"x"}`)
	calls("a call with an extra argument", typedTool, `{"text":"x","more":1}`)
	calls("a call without a required argument", typedTool, `{}`)
	calls("a call with an argument of the wrong type", typedTool, `{"text":1}`)
	calls("a call with big numbers", typedTool, `{"text":"x","count":12345678901234567890}`)
	post("a call without arguments", "tools/call", `{"name":"typed"}`)
	post("a call without a name", "tools/call", `{"arguments":{}}`)
	calls("a call with arguments that are no object", typedTool, `[]`)
	post("a call without params", "tools/call", "")
	calls("a call of an unknown tool", "none", `{}`)
	calls("a call that fails", failingTool, `{}`)
	post("a call with progress and logs", "tools/call", `{"_meta":{"progressToken":"p"},"name":"reports","arguments":{}}`)
	calls("a call that asks the client", askingTool, `{}`)
	calls("a call of 100,000 bytes", typedTool, `{"text":"`+strings.Repeat("x", 100_000)+`"}`)
	calls("a call of more than 4 MiB", typedTool, `{"text":"`+strings.Repeat("x", 4<<20)+`"}`)
	post("a call that declares a task", "tools/call", `{"name":"typed","arguments":{"text":"x"},"task":{}}`)

	// Notifications and responses.
	notify := func(name, method, params string) {
		add(request{name: name, body: fmt.Sprintf(`{"jsonrpc":"2.0","method":%q,"params":%s}`, method, params), session: own})
	}
	notify("notifications/initialized again", "notifications/initialized", `{}`)
	notify("notifications/cancelled", "notifications/cancelled", `{"requestId":77}`)
	notify("notifications/roots/list_changed", "notifications/roots/list_changed", `{}`)
	notify("notifications/progress", "notifications/progress", `{"progressToken":"none","progress":1}`)
	notify("an unknown notification", "notifications/corpus", `{}`)
	add(request{name: "a response to no request", body: `{"jsonrpc":"2.0","id":99,"result":{"x":1}}`, session: own})
	add(request{name: "an empty response", body: `{"jsonrpc":"2.0","id":99,"result":{}}`, session: own})

	// Sessions.
	for name, kind := range map[string]sessionKind{
		"no session": sessionlessPeer, "an old session": formerSession, "an ended session": endedSession,
		"a made-up session": madeUpSession, "a malformed session ID": malformedID,
	} {
		add(request{name: "ping with " + name, body: ping, session: kind})
		add(request{name: "tools/list with " + name, body: list, session: kind})
		add(request{name: "a call with " + name, body: typed, session: kind})
		add(request{name: "a notification with " + name, body: `{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}`, session: kind})
		add(request{name: "a response with " + name, body: `{"jsonrpc":"2.0","id":99,"result":{"x":1}}`, session: kind})
		add(request{name: "DELETE with " + name, method: http.MethodDelete, session: kind})
		add(request{name: "GET with " + name, method: http.MethodGet, headers: map[string]string{"Accept": "text/event-stream"}, session: kind})
	}
	add(request{name: "DELETE", method: http.MethodDelete, session: own})
	if !modern {
		add(request{name: "DELETE in another revision", method: http.MethodDelete, headers: map[string]string{versionHeader: otherRevision(revision)}, session: own})
		add(request{name: "GET", method: http.MethodGet, headers: map[string]string{"Accept": "text/event-stream"}, session: own, then: call(revision, changesTool, "{}")})
	}
	add(request{name: "GET without Accept", method: http.MethodGet, session: own})
	for _, method := range []string{http.MethodHead, http.MethodOptions, http.MethodPut, http.MethodPatch} {
		add(request{name: method, method: method, session: own})
	}

	// Headers.
	header := func(name string, headers map[string]string) {
		add(request{name: name, body: list, headers: headers, session: own})
	}
	header("a foreign Host", map[string]string{"Host": "mcp.example.com"})
	header("a foreign Origin", map[string]string{"Origin": "https://example.com"})
	header("a foreign Sec-Fetch-Site", map[string]string{"Sec-Fetch-Site": "cross-site"})
	header("the server's own Origin", map[string]string{"Origin": "http://{host}"})
	header("no Accept", map[string]string{"Accept": ""})
	header("Accept of JSON only", map[string]string{"Accept": "application/json"})
	header("Accept of anything", map[string]string{"Accept": "*/*"})
	header("no Content-Type", map[string]string{"Content-Type": ""})
	header("Content-Type text/plain", map[string]string{"Content-Type": "text/plain"})
	header("Content-Type with a charset", map[string]string{"Content-Type": "application/json; charset=utf-8"})
	header("a Content-Encoding", map[string]string{"Content-Encoding": "gzip"})
	header("no MCP-Protocol-Version", map[string]string{versionHeader: ""})
	header("an unknown MCP-Protocol-Version", map[string]string{versionHeader: "1999-01-01"})
	header("the MCP-Protocol-Version of another revision", map[string]string{versionHeader: otherRevision(revision)})
	header("two values of Mcp-Corpus", map[string]string{"Mcp-Corpus": "a\nb"})
	add(request{name: "two values of Mcp-Session-Id", body: list, headers: map[string]string{sessionHeader: "a\nb"}})
	if modern {
		header("no Mcp-Method", map[string]string{"Mcp-Method": ""})
		header("another Mcp-Method", map[string]string{"Mcp-Method": "tools/call"})
		add(request{name: "no Mcp-Name", body: typed, headers: map[string]string{"Mcp-Name": ""}})
	}

	// Bodies.
	body := func(name, body string) { add(request{name: name, body: body, session: own}) }
	body("an empty body", "")
	body("malformed JSON", `{"jsonrpc":"2.0","id":1,`)
	body("JSON that is no message", `{"x":1}`)
	body("a JSON text", `"x"`)
	body("another JSON-RPC version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`)
	body("a null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`)
	body("a fractional id", `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`)
	body("a text id", strings.Replace(list, `"id":1`, `"id":"one"`, 1))
	body("a member twice", strings.Replace(list, `"id":1`, `"id":1,"id":1`, 1))
	body("a member in capitals", strings.Replace(list, `"id":1`, `"ID":2,"id":1`, 1))
	body("a byte order mark", "\ufeff"+list)
	body("not UTF-8", strings.Replace(typed, `"x"`, "\"\xff\"", 1))
	body("an empty batch", "[]")
	body("a batch of one", "["+list+"]")
	body("a batch", "["+list+`,{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}]`)
	add(request{name: "an unknown path", path: "/none", body: list, session: own})
	add(request{name: "GET of a well-known path", method: http.MethodGet, path: "/.well-known/oauth-protected-resource"})
	return all
}

// otherRevision returns a revision with the same kind of session.
func otherRevision(revision string) string {
	switch revision {
	case mcptask.Revision20251125:
		return "2025-06-18"
	case mcptask.Revision20260728:
		return mcptask.Revision20251125
	}
	return mcptask.Revision20251125
}

// routingHeaders returns the headers that repeat parts of the body in 2026-07-28.
func routingHeaders(body string) map[string]string {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Name string `json:"name"`
			URI  string `json:"uri"`
		} `json:"params"`
	}
	if json.Unmarshal([]byte(body), &m) != nil || m.Method == "" {
		return map[string]string{"Mcp-Method": "tools/list"}
	}
	headers := map[string]string{"Mcp-Method": m.Method}
	if name := m.Params.Name + m.Params.URI; name != "" {
		headers["Mcp-Name"] = name
	}
	return headers
}
