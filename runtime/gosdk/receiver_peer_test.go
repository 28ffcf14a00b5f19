package gosdk

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// patience is how long tests wait for an event. It is no promise: it only has to be longer than a busy machine takes.
const patience = time.Minute

// checker compiles each schema once.
var checker = sync.OnceValues(wirecheck.New)

// inquirer is a server of 2025-11-25, its candidate or the guide that asks its client. It uses no types of the project:
// it sends and reads JSON text, and checks each message against the schema.
type inquirer struct {
	t      testing.TB
	check  *wirecheck.Checker
	conn   mcptask.Conn
	person *person
	kill   func() // ends the session
	// revision is the one that the client asks for.
	revision string

	mu      sync.Mutex
	changed *sync.Cond
	said    []string                           // requests and notifications to the client
	ids     int                                // of requests
	asked   map[string]struct{ is, of string } // methods by request ID; of is the one behind a tasks/result
	made    map[string]string                  // methods by request ID; of is the method behind a tasks/result
	got     map[string][]reply                 // by request ID
	begun   json.RawMessage                    // the last initialize
	methods []string                           // that the client has sent
	headers []http.Header                      // of the client's replies
	refuses bool                               // the inquirer answers replies with HTTP 500
	// refused counts refused replies, resumed the resumed streams, and again the messages that came twice.
	refused, resumed, again int
	drop                    func() // ends the stream
}

// reply is a response of the client.
type reply struct {
	t      testing.TB
	Result json.RawMessage `json:"result"`
	Error  *mcptask.Error  `json:"error"`
}

// newInquirer returns an inquirer, and the options of a client that answers it.
func newInquirer(t testing.TB, revision string) (*inquirer, ClientOptions) {
	t.Helper()
	check, err := checker()
	if err != nil {
		t.Fatal(err)
	}
	a := &inquirer{t: t, check: check, revision: revision, person: newPerson(), kill: func() {}, made: map[string]string{}, got: map[string][]reply{}}
	a.asked = map[string]struct{ is, of string }{}
	a.changed = sync.NewCond(&a.mu)
	o := a.person.options()
	o.Revision = revision
	return a, o
}

// hear takes a message of the client and returns the answer, if it has one.
func (a *inquirer) hear(message []byte, header http.Header) string {
	var m struct {
		reply
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		a.t.Errorf("%v: %s", err, message)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	defer a.changed.Broadcast()
	if m.Method != "" {
		a.methods = append(a.methods, m.Method)
		if m.Method != "server/discover" {
			if err := a.check.Sent(a.revision, message); err != nil {
				a.t.Error(err)
			}
		}
		switch {
		case m.ID == nil:
			return ""
		case m.Method == "initialize":
			a.begun = bytes.Clone(message)
			return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"inquirer","version":"1"}}}`
		case m.Method == "tools/list":
			return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[]}}`
		}
		return `{"jsonrpc":"2.0","id":` + string(m.ID) + `,"error":{"code":-32601,"message":"no such method"}}`
	}
	id := string(m.ID)
	if asked, ok := a.asked[id]; !ok {
		a.t.Errorf("a reply to an unknown request: %s", message)
	} else if err := a.check.Reply(a.revision, asked.is, asked.of, message); err != nil {
		a.t.Error(err)
	}
	m.reply.t = a.t
	if created := m.text("task", "taskId") + m.text("_meta", "task", "id"); created != "" {
		a.made[created] = a.asked[id].is
	}
	a.got[id] = append(a.got[id], m.reply)
	a.headers = append(a.headers, header)
	return ""
}

// wake wakes all waiters. It takes the lock. Otherwise it could miss a waiter that has checked its condition and does
// not wait yet.
func (a *inquirer) wake() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.changed.Broadcast()
}

// say sends a message to the client.
func (a *inquirer) say(message string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.said = append(a.said, message)
	a.changed.Broadcast()
}

