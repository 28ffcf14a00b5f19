package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

const elicits = `{"elicitation":{}}`

const takesTasks = `{"elicitation":{},"sampling":{},"roots":{},"tasks":{"cancel":{},"requests":{"elicitation":{"create":{}},"sampling":{"createMessage":{}}}}}`

var legacy = protocol.Server20251125{}

// peer is a session together with its client.
type peer struct {
	*Mailbox
	principal string
	canAsk    []string
	requestor protocol.Requestor
	name      string // of a session that other replicas serve too
}

// Principal implements Client.
func (p *peer) Principal() string { return p.principal }

// CanAsk implements Client.
func (p *peer) CanAsk() []string { return p.canAsk }

// Session implements Client.
func (p *peer) Session() (string, time.Time) { return p.name, time.Time{} }

// Requestor implements Client.
func (p *peer) Requestor(protocol.Teller) protocol.Requestor { return p.requestor }

// followed returns the client's tasks that the server follows, by their IDs.
func (p *peer) followed() map[string]*clientTask {
	tasks := map[string]*clientTask{}
	for t := range p.clientTasks() {
		tasks[t.id] = t
	}
	return tasks
}

func newPeer(h *Hub, principal, capabilities string) *peer {
	p := &peer{principal: principal, canAsk: legacy.CanAsk(wire.NewObject([]byte(capabilities))), requestor: legacy.Requestor([]byte(capabilities))}
	p.Mailbox = h.Open(p)
	return p
}

// newReplicatedPeer returns a peer whose session other replicas serve too.
func newReplicatedPeer(h *Hub, name string) *peer {
	p := newPeer(h, "p", elicits)
	p.name = name
	return p
}

// serve returns the hub of a server on a store. The server and the store are closed at the end of the test.
func serve(t testing.TB, store taskstore.Store) *Hub {
	t.Helper()
	server, err := taskserver.New(taskserver.Options{Store: store, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = server.Close()
		_ = store.Close()
	})
	return New(server.Backend(), legacy)
}

