package gosdk

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// receiver runs the server's requests as tasks where the server asks for it, in
// revisions with a protocol.Receiver only: 2026-07-28 has no such requests. A
// mcptask.Server of the connection's own keeps them, with a tool for each kind of
// request. They outlive a session as any task does. Nothing is sent of their
// progress: the server polls (C-44, C-46).
type receiver struct {
	options      mcptask.Options
	principal    string // of the server: a connection has one
	protocol     protocol.Receiver
	kinds        map[string]kind
	capabilities json.RawMessage // to be declared
	logger       *slog.Logger
	work         sync.WaitGroup // replies under way

	mu     sync.Mutex
	tasks  *mcptask.Server // nil until a request needs it
	closed bool
}

// kind is a request that may become a task, by its method.
type kind struct {
	schema string // of its params, as far as answering needs them
	answer func(ctx context.Context, params json.RawMessage) (json.RawMessage, error)
}

// What the SDK refuses of a request that is no task.
const (
	sampleParams = `{"type":"object","required":["messages"],"properties":{"messages":{"type":"array"}}}`
	elicitParams = `{"type":"object","required":["message"],"properties":{"message":{"type":"string"},
	"mode":{"enum":["form","url"]},"url":{"type":"string"},"requestedSchema":{"type":"object"}},
	"if":{"required":["mode"],"properties":{"mode":{"const":"url"}}},
	"then":{"required":["url"],"properties":{"url":{"minLength":1},"requestedSchema":false}},"else":{"properties":{"url":{"maxLength":0}}}}`
)

// newReceiver makes the receiver of what the options answer; nil is nothing.
func newReceiver(c *conn) (*receiver, error) {
	r := &receiver{options: c.options.Tasks, principal: c.peer, protocol: receiverOf(c.named), kinds: map[string]kind{}, logger: c.options.Logger}
	var methods []string
	if !c.options.Answer.Empty() || c.options.OpenURL != nil {
		r.kinds[methodElicit] = kind{elicitParams, c.elicited}
		methods = append(methods, methodElicit)
	}
	if c.options.Sample != nil {
		r.kinds[methodSample] = kind{sampleParams, c.sampled}
		methods = append(methods, methodSample)
	}
	if _, ok := c.named.(announcedClient); ok {
		return nil, nil // it takes none, and ignores that one is asked for
	}
	var err error
	if r.capabilities, err = r.protocol.Receives(methods...); err != nil || r.capabilities == nil {
		return nil, err
	}
	return r, nil
}

// server is what keeps the tasks. It is made when it is needed: most servers
// never ask for a task.
func (r *receiver) server() (*mcptask.Server, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, mcptask.ErrServerClosed
	case r.tasks != nil:
		return r.tasks, nil
	}
	ttl := mcptask.DefaultTTL
	if most := r.options.MaxTTL; most > 0 {
		ttl = min(ttl, most)
	}
	service := mcptask.Tools{Service: "requests of " + r.principal, Impl: r}
	for method, k := range r.kinds {
		service.Tools = append(service.Tools, mcptask.NewRawTool(mcptask.ToolSpec{
			Name: toolOf(method), InputSchema: k.schema,
			Policy: mcptask.Policy{Task: mcptask.TaskOptional, TTL: ttl},
		}, k.run))
	}
	tasks, err := mcptask.NewServer(r.options, service)
	if err != nil {
		return nil, err
	}
	r.tasks = tasks
	return tasks, nil
}

// toolOf is the tool that stands for a method: its name has no slash.
func toolOf(method string) string { return strings.ReplaceAll(method, "/", ".") }

// run answers the request of a task. Its error is the request's own (C-39), but
// the end of the task's context is none.
func (k kind) run(ctx context.Context, params json.RawMessage) (json.RawMessage, error) {
	result, err := k.answer(ctx, params)
	var wire *mcptask.Error
	switch {
	case err == nil:
		return result, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case errors.As(ourError(err), &wire):
		return nil, wire
	}
	return nil, mcptask.Errorf(mcptask.CodeInternalError, "internal error")
}

// close ends the tasks. The sessions have ended before.
func (r *receiver) close() error {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	tasks := r.tasks
	r.closed = true
	r.mu.Unlock()
	r.work.Wait()
	if tasks == nil {
		return nil
	}
	return tasks.Close()
}

// begun counts a reply that is to come; false is too late for one.
func (r *receiver) begun(reply func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	r.work.Go(func() { defer guard.Recover(nil, "a reply"); reply() })
	return true
}

