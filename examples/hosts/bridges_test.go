//go:build long && unix

package main

import (
	"context"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/hosts/bakery"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// A bridge stands between a client and our server. The client is the generated one, so that each failure is the
// bridge's. Each route has the transport on the client's side first.
var (
	mcpRemote = host{
		name: "mcp-remote", module: "mcp-remote",
		routes: bridges("stdio to HTTP", false, map[string]map[string]failing{
			// It forwards tasks/get, tasks/update and tasks/cancel without the header Mcp-Name, which the revision demands.
			mcptask.Revision20260728: everywhere(`the Mcp-Name header is missing: it has to name the task of the body`),
		}, func(t *testing.T, c *bridge, s *server) {
			c.command = []string{program(t, "mcp-remote"), s.url, "--allow-http"}
		}),
	}
	supergatewayToHTTP = host{
		name: "supergateway", module: "supergateway",
		routes: bridges("stdio to HTTP", false, map[string]map[string]failing{
			mcptask.Revision20251125: {
				// It declares the capabilities of its client, but answers for it.
				"question": {words: `the requestor cannot be asked: Method not found`},
				"sampling": {words: `the requestor cannot be asked: Method not found`},
			},
			// It opens a session, whatever its client does.
			mcptask.Revision20260728: everywhere(`the server speaks 2025-11-25, not 2026-07-28`),
		}, func(t *testing.T, c *bridge, s *server) {
			c.command = []string{program(t, "supergateway"), "--streamableHttp", s.url, "--outputTransport", "stdio"}
		}),
	}
	supergatewayToStdio = host{
		name: "supergateway", module: "supergateway",
		routes: bridges("HTTP to stdio", true, nil, func(t *testing.T, c *bridge, s *server) {
			c.serve(t, "/mcp", program(t, "supergateway"), "--stdio", strings.Join(s.command, " "),
				"--outputTransport", "streamableHttp", "--stateful", "--port", portArgument)
		}),
	}
	mcpProxy = host{
		name: "mcp-proxy", module: "mcp-proxy",
		routes: bridges("HTTP to stdio", true, map[string]map[string]failing{
			// It reads the answers of the server, and knows no tasks.
			mcptask.Revision20251125: everywhere(`content is required when the body carries 'task'|the server cannot report tasks in 2025-11-25|` + noForms),
			mcptask.Revision20260728: everywhere(`the server cannot report tasks in 2026-07-28|` + noForms),
		}, func(t *testing.T, c *bridge, s *server) {
			upstream := map[string]string{mcptask.Revision20251125: "legacy", mcptask.Revision20260728: "modern"}[c.revision]
			c.serve(t, "/mcp", append([]string{program(t, "mcp-proxy"), "--host", "127.0.0.1", "--port", portArgument,
				"--upstreamProtocol", upstream, "--"}, s.command...)...)
		}),
	}
)

// everywhere has the words for every case. A bridge that passes no questions on passes none to the model.
func everywhere(words string) map[string]failing {
	all := map[string]failing{}
	for _, name := range cases {
		all[name] = failing{words: words}
	}
	all["sampling"] = failing{words: words + "|" + noModel}
	return all
}

// bridges are the routes over a bridge, in both revisions.
func bridges(over string, stdio bool, cannot map[string]map[string]failing, open func(*testing.T, *bridge, *server)) []route {
	var routes []route
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		routes = append(routes, route{over: over, revision: revision, stdio: stdio, keeps: true, cannot: cannot[revision], open: func(t *testing.T, s *server) driver {
			t.Helper()
			c := &bridge{t: t, terminal: newTerminal(t), revision: revision, calls: map[string]*mcptask.Call[*mcptask.Result]{}}
			open(t, c, s)
			return c
		}})
	}
	return routes
}

// bridge drives the generated client over a bridge.
type bridge struct {
	t *testing.T // at its end the connection is closed
	terminal
	revision string
	// command is the bridge if the client starts it, and url is where it listens if not.
	command []string
	url     string
	process *process

	once  sync.Once
	conn  mcptask.Conn
	err   error
	calls map[string]*mcptask.Call[*mcptask.Result]
}

// portArgument stands for a free port in the arguments of serve.
const portArgument = "PORT"

