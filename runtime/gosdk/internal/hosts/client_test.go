package hosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
)

// way is how a host is connected, and what it can do on this connection.
type way struct {
	pipe     bool // else HTTP
	revision string
	progress bool // it sends progress tokens
	elicits  bool // it declares elicitation
	replicas bool // its requests reach two servers in turn
}

func (w way) String() string {
	name := "http"
	if w.pipe {
		name = "pipe"
	}
	name += "/" + w.revision
	if w.progress {
		name += "/progress"
	}
	if w.elicits {
		name += "/elicits"
	}
	if w.replicas {
		name += "/replicas"
	}
	return name
}

func (w way) modern() bool { return w.revision == wiretest.ModernRevision }

// client is a host on one connection to a server.
type client struct {
	t    *testing.T
	host host
	way  way
	user *user

	// peer writes the messages. Over HTTP it also sends them, to the URLs in turn.
	peer  *wiretest.Peer
	urls  []*url.URL
	turn  atomic.Int64
	piped *wiretest.Piped // nil over HTTP

	ended context.Context
	stop  context.CancelFunc
	work  sync.WaitGroup

	mu    sync.Mutex
	open  map[string]*request           // by ID, which is also the progress token
	forms map[string]context.CancelFunc // the questions that are shown, by ID
	tasks map[string]*ownTask           // the questions that the host keeps as tasks

	began time.Time     // of the conversation
	ran   time.Duration // how long its work has been running, by the last report

	tools map[string]tool
	calls []callRecord // the tools/call that have ended
}

// callRecord is one tools/call.
type callRecord struct {
	tool string
	took time.Duration
}

// request is a request of the host that is under way.
type request struct {
	id      string
	method  string
	signals chan signal
	reply   message // with sawEnd
	err     error   // with sawEnd: the transport has failed
	leave   context.CancelFunc
	left    bool // the host has given it up

	token    json.RawMessage // the progress token; nil if there is none
	progress float64         // the last value
}

// message is a message of the server.
type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// impatientError says that a host has given a request up.
type impatientError struct {
	request string
	after   time.Duration
}

func (e *impatientError) Error() string {
	return fmt.Sprintf("gave %s up after %v", e.request, e.after)
}

// dial connects a host to a server: to the pipe if there is one, else to the URLs in turn.
func dial(t *testing.T, h host, w way, u *user, piped *wiretest.Piped, urls ...string) *client {
	t.Helper()
	c := &client{
		t: t, host: h, way: w, user: u, piped: piped,
		peer: wiretest.NewUnopenedPeer(t, "", w.revision, "", h.declare(w)),
		open: map[string]*request{}, forms: map[string]context.CancelFunc{}, tasks: map[string]*ownTask{},
	}
	c.peer.Client.Timeout = 0 // the host's own timers end a request
	for _, each := range urls {
		parsed, err := url.Parse(each)
		if err != nil {
			t.Fatal(err)
		}
		c.urls = append(c.urls, parsed)
	}
	c.ended, c.stop = context.WithCancel(t.Context())
	t.Cleanup(func() { c.stop(); c.work.Wait() })
	if piped != nil {
		c.work.Go(c.readPipe)
	}
	return c
}

// connect opens the session, if the revision has sessions, and lists the tools.
func (c *client) connect() error {
	if !c.way.modern() {
		if _, err := c.request("initialize", map[string]any{
			"protocolVersion": c.way.revision, "capabilities": json.RawMessage(c.peer.Caps), "clientInfo": c.host.info(),
		}); err != nil {
			return err
		}
		c.tell(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
		if c.piped == nil {
			c.listen()
		}
	}
	return c.listTools()
}

// request sends a request and waits for its result, as long as the host does.
func (c *client) request(method string, params map[string]any) (json.RawMessage, error) {
	began := time.Now()
	meta := map[string]any{}
	if method == "tools/call" {
		maps.Copy(meta, c.host.meta)
	}
	if c.way.modern() {
		meta["io.modelcontextprotocol/clientInfo"] = c.host.info()
	}
	id := fmt.Sprint(c.peer.IDs.Load() + 1)
	r := &request{id: id, method: method, signals: make(chan signal, 4096), progress: math.Inf(-1)}
	if c.way.progress && method == "tools/call" {
		if r.token = json.RawMessage(id); c.host.textTokens {
			r.token = fmt.Appendf(nil, "%q", id)
		}
		meta["progressToken"] = r.token
	}
	if len(meta) > 0 {
		if params = maps.Clone(params); params == nil {
			params = map[string]any{}
		}
		params["_meta"] = meta
	}
	body, edits := c.peer.Request(method, params)
	var ctx context.Context
	ctx, r.leave = context.WithCancel(c.ended)
	defer r.leave()
	c.mu.Lock()
	c.open[id] = r
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !r.left { // what still comes for a request that the host has left is no fault
			delete(c.open, id)
		}
	}()
	if c.piped == nil {
		c.work.Go(func() { c.post(ctx, r, body, edits) })
	} else {
		c.piped.Say("%s", body)
	}
	if err := c.await(r, began); err != nil {
		return nil, err
	}
	switch {
	case r.err != nil:
		return nil, fmt.Errorf("%s: %w", method, r.err)
	case r.reply.Error != nil:
		return nil, fmt.Errorf("%s: %d %s", method, r.reply.Error.Code, r.reply.Error.Message)
	}
	return r.reply.Result, nil
}

