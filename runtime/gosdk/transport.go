package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wire"
)

// transport sends the messages of a session to the server, and passes those of the server to the session's inbox. It is
// safe for concurrent use.
type transport interface {
	// roundTrip sends a request and returns its response.
	roundTrip(ctx context.Context, r *request) (*wire.Message, error)
	// send sends a notification, or a response if method is "".
	send(ctx context.Context, method string, message []byte) error
	// setVersion sets the protocol version of the requests that follow. "" sends none.
	setVersion(version string)
	// endCause returns why the server is gone for good, or nil.
	endCause() error
	close() error
}

// request is one request to the server.
type request struct {
	id     json.RawMessage
	method string
	params json.RawMessage
	// notified gets the notifications of a subscription. It is nil for any other request.
	notified notificationFunc
	// isSent is set before the request is sent, and isTaken when the server has begun to answer.
	isSent, isTaken atomic.Bool
	// isSilent keeps the end of the context from sending a cancellation.
	isSilent atomic.Bool
}

// encode returns the request as a message.
func (r *request) encode() []byte {
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"method":%q,"params":%s}`, r.id, r.method, r.params)
}

// notificationFunc receives the method and the params of a notification.
type notificationFunc func(method string, params json.RawMessage)

// errSessionLost means that the server no longer knows the session, or that the session is closed.
var errSessionLost = errors.New("the session has ended")

// errUnanswered is the end of a session in which a request was taken but not answered.
var errUnanswered = fmt.Errorf("%w before the answer", errSessionLost)

// newLostError returns the error of a request whose session has ended.
func (r *request) newLostError() error {
	if r.isTaken.Load() {
		return errUnanswered
	}
	return errSessionLost
}

// DefaultMaxMessage is the default of ClientOptions.MaxMessage, in bytes.
const DefaultMaxMessage = 16 << 20

// tooLongError is the error for a server's message of more than max bytes.
type tooLongError struct{ max int }

func (e tooLongError) Error() string {
	return fmt.Sprintf("gosdk: the server sent a message of more than %d bytes (ClientOptions.MaxMessage)", e.max)
}

// Permanent tells callers that a retry cannot succeed.
func (tooLongError) Permanent() bool { return true }

// readMessage reads a message of the server's. It returns nil if there is nothing to do about the message: a request
// whose ID no answer could repeat.
func readMessage(data []byte) (*wire.Message, error) {
	m, refusal := wire.Read(data)
	switch {
	case refusal == nil && (m.Method != "" || m.IsResponse()):
		return m, nil
	case refusal != nil && m != nil && m.Method != "":
		return nil, nil
	case refusal == nil:
		refusal = mcptask.Errorf(mcptask.CodeInvalidRequest, "it is neither a request nor a response")
	}
	return nil, fmt.Errorf("gosdk: the server sent a malformed message: %s", refusal.Message)
}
