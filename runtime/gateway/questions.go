package gateway

import (
	"context"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway/internal/push"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// What the gateway does with package push: its sessions have mailboxes there.

// questions is the hub of a gateway, by sessions.
type questions struct {
	*push.Hub
	legacy dialect.Teller
}

func newQuestions(server *mcptask.Server, legacy dialect.Teller) *questions {
	return &questions{push.New(server, legacy), legacy}
}

// mailbox returns the mailbox of a session.
func (q *questions) mailbox(s *session) *push.Mailbox {
	s.opened.Do(func() { s.mailbox = q.Open(pushClient{s, q.legacy}) })
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

// settling is how long, from the reply on, a new task's questions keep off a session's own
// stream over HTTP. It is far longer than the reply travels, and too short for a person to notice.
const settling = time.Second

func (q *questions) know(s *session, d dialect.Teller, r mcptask.Record) { q.mailbox(s).Know(d, r) }

func (q *questions) asks(s *session, d dialect.Teller, r mcptask.Record) {
	q.mailbox(s).KnowUnsettled(d, r)
}

func (q *questions) created(s *session, d dialect.Teller, r mcptask.Record) {
	q.mailbox(s).KnowUnsettled(d, r)
}

func (q *questions) settle(s *session, task string, seen *mcptask.Record) {
	q.mailbox(s).Settle(task, seen)
}

func (q *questions) settleSoon(s *session, task string)  { q.mailbox(s).SettleAfter(task, 0) }
func (q *questions) settleLater(s *session, task string) { q.mailbox(s).SettleAfter(task, settling) }
func (q *questions) lose(s *session, task string)        { q.mailbox(s).Forget(task) }
func (q *questions) busy(s *session) bool                { return q.mailbox(s).KeepsTasks() }
func (q *questions) end(s *session)                      { q.mailbox(s).Close() }
func (q *questions) refresh(tasks []string)              { q.Refresh(tasks...) }

// channel is a stream of a session.
type channel struct {
	*push.Stream
	task string
	wake <-chan struct{}
}

// outgoing is a message for a stream.
type outgoing struct{ data []byte }

func (q *questions) connect(s *session, task string) *channel { return q.connectIn(nil, s, task) }

func (q *questions) connectIn(d dialect.Teller, s *session, task string) *channel {
	c := q.mailbox(s).Connect(d, task)
	return &channel{c, task, c.Wake()}
}

func (q *questions) disconnect(c *channel) { c.Close() }

func (c *channel) take() (messages []outgoing) {
	for _, data := range c.Take() {
		messages = append(messages, outgoing{data})
	}
	return messages
}

// requestRef names a request of the server's.
type requestRef = push.RequestID

func parseRequestID(id string) (requestRef, bool) { return push.ParseRequestID(id) }

const notificationCancelled = "notifications/cancelled"

func cancelled(id any, reason string) []byte { return push.Cancelled(id, reason) }

// take takes a client's response to a request of ours. It returns false if the response
// was neither stored nor kept to be stored later.
func (g *Gateway) take(ctx context.Context, s *session, caller mcptask.Caller, ref requestRef, m *message) bool {
	result, failed := taken(g.server, caller, m.Result, m.Error)
	return g.questions.mailbox(s).Take(ctx, caller, ref, push.Response{Result: result, Error: failed})
}
