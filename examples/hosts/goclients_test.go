//go:build long && unix

package main

import (
	"context"
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	mcpgo "github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	mcpgotypes "github.com/mark3labs/mcp-go/mcp"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// goSDK is the client of the official Go SDK.
var goSDK = host{
	name: "`github.com/modelcontextprotocol/go-sdk`", version: goVersion("github.com/modelcontextprotocol/go-sdk"),
	routes: goRoutes(connectGoSDK),
}

// mcpGo is the client of mcp-go.
var mcpGo = host{
	name: "`github.com/mark3labs/mcp-go`", version: goVersion("github.com/mark3labs/mcp-go"),
	routes: goRoutes(connectMCPGo),
}

// goVersion finds the version of a module in go.mod.
func goVersion(module string) func(*testing.T) string {
	return func(t *testing.T) string {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", module).Output()
		if err != nil {
			t.Fatal(err)
		}
		return strings.TrimPrefix(strings.TrimSpace(string(out)), "v")
	}
}

// goRoutes are the ways in which a client in Go reaches our server.
func goRoutes(connect connector) []route {
	var routes []route
	for _, over := range []string{"HTTP", "stdio"} {
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			routes = append(routes, route{over: over, revision: revision, stdio: over == "stdio", keeps: true, open: func(t *testing.T, s *server) driver {
				t.Helper()
				p := &goProgram{open: func(t *testing.T, user *user) goClient { return connect(t, s, revision, user) }}
				p.client = p.open(t, &p.user)
				return p
			}})
		}
	}
	return routes
}

// connector connects a client that asks the user.
type connector func(t *testing.T, s *server, revision string, user *user) goClient

// user answers the questions of a client.
type user struct {
	answer object
	line   string
}

// goClient is a client in Go. Its methods return the decoded results.
type goClient struct {
	list func(ctx context.Context) (any, error)
	call func(ctx context.Context, tool string, args object) (any, error)
}

// goProgram is a program on such a client.
type goProgram struct {
	user
	open   func(*testing.T, *user) goClient
	client goClient
}

// say returns the output of a program.
func say(result any, err error) reply {
	if err != nil {
		return reply{err.Error()}
	}
	data, err := json.Marshal(result)
	if err != nil {
		return reply{err.Error()}
	}
	return reply{string(data)}
}

func (p *goProgram) list(t *testing.T) reply { return say(p.client.list(t.Context())) }

// call calls a tool. If the server was away, the program connects again, and repeats calls that it may repeat.
func (p *goProgram) call(t *testing.T, tool string, args object) reply {
	result, err := p.client.call(t.Context(), tool, args)
	if err != nil && strings.HasPrefix(tool, "task_") {
		t.Log("connect again: ", err)
		p.client = p.open(t, &p.user)
		result, err = p.client.call(t.Context(), tool, args)
	}
	return say(result, err)
}

func (p *goProgram) ask(t *testing.T, tool string, args, answer object) reply {
	p.answer = answer
	return p.call(t, tool, args)
}

func (p *goProgram) sample(t *testing.T, tool string, args object, line string) reply {
	p.line = line
	return p.call(t, tool, args)
}

func (p *goProgram) during(t *testing.T, tool string, args object, meanwhile func(func())) reply {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	said := make(chan reply, 1)
	go func() { said <- say(p.client.call(ctx, tool, args)) }()
	meanwhile(cancel)
	return <-said
}

// connectGoSDK connects the client of the official SDK.
func connectGoSDK(t *testing.T, s *server, revision string, user *user) goClient {
	t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "hosts", Version: "1.0.0"}, &mcp.ClientOptions{
		ElicitationHandler: func(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			return &mcp.ElicitResult{Action: "accept", Content: user.answer}, nil
		},
		CreateMessageHandler: func(context.Context, *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Role: "assistant", Model: "hosts", Content: &mcp.TextContent{Text: user.line}}, nil
		},
	})
	var over mcp.Transport = &mcp.StreamableClientTransport{Endpoint: s.url}
	if s.command != nil {
		over = &mcp.CommandTransport{Command: exec.Command(s.command[0], s.command[1:]...)}
	}
	session, err := client.Connect(t.Context(), over, &mcp.ClientSessionOptions{ProtocolVersion: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	if got := session.InitializeResult().ProtocolVersion; got != revision {
		t.Fatalf("the client speaks %s, want %s", got, revision)
	}
	return goClient{
		list: func(ctx context.Context) (any, error) { return session.ListTools(ctx, nil) },
		call: func(ctx context.Context, tool string, args object) (any, error) {
			return session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
		},
	}
}

// connectMCPGo connects the client of mcp-go.
func connectMCPGo(t *testing.T, s *server, revision string, user *user) goClient {
	t.Helper()
	client := mcpgo.NewClient(newMCPGoTransport(t, s), mcpgo.WithProtocolVersion(revision),
		mcpgo.WithDiscoverTimeout(bound), // by default it gives up the newer revision on a busy machine
		mcpgo.WithElicitationHandler(mcpGoUser{user}), mcpgo.WithSamplingHandler(mcpGoUser{user}))
	t.Cleanup(func() { _ = client.Close() })
	if err := client.Start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	initialized, err := client.Initialize(t.Context(), mcpgotypes.InitializeRequest{Params: mcpgotypes.InitializeParams{
		ProtocolVersion: revision, ClientInfo: mcpgotypes.Implementation{Name: "hosts", Version: "1.0.0"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if got := initialized.ProtocolVersion; got != revision {
		t.Fatalf("the client speaks %s, want %s", got, revision)
	}
	return newMCPGoClient(client)
}

// newMCPGoTransport reaches the server.
func newMCPGoTransport(t *testing.T, s *server) transport.Interface {
	t.Helper()
	if s.command != nil {
		return transport.NewStdio(s.command[0], nil, s.command[1:]...)
	}
	over, err := transport.NewStreamableHTTP(s.url)
	if err != nil {
		t.Fatal(err)
	}
	return over
}

// newMCPGoClient uses a client that is connected.
func newMCPGoClient(client *mcpgo.Client) goClient {
	return goClient{
		list: func(ctx context.Context) (any, error) { return client.ListTools(ctx, mcpgotypes.ListToolsRequest{}) },
		call: func(ctx context.Context, tool string, args object) (any, error) {
			return client.CallTool(ctx, mcpgotypes.CallToolRequest{Params: mcpgotypes.CallToolParams{Name: tool, Arguments: args}})
		},
	}
}

// mcpGoUser answers the questions of mcp-go's client.
type mcpGoUser struct{ user *user }

// Elicit implements client.ElicitationHandler.
func (u mcpGoUser) Elicit(context.Context, mcpgotypes.ElicitationRequest) (*mcpgotypes.ElicitationResult, error) {
	return &mcpgotypes.ElicitationResult{ElicitationResponse: mcpgotypes.ElicitationResponse{
		Action: mcpgotypes.ElicitationResponseActionAccept, Content: u.user.answer,
	}}, nil
}

// CreateMessage implements client.SamplingHandler.
func (u mcpGoUser) CreateMessage(context.Context, mcpgotypes.CreateMessageRequest) (*mcpgotypes.CreateMessageResult, error) {
	return &mcpgotypes.CreateMessageResult{Model: "hosts", SamplingMessage: mcpgotypes.SamplingMessage{
		Role: mcpgotypes.RoleAssistant, Content: mcpgotypes.NewTextContent(u.user.line),
	}}, nil
}
