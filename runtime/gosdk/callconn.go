package gosdk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// errNotSent refuses a message that cannot go on the stream of its call. The SDK keeps the session for an error with this
// code.
var errNotSent = &jsonrpc.Error{Code: rejectedCode, Message: "the message cannot be sent: its call is over, or has no stream"}

// callConn is the transport of a session that lasts as long as one call: what the session sends in the context of the
// call goes on the stream of the call. It implements mcp.Transport and mcp.Connection. It is safe for concurrent use.
type callConn struct {
	call    *sdkCall
	session string // the ID of the session
	// prefix begins the IDs of requests, because the SDK numbers those of each session from 1.
	prefix string

	responses chan jsonrpc.Message
	closing   sync.Once
	closed    chan struct{}

	mu     sync.Mutex
	forget []func() // have the gateway forget the requests
}

func newCallConn(call *sdkCall, session string) *callConn {
	return &callConn{call: call, session: session, prefix: "mcptask-call-" + rand.Text() + "-", responses: make(chan jsonrpc.Message), closed: make(chan struct{})}
}

// Connect implements mcp.Transport.
func (c *callConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *callConn) SessionID() string { return c.session }

// Read implements mcp.Connection. It returns the responses to requests.
func (c *callConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case response := <-c.responses:
		return response, nil
	case <-c.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// receive has Read return a response.
func (c *callConn) receive(response jsonrpc.Message) {
	select {
	case c.responses <- response:
	case <-c.closed:
	}
}

// Close implements mcp.Connection.
func (c *callConn) Close() error {
	c.closing.Do(func() {
		close(c.closed)
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, forget := range c.forget {
			forget()
		}
	})
	return nil
}

// Write implements mcp.Connection. In 2026-07-28 a server has no requests.
func (c *callConn) Write(ctx context.Context, message jsonrpc.Message) error {
	request, ok := message.(*jsonrpc.Request)
	switch {
	case !ok:
		return errNotSent
	case callOf(ctx) != c.call && request.Method == "ping": // of the option KeepAlive: the call lives as long as its request
		c.receive(&jsonrpc.Response{ID: request.ID, Result: json.RawMessage("{}")})
		return nil
	case callOf(ctx) != c.call: // sent to all sessions, not to this call
		return errNotSent
	case !request.IsCall():
		return c.notify(request)
	case c.call.Flow.Stateless:
		return errNotSent
	}
	return c.ask(request)
}

// notify sends a notification. One that cancels a request names it as ask has.
func (c *callConn) notify(request *jsonrpc.Request) error {
	if request.Method == "notifications/cancelled" {
		params := wire.NewObject(request.Params)
		id, err := json.Marshal(c.prefix + string(params.Get("requestId")))
		if err != nil {
			return err
		}
		edited, err := params.Edited(wire.Set(id, "requestId"))
		if err != nil {
			return err
		}
		request = &jsonrpc.Request{Method: request.Method, Params: edited}
	}
	return c.send(request)
}

// ask sends a request under an ID of its own, and expects the response.
func (c *callConn) ask(request *jsonrpc.Request) error {
	id := c.prefix + fmt.Sprint(request.ID.Raw())
	own, err := jsonrpc.MakeID(id)
	if err != nil {
		return err
	}
	forget := c.call.Expect(id, func(data []byte) {
		message, err := jsonrpc.DecodeMessage(data)
		response, ok := message.(*jsonrpc.Response)
		if err != nil || !ok {
			response = &jsonrpc.Response{Error: errors.New("the response is malformed")}
		}
		response.ID = request.ID
		c.receive(response)
	})
	c.mu.Lock()
	c.forget = append(c.forget, forget)
	c.mu.Unlock()
	return c.send(&jsonrpc.Request{ID: own, Method: request.Method, Params: request.Params})
}

// send sends a message on the stream of the call.
func (c *callConn) send(request *jsonrpc.Request) error {
	data, err := jsonrpc.EncodeMessage(request)
	if err != nil {
		return err
	}
	if !c.call.Send(data) {
		return errNotSent
	}
	return nil
}