// begin sends a request and returns its ID.
func (a *inquirer) begin(method, params string) string {
	a.mu.Lock()
	a.ids++
	id := strconv.Itoa(a.ids)
	if a.ids%2 == 0 {
		id = strconv.Quote("server " + id)
	}
	a.mu.Unlock()
	a.beginAs(id, method, params)
	return id
}

func (a *inquirer) beginAs(id, method, params string) {
	var p struct {
		TaskID string `json:"taskId"`
		ID     string `json:"id"` // in the guide
	}
	_ = json.Unmarshal([]byte(params), &p)
	a.mu.Lock()
	a.asked[id] = struct{ is, of string }{method, a.made[p.TaskID+p.ID]}
	a.mu.Unlock()
	if params != "" {
		params = `,"params":` + params
	}
	a.say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":%q%s}`, id, method, params))
}

// refuse makes replies fail, or accepts them again.
func (a *inquirer) refuse(refuse bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refuses = refuse
}

// untilRoom waits until the client accepts requests again.
func (a *inquirer) untilRoom(id string) {
	a.t.Helper()
	for end := time.Now().Add(patience); a.task("tasks/get", id).Error != nil; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatal("there is no room for another request")
		}
	}
}

// until waits until done returns true. It calls done with a.mu held.
func (a *inquirer) until(what string, done func() bool) {
	a.t.Helper()
	late := false
	timer := time.AfterFunc(patience, func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		late = true
		a.changed.Broadcast()
	})
	defer timer.Stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	for !done() {
		if late {
			a.t.Fatalf("still waiting for: %s", what)
		}
		a.changed.Wait()
	}
}

// reply waits for the response to a request.
func (a *inquirer) reply(id string) (r reply) {
	a.t.Helper()
	a.until("the reply to "+id, func() bool {
		if len(a.got[id]) == 0 {
			return false
		}
		r = a.got[id][0]
		return true
	})
	r.t = a.t
	return r
}

// replies counts the responses to a request that have come.
func (a *inquirer) replies(id string) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.got[id])
}

// ask sends a request and waits for its response.
func (a *inquirer) ask(method, params string) reply {
	a.t.Helper()
	return a.reply(a.begin(method, params))
}

// create makes a task of a question and returns its ID.
func (a *inquirer) create(question string) string {
	a.t.Helper()
	return a.ask("elicitation/create", elicit(question, `,"task":{}`)).ok().text("task", "taskId")
}

// task sends a task method for an ID.
func (a *inquirer) task(method, id string) reply {
	a.t.Helper()
	member := "taskId"
	if a.revision == mcptask.RevisionTaskPatterns {
		member = "id"
	}
	return a.ask(method, fmt.Sprintf(`{%q:%q}`, member, id))
}

// status polls a task until it has ended, and returns its status.
func (a *inquirer) status(id string) string {
	a.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		if status := a.task("tasks/get", id).ok().text("status"); status != "working" || time.Now().After(end) {
			return status
		}
	}
}

// declared returns the tasks capability that the client has declared, and reports if it has declared extensions too.
func (a *inquirer) declared() (tasks string, extensions bool) {
	a.t.Helper()
	var begun struct {
		Params struct{ Capabilities map[string]json.RawMessage }
	}
	if err := json.Unmarshal(a.begun, &begun); err != nil {
		a.t.Error(err)
	}
	return string(begun.Params.Capabilities["tasks"]), begun.Params.Capabilities["extensions"] != nil
}

// list returns the tasks, which must fit on one page.
func (a *inquirer) list() []any {
	a.t.Helper()
	return a.ask("tasks/list", `{}`).ok().get("tasks").([]any)
}

// wantStatus fails the test if a task ends with another status.
func (a *inquirer) wantStatus(id, want string) {
	a.t.Helper()
	if got := a.status(id); got != want {
		a.t.Errorf("the task is %s, not %s", got, want)
	}
}

func (r reply) ok() reply {
	r.t.Helper()
	if r.Error != nil || r.Result == nil {
		r.t.Fatalf("%v, want a result", r.Error)
	}
	return r
}

