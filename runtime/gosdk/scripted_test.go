package gosdk_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// scripted is a server that answers as a test has scripted it, whatever the protocol says. Clients reach it without a
// network, over HTTP as the client's transport or over a pair of pipes. So it works inside testing/synctest.
type scripted struct {
	t        testing.TB
	revision string
	// answer answers before open does. It leaves a call to open by returning the zero reply.
	answer func(call) reply
	// answers answer single methods, before answer does. See on.
	answers map[string]func(call) reply
	// before stands before each message: in a body, in an event and in a line.
	before string
	// heard gets every message of the client, unless it is nil.
	heard func(body []byte)

	mu    sync.Mutex
	calls []call
	work  sync.WaitGroup
}

// call is a request or a notification as it came.
type call struct {
	method string
	params json.RawMessage
	id     json.RawMessage
	header http.Header // nil on a pipe
	at     time.Time
	ctx    context.Context
	n      int // counts the calls of the method, from 1
}

// reply is a server's answer. The zero reply is an empty result.
type reply struct {
	result, err string // JSON
	// text is a body that is not a JSON-RPC message.
	text string
	// body is a body of bytes, of the type that header names.
	body   io.Reader
	status int // 0 means 200
	header map[string]string
	// stream sends messages until it returns; result or err, if any, are the last.
	stream func(send func(message string))
}

func result(format string, args ...any) reply { return reply{result: fmt.Sprintf(format, args...)} }

func refusal(code int, data string) reply {
	if data == "" {
		data = "null"
	}
	return reply{err: fmt.Sprintf(`{"code":%d,"message":"refused","data":%s}`, code, data)}
}

// complete is the member that gives the type of a result of 2026-07-28.
const complete = `"resultType":"complete"`

// task returns the members of a task in the form of the script's revision.
func (s *scripted) task(id, status string, more ...string) string {
	ttl, poll := "ttlMs", "pollIntervalMs"
	if s.revision != wiretest.ModernRevision {
		ttl, poll = "ttl", "pollInterval"
	}
	members := []string{fmt.Sprintf(`"taskId":%q,"status":%q,"createdAt":%q`, id, status, stamp())}
	if s.revision != wiretest.CandidateRevision {
		members = append(members, fmt.Sprintf(`"lastUpdatedAt":%q`, stamp()))
	}
	all := strings.Join(more, ",")
	if !strings.Contains(all, `"`+ttl+`"`) {
		members = append(members, fmt.Sprintf(`%q:3600000`, ttl))
	}
	if !strings.Contains(all, `"`+poll+`"`) {
		members = append(members, fmt.Sprintf(`%q:1000`, poll))
	}
	return strings.Join(append(members, more...), ",")
}

func stamp() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// done answers a poll with the completed task, in the form of the script's revision.
func (s *scripted) done() reply { return s.state("t", "completed", `"result":`+output(1)) }

// protocol returns the protocol version that the script negotiates.
func (s *scripted) protocol() string {
	if s.revision == wiretest.ModernRevision {
		return s.revision
	}
	return wiretest.LegacyRevision
}

// on sets the answer to a method. The zero reply leaves a call to the script.
func (s *scripted) on(method string, answer func(c call) reply) {
	if s.answers == nil {
		s.answers = map[string]func(call) reply{}
	}
	s.answers[method] = answer
}

// newScript returns a script with an answer to one method.
func newScript(t testing.TB, revision, method string, answer func(s *scripted, c call) reply) *scripted {
	s := &scripted{t: t, revision: revision}
	s.on(method, func(c call) reply { return answer(s, c) })
	return s
}

// polled returns a script with one task, whose nth poll poll answers.
func polled(t testing.TB, revision string, poll func(s *scripted, n int) reply) *scripted {
	return newScript(t, revision, "tasks/get", func(s *scripted, c call) reply { return poll(s, c.n) })
}

