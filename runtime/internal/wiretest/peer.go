package wiretest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// The peer uses no type of the project: it reads and writes literal JSON.

const (
	// CandidateRevision has a path of its own on the server.
	CandidateRevision = wirecheck.Candidate
	LegacyRevision    = wirecheck.Legacy
	ModernRevision    = wirecheck.Modern

	TasksExtension = `{"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	WithQuestions  = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`

	InvalidRequest    = -32600
	MethodNotFound    = -32601
	InvalidParams     = -32602
	InternalError     = -32603
	ParseError        = -32700
	HeaderMismatch    = -32020
	MissingCapability = -32021
	Unsupported       = -32022
)

// AllRevisions are the revisions of a server for a test of the candidate.
var AllRevisions = []string{CandidateRevision, LegacyRevision, ModernRevision}

// Patience bounds the wait for an event that must come. It only has to exceed the delays of a busy
// machine.
const Patience = time.Minute

// LoadChecker returns the checker of messages.
var LoadChecker = sync.OnceValues(wirecheck.New)

// Peer is a client that speaks one revision over net/http. It checks every response against the
// schema.
type Peer struct {
	T        testing.TB
	URL      string
	Revision string
	Token    string // the bearer token
	Session  string // in the revisions with sessions
	Caps     string // clientCapabilities: in every request of 2026-07-28, else in initialize
	Client   *http.Client
	IDs      atomic.Int64
	Opened   *Response // the answer to initialize
	// Statuses keeps status notifications in the streams. Otherwise they are checked and dropped,
	// because they may come at any point.
	Statuses bool
}

// NewPeer returns a client of 2026-07-28, or one with an open session of an older revision.
func NewPeer(t testing.TB, url, revision, token string) *Peer {
	t.Helper()
	caps := `{}`
	if revision == ModernRevision {
		caps = TasksExtension
	}
	return NewPeerWith(t, url, revision, token, caps)
}

// NewPeerWith is NewPeer with other capabilities.
func NewPeerWith(t testing.TB, url, revision, token, caps string) *Peer {
	t.Helper()
	p := NewUnopenedPeer(t, url, revision, token, caps)
	if revision != ModernRevision {
		p.Initialize()
	}
	return p
}

// NewUnopenedPeer is NewPeerWith without a session.
func NewUnopenedPeer(t testing.TB, url, revision, token, caps string) *Peer {
	t.Helper()
	p := &Peer{T: t, URL: RevisionURL(url, revision), Revision: revision, Token: token, Caps: caps,
		Client: &http.Client{Timeout: Patience, Transport: memnet.NewTransport()}}
	t.Cleanup(p.Client.CloseIdleConnections)
	return p
}

// RevisionURL returns the URL at which a server speaks a revision.
func RevisionURL(url, revision string) string {
	if revision == CandidateRevision {
		return url + candidatePath
	}
	return url
}

// candidatePath is the path at which the test servers speak the release candidate.
const candidatePath = "/mcp/" + CandidateRevision

// protocol returns the protocol version to negotiate.
func (p *Peer) protocol() string {
	if p.Revision == CandidateRevision {
		return LegacyRevision
	}
	return p.Revision
}

