package mcpgo_test

import (
	"context"
	"errors"
	"runtime"
	"testing"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/passthrough"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcpgo"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestPassthrough checks that clients of other tools get from NewHandler what they get from mcp-go's own handler.
func TestPassthrough(t *testing.T) {
	serve := func(options ...server.StreamableHTTPOption) func(*testing.T) passthrough.Process {
		return func(t *testing.T) passthrough.Process {
			tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tasks.Close() })
			s := newCorpusServer()
			mcpgo.AddTools(s, tasks)
			return passthrough.Process{
				Bare:    server.NewStreamableHTTPServer(newCorpusServer(), options...),
				Gateway: mcpgo.NewHandler(tasks, s, mcpgo.Options{}, options...), Tools: gateway.Tools(tasks.Backend()),
			}
		}
	}
	passthrough.Compare(t, passthrough.MCPGo, map[string]func(*testing.T) passthrough.Process{
		"default":   serve(),
		"stateful":  serve(server.WithStateful(true)),
		"stateless": serve(server.WithStateLess(true)),
		"any Host":  serve(server.WithDisableLocalhostProtection(true)),
	})
}

type completes struct{}

// CompletePromptArgument implements server.PromptCompletionProvider.
func (completes) CompletePromptArgument(context.Context, string, mcp.CompleteArgument, mcp.CompleteContext) (*mcp.Completion, error) {
	return &mcp.Completion{Values: []string{"xyz"}}, nil
}

// newCorpusServer returns an mcp-go server with what the corpus asks for.
func newCorpusServer() *server.MCPServer {
	s := server.NewMCPServer("corpus", "1.0.0", server.WithToolCapabilities(true), server.WithResourceCapabilities(true, true),
		server.WithPromptCapabilities(true), server.WithLogging(), server.WithElicitation(), server.WithRoots(), server.WithCompletions(),
		server.WithPromptCompletionProvider(completes{}), server.WithInstructions("none"))
	s.EnableSampling()
	s.AddTool(mcp.NewTool("typed", mcp.WithDescription("Returns <the> text."), mcp.WithString("text", mcp.Required(), mcp.Description("the text")), mcp.WithNumber("count")),
		func(_ context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			text, err := r.RequireString("text")
			if err != nil {
				return mcp.NewToolResultError(err.Error()), nil
			}
			return mcp.NewToolResultText(text), nil
		})
	s.AddTool(mcp.NewTool("fails"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, errors.New("it failed")
	})
	s.AddTool(mcp.NewTool("reports"), func(ctx context.Context, r mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		progress := map[string]any{"progressToken": r.Params.Meta.ProgressToken, "progress": 1, "total": 2, "message": "half"}
		err := errors.Join(s.SendNotificationToClient(ctx, "notifications/progress", progress),
			s.SendLogMessageToClient(ctx, mcp.NewLoggingMessageNotification("error", "l", "logged")),
			s.SendNotificationToClient(ctx, passthrough.Flushed, nil))
		// mcp-go may lose the last notification before a result.
		for sent := server.ClientSessionFromContext(ctx).NotificationChannel(); len(sent) > 0 && ctx.Err() == nil; {
			runtime.Gosched()
		}
		return mcp.NewToolResultText("done"), err
	})
	s.AddTool(mcp.NewTool("asks"), func(ctx context.Context, _ mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		_, err := s.RequestElicitation(ctx, mcp.ElicitationRequest{Params: mcp.ElicitationParams{
			Message: "who?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}}},
		}})
		return mcp.NewToolResultText("asked"), err
	})
	s.AddTool(mcp.NewTool("changes"), func(context.Context, mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		s.AddPrompt(mcp.NewPrompt("another"), nil)
		return mcp.NewToolResultText("done"), nil
	})
	s.AddResource(mcp.NewResource("corpus://one", "one"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return []mcp.ResourceContents{mcp.TextResourceContents{URI: "corpus://one", Text: "1"}}, nil
	})
	s.AddResourceTemplate(mcp.NewResourceTemplate("corpus://template/{x}", "template"), func(context.Context, mcp.ReadResourceRequest) ([]mcp.ResourceContents, error) {
		return nil, errors.New("none")
	})
	s.AddPrompt(mcp.NewPrompt("greets", mcp.WithArgument("name")), func(context.Context, mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return mcp.NewGetPromptResult("", []mcp.PromptMessage{mcp.NewPromptMessage("user", mcp.NewTextContent("Hello."))}), nil
	})
	return s
}