// create stores a task of principal "p" that ends in an hour.
func create(t testing.TB, store taskstore.Store, r taskstore.Record) taskstore.Record {
	t.Helper()
	r.Principal, r.CreatedAt, r.ExpiresAt = "p", time.Now(), time.Now().Add(time.Hour)
	stored, err := store.Create(t.Context(), r, taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// newQuestion returns a question that waits for its answer.
func newQuestion(key string) taskstore.Input {
	return taskstore.Input{Request: mcptask.Request{Key: key, Method: "elicitation/create", Params: []byte(`{"message":"?"}`),
		Schema: []byte(`{"type":"object"}`)}, State: taskstore.InputOutstanding}
}

// asked is a client without a transport. Its stream has the messages that are sent to it. Run it in a bubble, so that
// the time is its own.
type asked struct {
	t       *testing.T
	server  *taskserver.Server
	hub     *Hub
	session *peer
	stream  *Stream
	caller  taskserver.Caller
	task    string
	log     *strings.Builder
	store   *faulty
}

// faulty is a store that can be made to fail.
type faulty struct {
	taskstore.Store
	broken, panics atomic.Bool

	mu    sync.Mutex
	reads map[string]int // by task ID
}

func (s *faulty) Update(ctx context.Context, from, to taskstore.Record, quota taskstore.Quota, steps ...taskstore.Step) (taskstore.Record, error) {
	if s.broken.Load() {
		return to, errors.New("the disk is full")
	}
	return s.Store.Update(ctx, from, to, quota, steps...)
}

func (s *faulty) Get(ctx context.Context, id string) (taskstore.Record, error) {
	s.mu.Lock()
	s.reads[id]++
	s.mu.Unlock()
	if s.panics.Load() {
		panic("the disk is gone")
	}
	if s.broken.Load() {
		return taskstore.Record{}, errors.New("the disk is slow")
	}
	return s.Store.Get(ctx, id)
}

// countReads returns how often the store has read a task.
func (s *faulty) countReads(id string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reads[id]
}

// sentMessage is a message that a client received.
type sentMessage struct {
	ID     string
	Method string
	Params struct {
		TaskID    string
		RequestID string
		Task      *struct{ TTL int64 }
	}
}

// newAsked starts a task that asks "one", and reads the question.
func newAsked(t *testing.T, capabilities string) (*asked, sentMessage) {
	t.Helper()
	a := &asked{t: t, log: &strings.Builder{}, store: &faulty{Store: taskstore.NewMemory(), reads: map[string]int{}}}
	tool := mcptask.NewTool(mcptask.ToolSpec{Name: "ask", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, TTL: time.Hour}},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			answer, err := mcptask.Ask[struct{ Note string }](ctx, task,
				mcptask.InputSpec{Name: "Note", Message: "?", Schema: `{"type":"object","properties":{"note":{"type":"string"}},"required":["note"]}`}, "one", "")
			return answer.Note, err
		})
	server, err := taskserver.New(taskserver.Options{Store: a.store, Logger: slog.New(slog.NewTextHandler(a.log, nil))},
		mcptask.Tools{Service: "S", Impl: struct{}{}, Tools: []mcptask.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	a.server, a.hub = server, New(server.Backend(), legacy)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	a.session = a.open(capabilities)
	a.caller = taskserver.Caller{Principal: "p", Revision: mcptask.Revision20251125, CanAsk: a.session.canAsk}
	reply, err := server.Backend().Call(t.Context(), a.caller, "ask", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	a.task = reply.Task.ID
	a.session.Know(legacy, *reply.Task)
	a.connect()
	return a, a.one("elicitation/create")
}

func (a *asked) open(capabilities string) *peer { return newPeer(a.hub, "p", capabilities) }

func (a *asked) connect() { a.stream = a.session.Connect(nil, "") }

func (a *asked) drop() { a.stream.Close() }

func (a *asked) reconnect() {
	a.drop()
	a.connect()
}

// moveToNewSession makes another session of the client the one that the test uses. It returns the
// old session, which stays open.
func (a *asked) moveToNewSession() (old *peer) {
	a.t.Helper()
	old, a.session = a.session, a.open(takesTasks)
	r, err := a.server.Backend().Peek(a.task)
	if err != nil {
		a.t.Fatal(err)
	}
	a.session.Know(legacy, r)
	a.connect()
	return old
}

// cancel cancels the task.
func (a *asked) cancel() {
	a.t.Helper()
	if _, _, err := a.server.Backend().Cancel(a.t.Context(), a.caller, a.task); err != nil {
		a.t.Fatal(err)
	}
}

// sent waits until nothing is under way, and returns the messages that have come.
func (a *asked) sent() (messages []sentMessage) {
	a.t.Helper()
	synctest.Wait()
	for _, out := range a.stream.Take() {
		var m sentMessage
		if err := json.Unmarshal(out, &m); err != nil {
			a.t.Fatal(err)
		}
		if m.Method != "notifications/tasks/status" { // a status may come at any time
			messages = append(messages, m)
		}
	}
	return messages
}

// one returns the only message that has come.
func (a *asked) one(method string) sentMessage {
	a.t.Helper()
	messages := a.sent()
	if len(messages) != 1 || messages[0].Method != method {
		a.t.Fatalf("got %+v, want one %s", messages, method)
	}
	return messages[0]
}

// cancels fails the test unless the only message cancels the client's task.
func (a *asked) cancels(id string) sentMessage {
	a.t.Helper()
	m := a.one("tasks/cancel")
	if m.Params.TaskID != id {
		a.t.Errorf("%+v, want a cancellation of %s", m, id)
	}
	return m
}

// askedAgain fails the test unless the only message repeats a question.
func (a *asked) askedAgain(q sentMessage) sentMessage {
	a.t.Helper()
	again := a.one("elicitation/create")
	if again.ID != q.ID {
		a.t.Errorf("%+v, want %s again", again, q.ID)
	}
	return again
}

// state waits for the next tasks/get, and answers it with the state of the client's task r.
func (a *asked) state(d time.Duration, status string) {
	a.t.Helper()
	a.reply(a.after(d, "tasks/get").ID, `"result":`+state("r", status, 0))
}

// none fails the test if a message has come.
func (a *asked) none() {
	a.t.Helper()
	if messages := a.sent(); len(messages) > 0 {
		a.t.Fatalf("got %+v", messages)
	}
}

// after returns the next message. It must come after this time and not before.
func (a *asked) after(d time.Duration, method string) sentMessage {
	a.t.Helper()
	time.Sleep(d - time.Millisecond)
	a.none()
	time.Sleep(time.Millisecond)
	return a.one(method)
}

// reply answers a request. response is its result or error, as members.
func (a *asked) reply(id, response string) { a.t.Helper(); a.replyFrom(a.session, id, response) }

func (a *asked) replyFrom(s *peer, id, response string) {
	a.t.Helper()
	var said Response
	if err := json.Unmarshal([]byte("{"+response+"}"), &said); err != nil {
		a.t.Fatal(err)
	}
	ref, ok := ParseRequestID(id)
	if !ok {
		a.t.Fatalf("%s is not an ID of the server", id)
	}
	s.Take(a.t.Context(), a.caller, ref, said)
}

// outcome returns the text that the task has ended with.
func (a *asked) outcome() string {
	a.t.Helper()
	synctest.Wait()
	r, err := a.server.Backend().Get(a.t.Context(), a.caller, a.task)
	if err != nil || !r.Done() {
		a.t.Fatalf("the task has not ended: %s %v\n%s", r.Phase, err, a.log)
	}
	if r.Outcome.Kind == taskstore.OutcomeCancelled {
		return "cancelled"
	}
	return string(r.Outcome.Result)
}

// ends fails the test unless the task has ended with the text, and nothing of it is kept.
func (a *asked) ends(text string) {
	a.t.Helper()
	if got := a.outcome(); !strings.Contains(got, text) {
		a.t.Errorf("%s, want %s", got, text)
	}
	a.keepsNothing()
}

// keepsNothing fails the test if the hub or the session still holds a task.
func (a *asked) keepsNothing() {
	a.t.Helper()
	if tasks := a.session.followed(); len(tasks) > 0 || len(a.hub.topics) > 0 {
		a.t.Errorf("kept: %v %v", tasks, a.hub.topics)
	}
}

// state returns the members of a client's task. poll is in milliseconds; 0 leaves it out.
func state(id, status string, poll int64) string {
	member := ""
	if poll != 0 {
		member = fmt.Sprintf(`,"pollInterval":%d`, poll)
	}
	return fmt.Sprintf(`{"taskId":%q,"status":%q,"createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null%s}`, id, status, member)
}

func began(id string, poll int64) string {
	return `"result":{"task":` + state(id, "working", poll) + `}`
}

const (
	yes      = `"result":{"action":"accept","content":{"note":"yes"}}`
	declined = `"result":{"action":"decline"}`
	refusal  = `"error":{"code":-32603,"message":"not now"}`
	unknown  = `"error":{"code":-32602,"message":"no such task"}`
)

// askInBubble runs a test with a client that was asked the question q.
func askInBubble(t *testing.T, name, capabilities string, test func(a *asked, q sentMessage)) {
	bubble.Run(t, name, func(t *testing.T) {
		a, q := newAsked(t, capabilities)
		test(a, q)
	})
}

// keepInBubble runs a test with a client that keeps the question q as its task r. result is the tasks/result that the
// server has sent.
func keepInBubble(t *testing.T, name string, test func(a *asked, q, result sentMessage)) {
	askInBubble(t, name, takesTasks, func(a *asked, q sentMessage) {
		a.reply(q.ID, began("r", 0))
		test(a, q, a.one("tasks/result"))
	})
}

// A client cannot fill the log with answers to questions that it was not asked.
func TestLogStaysSmall(t *testing.T) {
	const flood, most = 300, 10_000 // bytes of log: a few lines
	bubble.Test(t, func(t *testing.T) {
		a, q := newAsked(t, takesTasks)
		begin := a.log.Len()
		long := strings.Repeat("x", 2000)
		for range flood {
			a.reply("mcptask/NOSUCHTASK/"+long, yes)
			a.reply("mcptask:get:7/"+a.task+"/"+long, yes)
		}
		synctest.Wait()
		if n := a.log.Len() - begin; n > most {
			t.Errorf("%d bytes", n)
		}
		a.reply(q.ID, yes)
		a.ends("yes")
	})
}