// created answers a call with a task.
func (s *scripted) created(id string, more ...string) reply {
	if s.revision != wiretest.ModernRevision {
		return result(`{"task":{%s}}`, s.task(id, "working", more...))
	}
	return result(`{"resultType":"task",%s}`, s.task(id, "working", more...))
}

// state answers a poll.
func (s *scripted) state(id, status string, more ...string) reply {
	if s.revision != wiretest.ModernRevision {
		return result(`{%s}`, s.task(id, status, more...))
	}
	return result(`{%s,%s}`, complete, s.task(id, status, more...))
}

// output returns a tool's result with a number.
func output(n int) string {
	return fmt.Sprintf(`{"content":[],"structuredContent":{"n":%d}}`, n)
}

type number struct {
	N int `json:"n"`
}

// open answers a client's first requests, and calls with the task "t", which is done when it is polled. It supports no
// subscriptions.
func (s *scripted) open(c call) (reply, bool) {
	capabilities := `{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	switch c.method {
	case "server/discover":
		if s.revision != wiretest.ModernRevision {
			return refusal(wiretest.MethodNotFound, ""), true
		}
		return result(`{%s,"supportedVersions":[%q],"capabilities":%s,"ttlMs":0,"cacheScope":"public"}`, complete, s.revision, capabilities), true
	case "initialize":
		capabilities = `{"tools":{},"tasks":{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}}`
		return result(`{"protocolVersion":%q,"capabilities":%s,"serverInfo":{"name":"script","version":"1"}}`, s.protocol(), capabilities), true
	case "tools/list":
		return result(`{%s,"tools":[{"name":"tool","inputSchema":{"type":"object"},"execution":{"taskSupport":"optional"},"annotations":{"taskHint":"optional"}}]}`, complete), true
	case "tools/call":
		if s.revision == mcptask.RevisionSEP1686 {
			return held(c, nil, reply{}), true
		}
		return s.created("t"), true
	case "tasks/get":
		if s.revision == mcptask.RevisionSEP1686 {
			return stands(c, "completed"), true
		}
		return s.done(), true
	case "tasks/result":
		return result("%s", output(1)), true
	case "subscriptions/listen":
		return refusal(wiretest.MethodNotFound, ""), true
	}
	return reply{}, false
}

// record reads a call.
func (s *scripted) record(ctx context.Context, body []byte, header http.Header) call {
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
		ID     json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal(body, &m); err != nil {
		s.t.Errorf("the client sent %s", body)
	}
	if s.heard != nil {
		s.heard(body)
	}
	c := call{method: m.Method, params: m.Params, id: m.ID, header: header, at: time.Now(), ctx: ctx}
	s.mu.Lock()
	for _, other := range s.calls {
		if other.method == c.method {
			c.n++
		}
	}
	c.n++
	s.calls = append(s.calls, c)
	s.mu.Unlock()
	return c
}

// reply returns the answer to a call.
func (s *scripted) reply(c call) reply {
	if c.id == nil {
		return reply{status: http.StatusAccepted}
	}
	for _, answer := range []func(call) reply{s.answers[c.method], s.answer} {
		if answer == nil {
			continue
		}
		if r := answer(c); r.result != "" || r.err != "" || r.text != "" || r.body != nil || r.stream != nil || r.status != 0 {
			return r
		}
	}
	if r, ok := s.open(c); ok {
		return r
	}
	return result(`{%s}`, complete)
}

// message returns the JSON-RPC response of a reply, or "" if it has none.
func (r reply) message(id json.RawMessage) string {
	switch {
	case r.err != "":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":%s}`, id, r.err)
	case r.result != "":
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":%s}`, id, r.result)
	}
	return ""
}

