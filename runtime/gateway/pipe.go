package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"io"
	"sync"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// FlowMeta is the _meta key that carries a flow's token where there are no
// headers. The gateway removes it from what comes in.
const FlowMeta = "io.github.mcptaskgen/flow"

// flowLife is how long a flow on a pipe stays open for the SDK to take.
const flowLife = time.Minute

// pipe stands in front of an SDK server that speaks over a pair of pipes, such
// as standard input and output: one message a line, one client, one session.
// It answers tasks/* itself and passes everything else on.
type pipe struct {
	g       *Gateway
	out     *outlet
	toSDK   *io.PipeWriter
	fromSDK *io.PipeReader
	session *session
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	mu      sync.Mutex
	waiting map[string]context.CancelFunc // requests that are answered here, by ID
	brief   int                           // those of them that wait for no task
	passed  map[string]passing            // requests that the SDK has not answered yet, by ID
	over    bool                          // no more work begins
	saying  bool                          // a reply of the SDK's is being put
	listens map[string]func()             // subscriptions that the SDK serves alone, by ID, with the end of what they count for
	merged  map[string]*merge             // subscriptions that the SDK serves too, by ID
	replied chan struct{}                 // has room for one: a request was answered
	sdkDone chan struct{}                 // closed when the SDK says no more
	// outlives ends the wait for Stop.
	outlives func() bool
}

// passing is a request that the SDK has yet to answer.
type passing struct {
	over    func()        // ends its flow; may be nil
	replied *announcement // is told when the reply is written; may be nil
}

// lastReplies is how long the end of the input waits for replies that are still
// to come.
const lastReplies = 2 * time.Second

// Pipe begins to read in and to write out. The SDK reads from and writes to
// what is returned; closing the writer ends the pipe, as the end of in does.
func (g *Gateway) Pipe(ctx context.Context, in io.Reader, out io.Writer) (io.ReadCloser, io.WriteCloser, error) {
	principal, err := g.principal(ctx)
	if err != nil {
		return nil, nil, err
	}
	sdkReads, toSDK := io.Pipe()
	fromSDK, sdkWrites := io.Pipe()
	p := &pipe{
		g: g, toSDK: toSDK, fromSDK: fromSDK,
		session: &session{id: rand.Text(), principal: principal, requestor: dialect.Requestor20251125{}},
		waiting: map[string]context.CancelFunc{},
		passed:  map[string]passing{},
		merged:  map[string]*merge{},
		listens: map[string]func(){},
		replied: make(chan struct{}, 1),
		sdkDone: make(chan struct{}),
	}
	p.out = newOutlet(out, g.server.Logger(), p.leave)
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.session.ended, p.session.end = p.ctx, p.stop
	release := context.AfterFunc(g.server.Closing(), p.stop)
	p.outlives = context.AfterFunc(lifetimesOf(g.server).sessions, func() {
		defer guard.Recover(g.server.Logger(), "the end of a pipe")
		_ = p.toSDK.Close() // the SDK reads the end
	})
	context.AfterFunc(p.ctx, func() {
		defer guard.Recover(g.server.Logger(), "the end of a pipe")
		release() // the server keeps nothing of a pipe that has ended
		p.endListens()
	})
	p.work.Go(p.ask) // first: the reading of an input that ends at once waits for the work
	go p.readClient(in)
	go p.readSDK()
	return sdkReads, &sdkEnd{sdkWrites, p}, nil
}

// sdkEnd is where the SDK writes. Closing it returns when the client has what was
// written, or does not read.
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
	e.p.over = true
	e.p.mu.Unlock()
	e.p.finish()
	e.p.out.end(lastReplies)
	return err
}

// finish waits, for a while, until what is answered here is.
func (p *pipe) finish() {
	done := make(chan struct{})
	go func() {
		defer guard.Recover(p.g.server.Logger(), "the end of a pipe")
		p.work.Wait()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(lastReplies):
	}
}

// leave ends the pipe of a client that does not read.
func (p *pipe) leave() {
	p.g.server.Logger().Warn("the client on a pipe does not read: its session ends")
	p.stop()
	_ = p.toSDK.Close()
	_ = p.fromSDK.Close()
}

