package gosdk_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/runtime/gateway"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/passthrough"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// TestPassthrough checks that clients of other tools get from NewHandler what they get from the SDK's own handler.
func TestPassthrough(t *testing.T) {
	serve := func(options mcp.StreamableHTTPOptions) func(*testing.T) passthrough.Process {
		return func(t *testing.T) passthrough.Process {
			tasks, err := taskserver.New(taskserver.Options{}, pipeline.CITools(wiretest.CI{}))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = tasks.Close() })
			handle := func(s *mcp.Server) func(*http.Request) *mcp.Server {
				return func(*http.Request) *mcp.Server { return s }
			}
			s, modern := newCorpusServer(), options
			gosdk.AddTools(s, tasks)
			modern.Stateless = true
			return passthrough.Process{
				Bare:    mcp.NewStreamableHTTPHandler(handle(newCorpusServer()), &options),
				Modern:  mcp.NewStreamableHTTPHandler(handle(newCorpusServer()), &modern),
				Gateway: gosdk.NewHandler(tasks, handle(s), &options), Tools: gateway.Tools(tasks.Backend()),
			}
		}
	}
	passthrough.Compare(t, passthrough.Official, map[string]func(*testing.T) passthrough.Process{
		"default":  serve(mcp.StreamableHTTPOptions{}),
		"JSON":     serve(mcp.StreamableHTTPOptions{JSONResponse: true}),
		"any Host": serve(mcp.StreamableHTTPOptions{DisableLocalhostProtection: true}),
	})
}

type typedInput struct {
	Text  string `json:"text" jsonschema:"the text"`
	Count int    `json:"count,omitempty"`
}

type typedOutput struct {
	Text string `json:"text"`
}

// newCorpusServer returns an SDK server with what the corpus asks for.
func newCorpusServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "corpus", Version: "1.0.0"}, &mcp.ServerOptions{
		Instructions: "none",
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"xyz"}}}, nil
		},
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	mcp.AddTool(s, &mcp.Tool{Name: "typed", Title: "Typed", Description: "Returns <the> text."},
		func(_ context.Context, _ *mcp.CallToolRequest, in typedInput) (*mcp.CallToolResult, typedOutput, error) {
			return nil, typedOutput{Text: in.Text}, nil
		})
	mcp.AddTool(s, &mcp.Tool{Name: "fails"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, errors.New("it failed")
	})
	mcp.AddTool(s, &mcp.Tool{Name: "reports"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		progress := &mcp.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half"}
		return nil, nil, errors.Join(r.Session.NotifyProgress(ctx, progress),
			r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "error", Logger: "l", Data: "logged"})) //nolint:staticcheck // servers may send it for now
	})
	mcp.AddTool(s, &mcp.Tool{Name: "asks"}, func(ctx context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		_, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "who?", RequestedSchema: map[string]any{
			"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
		}})
		if err != nil {
			return nil, nil, err
		}
		if _, err := r.Session.ListRoots(ctx, nil); err != nil {
			return nil, nil, err
		}
		_, err = r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "x"}}}})
		return nil, nil, err
	})
	mcp.AddTool(s, &mcp.Tool{Name: "changes"}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		s.AddPrompt(&mcp.Prompt{Name: "another"}, nil)
		return nil, nil, nil
	})
	s.AddResource(&mcp.Resource{URI: "corpus://one", Name: "one"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{URI: "corpus://one", Text: "1"}}}, nil
	})
	s.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "corpus://template/{x}", Name: "template"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		return nil, mcp.ResourceNotFoundError("x")
	})
	s.AddPrompt(&mcp.Prompt{Name: "greets", Arguments: []*mcp.PromptArgument{{Name: "name"}}}, func(context.Context, *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
		return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hello."}}}}, nil
	})
	return s
}