// await waits for the end of a request or of the host's patience. It checks that the server is not
// silent meanwhile.
func (c *client) await(r *request, began time.Time) error {
	watch := c.newWatch(r, began)
	clock := startClock(c.host.timers(c.way))
	for {
		select {
		case seen := <-r.signals:
			if seen == sawEnd {
				watch.end()
				return nil
			}
			watch.notice(seen)
			clock.notice(seen)
		case <-clock.alarm():
			c.giveUp(r)
			return &impatientError{r.method, time.Since(began)}
		}
	}
}

// giveUp leaves a request as hosts do.
func (c *client) giveUp(r *request) {
	c.mu.Lock()
	r.left = true
	c.mu.Unlock()
	if !c.way.modern() || c.piped != nil {
		c.tell(fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s,"reason":"Request timed out"}}`, r.id))
	}
	r.leave() // closes the connection
}

// newRequest returns an HTTP request to the server whose turn it is.
func (c *client) newRequest(ctx context.Context, method, body string, edits ...wiretest.Edit) *http.Request {
	r := c.peer.NewRequest(ctx, method, body, edits...)
	r.URL = c.urls[int(c.turn.Add(1))%len(c.urls)]
	return r
}

// post sends a request over HTTP and reads the response.
func (c *client) post(ctx context.Context, r *request, body string, edits []wiretest.Edit) {
	res, err := c.peer.Client.Do(c.newRequest(ctx, http.MethodPost, body, edits...))
	if err != nil {
		r.end(message{}, err)
		return
	}
	defer res.Body.Close()
	if r.method == "initialize" {
		c.peer.Session = res.Header.Get("Mcp-Session-Id")
	}
	r.signals <- sawHeaders | sawBytes
	c.readBody(r, res)
	r.end(message{}, errors.New("the response has ended without an answer"))
}

// readBody reads the messages of a response. Bytes of it are signals for its request.
func (c *client) readBody(r *request, res *http.Response) {
	body := io.Reader(res.Body)
	if r != nil {
		body = noticeReads{res.Body, r}
	}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "text/event-stream") {
		for data := range wiretest.Events(body) {
			c.receive(data)
		}
		return
	}
	if data, err := io.ReadAll(body); err == nil && len(data) > 0 {
		c.receive(data)
	}
}

// noticeReads tells a request of the bytes that come for it.
type noticeReads struct {
	io.Reader

	request *request
}

// Read implements io.Reader.
func (n noticeReads) Read(p []byte) (int, error) {
	size, err := n.Reader.Read(p)
	if size > 0 {
		n.request.signals <- sawBytes
	}
	return size, err
}

// end ends a request, unless it has ended.
func (r *request) end(reply message, err error) {
	if r.ended() {
		return
	}
	r.reply, r.err = reply, err
	r.signals <- sawEnd
}

func (r *request) ended() bool { return r.reply.ID != nil || r.err != nil }

// listen opens the session's own stream, as the SDKs do.
func (c *client) listen() {
	ctx := c.ended
	c.work.Go(func() {
		res, err := c.peer.Client.Do(c.newRequest(ctx, http.MethodGet, "", wiretest.WithHeader("Accept", "text/event-stream")))
		if err != nil {
			if ctx.Err() == nil {
				c.t.Error(err)
			}
			return
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusOK {
			c.t.Errorf("GET: %s", res.Status)
		}
		c.readBody(nil, res)
	})
}

// readPipe reads what comes on the pipe.
func (c *client) readPipe() {
	for {
		select {
		case line, ok := <-c.piped.Lines:
			if !ok {
				return
			}
			c.receive([]byte(line))
		case <-c.ended.Done():
			return
		}
	}
}

// tell sends a message that is not a request.
func (c *client) tell(body string) {
	if c.piped != nil {
		c.piped.Say("%s", body)
		return
	}
	res, err := c.peer.Client.Do(c.newRequest(c.ended, http.MethodPost, body))
	if err != nil {
		if c.ended.Err() == nil {
			c.t.Error(err)
		}
		return
	}
	defer res.Body.Close()
	if text, _ := io.ReadAll(res.Body); res.StatusCode != http.StatusAccepted {
		c.t.Errorf("%s: %s %s", body, res.Status, text)
	}
}

// receive handles a message of the server.
func (c *client) receive(data []byte) {
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		c.t.Errorf("%v: %s", err, data)
		return
	}
	switch m.Method {
	case "":
		c.mu.Lock()
		r := c.open[string(m.ID)]
		c.mu.Unlock()
		if r == nil {
			c.t.Errorf("an answer to no request: %s", data)
			return
		}
		if c.piped != nil {
			r.signals <- sawBytes
		}
		r.end(m, nil)
	case "notifications/progress":
		c.noticeProgress(m)
	case "notifications/cancelled":
		c.withdraw(m)
	case "elicitation/create", "tasks/get", "tasks/result", "tasks/cancel":
		c.answerServer(m)
	case "ping":
		c.tell(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{}}`, m.ID))
	case "notifications/tasks/status", "notifications/tasks", "notifications/message":
	default:
		c.t.Errorf("unexpected: %s", data)
	}
}

