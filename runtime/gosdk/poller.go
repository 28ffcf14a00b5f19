package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// poller sends a session's tasks/get over HTTP beside the SDK, which spends several times as much on
// a request. A client that holds thousands of tasks does little else. The poller reads only a plain
// result. It hands any other answer over to the session, which reads it as the answer to the same
// request. So the session alone decides what an error means, and when it is lost.
type poller struct {
	client *http.Client
	url    string
	// requests counts those that were sent.
	requests atomic.Int64
	// off is set once the server has answered with a stream. The session reads those.
	off atomic.Bool
}

// The IDs of polls begin beyond those that the SDK may use in a session.
const firstPollID = 1 << 30

// polled is the answer to a poll that the poller does not read, or the error of its request.
type polled struct {
	id       string
	response *http.Response
	err      error
}

// send sends a request. It returns the result, or what it hands over to the session. closing ends the
// request.
func (p *poller) send(ctx, closing context.Context, header http.Header, method string, params json.RawMessage) (json.RawMessage, *polled) {
	answer := &polled{id: strconv.FormatInt(firstPollID+p.requests.Add(1), 10)}
	ctx, cancel := context.WithCancel(ctx)
	stop := context.AfterFunc(closing, cancel)
	free := func() { stop(); cancel() }
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, answer.id, method, params)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(body))
	if err != nil {
		free()
		answer.err = err
		return nil, answer
	}
	r.Header = header
	setNameHeaders(r.Header, method, params)
	response, err := p.client.Do(r) //nolint:bodyclose // its reader closes it: the session, or read below
	if err != nil {
		free()
		if outer := (*url.Error)(nil); errors.As(err, &outer) { // the SDK's client wraps it again
			err = outer.Err
		}
		answer.err = err
		return nil, answer
	}
	response.Body = &releasingBody{response.Body, free}
	answer.response = response
	if isStream(response) {
		p.off.Store(true)
		return nil, answer
	}
	kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type"))
	session := response.Header.Get("Mcp-Session-Id")
	if err != nil || kind != "application/json" || response.StatusCode != http.StatusOK || session != "" && session != header.Get("Mcp-Session-Id") {
		return nil, answer
	}
	read, err := readBody(response.Body)
	if err != nil {
		answer.response, answer.err = nil, err
		return nil, answer
	}
	response.Body = read
	m, refusal := wire.Read(read.rest)
	if refusal != nil || !m.IsResponse() || m.Error != nil || string(m.ID) != answer.id {
		return nil, answer
	}
	_ = read.Close() // it is read
	return m.Result, nil
}

// discard frees an answer that is not handed over.
func (a *polled) discard() {
	if a.response != nil {
		_ = a.response.Body.Close() // it is not used
	}
}

// renumber gives an answer to the poll the ID of the session's request.
func (a *polled) renumber(message []byte, id json.RawMessage) []byte {
	if a == nil || !isAnswer(message, json.RawMessage(a.id)) {
		return message
	}
	edited, err := wire.NewObject(message).Edited(wire.Set(id, "id"))
	if err != nil { // cannot happen: it is an object
		return message
	}
	return edited
}

// poll is send for requests that read a task.
func (l *link) poll(ctx context.Context, method string, params any) (json.RawMessage, error) {
	ctx, end := l.begin(ctx, method, params)
	result, err := l.pollBeside(ctx, method, params)
	end(result, err)
	return result, err
}

// pollBeside sends a request that reads a task beside the session, if it can.
func (l *link) pollBeside(ctx context.Context, method string, params any) (json.RawMessage, error) {
	if l.poller == nil || method != tasksGet || l.over.Load() || l.poller.off.Load() {
		return l.sendNoting(ctx, method, params, &refusal{})
	}
	encoded, err := json.Marshal(params)
	if err != nil {
		return nil, fmt.Errorf("gosdk: encode %s: %w", method, err)
	}
	if l.pollMeta != nil {
		encoded = fmt.Appendf(encoded[:len(encoded)-1], `,"_meta":%s}`, l.pollMeta)
	}
	header := http.Header{
		"Content-Type":         {"application/json"},
		"Accept":               {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {l.session.InitializeResult().ProtocolVersion},
	}
	if id := l.session.ID(); id != "" {
		header.Set("Mcp-Session-Id", id)
	}
	result, rest := l.poller.send(ctx, l.receiving.ctx, header, method, encoded)
	switch {
	case rest == nil:
		return result, l.protocol.ResultKind(method, result)
	case ctx.Err() != nil: // the session could take a body that was cut off for the end of it
		rest.discard()
		return nil, fmt.Errorf("%s: %w", method, ctx.Err())
	}
	return l.sendNoting(ctx, method, params, &refusal{polled: rest})
}
