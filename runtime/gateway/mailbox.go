package gateway

import (
	"context"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

const notificationCancelled = "notifications/cancelled"

// settleDelay is how long a new task's questions stay off a session's own stream over HTTP, counted
// from the reply. It is much longer than the reply travels, and too short for a person to notice.
const settleDelay = time.Second

// mailbox returns the mailbox of a session. It opens the mailbox on the first call.
func (g *Gateway) mailbox(s *session) *push.Mailbox {
	s.opened.Do(func() { s.mailbox = g.hub.Open(pushClient{s, g.legacy}) })
	return s.mailbox
}

// pushClient implements push.Client for a session.
type pushClient struct {
	s      *session
	legacy protocol.Teller
}

// Principal implements push.Client.
func (c pushClient) Principal() string { return c.s.principal }

// CanAsk implements push.Client.
func (c pushClient) CanAsk() []string { return c.s.canAsk }

// Requestor implements push.Client.
func (c pushClient) Requestor(d protocol.Teller) protocol.Requestor {
	if c.s.portable != nil { // the client's task would be known to one replica
		return protocol.Requestor20251125{}
	}
	if d != c.legacy {
		return d.Requestor(c.s.capabilities)
	}
	return c.s.requestor
}

// Session implements push.Client.
func (c pushClient) Session() (name string, began time.Time) {
	if c.s.portable == nil {
		return "", time.Time{}
	}
	return c.s.portable.Name, c.s.portable.began()
}

// takeAnswer delivers a client's response to a request of the server's. It returns false if the
// response was neither stored nor kept to be stored later.
func (g *Gateway) takeAnswer(ctx context.Context, s *session, caller taskserver.Caller, request push.RequestID, m *message) bool {
	result, failed := limitAnswer(ctx, g.server, caller, m.Result, m.Error)
	return g.mailbox(s).Take(ctx, caller, request, push.Response{Result: result, Error: failed})
}