func (r reply) want(code int) reply {
	r.t.Helper()
	if r.Error == nil || r.Error.Code != code || r.Error.Message == "" {
		r.t.Errorf("%s %v, want code %d with a message", r.Result, r.Error, code)
	}
	return r
}

// get reads a member of the result by its path. It returns nil if there is none.
func (r reply) get(path ...string) any {
	var value any
	_ = json.Unmarshal(r.Result, &value) // value stays nil if this is no object
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func (r reply) text(path ...string) string {
	text, _ := r.get(path...).(string)
	return text
}

// overHTTP serves the inquirer over HTTP and connects the client to it.
func (a *inquirer) overHTTP(options ClientOptions) {
	a.t.Helper()
	var session, stream, sent int
	drop := make(chan struct{})
	server := memnet.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.mu.Lock()
		mine, dropped := strconv.Itoa(session), drop
		a.mu.Unlock()
		if id := r.Header.Get("Mcp-Session-Id"); id != "" && id != mine {
			http.Error(w, "no such session", http.StatusNotFound)
			return
		}
		switch r.Method {
		case http.MethodPost:
			body, _ := io.ReadAll(r.Body)
			if bytes.Contains(body, []byte(`"method":"initialize"`)) {
				a.mu.Lock()
				session++
				mine = strconv.Itoa(session)
				a.mu.Unlock()
			}
			a.mu.Lock()
			refuse := a.refuses && !bytes.Contains(body, []byte(`"method"`))
			if refuse {
				a.refused++
				a.changed.Broadcast()
			}
			a.mu.Unlock()
			if refuse {
				http.Error(w, "away", http.StatusInternalServerError)
				return
			}
			answer := a.hear(body, r.Header)
			if answer == "" {
				w.WriteHeader(http.StatusAccepted)
				return
			}
			w.Header().Set("Mcp-Session-Id", mine)
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		case http.MethodGet:
			a.mu.Lock()
			stream++
			number := stream
			next := 0
			if last := r.Header.Get("Last-Event-Id"); last != "" {
				next, _ = strconv.Atoi(last)
				a.resumed++
			}
			a.mu.Unlock()
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "retry: 10\n: hello\n\n")
			w.(http.Flusher).Flush()
			stop := context.AfterFunc(r.Context(), a.wake)
			defer stop()
			for {
				a.mu.Lock()
				for next >= len(a.said) && r.Context().Err() == nil && number == stream && !closed(dropped) {
					a.changed.Wait()
				}
				if r.Context().Err() != nil || number != stream || closed(dropped) {
					a.mu.Unlock()
					return
				}
				message := a.said[next]
				if next++; next <= sent {
					a.again++
				}
				sent = max(sent, next)
				a.mu.Unlock()
				_, _ = fmt.Fprintf(w, "id: %d\nevent: message\ndata: %s\n\n", next, message)
				w.(http.Flusher).Flush()
			}
		}
	}), nil)
	a.t.Cleanup(server.Close)
	a.drop = func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		close(drop)
		drop = make(chan struct{})
		a.changed.Broadcast()
	}
	a.kill = func() {
		a.drop()
		a.mu.Lock()
		defer a.mu.Unlock()
		session++
		a.said, sent = nil, 0
	}
	conn, err := Connect(a.t.Context(), server.URL, options)
	if err != nil {
		a.t.Fatal(err)
	}
	a.conn = conn
	a.t.Cleanup(func() { _ = conn.Close() })
}