// readClient handles what the client says until it says no more. What is
// answered here ends then, and the SDK sees the end of its input.
func (p *pipe) readClient(in io.Reader) {
	defer guard.Then(p.g.server.Logger(), "the reading of the client", p.stop)
	lines := bufio.NewReader(in)
	for {
		line, err := wire.ReadLine(lines, p.g.maxBody)
		switch {
		case errors.Is(err, wire.ErrLongLine):
			p.reply(wire.EncodeReply(nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the message exceeds %d bytes", p.g.maxBody)))
			continue
		case len(bytes.TrimSpace(line)) > 0:
			if x := p.read(line); x != nil {
				p.g.route(x)
			}
		}
		if err != nil || p.ctx.Err() != nil {
			break
		}
	}
	p.await(lastReplies, func() bool { return len(p.passed)+p.brief == 0 && !p.saying })
	p.stop()
	p.g.mailbox(p.session).Close()
	p.finish()
	if !p.out.flush(lastReplies) {
		// The client has closed its side and does not read either: nothing that is
		// still to be written will ever be.
		_ = p.fromSDK.Close()
	}
	_ = p.toSDK.Close() // the SDK reads the end
}

// readSDK passes on what the SDK says, a whole line at a time.
func (p *pipe) readSDK() {
	defer guard.Then(p.g.server.Logger(), "the reading of the SDK", p.stop)
	defer close(p.sdkDone)
	defer p.outlives()
	lines := bufio.NewReader(p.fromSDK)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.deliver(bytes.TrimSuffix(line, []byte("\n")))
		}
		if err != nil {
			_ = p.fromSDK.CloseWithError(err)
			p.stop() // in may stay open; nobody answers any longer
			return
		}
	}
}

// deliver passes a line of the SDK's on to the client.
func (p *pipe) deliver(line []byte) {
	said, _, unread := wire.Read(line)
	if unread != nil || said == nil {
		p.write(line)
		return
	}
	replied := p.noteReply(said) // before the reply: the client may use the ID again
	if !p.passMerged(said) {
		p.write(line)
	}
	p.noteWritten()
	replied.wrote()
}

// noteReply notes the response to a request that was passed on, until noteWritten
// finds it written.
func (p *pipe) noteReply(said *wire.Message) *announcement {
	if said.Method != "" {
		return nil
	}
	id := wire.IDKey(said.ID)
	p.mu.Lock()
	passed, listens := p.passed[id], p.listens[id]
	delete(p.passed, id)
	delete(p.listens, id)
	p.saying = true
	p.mu.Unlock()
	if listens != nil {
		listens()
	}
	if passed.over != nil {
		passed.over()
	}
	return passed.replied
}

// noteWritten notes that what the SDK has said is written.
func (p *pipe) noteWritten() {
	p.mu.Lock()
	p.saying = false
	p.mu.Unlock()
	p.wake()
}

func (p *pipe) wake() {
	select {
	case p.replied <- struct{}{}:
	default:
	}
}

// await waits, for a while, until done holds, which is asked under p.mu.
func (p *pipe) await(most time.Duration, done func() bool) {
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

// inUse refuses a request with the ID of another that has no reply yet: nobody could tell the
// replies apart. p.mu is held.
func (p *pipe) inUse(m *message) *mcptask.Error {
	id := wire.IDKey(m.ID)
	_, passed := p.passed[id]
	if !passed && p.waiting[id] == nil && p.listens[id] == nil {
		return nil
	}
	return mcptask.Errorf(mcptask.CodeInvalidRequest, "a request with this id is under way")
}

// expectReply notes a request that the SDK is to answer.
func (p *pipe) expectReply(m *message, passed passing) (refusal *mcptask.Error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if refusal = p.inUse(m); refusal == nil {
		id := wire.IDKey(m.ID)
		delete(p.merged, id) // the ID is another request's now
		p.passed[id] = passed
	}
	return refusal
}

// endListens frees what the subscriptions count for when the pipe has ended.
func (p *pipe) endListens() {
	defer guard.Recover(p.g.server.Logger(), "end of a pipe")
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, done := range p.listens {
		done()
	}
}

// write puts a line behind all others, for who may wait for the client to read them.
func (p *pipe) write(line []byte) { p.out.put(line) }

// reply is write for who reads what the client says.
func (p *pipe) reply(line []byte) { p.out.putSoon(line) }

// pass hands a line on to the SDK.
func (p *pipe) pass(line []byte) {
	_, _ = p.toSDK.Write(append(bytes.TrimRight(line, "\r\n"), '\n')) // an SDK that has ended
}

// ask writes the questions of tasks.
func (p *pipe) ask() {
	defer guard.Then(p.g.server.Logger(), "the writing of questions", p.stop)
	c := p.g.mailbox(p.session).Connect(nil, "")
	defer c.Close()
	for {
		select {
		case <-c.Wake():
			for _, message := range c.Take() {
				p.write(message)
			}
		case <-p.ctx.Done():
			return
		}
	}
}
