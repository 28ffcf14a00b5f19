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
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
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
	out     io.Writer
	toSDK   *io.PipeWriter
	fromSDK *io.PipeReader
	session *session
	ctx     context.Context
	stop    context.CancelFunc
	work    sync.WaitGroup

	writing   sync.Mutex // of out: a line at a time
	exchanges exchanges

	mu      sync.Mutex
	waiting map[string]context.CancelFunc // requests that are answered here, by ID
	brief   int                           // those of them that wait for no task
	passed  map[string]func()             // requests that the SDK has not answered yet, by ID, with the end of their flows
	saying  bool                          // a reply of the SDK's is being written
	merged  map[string]*merge             // subscriptions that the SDK serves too, by ID
	replied chan struct{}                 // has room for one: a request was answered
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
		g: g, out: out, toSDK: toSDK, fromSDK: fromSDK,
		session: &session{id: rand.Text(), principal: principal, requestor: dialect.Requestor20251125{}},
		waiting: map[string]context.CancelFunc{},
		passed:  map[string]func(){},
		merged:  map[string]*merge{},
		replied: make(chan struct{}, 1),
	}
	p.ctx, p.stop = context.WithCancel(context.WithoutCancel(ctx))
	p.session.ended, p.session.end = p.ctx, p.stop
	context.AfterFunc(g.server.Closing(), p.stop)
	p.work.Go(p.ask) // first: the reading of an input that ends at once waits for the work
	go p.readClient(in)
	go p.readSDK()
	return sdkReads, sdkWrites, nil
}

// readClient handles what the client says until it says no more. What is
// answered here ends then, and the SDK sees the end of its input.
func (p *pipe) readClient(in io.Reader) {
	defer guard.Then(p.g.server.Logger(), "the reading of the client", p.stop)
	lines := bufio.NewReader(in)
	for {
		line, err := readLine(lines, p.g.maxBody)
		switch {
		case errors.Is(err, errLongLine):
			p.write(encodeReply(nil, nil, mcptask.Errorf(mcptask.CodeInvalidRequest, "the message exceeds %d bytes", p.g.maxBody)))
			continue
		case len(bytes.TrimSpace(line)) > 0:
			p.handle(line)
		}
		if err != nil || p.ctx.Err() != nil {
			break
		}
	}
	p.await(lastReplies, func() bool { return len(p.passed)+p.brief == 0 && !p.saying })
	p.stop()
	p.g.questions.end(p.session)
	done := make(chan struct{})
	go func() { defer guard.Recover(p.g.server.Logger(), "the wait for replies"); p.work.Wait(); close(done) }()
	select {
	case <-done:
		_ = p.toSDK.Close() // the SDK reads the end
	case <-time.After(lastReplies):
		// The client has closed its side and does not read either: nothing that is
		// still to be written will ever be.
		_ = p.toSDK.Close()
		_ = p.fromSDK.Close()
	}
}

// readSDK passes on what the SDK says, a whole line at a time.
func (p *pipe) readSDK() {
	defer guard.Then(p.g.server.Logger(), "the reading of the SDK", p.stop)
	lines := bufio.NewReader(p.fromSDK)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.answered(line) // before the reply: the client may use the ID again
			if line := bytes.TrimSuffix(line, []byte("\n")); !p.passMerged(line) {
				p.write(line)
			}
			p.said()
		}
		if err != nil {
			_ = p.fromSDK.CloseWithError(err)
			p.stop() // in may stay open; nobody answers any longer
			return
		}
	}
}

// answered notes the response to a request that was passed on, until said
// finds it written.
func (p *pipe) answered(line []byte) {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil || m.Method != "" {
		return
	}
	id := sameID(m.ID)
	p.mu.Lock()
	over := p.passed[id]
	delete(p.passed, id)
	p.saying = true
	p.mu.Unlock()
	if over != nil {
		over()
	}
}

// said notes that what the SDK has said is written.
func (p *pipe) said() {
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

// sameID is an ID however its JSON is written.
func sameID(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil {
		return "text " + text
	}
	return string(id)
}

// passRequest hands a request on; over is called with its reply. What never
// ends is not waited for.
func (p *pipe) passRequest(m *message, line []byte, over func()) {
	p.mu.Lock()
	delete(p.merged, sameID(m.ID)) // the ID is another request's now
	if m.Method != dialect.Listen {
		p.passed[sameID(m.ID)] = over
	}
	p.mu.Unlock()
	p.pass(line)
}

func (p *pipe) write(line []byte) {
	if p.g.translations != nil {
		line = p.exchanges.out(line)
	}
	p.writing.Lock()
	defer p.writing.Unlock()
	_, _ = p.out.Write(append(bytes.Clone(line), '\n')) // a client that has left
}

// passWith hands a request on together with its flow.
func (p *pipe) passWith(flow *Flow, m *message, line []byte) {
	flow.Ended = p.ctx
	token, closeFlow := OpenFlow(p.g.server, flow)
	marked, err := mark(line, token)
	if err != nil {
		closeFlow()
		p.refuse(m, mcptask.Errorf(mcptask.CodeInvalidRequest, "the params are not an object"))
		return
	}
	// The SDK takes it at once, or never: it may refuse the request, or not answer.
	life := time.AfterFunc(flowLife, func() { defer guard.Recover(p.g.server.Logger(), "the end of a flow"); closeFlow() })
	p.passRequest(m, marked, func() { life.Stop(); closeFlow() })
}

// mark sets params._meta[FlowMeta] of a message.
func mark(line []byte, token string) ([]byte, error) {
	quoted, err := json.Marshal(token)
	if err != nil {
		return nil, err
	}
	return setMember(line, []string{"params", "_meta", FlowMeta}, quoted)
}

// pass hands a line on to the SDK.
func (p *pipe) pass(line []byte) {
	_, _ = p.toSDK.Write(append(bytes.TrimRight(line, "\r\n"), '\n')) // an SDK that has ended
}

// ask writes the questions of tasks.
func (p *pipe) ask() {
	defer guard.Then(p.g.server.Logger(), "the writing of questions", p.stop)
	c := p.g.questions.connect(p.session, "")
	defer p.g.questions.disconnect(c)
	for {
		select {
		case <-c.wake:
			for _, m := range c.take() {
				p.write(m.data)
			}
		case <-p.ctx.Done():
			return
		}
	}
}
