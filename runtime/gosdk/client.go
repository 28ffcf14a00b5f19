package gosdk

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	neturl "net/url"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// ClientOptions configure a connection. The zero value is ready to use.
type ClientOptions struct {
	// Answer answers the questions of tasks; the zero Answerer declares that
	// nobody can be asked.
	Answer mcptask.Answerer
	// Sample answers a task's requests to a model; nil declares that there is
	// none.
	Sample func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error)
	// Roots are the places that the user has opened; nil declares that none are
	// told.
	Roots []mcptask.Root
	// OpenURL shows a page to the person; nil declares that nobody can. It
	// returns ErrDeclined or ErrDismissed to refuse.
	OpenURL func(context.Context, mcptask.Question) error
	// Tasks are for the server's own requests in 2025-11-25 and in what goes by its
	// protocol version, which may ask what Answer, OpenURL and Sample answer to run
	// as tasks: how long and how many of them are kept, in which Store, and how many
	// are answered at once. The zero value keeps them in memory, until the connection
	// is closed. They belong to the server that the connection is to: Principal has
	// no meaning here, nor has what a gateway bounds (MaxBody and the limits Polls,
	// Lists and Waiting). A store that several connections share needs a different
	// server for each.
	Tasks mcptask.Options
	// Revision is the revision of tasks to speak; "" tries 2026-07-28, then
	// 2025-11-25. The others are spoken only where they are named.
	//
	// In sep-1686 a task that is submitted is mcptask.StatusWorking here. One that is
	// unknown, since the server has lost track of it, is mcptask.StatusFailed with an
	// Error that says so. Each call stays open until its task has ended, and only that
	// request cancels the task: a call that was taken up by its token on another
	// connection cannot be cancelled. The task ID of a call with an idempotency key
	// comes of the key, the tool and the arguments. Where a server knows task IDs but
	// no such keys, the key with other arguments makes another task.
	Revision string
	// DeleteTasks has each task deleted as soon as its end was read, such as one with
	// secrets in its result; nobody reads it a second time then. Only sep-1686 can. A
	// server may refuse, which is logged. Whoever reads the end waits for the
	// deletion, five seconds at most.
	DeleteTasks bool
	// HTTPClient makes the requests; nil is a client without a time limit. A
	// connection keeps one request open beside those that are under way, for
	// notifications, and in 2026-07-28 one for each thousand tasks that are waited
	// for, in sep-1686 one for each task that goes on: a transport that bounds its
	// connections has to allow for them. Unless it has a CheckRedirect of its own,
	// redirects to another scheme, host or port than that of the server are refused:
	// they would take calls, answers and results there.
	HTTPClient *http.Client
	// Bearer returns the token that goes with each request, as Authorization: Bearer,
	// to the scheme, host and port that Connect was given, and nowhere else. It may be
	// called concurrently, and should keep a token as long as that is valid. Its error
	// fails the request. nil sends none.
	Bearer func(context.Context) (string, error)
	// MaxMessage bounds a message of the server's, in bytes: the body of an answer, an
	// event of a stream, what a command writes of one message. 0 is DefaultMaxMessage.
	// What is longer is an error of the call that it answers; a command ends with it.
	MaxMessage int
	// Implementation names the client to the server; nil is this package.
	Implementation *mcp.Implementation
	// Logger takes what becomes of each task, with its ID: created, cancelled,
	// settled (C-105); and what the SDK logs. nil discards it. There is no other
	// registry of tasks (C-106): a program that has to find its tasks again keeps
	// their tokens, which hold the tool, the task and when it may be forgotten.
	Logger *slog.Logger
}

