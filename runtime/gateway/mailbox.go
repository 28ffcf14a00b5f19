package gateway

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

const notificationCancelled = "notifications/cancelled"

// settling is how long, from the reply on, a new task's questions keep off a session's own
// stream over HTTP. It is far longer than the reply travels, and too short for a person to notice.
const settling = time.Second

// mailbox returns the mailbox of a session, which has all that the session is sent.
func (g *Gateway) mailbox(s *session) *push.Mailbox {
	s.opened.Do(func() { s.mailbox = g.hub.Open(pushClient{s, g.legacy}) })
	return s.mailbox
}

// pushClient is a session as package push sees it.
type pushClient struct {
	s      *session
	legacy dialect.Teller
}

// Principal implements push.Client.
func (c pushClient) Principal() string { return c.s.principal }

// CanAsk implements push.Client.
func (c pushClient) CanAsk() []string { return c.s.canAsk }

// Requestor implements push.Client.
func (c pushClient) Requestor(d dialect.Teller) dialect.Requestor {
	if d != c.legacy {
		return d.Requestor(c.s.capabilities)
	}
	return c.s.requestor
}

// takeAnswer takes a client's response to a request of ours. It returns false if the response
// was neither stored nor kept to be stored later.
func (g *Gateway) takeAnswer(ctx context.Context, s *session, caller mcptask.Caller, request push.RequestID, m *message) bool {
	result, failed := taken(g.server, caller, m.Result, m.Error)
	return g.mailbox(s).Take(ctx, caller, request, push.Response{Result: result, Error: failed})
}
