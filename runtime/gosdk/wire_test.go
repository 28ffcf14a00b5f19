package gosdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// Nothing below knows a type of the project: JSON text in, JSON text out.

const (
	// candidateRevision is spoken on a path of its own.
	candidateRevision = wirecheck.Candidate
	legacyRevision    = wirecheck.Legacy
	modernRevision    = wirecheck.Modern

	tasksExtension = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	withQuestions  = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

	invalidRequest    = -32600
	methodNotFound    = -32601
	invalidParams     = -32602
	internalError     = -32603
	parseError        = -32700
	headerMismatch    = -32020
	missingCapability = -32021
	unsupported       = -32022
)

// allRevisions are those that a server speaks whose test names the candidate.
var allRevisions = []string{candidateRevision, legacyRevision, modernRevision}

// patience is how long tests wait for what has to come. It is no promise: it only
// has to be more than a machine takes that is busy with something else.
const patience = time.Minute

var checker = sync.OnceValues(wirecheck.New)

// peer is a client that speaks one revision over net/http. Every response that
// it gets is held against the schema.
type peer struct {
	t        testing.TB
	url      string
	revision string
	token    string // a bearer token
	session  string // of the revisions with sessions
	caps     string // clientCapabilities, sent with every request of 2026-07-28, else with initialize
	client   *http.Client
	ids      atomic.Int64
	opened   *response // the answer to initialize
	// statuses keeps the status notifications among what its streams bring; else
	// they are checked and passed over, since they come beside everything.
	statuses bool
}

// newPeer makes a client of 2026-07-28, or opens a session of an older revision.
func newPeer(t testing.TB, url, revision, token string) *peer {
	t.Helper()
	caps := `{}`
	if revision == modernRevision {
		caps = tasksExtension
	}
	return newPeerThat(t, url, revision, token, caps)
}

// newPeerThat is newPeer with other capabilities.
func newPeerThat(t testing.TB, url, revision, token, caps string) *peer {
	t.Helper()
	p := unopened(t, url, revision, token, caps)
	if revision != modernRevision {
		p.initialize()
	}
	return p
}

// unopened is newPeerThat without a session.
func unopened(t testing.TB, url, revision, token, caps string) *peer {
	t.Helper()
	p := &peer{t: t, url: at(url, revision), revision: revision, token: token, caps: caps,
		client: &http.Client{Timeout: patience, Transport: wiretest.NewTransport()}}
	t.Cleanup(p.client.CloseIdleConnections)
	return p
}

// at is where a server speaks a revision.
func at(url, revision string) string {
	if revision == candidateRevision {
		return url + candidatePath
	}
	return url
}

// candidatePath is where the test servers speak the release candidate.
const candidatePath = "/mcp/" + candidateRevision

// protocol is what the client negotiates.
func (p *peer) protocol() string {
	if p.revision == candidateRevision {
		return legacyRevision
	}
	return p.revision
}

