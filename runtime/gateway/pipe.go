package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// FlowMeta is the _meta key that carries a flow's token on a transport without headers. The gateway
// removes it from incoming messages.
const FlowMeta = "io.github.mcptaskgen/flow"

// flowLife limits how long a flow on a pipe waits for the SDK to take it.
const flowLife = time.Minute

// pipe stands in front of an SDK server that uses a pair of pipes, such as standard input and
// output. Each line is one message. There is one client and one session. The pipe answers tasks/*
// itself and forwards everything else.
type pipe struct {
	g       *Gateway
	out     *lineWriter
	toSDK   *io.PipeWriter
	fromSDK *io.PipeReader
	session *session
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu         sync.Mutex
	requests   map[string]pipeRequest // requests without an answer, by ID
	ended      bool                   // no new work begins
	delivering bool                   // a reply of the SDK's is being written
	replied    chan struct{}          // has a buffer of one; gets a value when a request is answered
	sdkDone    chan struct{}          // closed when the SDK has ended its output
	reports    delayedReports
	// detach removes the pipe from the server's lifetimes. The sessions' lifetime otherwise ends
	// the pipe.
	detach func() bool
}

// pipeRequest is a request without an answer.
type pipeRequest struct {
	// end ends the work on the request. If the SDK answers it, end closes its flow, or ends the count
	// of a subscription. It may be nil.
	end func()
	// ours says that the gateway answers the request.
	ours bool
	// lasts says that the request waits for a task, or is a subscription that the SDK may never
	// answer.
	lasts bool
	// cancelled says that the client does not want the SDK's reply any more.
	cancelled bool
	// onReply gets the SDK's reply to a request of the gateway's own. It is nil for requests of the client.
	onReply func(line []byte)
	// progress is the token by which the client recognizes the reports of the request, as text, or "".
	progress     string
	announcement *announcement // is told when the reply is written; may be nil
	memory       int           // taken by the request; see measureMessage
	// flow completes the result of an SDK whose types cannot carry tasks. It is nil for other SDKs.
	flow *Flow
}

// lastReplies limits how long the end of the input waits for replies that are still missing.
const lastReplies = 2 * time.Second

// Pipe starts to read from in and to write to out. The SDK reads from and writes to the pipes that
// Pipe returns. Closing the returned writer ends the pipe, as the end of in does.
func (g *Gateway) Pipe(ctx context.Context, in io.Reader, out io.Writer) (io.ReadCloser, io.WriteCloser, error) {
	principal, err := g.principal(ctx)
	if err != nil {
		return nil, nil, err
	}
	sdkReads, toSDK := io.Pipe()
	fromSDK, sdkWrites := io.Pipe()
	p := &pipe{
		g: g, toSDK: toSDK, fromSDK: fromSDK,
		session:  &session{id: rand.Text(), principal: principal, requestor: protocol.Requestor20251125{}},
		requests: map[string]pipeRequest{},
		replied:  make(chan struct{}, 1),
		sdkDone:  make(chan struct{}),
	}
	p.out = newLineWriter(out, g.server.Logger(), p.endUnread)
	p.reports.put = p.out.put
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.session.ended, p.session.end = p.ctx, p.stop
	release := context.AfterFunc(g.server.Closing(), p.stop)
	p.detach = context.AfterFunc(lifetimesOf(g.server).sessions, guard.Func(g.server.Logger(), "the end of a pipe", func() {
		_ = p.toSDK.Close() // the SDK sees the end of its input
	}))
	context.AfterFunc(p.ctx, guard.Func(g.server.Logger(), "the end of a pipe", func() {
		release() // the server drops a pipe that has ended
		p.endListens()
	}))
	p.work.Go(p.writeQuestions) // before readClient, which may wait for p.work at once
	go p.readClient(in)
	go p.readSDK()
	return sdkReads, &sdkEnd{sdkWrites, p}, nil
}

// sdkEnd is the writer for the SDK. Close returns when the client has received the output, or no
// longer reads.
type sdkEnd struct {
	*io.PipeWriter
	p *pipe
}

