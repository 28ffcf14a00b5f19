package gosdk

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	neturl "net/url"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/protocol/unofficial"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// ClientOptions configures a connection. The zero value is ready to use.
type ClientOptions struct {
	// Answer answers the questions of tasks. The zero Answerer declares that the client answers no
	// questions.
	Answer mcptask.Answerer
	// Sample answers a task's requests to a model. It returns ErrDeclined if the user refuses. nil
	// declares that the client has no model.
	Sample func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error)
	// Roots are the places that the user has opened. nil declares that the client has no roots.
	Roots []mcptask.Root
	// OpenURL shows a page to the user. It returns ErrDeclined or ErrDismissed to refuse. nil
	// declares that the client cannot show pages.
	OpenURL func(context.Context, mcptask.Question) error
	// Tasks configures the tasks that the client runs for the server. In 2025-11-25 and the
	// revisions that share its protocol version, a server may ask for a request that Answer,
	// OpenURL or Sample answers to run as a task. The options say how long and how many such tasks
	// are kept, in which Store, and how many are answered at once.
	//
	// The zero value keeps the tasks in memory until the connection is closed. The tasks belong to
	// the server of the connection, so Principal has no effect. Nor do MaxBody and the limits
	// Polls, Lists and Waiting, which are the gateway's. If connections share a store, each must
	// connect to a different server.
	Tasks taskserver.Options
	// Revision is the revision of tasks to speak. "" tries 2026-07-28, then 2025-11-25, and takes
	// the first in which the server has tasks. ConnectCommand takes the first that the server
	// speaks: name 2025-11-25 if it has tasks only there. Any other revision must be named.
	//
	// In sep-1686 a submitted task has mcptask.StatusWorking here. A task that the server has lost
	// track of ("unknown") has mcptask.StatusFailed, with an Error that says so. Each call stays
	// open until its task has ended, and only that request can cancel the task. So a call that is
	// resumed by its token on another connection cannot be cancelled. The task ID of a call with an
	// idempotency key is derived from the key, the tool and the arguments. If a server knows task
	// IDs but no idempotency keys, the same key with other arguments makes another task.
	Revision string
	// DeleteTasks deletes each task as soon as its outcome is read, for example because results
	// contain secrets. The outcome cannot be read a second time. Only sep-1686 supports this. If
	// the server refuses, the refusal is logged. The reader of the outcome waits for the deletion,
	// at most five seconds.
	DeleteTasks bool
	// HTTPClient makes the requests. nil means a client without a time limit. A transport that
	// bounds its connections must leave room for streams: a connection keeps one request open for
	// notifications. In 2026-07-28 it keeps one more for each thousand tasks that are waited for,
	// and in sep-1686 one more for each running task. If HTTPClient has no CheckRedirect, redirects
	// to another scheme, host or port are refused, because they would take calls, answers and
	// results there.
	HTTPClient *http.Client
	// Bearer returns the token that each request sends, as Authorization: Bearer. The token goes
	// only to the scheme, host and port that Connect was given. Bearer may be called concurrently,
	// and should reuse a token while it is valid. If it returns an error, the request fails. nil
	// means no token.
	Bearer func(context.Context) (string, error)
	// MaxMessage bounds the bytes of one message from the server: the body of a response, an event
	// of a stream, or a line of a command's output. 0 means DefaultMaxMessage. A longer message
	// fails the call that it answers. From a command, it ends the connection. Lines of a command that
	// are not messages are skipped, and Logger gets the first. More than MaxMessage bytes of them
	// between two messages end the connection too.
	MaxMessage int
	// Hooks hear of each request, for traces and metrics. Of each, only ClientRequest matters.
	Hooks []taskserver.Hooks
	// Implementation names the client to the server. nil names this package.
	Implementation *mcp.Implementation
	// Logger gets a record of each change of a task, with the task's ID: created, cancelled, settled.
	// nil discards the records. The log is the only registry of tasks: a program that must find its
	// tasks again keeps their tokens, which hold the tool, the task and its expiry.
	Logger *slog.Logger
}

// Connect opens a connection to a server over streamable HTTP. It returns an error if the transport
// fails, if the server refuses, or if the server does not speak the revision. Close the connection
// when it is no longer needed. Its tasks go on.
func Connect(ctx context.Context, url string, options ClientOptions) (mcptask.Conn, error) {
	release := func() {} // unless the connections are ours
	client := options.HTTPClient
	if client == nil {
		client = &http.Client{}
		if shared, ok := http.DefaultTransport.(*http.Transport); ok {
			own := shared.Clone()
			own.MaxIdleConnsPerHost, own.MaxResponseHeaderBytes, own.IdleConnTimeout = idleConns, maxHeader, idleFor
			client.Transport, release = own, own.CloseIdleConnections
		}
	}
	ours := *client
	if ours.CheckRedirect == nil {
		ours.CheckRedirect = checkRedirect
	}
	if options.Bearer != nil {
		server, err := neturl.Parse(url)
		if err != nil {
			return nil, fmt.Errorf("gosdk: %w", err)
		}
		ours.Transport = bearerTransport{cmp.Or(client.Transport, http.DefaultTransport), originOf(server), options.Bearer}
	}
	lasting := ours
	lasting.Timeout = 0
	c, err := connectOver(ctx, url, options, func(c *conn, inbox *inbox) (transport, error) {
		return &httpTransport{client: &ours, lasting: &lasting, url: url, max: c.options.MaxMessage, inbox: inbox}, nil
	})
	if err != nil {
		release()
		return nil, err
	}
	c.release = release
	return c, nil
}

// idleConns is how many idle connections to the server are kept: as many as one Settled uses at
// once.
const idleConns = 16

// idleFor is how long they are kept. A connection that is still being made while the client closes stays that long.
const idleFor = 30 * time.Second

// connectOver opens a connection over any transport.
func connectOver(ctx context.Context, peer string, options ClientOptions, dial func(*conn, *inbox) (transport, error)) (*conn, error) {
	if options.MaxMessage < 0 {
		return nil, fmt.Errorf("gosdk: ClientOptions.MaxMessage is %d: give a number of bytes, or 0 for %d", options.MaxMessage, DefaultMaxMessage)
	}
	options.MaxMessage = cmp.Or(options.MaxMessage, DefaultMaxMessage)
	named, err := findClient(options.Revision)
	if err != nil {
		return nil, err
	}
	options.Implementation = cmp.Or(options.Implementation, &mcp.Implementation{Name: "mcptaskgen", Version: "1"})
	options.Logger = cmp.Or(options.Logger, slog.New(slog.DiscardHandler))
	c := &conn{peer: peer, dial: dial, options: options, chosen: named, release: func() {},
		opening: make(chan struct{}, 1), answering: make(chan struct{}, maxReplies)}
	c.lifetime, c.end = context.WithCancel(context.Background())
	c.watches = &watches{
		listen: c.subscribe, tasks: map[string]map[*watch]bool{}, refused: map[string]bool{}, streams: map[*subscription]bool{},
	}
	if d, ok := named.(unofficial.ClientSEP1686); ok {
		c.open = &openCalls{conn: c, protocol: d, calls: map[string]*openCall{}}
	}
	if c.receiver, err = newReceiver(c); err != nil {
		return nil, err
	}
	if _, err := c.connect(ctx, nil); err != nil {
		c.end()
		_ = c.receiver.close() // it holds no tasks yet
		return nil, err
	}
	return c, nil
}