// newAsked makes a client that declares what it can be asked.
func newAsked(t testing.TB, url, revision, token, declared string) *peer {
	t.Helper()
	if revision == modernRevision {
		declared = strings.TrimSuffix(declared, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	return newPeerThat(t, url, revision, token, declared)
}

// initialize opens the session.
func (p *peer) initialize() {
	p.t.Helper()
	if n := p.greet(); n.status != http.StatusAccepted {
		p.t.Fatalf("notifications/initialized: %d %s", n.status, n.body)
	}
}

// greet is initialize that returns what the server says to its second message.
func (p *peer) greet() *response {
	p.t.Helper()
	r := p.call("initialize", map[string]any{
		"protocolVersion": p.protocol(), "capabilities": json.RawMessage(p.caps), "clientInfo": map[string]any{"name": "wire", "version": "1"},
	})
	if r.Error != nil || r.status != http.StatusOK {
		p.t.Fatalf("initialize: %d %s", r.status, r.body)
	}
	p.session = r.header.Get("Mcp-Session-Id")
	p.opened = r
	return p.post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// response is what came back for one POST.
type response struct {
	t      testing.TB
	status int
	header http.Header
	body   []byte // the JSON-RPC response, taken out of the stream where it came in one
	stream bool
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

type edit func(*http.Request)

func withHeader(name, value string) edit {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

func jsonOnly(r *http.Request) { r.Header.Set("Accept", "application/json") }

// call sends a request the way that the revision prescribes.
func (p *peer) call(method string, params map[string]any, edits ...edit) *response {
	p.t.Helper()
	body, edits := p.request(method, params, edits...)
	r := p.post(body, edits...)
	p.check(method, r)
	return r
}

// request makes the body and the headers of a call.
func (p *peer) request(method string, params map[string]any, edits ...edit) (string, []edit) {
	p.t.Helper()
	params = maps.Clone(params)
	if p.revision == modernRevision {
		if params == nil {
			params = map[string]any{}
		}
		meta := map[string]any{
			"io.modelcontextprotocol/protocolVersion":    modernRevision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "wire", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": json.RawMessage(p.caps),
		}
		if own, ok := params["_meta"].(map[string]any); ok {
			maps.Copy(meta, own)
		}
		params["_meta"] = meta
		own := []edit{withHeader("Mcp-Method", method)}
		for _, key := range []string{"name", "taskId"} {
			if name, ok := params[key].(string); ok {
				own = append(own, withHeader("Mcp-Name", headerSafe(name)))
			}
		}
		edits = append(own, edits...)
	}
	message := map[string]any{"jsonrpc": "2.0", "id": p.ids.Add(1), "method": method}
	if params != nil {
		message["params"] = params
	}
	body, err := json.Marshal(message)
	if err != nil {
		p.t.Fatal(err)
	}
	return string(body), edits
}

// headerSafe is E-71.
func headerSafe(value string) string {
	for _, c := range []byte(value) {
		if c < ' ' || c > '~' {
			return "=?base64?" + base64Of(value) + "?="
		}
	}
	return value
}

func base64Of(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// check holds a response against the schema.
func (p *peer) check(method string, r *response) {
	p.t.Helper()
	c, err := checker()
	if err != nil {
		p.t.Fatal(err)
	}
	if r.Result == nil && r.Error == nil {
		return // an HTTP error without a JSON-RPC message
	}
	if err := c.Response(p.schema(), method, r.body); err != nil {
		p.t.Error(err)
	}
	if r.Error != nil && r.Error.Message == "" { // C-84, E-78
		p.t.Errorf("%s: an error without a message: %s", method, r.body)
	}
}

// schema is the revision whose schema counts.
func (p *peer) schema() string {
	if p.revision == modernRevision || p.revision == candidateRevision {
		return p.revision
	}
	return legacyRevision // the older ones have no schema of tasks, and the same shapes
}

// start makes an HTTP request with the headers that every one has.
func (p *peer) start(ctx context.Context, method, body string, edits ...edit) *http.Request {
	p.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.url, reader)
	if err != nil {
		p.t.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if p.token != "" {
		r.Header.Set("Authorization", "Bearer "+p.token)
	}
	if p.session != "" {
		r.Header.Set("Mcp-Session-Id", p.session)
	}
	if p.session != "" || p.revision == modernRevision {
		r.Header.Set("MCP-Protocol-Version", p.protocol())
	}
	for _, e := range edits {
		e(r)
	}
	return r
}

// post sends a body as it is.
func (p *peer) post(body string, edits ...edit) *response {
	p.t.Helper()
	r := p.start(context.Background(), http.MethodPost, body, edits...)
	res, err := p.client.Do(r)
	if err != nil {
		p.t.Fatalf("no answer to %.200s: %v", body, err)
	}
	return p.read(res)
}

// read reads a response to its end.
func (p *peer) read(res *http.Response) *response {
	p.t.Helper()
	defer res.Body.Close()
	out := &response{t: p.t, status: res.StatusCode, header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		out.stream = true
		for message := range events(res.Body) {
			if bytes.Contains(message, []byte(`"method"`)) && !bytes.Contains(message, []byte(`"result"`)) {
				continue // progress of a plain call
			}
			out.body = message
		}
	} else {
		data, err := io.ReadAll(res.Body)
		if err != nil {
			p.t.Fatal("the body ends early: ", err)
		}
		out.body = data
	}
	if json.Valid(out.body) {
		if err := json.Unmarshal(out.body, out); err != nil {
			p.t.Fatalf("%v: %s", err, out.body)
		}
	}
	return out
}

// events reads the data of server-sent events. A line that was cut off is none.
func events(r io.Reader) func(yield func([]byte) bool) {
	return func(yield func([]byte) bool) {
		lines := bufio.NewScanner(r)
		lines.Buffer(nil, 1<<24)
		lines.Split(func(data []byte, _ bool) (int, []byte, error) {
			if end := bytes.IndexByte(data, '\n'); end >= 0 {
				return end + 1, data[:end], nil
			}
			return 0, nil, nil
		})
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data:"); ok && strings.TrimSpace(data) != "" {
				if !yield([]byte(strings.TrimSpace(data))) {
					return
				}
			}
		}
	}
}

// listen opens the session's standalone stream. Each message is held against
// the schema.
func (p *peer) listen() (messages <-chan json.RawMessage, stop func()) {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	client := &http.Client{Transport: p.client.Transport}
	var res *http.Response
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := p.start(ctx, http.MethodGet, "", func(r *http.Request) { r.Header.Set("Accept", "text/event-stream") })
		var err error
		if res, err = client.Do(r); err != nil {
			p.t.Fatal(err)
		}
		if res.StatusCode == http.StatusOK {
			break
		}
		res.Body.Close()
		// A session has one such stream, until the SDK sees that it was closed.
		if res.StatusCode != http.StatusConflict || time.Now().After(end) {
			p.t.Fatalf("GET: %d", res.StatusCode)
		}
	}
	c, err := checker()
	if err != nil {
		p.t.Fatal(err)
	}
	out := make(chan json.RawMessage, 1024)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer close(out)
		for message := range events(res.Body) {
			if err := c.Message(p.schema(), message); err != nil {
				p.t.Error(err)
			}
			if !p.statuses && bytes.Contains(message, []byte(`"notifications/tasks/status"`)) {
				continue
			}
			out <- message
		}
	}()
	return out, func() {
		cancel()
		<-done
		res.Body.Close()
	}
}

// want fails unless the response is this error with this HTTP status.
func (r *response) want(status, code int) *response {
	r.t.Helper()
	if r.Error == nil || r.status != status || r.Error.Code != code {
		r.t.Errorf("HTTP %d %.400s, want %d with %d", r.status, r.body, status, code)
	}
	return r
}

// ok fails unless the response is a result.
func (r *response) ok() *response {
	r.t.Helper()
	if r.Error != nil || r.status != http.StatusOK || r.Result == nil {
		r.t.Fatalf("HTTP %d %s, want a result", r.status, r.body)
	}
	return r
}

// get reads a member of the result by its path; nil where there is none.
func (r *response) get(path ...string) any {
	r.t.Helper()
	if r.Result == nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(r.Result))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		r.t.Fatalf("%v: %s", err, r.body)
	}
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// text is a member of the result that is a string.
func (r *response) text(path ...string) string {
	r.t.Helper()
	text, _ := r.get(path...).(string)
	return text
}

// create makes a task and returns its ID.
func (p *peer) create(tool string, arguments map[string]any) string {
	p.t.Helper()
	params := map[string]any{"name": tool, "arguments": arguments}
	path := []string{"taskId"}
	if p.revision != modernRevision {
		params["task"] = map[string]any{}
		path = []string{"task", "taskId"}
	}
	id := p.call("tools/call", params).ok().text(path...)
	if id == "" {
		p.t.Fatalf("%s gave no task", tool)
	}
	return id
}

// task sends a task method for an ID.
func (p *peer) task(method, id string, edits ...edit) *response {
	p.t.Helper()
	return p.call(method, map[string]any{"taskId": id}, edits...)
}

// until polls until the task has a status.
func (p *peer) until(id string, statuses ...string) *response {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		r := p.task("tasks/get", id).ok()
		for _, status := range statuses {
			if r.text("status") == status {
				return r
			}
		}
		if time.Now().After(end) {
			p.t.Fatalf("the task is not %v: %s", statuses, r.body)
		}
	}
}

func pipelineArgs(branch string, steps ...string) map[string]any {
	args := map[string]any{"repository": "https://example.com/r", "branch": branch}
	if len(steps) > 0 {
		args["steps"] = steps
	}
	return args
}