// serve starts a bridge that listens at a port, and waits until it does. It does not rely on the bridge's output, which
// is not always true.
func (c *bridge) serve(t *testing.T, path string, args ...string) {
	t.Helper()
	port := freePort(t)
	for i := range args {
		if args[i] == portArgument {
			args[i] = port
		}
	}
	c.process = c.start(t, args...)
	address := "127.0.0.1:" + port
	for begin := time.Now(); ; {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			_ = conn.Close()
			break
		}
		select {
		case <-c.process.ended:
			t.Fatalf("the bridge has ended:\n%s", c.process.out.String())
		case <-time.After(100 * time.Millisecond):
		}
		if time.Since(begin) > bound {
			t.Fatalf("the bridge does not listen:\n%s", c.process.out.String())
		}
	}
	c.url = "http://" + address + path
}

// connect connects the client at its first call.
func (c *bridge) connect(t *testing.T) (mcptask.Conn, error) {
	t.Helper()
	c.once.Do(func() {
		options := gosdk.ClientOptions{
			Revision: c.revision,
			Answer: bakery.AnswerAgreement(func(context.Context, mcptask.Question) (bakery.Agreement, error) {
				return bakery.Agreement{Agreed: true}, nil
			}),
			Sample: func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return &mcptask.SampleResult{Role: "assistant", Content: []mcptask.Content{mcptask.TextContent(praise)}, Model: "baker"}, nil
			},
		}
		t := c.t
		ctx := context.WithoutCancel(t.Context())
		if c.command == nil {
			c.conn, c.err = gosdk.Connect(ctx, c.url, options)
		} else {
			cmd := c.terminal.command(t, c.command...)
			t.Cleanup(func() {
				if cmd.Process != nil {
					killGroup(cmd)
				}
			})
			c.conn, c.err = gosdk.ConnectCommand(ctx, cmd, options)
		}
		if c.err == nil {
			t.Cleanup(func() { _ = c.conn.Close() })
		}
	})
	return c.conn, c.err
}

func (c *bridge) list(t *testing.T) reply {
	t.Helper()
	conn, err := c.connect(t)
	if err != nil {
		return c.show(nil, err)
	}
	tools, err := conn.ListTools(t.Context())
	var names []string
	for _, tool := range tools {
		names = append(names, tool.Name)
	}
	said := c.show(nil, err)
	said.text += strings.Join(names, "\n")
	return said
}

// show returns the text of a result or an error for a user, and the output of the bridge.
func (c *bridge) show(result *mcptask.Result, err error) reply {
	var said reply
	if result != nil {
		said.text = result.Text() + "\n" + string(result.Structured) + "\n"
	}
	if err != nil {
		said.text = err.Error() + "\n"
	}
	return said
}

func (c *bridge) call(t *testing.T, tool string, args object) reply {
	t.Helper()
	conn, err := c.connect(t)
	if err != nil {
		return c.show(nil, err)
	}
	return c.show(mcptask.Run[*mcptask.Result](t.Context(), conn, tool, args, mcptask.Plain()))
}

func (c *bridge) startTask(t *testing.T, tool string, args object) (id string, said reply) {
	t.Helper()
	conn, err := c.connect(t)
	if err != nil {
		return "", c.show(nil, err)
	}
	call, err := mcptask.Start[*mcptask.Result](t.Context(), conn, tool, args)
	if err != nil {
		return "", c.show(nil, err)
	}
	token, ok := call.Token()
	if !ok {
		return "", c.show(call.Wait(t.Context()))
	}
	c.calls[string(token)] = call
	return string(token), reply{}
}

func (c *bridge) result(t *testing.T, id string) reply {
	t.Helper()
	return c.show(c.calls[id].Wait(t.Context()))
}

func (c *bridge) cancel(t *testing.T, id string) reply {
	t.Helper()
	return c.show(nil, c.calls[id].Cancel(t.Context()))
}

func (c *bridge) ask(t *testing.T, tool string, args, _ object) reply {
	t.Helper()
	return c.call(t, tool, args)
}

func (c *bridge) sample(t *testing.T, tool string, args object, _ string) reply {
	t.Helper()
	return c.call(t, tool, args)
}
