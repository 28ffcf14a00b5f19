package gosdk_test

import (
	"context"
	"fmt"
	"log"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// askModel sends a request to the program's model. This model repeats the last message.
func askModel(_ context.Context, r mcptask.SampleRequest) (*mcptask.SampleResult, error) {
	last := r.Messages[len(r.Messages)-1]
	return &mcptask.SampleResult{Role: "assistant", Model: "echo-1", Content: last.Content}, nil // or mcptask.ErrDeclined
}

// showPage shows a page to the user.
func showPage(_ context.Context, q mcptask.Question) error {
	fmt.Println(q.Message, q.URL)
	return nil // or mcptask.ErrDeclined, mcptask.ErrDismissed
}

// Sample, Roots and OpenURL answer what handlers ask with task.Sample, task.Roots and task.AskURL.
func ExampleClientOptions() {
	ctx := context.Background()
	summarize := mcptask.NewTool(mcptask.ToolSpec{
		Name: "summarize", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired},
	}, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
		roots, err := task.Roots(ctx, "where")
		if err != nil {
			return "", err
		}
		if err := task.AskURL(ctx, "pay", "Please pay:", "https://example.com/pay"); err != nil {
			return "", err
		}
		said, err := task.Sample(ctx, "sum", mcptask.SampleRequest{
			Messages:  []mcptask.SampleMessage{{Role: "user", Content: []mcptask.Content{mcptask.TextContent("Sum up " + roots[0].URI)}}},
			MaxTokens: 100,
		})
		if err != nil {
			return "", err
		}
		return said.Model + ": " + said.Content.Text(), nil
	})
	url, stop := serveExample(taskserver.New(taskserver.Options{}, mcptask.Tools{
		Service: "Texts", Impl: struct{}{}, Tools: []mcptask.Tool{summarize},
	}))
	defer stop()

	options := gosdk.ClientOptions{
		Sample:  askModel,
		Roots:   []mcptask.Root{{URI: "file:///home/ann/shop"}},
		OpenURL: showPage,
	}
	conn, err := gosdk.Connect(ctx, url, options)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	summary, err := mcptask.Run[string](ctx, conn, "summarize", struct{}{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(summary)
	// Output:
	// Please pay: https://example.com/pay
	// echo-1: Sum up file:///home/ann/shop
}