// RoundTrip implements http.RoundTripper.
func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	response := &http.Response{StatusCode: http.StatusMethodNotAllowed, Header: http.Header{}, Body: http.NoBody, Request: r, ContentLength: -1}
	if r.Method != http.MethodPost && s.answer == nil && s.answers["HTTP "+r.Method] == nil {
		return response, nil
	}
	body := []byte(fmt.Sprintf(`{"id":0,"method":%q}`, "HTTP "+r.Method))
	if r.Method == http.MethodPost {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	c := s.record(r.Context(), body, r.Header)
	reply := s.reply(c)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	if r.Method != http.MethodPost && reply.stream == nil && reply.body == nil {
		return response, nil
	}
	if response.StatusCode = reply.status; reply.status == 0 {
		response.StatusCode = http.StatusOK
	}
	for name, value := range reply.header {
		response.Header.Set(name, value)
	}
	switch message := reply.message(c.id); {
	case reply.stream != nil:
		response.Header.Set("Content-Type", "text/event-stream")
		reader, writer := io.Pipe()
		stop := context.AfterFunc(r.Context(), func() { _ = reader.CloseWithError(r.Context().Err()) })
		s.work.Go(func() {
			defer stop()
			send := func(message string) { _, _ = fmt.Fprintf(writer, ": x\n\ndata: %s%s\n\n", s.before, message) }
			reply.stream(send)
			if message != "" && r.Context().Err() == nil { // otherwise the client has left, and its connection reads no more
				send(message)
			}
			_ = writer.Close()
		})
		response.Body = reader
	case reply.body != nil:
		response.Body = io.NopCloser(reply.body)
	case reply.text != "":
		response.Header.Set("Content-Type", "text/plain")
		response.Body = io.NopCloser(strings.NewReader(reply.text))
	default:
		response.Header.Set("Content-Type", "application/json")
		response.Body = io.NopCloser(strings.NewReader(s.before + message))
	}
	return response, nil
}

// pipe serves lines until the input ends.
func (s *scripted) pipe(in io.Reader, out io.Writer) {
	var writing sync.Mutex
	send := func(message string) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = fmt.Fprintln(out, s.before+message)
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 1<<20)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for lines.Scan() {
		c := s.record(ctx, bytes.Clone(lines.Bytes()), nil)
		if c.id == nil {
			continue
		}
		s.work.Go(func() { // a reader that waits for an answer would stop the clock
			reply := s.reply(c)
			if reply.stream != nil {
				reply.stream(send)
			}
			if message := reply.message(c.id); message != "" {
				send(message)
			}
		})
	}
}

// of lists the calls of a method.
func (s *scripted) of(method string) []call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.calls), func(c call) bool { return c.method != method })
}

// client sends to the script.
func (s *scripted) client() *http.Client { return &http.Client{Transport: s} }

// dial connects a client to the script.
func (s *scripted) dial(options gosdk.ClientOptions) (mcptask.Conn, error) {
	options.Revision, options.HTTPClient = s.revision, s.client()
	return gosdk.Connect(context.Background(), "http://script/mcp", options)
}

// dialPipe is dial over a pair of pipes.
func (s *scripted) dialPipe(options gosdk.ClientOptions) (mcptask.Conn, error) {
	options.Revision = s.revision
	wire, _ := s.pipes()
	return gosdk.ConnectOver(context.Background(), wire, options)
}

// pipes returns the client's end of a pair of pipes, and a function that closes the server's end.
func (s *scripted) pipes() (wire *mcp.IOTransport, end func()) {
	fromClient, toServer := io.Pipe()
	fromServer, toClient := io.Pipe()
	s.work.Go(func() {
		s.pipe(fromClient, toClient)
		_ = toClient.Close()
	})
	return &mcp.IOTransport{Reader: fromServer, Writer: toServer}, func() { _, _ = toClient.Close(), fromClient.Close() }
}

// connect is dial for a test that expects it to succeed.
func (s *scripted) connect(options gosdk.ClientOptions) mcptask.Conn {
	s.t.Helper()
	conn, err := s.dial(options)
	return s.keep(conn, err)
}