// Bounds of what a server can make its client do.
const (
	// maxReplies is how many requests of a session are answered at once. Most of
	// them wait in tasks/result, or for a person.
	maxReplies = 256
	// maxPings is how many more are if they are pings: who waits for persons only is
	// alive.
	maxPings = 16
	// replyWithin bounds how long a reply may take to be sent.
	replyWithin = 30 * time.Second
)

// receiving is a receiver in one session, and counts what is answered there, also
// by the SDK.
type receiving struct {
	*receiver // nil where nothing becomes a task
	// nonce tells the session's requests from those of another.
	nonce string
	ctx   context.Context
	// end ends what is answered in the session; its tasks go on.
	end context.CancelFunc

	mu      sync.Mutex
	busy    int                           // replies under way or being sent
	replies map[string]context.CancelFunc // under way, by request ID
	passed  map[string]bool               // under way at the SDK, by request ID
}

// in begins a session; the receiver may be nil.
func (r *receiver) in() *receiving {
	s := &receiving{receiver: r, nonce: rand.Text(), replies: map[string]context.CancelFunc{}, passed: map[string]bool{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

// beside is what the session's transport does for it.
func (s *receiving) beside() beside {
	b := beside{lasts: s.ctx, take: s.take, replied: s.replied}
	if s.receiver != nil {
		b.declare = func(params json.RawMessage) (json.RawMessage, error) {
			return s.protocol.Declare(params, s.capabilities)
		}
	}
	return b
}

// take is a taker: it takes task methods, requests that ask for a task, and the
// cancellation of any of them. Where the client has not declared the kind of
// request, the SDK answers it and ignores params.task (C-05, C-21). Of what the SDK
// is to answer it takes what is too much.
func (s *receiving) take(message []byte, from way) bool {
	var m map[string]json.RawMessage
	var method string
	if json.Unmarshal(message, &m) != nil || json.Unmarshal(m["method"], &method) != nil {
		return false
	}
	id, params := string(m["id"]), wire.NewObject(m["params"])
	ours := s.receiver != nil && from.revision == s.protocol.Protocol()
	switch {
	case id == "":
		return ours && method == "notifications/cancelled" && s.cancelled(params.Raw())
	case !validID(m["id"]):
		return false
	case ours && s.takeTask(id, method, params, from):
		return true
	}
	return !s.pass(id, method, from)
}

// takeTask takes a request that is a task's.
func (s *receiving) takeTask(id, method string, params protocol.Params, from way) bool {
	if answer := s.protocol.Method(method); answer != nil {
		s.answer(id, from, func(ctx context.Context, tasks *mcptask.Server) (json.RawMessage, error) {
			return answer(ctx, tasks, s.caller(), params)
		})
		return true
	}
	if _, declared := s.kinds[method]; !declared || !s.protocol.Asks(params) {
		return false
	}
	s.answer(id, from, func(ctx context.Context, tasks *mcptask.Server) (json.RawMessage, error) {
		return s.create(ctx, tasks, id, method, params)
	})
	return true
}

// pass counts a request that the SDK answers. False is for one that it is not to
// see: it has come again, or there is no room for it.
func (s *receiving) pass(id, method string, from way) bool {
	most, name := maxReplies, wire.IDKey(json.RawMessage(id))
	if method == "ping" {
		most += maxPings
	}
	s.mu.Lock()
	again, full := s.passed[name], s.busy >= most
	if !again && !full {
		s.passed[name] = true
		s.busy++
	}
	s.mu.Unlock()
	if full && !again {
		s.refuse(id, from)
	}
	return !again && !full
}

// replied notes that the SDK has answered a request.
func (s *receiving) replied(id json.RawMessage) {
	name := wire.IDKey(id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.passed[name] {
		delete(s.passed, name)
		s.busy--
	}
}

// refuse answers a request that there is no room for, before anything else is read:
// the server has to take the answer.
func (s *receiving) refuse(id string, from way) {
	err := mcptask.Errorf(mcptask.CodeInternalError, "more than %d requests are under way", maxReplies)
	err.Data = fmt.Appendf(nil, `{"limit":"requests","max":%d}`, maxReplies)
	s.send(id, from, nil, err)
}

// validID says whether an ID is a string or a number; with any other the SDK
// knows what to do.
func validID(id json.RawMessage) bool {
	return id[0] == '"' || id[0] == '-' || id[0] >= '0' && id[0] <= '9'
}

func (s *receiving) caller() mcptask.Caller {
	return mcptask.Caller{Principal: s.principal, Revision: s.protocol.Revision()}
}

// create makes a task of a request. Where the server's stream was resumed, the
// request may come again: it is the same task.
func (s *receiving) create(ctx context.Context, tasks *mcptask.Server, id, method string, params protocol.Params) (json.RawMessage, error) {
	tool, _ := tasks.Tool(toolOf(method))
	call, err := s.protocol.Negotiate(tool, false, params)
	if err != nil {
		return nil, err
	}
	if key := call.IdempotencyKey; key != "" {
		call.IdempotencyKey = "key " + key
	} else {
		sum := sha256.Sum256([]byte(id))
		call.IdempotencyKey = "request " + s.nonce + hex.EncodeToString(sum[:])
	}
	arguments := params.All()
	delete(arguments, "task")
	plain, err := json.Marshal(arguments)
	if err != nil {
		return nil, err
	}
	reply, err := tasks.Call(ctx, s.caller(), tool.Name, plain, call)
	if err != nil {
		return nil, err
	}
	created, err := s.protocol.Created(*reply.Task, tool)
	if key, parent := protocol.FindRelatedTask(metaOf(params.Raw())); err == nil && parent != "" { // the server's own, which asks (C-61)
		return protocol.WithMeta(created, mcp.Meta{key: map[string]string{"taskId": parent}})
	}
	return created, err
}

// answer replies to a request beside the reading of the stream. One that is
// under way already has come again.
func (s *receiving) answer(id string, from way, work func(context.Context, *mcptask.Server) (json.RawMessage, error)) {
	ctx, again, full := s.enter(id)
	switch {
	case again:
	case full:
		s.refuse(id, from)
	case !s.begun(func() { s.reply(ctx, id, from, work) }):
		s.answered(id)
		s.leave()
	}
}

// enter begins the answering of a request, where there is room for it.
func (s *receiving) enter(id string) (ctx context.Context, again, full bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, again = s.replies[id]; again || s.busy >= maxReplies {
		return nil, again, true
	}
	s.busy++
	ctx, s.replies[id] = context.WithCancel(s.ctx)
	return ctx, false, false
}

// answered ends the answering of a request, so that the server may use its ID
// again; the reply is still to be sent.
func (s *receiving) answered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replies[id]()
	delete(s.replies, id)
}

func (s *receiving) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy--
}

// reply does the work of a request and sends what comes of it, unless nobody
// waits any longer.
func (s *receiving) reply(ctx context.Context, id string, from way, work func(context.Context, *mcptask.Server) (json.RawMessage, error)) {
	defer s.leave()
	result, err := s.run(ctx, work)
	gone := ctx.Err() != nil
	s.answered(id)
	if !gone {
		s.send(id, from, result, err)
	}
}

// run does the work of a request; nothing that a server sends may panic.
func (s *receiving) run(ctx context.Context, work func(context.Context, *mcptask.Server) (json.RawMessage, error)) (result json.RawMessage, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("gosdk: panic: %v", p)
			s.logger.Error("a request of the server's panicked", "panic", p)
		}
	}()
	tasks, err := s.server()
	if err != nil {
		s.logger.Error("no tasks for the server's requests", "error", err)
		return nil, err
	}
	return work(ctx, tasks)
}

// send sends the response to a request.
func (s *receiving) send(id string, from way, result json.RawMessage, err error) {
	ctx, cancel := context.WithTimeout(s.ctx, replyWithin)
	defer cancel()
	response := map[string]any{"jsonrpc": "2.0", "id": json.RawMessage(id), "result": result}
	if err != nil {
		var wire *mcptask.Error
		if !errors.As(err, &wire) {
			wire = mcptask.Errorf(mcptask.CodeInternalError, "internal error")
		}
		delete(response, "result")
		response["error"] = wire
	}
	message, err := json.Marshal(response)
	if err == nil {
		err = from.send(ctx, message)
	}
	if err != nil && s.ctx.Err() == nil && s.receiver != nil {
		s.logger.Warn("a reply to the server was not sent", "error", err)
	}
}

// cancelled ends the answering of a request that the server no longer waits for,
// such as a tasks/result. A task goes on (C-74).
func (s *receiving) cancelled(params json.RawMessage) bool {
	var p struct {
		RequestID json.RawMessage `json:"requestId"`
	}
	if json.Unmarshal(params, &p) != nil {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	cancel, ours := s.replies[string(p.RequestID)]
	if ours {
		cancel()
	}
	return ours
}