// NewAskedPeer returns a client that declares what it answers.
func NewAskedPeer(t testing.TB, url, revision, token, declared string) *Peer {
	t.Helper()
	if revision == ModernRevision {
		declared = strings.TrimSuffix(declared, "}") + `,"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	return NewPeerWith(t, url, revision, token, declared)
}

// Initialize opens the session.
func (p *Peer) Initialize() {
	p.T.Helper()
	if n := p.SendInitialize(); n.Status != http.StatusAccepted {
		p.T.Fatalf("notifications/initialized: %d %s", n.Status, n.Body)
	}
}

// SendInitialize sends both messages that open the session, and returns the response to the second.
func (p *Peer) SendInitialize() *Response {
	p.T.Helper()
	r := p.Call("initialize", map[string]any{
		"protocolVersion": p.protocol(), "capabilities": json.RawMessage(p.Caps), "clientInfo": map[string]any{"name": "wire", "version": "1"},
	})
	if r.Error != nil || r.Status != http.StatusOK {
		p.T.Fatalf("initialize: %d %s", r.Status, r.Body)
	}
	p.Session = r.Header.Get("Mcp-Session-Id")
	p.Opened = r
	return p.Post(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
}

// Response is the response to one POST.
type Response struct {
	T      testing.TB      `json:"-"`
	Status int             `json:"-"`
	Header http.Header     `json:"-"`
	Body   []byte          `json:"-"` // the JSON-RPC response, without the event around it
	Stream bool            `json:"-"`
	ID     json.RawMessage `json:"id"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int             `json:"code"`
		Message string          `json:"message"`
		Data    json.RawMessage `json:"data"`
	} `json:"error"`
}

// Edit changes a request before it is sent.
type Edit func(*http.Request)

// WithHeader returns an Edit that sets a header, or removes it if value is "".
func WithHeader(name, value string) Edit {
	return func(r *http.Request) {
		if value == "" {
			r.Header.Del(name)
			return
		}
		r.Header.Set(name, value)
	}
}

// JSONOnly is an Edit that accepts no streams.
func JSONOnly(r *http.Request) { r.Header.Set("Accept", "application/json") }

// Call sends a request as the revision prescribes.
func (p *Peer) Call(method string, params map[string]any, edits ...Edit) *Response {
	p.T.Helper()
	body, edits := p.Request(method, params, edits...)
	r := p.Post(body, edits...)
	p.Check(method, r)
	return r
}

// Request returns the body and the headers of a call.
func (p *Peer) Request(method string, params map[string]any, edits ...Edit) (string, []Edit) {
	p.T.Helper()
	params = maps.Clone(params)
	if p.Revision == ModernRevision {
		if params == nil {
			params = map[string]any{}
		}
		meta := map[string]any{
			"io.modelcontextprotocol/protocolVersion":    ModernRevision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "wire", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": json.RawMessage(p.Caps),
		}
		if own, ok := params["_meta"].(map[string]any); ok {
			maps.Copy(meta, own)
		}
		params["_meta"] = meta
		own := []Edit{WithHeader("Mcp-Method", method)}
		for _, key := range []string{"name", "taskId"} {
			if name, ok := params[key].(string); ok {
				own = append(own, WithHeader("Mcp-Name", encodeHeader(name)))
			}
		}
		edits = append(own, edits...)
	}
	message := map[string]any{"jsonrpc": "2.0", "id": p.IDs.Add(1), "method": method}
	if params != nil {
		message["params"] = params
	}
	body, err := json.Marshal(message)
	if err != nil {
		p.T.Fatal(err)
	}
	return string(body), edits
}

// encodeHeader encodes a header's value, as E-71 requires.
func encodeHeader(value string) string {
	for _, c := range []byte(value) {
		if c < ' ' || c > '~' {
			return "=?base64?" + EncodeBase64(value) + "?="
		}
	}
	return value
}

// EncodeBase64 returns a text in base64.
func EncodeBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// Check checks a response against the schema.
func (p *Peer) Check(method string, r *Response) {
	p.T.Helper()
	c, err := LoadChecker()
	if err != nil {
		p.T.Fatal(err)
	}
	if r.Result == nil && r.Error == nil {
		return // an HTTP error without a JSON-RPC message
	}
	if err := c.Response(p.schema(), method, r.Body); err != nil {
		p.T.Error(err)
	}
	if r.Error != nil && r.Error.Message == "" { // C-84, E-78
		p.T.Errorf("%s: an error without a message: %s", method, r.Body)
	}
}