// Close implements io.Closer.
func (e *sdkEnd) Close() error {
	err := e.PipeWriter.Close()
	select {
	case <-e.p.sdkDone:
	case <-time.After(lastReplies):
	}
	e.p.mu.Lock()
	e.p.ended = true
	e.p.mu.Unlock()
	e.p.waitForWork()
	e.p.out.end(lastReplies)
	return err
}

// waitForWork waits a limited time until the gateway has answered its requests.
func (p *pipe) waitForWork() {
	done := make(chan struct{})
	guard.Go(p.g.server.Logger(), "the end of a pipe", func() {
		p.work.Wait()
		close(done)
	})
	select {
	case <-done:
	case <-time.After(lastReplies):
	}
}

// endUnread ends the pipe of a client that does not read.
func (p *pipe) endUnread() {
	p.g.server.Logger().Warn("the client on a pipe does not read: its session ends")
	p.stop()
	_ = p.toSDK.Close()
	_ = p.fromSDK.Close()
}

// readClient handles the client's messages until the end of its input. It then ends the requests
// that wait here, and closes the input of the SDK.
func (p *pipe) readClient(in io.Reader) {
	defer guard.Then(p.g.server.Logger(), "the reading of the client", p.stop)
	lines := bufio.NewReader(in)
	for {
		line, err := wire.ReadLine(lines, p.g.maxBody)
		switch {
		case errors.Is(err, wire.ErrLongLine):
			p.out.putBuffered(wire.EncodeReply(wire.CutID(line), nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the message exceeds %d bytes", p.g.maxBody)))
			continue
		case len(bytes.TrimSpace(wire.TrimMark(line))) > 0:
			if x := p.readMessage(line); x != nil {
				p.g.route(x)
			}
		}
		if err != nil || p.ctx.Err() != nil {
			break
		}
	}
	p.waitUntil(lastReplies, p.isAnswered)
	p.stop()
	p.g.mailbox(p.session).Close()
	p.waitForWork()
	if !p.out.flush(lastReplies) {
		// The client has closed its side and does not read either, so the rest can never be
		// written.
		_ = p.fromSDK.Close()
	}
	_ = p.toSDK.Close() // the SDK sees the end of its input
}

// readSDK handles the SDK's messages, one line at a time.
func (p *pipe) readSDK() {
	defer guard.Then(p.g.server.Logger(), "the reading of the SDK", p.stop)
	defer close(p.sdkDone)
	defer p.reports.sendAll()
	defer p.detach()
	lines := bufio.NewReader(p.fromSDK)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.deliver(bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil {
			_ = p.fromSDK.CloseWithError(err)
			p.stop() // the client's input may stay open, but nothing can answer it
			return
		}
	}
}

// deliver passes a line of the SDK's to the client.
func (p *pipe) deliver(line []byte) {
	said, refusal := wire.Read(line)
	var reply struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	switch isRead := refusal == nil; {
	case isRead:
		reply.ID, reply.Method = said.ID, said.Method
	case json.Unmarshal(line, &reply) != nil: // a line that a client may not send can be a reply all the same
		p.out.put(line)
		return
	default:
		said = nil
	}
	if said != nil && said.Method == "notifications/progress" {
		p.reports.delay(string(said.Params.Get("progressToken")), line)
		return
	}
	if p.g.config.Direct && reply.Method == "" {
		line = p.completeReply(reply.ID, line)
	}
	replied := p.noteReply(reply.ID, reply.Method) // before the reply, after which the client may reuse the ID
	if !replied.announcement.hasTask() {           // the token of a task lives on
		p.reports.drop(replied.progress)
	}
	switch {
	case replied.onReply != nil:
		replied.onReply(line)
	case !replied.cancelled:
		p.out.put(line)
	}
	p.noteWritten()
	replied.announcement.noteWritten()
}

// completeReply completes a reply of an SDK whose types cannot carry tasks. The next message of the client is read only
// once an initialize has its reply, so the session is negotiated by then.
func (p *pipe) completeReply(id json.RawMessage, line []byte) []byte {
	p.mu.Lock()
	flow := p.requests[wire.IDKey(id)].flow
	p.mu.Unlock()
	var reply struct {
		Result json.RawMessage `json:"result"`
	}
	if flow == nil || json.Unmarshal(line, &reply) != nil || reply.Result == nil {
		return line
	}
	if flow.Connected != nil {
		flow.connect("", reply.Result)
	}
	result, err := flow.Decorate(reply.Result)
	if err != nil {
		return wire.EncodeReply(id, nil, wireError(err))
	}
	return wire.EncodeResult(id, result)
}

// noteReply notes that the SDK has answered a request, and returns the request. Until noteWritten is
// called, the reply counts as not yet written.
func (p *pipe) noteReply(replyID json.RawMessage, method string) (passed pipeRequest) {
	if method != "" {
		return passed
	}
	id := wire.IDKey(replyID)
	p.mu.Lock()
	passed = p.requests[id]
	delete(p.requests, id)
	p.delivering = true
	p.mu.Unlock()
	if passed.end != nil {
		passed.end()
	}
	return passed
}

// noteWritten notes that the SDK's message is written.
func (p *pipe) noteWritten() {
	p.mu.Lock()
	p.delivering = false
	p.mu.Unlock()
	p.signalReply()
}

func (p *pipe) signalReply() {
	select {
	case p.replied <- struct{}{}:
	default:
	}
}

// waitUntil waits a limited time until done returns true. It calls done under p.mu.
func (p *pipe) waitUntil(most time.Duration, done func() bool) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	for {
		p.mu.Lock()
		ok := done()
		p.mu.Unlock()
		if ok {
			return
		}
		select {
		case <-p.replied:
		case <-timer.C:
			return
		case <-p.ctx.Done():
			return
		}
	}
}

// isAnswered reports whether all requests that do not last have their replies. p.mu is held.
func (p *pipe) isAnswered() bool {
	for _, r := range p.requests {
		if !r.lasts {
			return false
		}
	}
	return !p.delivering
}

// addRequest notes a request that has no reply yet. It refuses a request whose ID belongs to an earlier
// one without a reply: the client could not tell the replies apart. It also refuses a request if all of
// these together would take too much memory. p.mu is held.
func (p *pipe) addRequest(m *message, added pipeRequest) *mcptask.Error {
	id := wire.IDKey(m.ID)
	if _, open := p.requests[id]; open {
		return mcptask.Errorf(mcptask.CodeInvalidRequest, "a request with this id is already under way")
	}
	if added.memory = measureMessage(m.Bytes()); added.memory > 0 {
		taken := 0
		for _, r := range p.requests {
			taken += r.memory
		}
		if most := p.g.memoryBound(); taken > 0 && added.memory > most-taken {
			return p.g.server.Limited(p.ctx, taskserver.Caller{Principal: p.session.principal, Method: m.Method}, "memory", most)
		}
	}
	p.requests[id] = added
	return nil
}

// expectReply notes a request that the SDK is to answer.
func (p *pipe) expectReply(m *message, passed pipeRequest) (refusal *mcptask.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addRequest(m, passed)
}

// endListens releases the counts of all subscriptions when the pipe has ended.
func (p *pipe) endListens() {
	defer guard.Recover(p.g.server.Logger(), "end of a pipe")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, r := range p.requests {
		if r.lasts {
			r.end()
		}
	}
}

// sendToSDK sends a line to the SDK.
func (p *pipe) sendToSDK(line []byte) {
	_, _ = p.toSDK.Write(append(bytes.TrimRight(line, "\r\n"), '\n')) // fails if the SDK has ended
}

// writeQuestions writes the questions of tasks to the client.
func (p *pipe) writeQuestions() {
	defer guard.Then(p.g.server.Logger(), "the writing of questions", p.stop)
	c := p.g.mailbox(p.session).Connect(nil, "")
	defer c.Close()
	sendQueued(p.ctx, c, p.out.putAll)
}