// noticeProgress checks progress and tells the request that it is for.
func (c *client) noticeProgress(m message) {
	var p struct {
		Token    json.RawMessage `json:"progressToken"` // hosts compare it as they sent it
		Progress float64         `json:"progress"`
		Total    *float64        `json:"total"`
		Message  string          `json:"message"`
	}
	if err := json.Unmarshal(m.Params, &p); err != nil {
		c.t.Error(err)
		return
	}
	var r *request
	c.mu.Lock()
	for _, open := range c.open {
		if open.token != nil && string(open.token) == string(p.Token) {
			r = open
		}
	}
	c.mu.Unlock()
	switch {
	case !c.way.progress:
		c.t.Errorf("progress without a token: %s", m.Params)
	case r == nil:
		if c.host.tasks == noTasks { // a task keeps the token of its call (C-45)
			c.t.Errorf("progress of no request: %s", m.Params)
		}
	case p.Progress <= r.progress:
		c.t.Errorf("progress %s does not increase from %v", m.Params, r.progress)
	case p.Total != nil && p.Progress > *p.Total:
		c.t.Errorf("progress %s exceeds its total", m.Params)
	default:
		r.progress = p.Progress
		c.checkAge(p.Message)
		r.signals <- sawProgress | sawBytes
	}
}

// age finds in the message of a report how long the work has been running.
var age = regexp.MustCompile(`running for ((?:\d+[hms])+)`)

// checkAge checks that the work of a conversation gets older with each report, also when its model
// has called another tool for it.
func (c *client) checkAge(message string) {
	found := age.FindStringSubmatch(message)
	if found == nil {
		return
	}
	ran, err := time.ParseDuration(found[1])
	if err != nil || ran < c.ran || ran > time.Since(c.began).Round(time.Second) {
		c.t.Errorf("%q after %v, %v from the beginning: %v", message, c.ran, time.Since(c.began), err)
	}
	c.ran = ran
}

// signalAll tells the open requests what concerns them all.
func (c *client) signalAll(seen signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.open {
		r.signals <- seen
	}
}

// watch checks that the server is not silent during a tools/call.
type watch struct {
	c        *client
	r        *request
	began    time.Time
	bytes    time.Time // when the last bytes came
	progress time.Time // when the last progress came
}

// quiet is how long a server may send nothing.
const quiet = 15 * time.Second

func (c *client) newWatch(r *request, began time.Time) *watch {
	return &watch{c: c, r: r, began: began, bytes: began, progress: began}
}

// notice checks the time since the last signal of each kind.
func (w *watch) notice(seen signal) {
	if w.r.method != "tools/call" {
		return
	}
	now := time.Now()
	if seen&sawHeaders != 0 && now.Sub(w.began) > time.Second {
		w.c.t.Errorf("the response began after %v", now.Sub(w.began))
	}
	if seen&sawBytes != 0 {
		if w.c.piped == nil && now.Sub(w.bytes) > quiet {
			w.c.t.Errorf("no byte for %v", now.Sub(w.bytes))
		}
		w.bytes = now
	}
	if seen&sawProgress != 0 {
		w.checkProgress(now)
		w.progress = now
	}
}

func (w *watch) checkProgress(now time.Time) {
	limit := quiet
	if w.c.piped != nil {
		limit += 10 * time.Millisecond // a report on a pipe waits for the answer that may come with it
	}
	if since := now.Sub(w.progress); w.r.token != nil && since > limit {
		w.c.t.Errorf("no progress for %v", since)
	}
}

// end checks the last part of the call.
func (w *watch) end() {
	if w.r.method == "tools/call" {
		w.checkProgress(time.Now())
	}
}