// schema returns the revision of the schema to check against.
func (p *Peer) schema() string {
	if p.Revision == ModernRevision || p.Revision == CandidateRevision {
		return p.Revision
	}
	return LegacyRevision // the older revisions have the same shapes and no schema of tasks
}

// NewRequest returns an HTTP request with the headers that all have.
func (p *Peer) NewRequest(ctx context.Context, method, body string, edits ...Edit) *http.Request {
	p.T.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequestWithContext(ctx, method, p.URL, reader)
	if err != nil {
		p.T.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", "application/json, text/event-stream")
	if p.Token != "" {
		r.Header.Set("Authorization", "Bearer "+p.Token)
	}
	if p.Session != "" {
		r.Header.Set("Mcp-Session-Id", p.Session)
	}
	if p.Session != "" || p.Revision == ModernRevision {
		r.Header.Set("MCP-Protocol-Version", p.protocol())
	}
	for _, e := range edits {
		e(r)
	}
	return r
}

// Post sends a body as it is.
func (p *Peer) Post(body string, edits ...Edit) *Response {
	p.T.Helper()
	r := p.NewRequest(context.Background(), http.MethodPost, body, edits...)
	res, err := p.Client.Do(r)
	if err != nil {
		p.T.Fatalf("no answer to %.200s: %v", body, err)
	}
	return p.Read(res)
}

// Status sends a request and returns the HTTP status of the response, which it does not read. So
// the response may be a stream that stays open.
func (p *Peer) Status(method, body string, edits ...Edit) int {
	p.T.Helper()
	res, err := p.Client.Do(p.NewRequest(p.T.Context(), method, body, edits...))
	if err != nil {
		p.T.Fatal(err)
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// Read reads a response to its end.
func (p *Peer) Read(res *http.Response) *Response {
	p.T.Helper()
	defer res.Body.Close()
	out := &Response{T: p.T, Status: res.StatusCode, Header: res.Header}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		out.Stream = true
		for message := range Events(res.Body) {
			if bytes.Contains(message, []byte(`"method"`)) && !bytes.Contains(message, []byte(`"result"`)) {
				continue // progress of a plain call
			}
			out.Body = message
		}
	} else {
		data, err := io.ReadAll(res.Body)
		if err != nil {
			p.T.Fatal("the body ends early: ", err)
		}
		out.Body = data
	}
	if json.Valid(out.Body) {
		if err := json.Unmarshal(out.Body, out); err != nil {
			p.T.Fatalf("%v: %s", err, out.Body)
		}
	}
	return out
}

// Events reads the data of server-sent events. It drops an incomplete line.
func Events(r io.Reader) func(yield func([]byte) bool) {
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

// Listen is OpenGet for a test that reads the messages unchanged.
func (p *Peer) Listen() (messages <-chan json.RawMessage, stop func()) {
	p.T.Helper()
	f := p.OpenGet()
	out := make(chan json.RawMessage, 1024)
	go func() {
		defer close(out)
		for m := range f.Messages {
			out <- json.RawMessage(m.Text)
		}
	}()
	return out, f.Stop
}

// Want fails the test unless the response is an error with this code and HTTP status.
func (r *Response) Want(status, code int) *Response {
	r.T.Helper()
	if r.Error == nil || r.Status != status || r.Error.Code != code {
		r.T.Errorf("HTTP %d %.400s, want %d with %d", r.Status, r.Body, status, code)
	}
	return r
}

// OK fails the test unless the response is a result.
func (r *Response) OK() *Response {
	r.T.Helper()
	if r.Error != nil || r.Status != http.StatusOK || r.Result == nil {
		r.T.Fatalf("HTTP %d %s, want a result", r.Status, r.Body)
	}
	return r
}

// WantMembers fails the test unless the response is a result with the members of an object, which
// the format and its arguments describe in JSON. The result may have other members, and so may
// objects in it. A member that is null in the format must be absent or null.
func (r *Response) WantMembers(format string, args ...any) *Response {
	r.T.Helper()
	want := fmt.Sprintf(format, args...)
	if !hasMembers(r.OK().Get(), decodeNumbers(r.T, []byte(want))) {
		r.T.Errorf("%s, want the members %s", r.Body, want)
	}
	return r
}

// hasMembers reports whether a decoded value is equal to another one, in which objects may leave
// out members.
func hasMembers(value, want any) bool {
	wanted, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(value, want)
	}
	object, ok := value.(map[string]any)
	ok = ok || value == nil && len(wanted) > 0 // an absent object has no members
	for name, member := range wanted {
		ok = ok && hasMembers(object[name], member)
	}
	return ok
}

// WantIn fails the test unless the response contains the texts.
func (r *Response) WantIn(texts ...string) *Response {
	r.T.Helper()
	for _, text := range texts {
		if !bytes.Contains(r.Body, []byte(text)) {
			r.T.Errorf("%s, want %q in it", r.Body, text)
		}
	}
	return r
}

// WantPlain fails the test unless the response is the result of a call that made no task.
func (r *Response) WantPlain() *Response {
	r.T.Helper()
	if r.WantMembers(`{"task":null,"taskId":null,"_meta":{"task":null}}`); r.Get("content") == nil {
		r.T.Errorf("%s, want content", r.Body)
	}
	return r
}

// decodeNumbers decodes JSON. It keeps the numbers as they came.
func decodeNumbers(t testing.TB, data []byte) any {
	t.Helper()
	if !json.Valid(data) {
		t.Fatalf("no JSON: %s", data)
	}
	return readValue(data)
}

// readValue decodes valid JSON. It keeps the numbers as they came.
func readValue(data []byte) (value any) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	_ = decoder.Decode(&value) // it is valid
	return value
}

// Get returns the member of the result at a path, or nil.
func (r *Response) Get(path ...string) any {
	r.T.Helper()
	if r.Result == nil {
		return nil
	}
	value := decodeNumbers(r.T, r.Result)
	for _, key := range path {
		object, _ := value.(map[string]any)
		value = object[key]
	}
	return value
}

// Text returns the string in the result at a path, or "".
func (r *Response) Text(path ...string) string {
	r.T.Helper()
	text, _ := r.Get(path...).(string)
	return text
}

// Create creates a task and returns its ID.
func (p *Peer) Create(tool string, arguments map[string]any) string {
	p.T.Helper()
	params := map[string]any{"name": tool, "arguments": arguments}
	path := []string{"taskId"}
	if p.Revision != ModernRevision {
		params["task"] = map[string]any{}
		path = []string{"task", "taskId"}
	}
	id := p.Call("tools/call", params).OK().Text(path...)
	if id == "" {
		p.T.Fatalf("%s gave no task", tool)
	}
	return id
}

// Task sends a task method for an ID.
func (p *Peer) Task(method, id string, edits ...Edit) *Response {
	p.T.Helper()
	return p.Call(method, map[string]any{"taskId": id}, edits...)
}

// Until polls until the task has one of the statuses.
func (p *Peer) Until(id string, statuses ...string) *Response {
	p.T.Helper()
	return AwaitStatus(p.T, func() *Response { return p.Task("tasks/get", id) }, statuses...)
}

// AwaitStatus polls until a task has one of the statuses.
func AwaitStatus(t testing.TB, poll func() *Response, statuses ...string) (r *Response) {
	t.Helper()
	Await(t, func() (missing string) {
		if r = poll().OK(); slices.Contains(statuses, r.Text("status")) {
			return ""
		}
		return fmt.Sprintf("the task is not %v: %s", statuses, r.Body)
	})
	return r
}

// PipelineArgs returns the arguments of run_pipeline.
func PipelineArgs(branch string, steps ...string) map[string]any {
	args := map[string]any{"repository": "https://example.com/r", "branch": branch}
	if len(steps) > 0 {
		args["steps"] = steps
	}
	return args
}
