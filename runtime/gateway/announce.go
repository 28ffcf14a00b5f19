package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

// In the proposal SEP-1686 a call that made a task stays open until the task has
// ended. On its way to the client goes first that there is a task, then what is
// said of the task, and last the answer. Over HTTP all of that is
// on the stream of the POST. A client that takes no stream there hears of its
// task on the session's standalone stream, where it has one, and else from the
// answer: it may poll with the ID that it has made itself.
//
// A client that leaves the stream leaves the task as it is: the SDK still gets
// the answer, for a stream that is resumed, and tasks/result has it.

// awaited is one call that is answered when its task has ended.
type awaited struct {
	g       *Gateway
	session *session
	d       dialect.Teller
	caller  mcptask.Caller
	tool    string
	// request is the call's ID, to cancel it by.
	request json.RawMessage
	// way is where the answer goes.
	way callWay

	mu sync.Mutex
	// task is the stored ID, "" before there is a task.
	task      string
	cancelled bool
}

// callWay is the way from an open call to its client.
type callWay interface {
	// say sends a message; false is one that cannot go this way.
	say(message []byte) bool
	// questions says whether the task's questions go this way too, and alive shows
	// a client that waits that the stream is.
	questions() bool
	alive()
	// left ends when the client has left; nil is never.
	left() <-chan struct{}
}

