package gosdk

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// sendOnCalls is sending middleware. It sends a message that belongs to a call on the stream of the call, as the SDK's
// handler does for its calls.
func sendOnCalls(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call := callOf(ctx)
		request, ok := req.(*mcp.ServerRequest[mcp.Params])
		if call == nil || !ok || request.Session != call.session || !call.HasStream() {
			return next(ctx, method, req)
		}
		sender, err := call.beginSending(ctx)
		if err != nil {
			return nil, err
		}
		defer call.endSending()
		onCall := *request
		onCall.Session = sender
		return next(ctx, method, &onCall)
	}
}

// beginSending returns the session whose messages go on the stream of the call. Call endSending when the message is sent,
// or has its response.
func (c *sdkCall) beginSending(ctx context.Context) (*mcp.ServerSession, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return nil, errNotSent
	}
	if c.sender == nil {
		if err := c.connectSender(context.WithoutCancel(ctx), c.session.ID(),
			&mcp.ServerSessionState{InitializeParams: c.session.InitializeParams(), InitializedParams: &mcp.InitializedParams{}}); err != nil {
			return nil, err
		}
		if c.Flow.Ended != nil { // a question may wait with a context of its own
			c.stop = context.AfterFunc(c.Flow.Ended, guard.Func(nil, "the end of a session", c.closeSender))
		}
	}
	c.sending++
	return c.sender, nil
}

// connectSender opens the SDK session whose messages go on the stream of the call.
func (c *sdkCall) connectSender(ctx context.Context, id string, state *mcp.ServerSessionState) (err error) {
	c.conn = newCallConn(c, id)
	c.sender, err = c.server.Connect(ctx, c.conn, &mcp.ServerSessionOptions{State: state})
	return err
}

// endSending follows each successful beginSending. The last one closes the sender if the call is over.
func (c *sdkCall) endSending() {
	c.mu.Lock()
	c.sending--
	last := c.over && c.sending == 0
	c.mu.Unlock()
	if last {
		c.closeSender()
	}
}

// end notes that the middleware has returned, and closes the sender. If a request of the server still waits, the sender
// stays open until the response, or until the session ends.
func (c *sdkCall) end() {
	c.mu.Lock()
	c.over = true
	last := c.sending == 0
	c.mu.Unlock()
	if last {
		c.closeSender()
	}
}

// closeSender closes the session whose messages went on the stream of the call.
func (c *sdkCall) closeSender() {
	c.mu.Lock()
	stop, conn, sender := c.stop, c.conn, c.sender
	c.mu.Unlock()
	if stop != nil {
		stop()
	}
	if sender != nil {
		_ = conn.Close() // without this, the session would wait for the responses to its requests
		_ = sender.Close()
	}
}

// rejectedCode is the SDK's code for a request that was not sent.
const rejectedCode = -32005

// errNotSent reports that a message cannot go on the stream of its call. The SDK keeps the session open after an error with
// this code.
var errNotSent = &jsonrpc.Error{Code: rejectedCode, Message: "the message cannot be sent: its call is over, or has no stream"}

// callConn is the transport of an SDK session for one call. It sends the session's messages on the stream of the call, and
// reads the client's responses. It implements mcp.Transport and mcp.Connection. It is safe for concurrent use.
type callConn struct {
	call    *sdkCall
	session string // the ID of the session
	// prefix begins the IDs of requests, because the SDK numbers those of each session from 1.
	prefix string

	responses

	mu   sync.Mutex
	open map[string]func() // has the gateway forget a request, by ID
}

func newCallConn(call *sdkCall, session string) *callConn {
	return &callConn{
		call: call, session: session, prefix: "mcptask-call-" + rand.Text() + "-",
		responses: newResponses(), open: map[string]func(){},
	}
}

// Connect implements mcp.Transport.
func (c *callConn) Connect(context.Context) (mcp.Connection, error) { return c, nil }

// SessionID implements mcp.Connection.
func (c *callConn) SessionID() string { return c.session }

// Write implements mcp.Connection. It refuses requests in 2026-07-28, where a server must not send them.
func (c *callConn) Write(ctx context.Context, message jsonrpc.Message) error {
	request, ok := message.(*jsonrpc.Request)
	switch {
	case !ok:
		return errNotSent
	case callOf(ctx) != c.call && request.Method == "ping": // of KeepAlive: answer it here, because the session ends with the call
		c.receive(&jsonrpc.Response{ID: request.ID, Result: json.RawMessage("{}")})
		return nil
	case callOf(ctx) != c.call && !request.IsCall() && !c.call.Flow.Stateless: // sent to all sessions: the client's gets it too
		return nil
	case callOf(ctx) != c.call:
		return errNotSent
	case !request.IsCall():
		return c.notify(request)
	case c.call.Flow.Stateless:
		return errNotSent
	}
	return c.ask(request)
}

// notify sends a notification. In a cancellation it replaces the request's ID by the one that ask has sent.
func (c *callConn) notify(request *jsonrpc.Request) error {
	if request.Method == "notifications/cancelled" {
		params := wire.NewObject(request.Params)
		asked := c.prefix + string(params.Get("requestId"))
		c.forget(asked)
		id, err := json.Marshal(asked)
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

// ask sends a request under an ID that is unique in the client's session. Read returns the response.
func (c *callConn) ask(request *jsonrpc.Request) error {
	id := c.prefix + fmt.Sprint(request.ID.Raw())
	own, err := jsonrpc.MakeID(id)
	if err != nil {
		return err
	}
	forget := c.call.Expect(id, func(data []byte) {
		c.forget(id)
		message, err := jsonrpc.DecodeMessage(data)
		response, ok := message.(*jsonrpc.Response)
		if err != nil || !ok {
			response = &jsonrpc.Response{Error: errors.New("the response is malformed")}
		}
		response.ID = request.ID
		c.receive(response)
	})
	c.mu.Lock()
	c.open[id] = forget
	c.mu.Unlock()
	return c.send(&jsonrpc.Request{ID: own, Method: request.Method, Params: request.Params})
}

// forget forgets a request that has its response, or is cancelled.
func (c *callConn) forget(id string) {
	c.mu.Lock()
	forget := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	if forget != nil {
		forget()
	}
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

// Close implements mcp.Connection.
func (c *callConn) Close() error {
	c.mu.Lock()
	open := c.open
	c.open = map[string]func(){}
	c.mu.Unlock()
	for _, forget := range open {
		forget()
	}
	return c.responses.Close()
}