// connectPipe is dialPipe for a test that expects it to succeed.
func (s *scripted) connectPipe(options gosdk.ClientOptions) mcptask.Conn {
	s.t.Helper()
	conn, err := s.dialPipe(options)
	return s.keep(conn, err)
}

func (s *scripted) keep(conn mcptask.Conn, err error) mcptask.Conn {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			s.t.Errorf("close: %v", err)
		}
		s.work.Wait()
	})
	return conn
}

// connector connects a client to a script.
type connector = func(*scripted, gosdk.ClientOptions) mcptask.Conn

// eachWay runs a test over HTTP and over a pipe, in fake time.
func eachWay(t *testing.T, test func(t *testing.T, connect connector)) {
	for name, connect := range map[string]connector{"HTTP": (*scripted).connect, "pipe": (*scripted).connectPipe} {
		t.Run(name, inBubble(func(t *testing.T) { test(t, connect) }))
	}
}

// overEachWay returns a test that runs another as eachWay does.
func overEachWay(test func(t *testing.T, connect connector)) func(*testing.T) {
	return func(t *testing.T) { eachWay(t, test) }
}

// everyRevision runs a test in every revision that the scripts know, in fake time.
func everyRevision(t *testing.T, test func(t *testing.T, revision string)) {
	for _, revision := range wiretest.AllRevisions {
		t.Run(revision, inBubble(func(t *testing.T) { test(t, revision) }))
	}
}

// inEveryRevision returns a test that runs another as everyRevision does.
func inEveryRevision(test func(t *testing.T, revision string)) func(*testing.T) {
	return func(t *testing.T) { everyRevision(t, test) }
}

// inBubble returns a test that runs another in fake time.
func inBubble(test func(t *testing.T)) func(*testing.T) {
	return func(t *testing.T) { bubble.Test(t, test) }
}

// within returns the test's context with a time limit.
func within(t testing.TB, limit time.Duration) context.Context {
	ctx, cancel := wiretest.WithTimeout(t, limit)
	t.Cleanup(cancel)
	return ctx
}

// dial connects a client to a server until the test ends.
func dial(t testing.TB, url string, options gosdk.ClientOptions) mcptask.Conn {
	t.Helper()
	conn, err := gosdk.Connect(t.Context(), url, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// wantNumber waits for a call and checks its number.
func wantNumber(t testing.TB, call *mcptask.Call[number], n int) {
	t.Helper()
	if out, err := call.Wait(t.Context()); err != nil || out.N != n {
		t.Errorf("%+v, %v: want %d", out, err, n)
	}
}

// wantEnd waits for a call and checks the error that it ends with.
func wantEnd[Out any](t testing.TB, call *mcptask.Call[Out], want error) {
	t.Helper()
	if _, err := call.Wait(t.Context()); !errors.Is(err, want) {
		t.Errorf("%v: want %v", err, want)
	}
}

// cancel cancels a call.
func cancel[Out any](t testing.TB, call *mcptask.Call[Out]) {
	t.Helper()
	if err := call.Cancel(t.Context()); err != nil {
		t.Errorf("cancel: %v", err)
	}
}

// resume resumes a call of the tool.
func resume(t testing.TB, conn mcptask.Conn, token mcptask.Token) *mcptask.Call[number] {
	t.Helper()
	call, err := mcptask.Resume[number](conn, "tool", token)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// start starts a task of the tool.
func start(t testing.TB, conn mcptask.Conn, options ...mcptask.CallOption) *mcptask.Call[number] {
	t.Helper()
	call, err := mcptask.Start[number](t.Context(), conn, "tool", number{1}, options...)
	if err != nil {
		t.Fatal(err)
	}
	return call
}

// member reads a member of params by its path, as JSON.
func (c call) member(path ...string) string {
	value := c.params
	for _, name := range path {
		var o map[string]json.RawMessage
		if json.Unmarshal(value, &o) != nil {
			return ""
		}
		value = o[name]
	}
	return string(value)
}