// handle makes the task, tells of it, and waits for its end.
func (a *awaited) handle(ctx context.Context, arguments json.RawMessage, call mcptask.CallRequest) (mcptask.CallReply, error) {
	done, refusal := a.g.block(a.caller)
	if refusal != nil {
		return mcptask.CallReply{}, refusal
	}
	done = sync.OnceFunc(done)
	defer done()
	if err := a.free(ctx, call.ExternalID); err != nil {
		return mcptask.CallReply{}, err
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	defer context.AfterFunc(a.g.server.Closing(), stop)()
	defer a.g.sessions.wait(a.session, a.request, func() { a.cancel(stop) })()
	// The handler may report before anybody knows of the task.
	told := make(chan struct{})
	tell := sync.OnceFunc(func() { close(told) })
	defer tell()
	if progress := call.Progress; progress != nil {
		call.Progress = func(taskID string, done, total float64, message string) {
			<-told
			progress(taskID, done, total, message)
		}
	}
	reply, err := a.g.server.Call(ctx, a.caller, a.tool, arguments, call)
	if err != nil || reply.Task == nil {
		return reply, err
	}
	record := *reply.Task
	if a.made(record.ID) {
		a.end(record.ID) // cancelled while it was made
	}
	a.g.mailbox(a.session).KnowUnsettled(a.d, record)
	a.announce(record)
	tell()
	over := a.serve(record.ID, done)
	ended, err := a.g.server.Await(ctx, a.caller, record.ID)
	if err != nil { // what cancels the task ends the waiting too, perhaps first
		if r, gone := a.g.server.Peek(record.ID); gone == nil && r.Done() {
			ended, err = r, nil
		}
	}
	over()
	return a.answer(ctx, ended, err)
}

// free refuses an ID that another task of the caller's has already, where it is
// not one of the caller's making: those are refused as they are stored.
func (a *awaited) free(ctx context.Context, id string) error {
	switch _, err := a.g.server.Get(ctx, a.caller, id); {
	case err == nil:
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the task ID %q is in use: choose another one for each call", id)
	case !dialect.Gone(err):
		return err
	}
	return nil
}

// made notes the task, and says whether the call has been cancelled meanwhile.
func (a *awaited) made(task string) (cancelled bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.task = task
	return a.cancelled
}

// cancel is the client's: it ends the task, or the making of one.
func (a *awaited) cancel(stop context.CancelFunc) {
	a.mu.Lock()
	a.cancelled = true
	task := a.task
	a.mu.Unlock()
	if task == "" {
		stop()
		return
	}
	a.end(task)
}

// end cancels the task; one that has ended stays as it is.
func (a *awaited) end(task string) {
	caller := a.caller
	caller.Method = notificationCancelled
	if _, _, err := a.g.server.Cancel(context.WithoutCancel(a.g.server.Closing()), caller, task); err != nil {
		a.g.server.Notice(slog.LevelInfo, "task not cancelled", "task", mcptask.LogID(caller.Principal, task), "error", err)
	}
}

// announce tells of the task, on the session's standalone stream where the call
// has none.
func (a *awaited) announce(r mcptask.Record) {
	method, params, err := a.d.(dialect.Announcer).Announcement(r)
	var data []byte
	if err == nil {
		data, err = json.Marshal(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
	}
	if err != nil {
		a.g.server.Notice(slog.LevelError, "task not announced", "task", mcptask.LogID(r.Principal, r.ID), "error", err)
		return
	}
	if !a.way.say(data) {
		a.g.mailbox(a.session).Send(data)
	}
}

// serve sends the task's questions on the call's stream until over is called, or
// until the client has left: then the call is none that waits, and done is called.
func (a *awaited) serve(task string, done func()) (over func()) {
	box := a.g.mailbox(a.session)
	if !a.way.questions() {
		box.Settle(task, nil)
		return func() {}
	}
	c := box.Connect(a.d, task)
	box.Settle(task, nil) // it knows of the task now
	stop := make(chan struct{})
	var writer sync.WaitGroup
	writer.Go(func() {
		defer guard.Then(a.g.server.Logger(), "the stream of a call", done)
		defer c.Close()
		tick := time.NewTicker(keepAlive)
		defer tick.Stop()
		for {
			select {
			case <-c.Wake():
				a.flush(c)
			case <-tick.C:
				a.way.alive()
			case <-a.way.left():
				done()
				return
			case <-stop:
				a.g.hub.Refresh(task) // what the end takes back comes before it
				a.flush(c)
				return
			}
		}
	})
	return func() {
		close(stop)
		writer.Wait()
	}
}

func (a *awaited) flush(c *push.Stream) {
	for _, m := range c.Take() {
		a.way.say(m)
	}
}

// answer is the outcome of the call.
func (a *awaited) answer(ctx context.Context, r mcptask.Record, err error) (mcptask.CallReply, error) {
	if err != nil {
		if ctx.Err() != nil { // the session or the server ends, or the SDK no longer waits
			err = mcptask.Errorf(mcptask.CodeInternalError, "the request was ended before its answer was there")
		}
		return mcptask.CallReply{}, err
	}
	dialect.Retrieved(ctx, a.g.server, a.caller, r)
	result, err := a.d.(dialect.Announcer).Answer(r)
	var wire *mcptask.Error
	switch {
	case errors.As(err, &wire):
		return mcptask.CallReply{Outcome: &mcptask.Outcome{Kind: mcptask.OutcomeError, Error: wire}}, nil
	case err != nil:
		return mcptask.CallReply{}, err
	}
	return mcptask.CallReply{Outcome: &mcptask.Outcome{Kind: mcptask.OutcomeResult, Result: result, IsError: r.Outcome.IsError}}, nil
}

// overPipe implements carrier.
func (a *awaited) overPipe(write func([]byte)) { a.way = pipeWay{write} }

// pipeWay is a pipe: there is one stream, which the session's questions are on.
type pipeWay struct{ write func([]byte) }

func (w pipeWay) say(message []byte) bool { w.write(message); return true }
func (pipeWay) questions() bool           { return false }
func (pipeWay) alive()                    {}
func (pipeWay) left() <-chan struct{}     { return nil }

// overHTTP implements carrier.
func (a *awaited) overHTTP(w http.ResponseWriter, r *http.Request) (carried http.ResponseWriter, end func()) {
	way := &postWay{w: w, streams: acceptsStream(r), header: http.Header{}, gone: r.Context().Done()}
	a.way = way
	return way, way.end
}

// postWay is the response to a POST. It becomes a stream when there is something
// to say of the task, whatever the SDK makes of it afterwards: the SDK's events
// are passed on, and its JSON becomes one.
type postWay struct {
	w       http.ResponseWriter
	streams bool // the client takes a stream
	gone    <-chan struct{}
	// header is the SDK's, which it may change beside what is said here.
	header http.Header

	mu     sync.Mutex
	ours   bool // the stream has been begun here
	theirs bool // the SDK has begun its response
	sse    bool // that is a stream
	over   bool
	body   bytes.Buffer // the SDK's JSON, after ours
}

// Header implements http.ResponseWriter.
func (p *postWay) Header() http.Header { return p.header }

// WriteHeader implements http.ResponseWriter.
func (p *postWay) WriteHeader(code int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begin(code)
}

// begin passes the head of the SDK's response on. p.mu is held.
func (p *postWay) begin(code int) {
	if p.theirs || p.over {
		return
	}
	p.theirs = true
	p.sse = strings.HasPrefix(p.header.Get("Content-Type"), "text/event-stream")
	if p.ours {
		return
	}
	for name, values := range p.header {
		p.w.Header()[name] = values
	}
	p.w.WriteHeader(code)
}

// Write implements http.ResponseWriter. The SDK writes an event at a time.
func (p *postWay) Write(data []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return len(data), nil // for nobody
	}
	p.begin(http.StatusOK)
	if p.ours && !p.sse {
		return p.body.Write(data)
	}
	return p.w.Write(data)
}

// Flush implements http.Flusher.
func (p *postWay) Flush() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over || !p.theirs && !p.ours {
		return
	}
	_ = http.NewResponseController(p.w).Flush() // a client that has left
}

func (p *postWay) questions() bool       { return p.streams }
func (p *postWay) left() <-chan struct{} { return p.gone }

// stream is the response as a stream, nil where it is none. p.mu is held.
func (p *postWay) stream() *stream {
	switch {
	case p.over || !p.streams || p.theirs && !p.sse && !p.ours:
		return nil
	case !p.theirs && !p.ours:
		p.ours = true
		return newStream(p.w)
	}
	return &stream{w: p.w, flush: http.NewResponseController(p.w).Flush}
}

func (p *postWay) say(message []byte) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stream()
	if s == nil {
		return p.over // for nobody
	}
	s.message(message)
	return true
}

func (p *postWay) alive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if s := p.stream(); s != nil {
		s.comment("waiting")
	}
}

// end passes on the JSON that the SDK has made.
func (p *postWay) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.body.Len() > 0 {
		if s := p.stream(); s != nil {
			var line bytes.Buffer
			if json.Compact(&line, p.body.Bytes()) == nil {
				s.message(line.Bytes())
			}
		}
	}
	p.over = true
}