// Connect opens a connection to a server over streamable HTTP. Errors: those of
// the transport, the server's refusal, and a revision that the server does not
// speak. Close the connection when it is no longer needed; its tasks go on.
func Connect(ctx context.Context, url string, options ClientOptions) (mcptask.Conn, error) {
	if err := options.limit(); err != nil {
		return nil, err
	}
	var own *ownTransport // nil where the connections are the caller's to close
	client := options.HTTPClient
	if client == nil {
		client = &http.Client{}
		if shared, ok := http.DefaultTransport.(*http.Transport); ok {
			own = newOwnTransport(shared.Clone())
			own.MaxIdleConnsPerHost, own.MaxResponseHeaderBytes = idleConns, maxHeader
			client.Transport = own
		}
	}
	bounded := *client
	bounded.Transport = limited{client.Transport, options.MaxMessage}
	if bounded.CheckRedirect == nil {
		bounded.CheckRedirect = redirect
	}
	if options.Bearer != nil {
		server, err := neturl.Parse(url)
		if err != nil {
			return nil, fmt.Errorf("gosdk: %w", err)
		}
		bounded.Transport = bearer{bounded.Transport, originOf(server), options.Bearer}
	}
	client = &bounded
	c, err := connectOver(ctx, url, options, func(b beside) dialed {
		wire := &transport{client: client, beside: b}
		over := *client
		over.Transport = wire
		listening := *client
		listening.Timeout = 0 // a subscription lasts
		return dialed{
			Transport: &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: &over}, capabilities: wire.capabilities,
			listen: subscriber{&listening, url, options.MaxMessage}.listen,
		}
	})
	switch {
	case own == nil:
	case err != nil:
		own.close()
	default:
		c.release = own.close
	}
	if err != nil {
		return nil, err
	}
	return c, nil
}

// limit sets and checks the bound of a message. Once more changes nothing.
func (o *ClientOptions) limit() error {
	if o.MaxMessage < 0 {
		return fmt.Errorf("gosdk: ClientOptions.MaxMessage is %d: give a number of bytes, or 0 for %d", o.MaxMessage, DefaultMaxMessage)
	}
	o.MaxMessage = cmp.Or(o.MaxMessage, DefaultMaxMessage)
	return nil
}

// idleConns is how many connections to the server are kept for the next
// request: as many as a Settled has under way.
const idleConns = 16

// dialed is a transport of the SDK's with what the SDK does not tell of it.
type dialed struct {
	mcp.Transport
	// capabilities are those that the server has declared in its answer to
	// initialize, once it is connected; nil is none.
	capabilities func() json.RawMessage
	// ended says why the peer is gone for ever, nil where it is not; nil itself
	// is for peers that can be connected to anew.
	ended func() error
	// atEnd sets what is called when it is; nil is as above.
	atEnd func(func())
	// listen opens a subscription beside the transport; nil is for transports
	// that carry it themselves.
	listen func(ctx context.Context, params map[string]any, hear notified) error
}

// beside is what our transports do that the SDK's client does not.
type beside struct {
	// lasts is over when the session is.
	lasts context.Context
	take  taker // nil takes nothing
	// replied is told of each response to a request of the server's, by its ID; nil
	// is nobody.
	replied func(id json.RawMessage)
	// declare adds to the params of initialize; nil adds nothing.
	declare func(params json.RawMessage) (json.RawMessage, error)
}

// connectOver opens a connection over any transport of the SDK's.
func connectOver(ctx context.Context, peer string, options ClientOptions, dial func(beside) dialed) (*conn, error) {
	if err := options.limit(); err != nil {
		return nil, err
	}
	named, err := clientOf(options.Revision)
	if err != nil {
		return nil, err
	}
	if options.Implementation == nil {
		options.Implementation = &mcp.Implementation{Name: "mcptaskgen", Version: "1"}
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	c := &conn{peer: peer, dial: dial, options: options, named: named, release: func() {},
		opening: make(chan struct{}, 1), answering: make(chan struct{}, maxReplies)}
	c.lasts, c.end = context.WithCancel(context.Background())
	c.watches = &watches{
		listen: c.subscribe, tasks: map[string]map[*watch]bool{}, refused: map[string]bool{}, streams: map[*subscription]bool{},
	}
	if d, ok := named.(announcedClient); ok {
		c.calls = newAnnounced(c, d)
	}
	if c.receiver, err = newReceiver(c); err != nil {
		return nil, err
	}
	if _, err := c.connect(ctx, nil); err != nil {
		c.end()
		_ = c.receiver.close() // nothing was asked of it in earnest
		return nil, err
	}
	return c, nil
}