func closed(c chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// overPipes connects the client to the inquirer by a pair of pipes.
func (a *inquirer) overPipes(options ClientOptions) {
	a.t.Helper()
	clientReads, toClient := io.Pipe()
	fromClient, clientWrites := io.Pipe()
	var writing sync.Mutex
	write := func(line string) {
		writing.Lock()
		defer writing.Unlock()
		_, _ = io.WriteString(toClient, line+"\n")
	}
	go func() {
		lines := bufio.NewScanner(fromClient)
		lines.Buffer(nil, 64<<20)
		for lines.Scan() {
			if answer := a.hear(lines.Bytes(), nil); answer != "" {
				write(answer)
			}
		}
	}()
	ended := make(chan struct{})
	go func() {
		for next := 0; ; next++ {
			a.mu.Lock()
			for next >= len(a.said) && !closed(ended) {
				a.changed.Wait()
			}
			if closed(ended) {
				a.mu.Unlock()
				return
			}
			message := a.said[next]
			a.mu.Unlock()
			write(message)
		}
	}()
	conn, err := connectOver(a.t.Context(), "a pipe", options, func(c *conn, inbox *inbox) (transport, error) {
		return newLineTransport(c, inbox, clientReads, clientWrites), nil
	})
	if err != nil {
		a.t.Fatal(err)
	}
	a.conn = conn
	a.t.Cleanup(func() {
		_ = conn.Close()
		close(ended)
		a.wake()
		_, _ = toClient.Close(), fromClient.Close()
	})
}

// eachWay runs a test over HTTP and over pipes, each with its own person. change may be nil.
func eachWay(t *testing.T, change func(*ClientOptions), test func(t *testing.T, a *inquirer)) {
	t.Helper()
	eachWayIn(t, mcptask.Revision20251125, change, test)
}

// eachWayIn is eachWay in another revision.
func eachWayIn(t *testing.T, revision string, change func(*ClientOptions), test func(t *testing.T, a *inquirer)) {
	t.Helper()
	t.Parallel()
	for name, connect := range map[string]func(*inquirer, ClientOptions){"http": (*inquirer).overHTTP, "pipes": (*inquirer).overPipes} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				a, o := newInquirer(t, revision)
				if change != nil {
					change(&o)
				}
				o.Revision = revision
				connect(a, o)
				test(t, a)
			})
		})
	}
}

type note struct {
	Text string `json:"text"`
}

const noteSchema = `{"type":"object","properties":{"text":{"type":"string","maxLength":20},"by":{"type":"string","default":"me"}},"required":["text"]}`

// elicit makes the params of a question to a person.
func elicit(question, more string) string {
	return `{"message":` + strconv.Quote(question) + `,"requestedSchema":` + noteSchema + more + `}`
}

// sample makes the params of a request to a model.
func sample(text, more string) string {
	return `{"maxTokens":9,"messages":[{"role":"user","content":{"type":"text","text":` + strconv.Quote(text) + `}}]` + more + `}`
}

// person answers questions as their text says.
type person struct {
	begun   chan string // questions, as they are asked
	ended   chan error  // the causes that ended waiting questions
	release chan struct{}
}

func newPerson() *person {
	return &person{begun: make(chan string, 1000), ended: make(chan error, 1000), release: make(chan struct{})}
}

func (p *person) answer(ctx context.Context, question string) (string, error) {
	p.begun <- question
	switch {
	case question == "decline":
		return "", mcptask.ErrDeclined
	case question == "fail":
		return "", errors.New("the person is away")
	case question == "panic":
		panic("the person has fainted")
	case question == "stubborn":
		<-p.release
	case strings.HasPrefix(question, "wait"):
		select {
		case <-p.release:
		case <-ctx.Done():
			p.ended <- context.Cause(ctx)
			return "", ctx.Err()
		}
	}
	return "to " + question, nil
}

// options returns the options of a client with a person and a model.
func (p *person) options() ClientOptions {
	spec := mcptask.InputSpec{Name: "Note", Message: "?", Schema: noteSchema}
	return ClientOptions{
		Tasks: taskserver.Options{Drain: 5 * time.Second, Logger: slog.New(slog.DiscardHandler)},
		Answer: mcptask.Answer(spec, func(ctx context.Context, q mcptask.Question) (note, error) {
			text, err := p.answer(ctx, q.Message)
			return note{text}, err
		}),
		Sample: func(ctx context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
			text, err := p.answer(ctx, r.Messages[0].Content.Text())
			return &mcptask.SampleResult{Role: "assistant", Model: "m", Content: []mcptask.Content{mcptask.TextContent(text)}}, err
		},
	}
}
