package pushtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// refusedTools returns a tool for each kind of question. The result is the error that the handler got, and
// which of the package's errors it is.
func refusedTools(fallback mcptask.Fallback) mcptask.Tools {
	tools := mcptask.Tools{Service: "Refused", Impl: struct{}{}, Fallback: fallback, Prefix: "refused_", Asks: true}
	for name, ask := range map[string]func(context.Context, *mcptask.Task) error{
		"refused_form": func(ctx context.Context, task *mcptask.Task) error {
			_, err := mcptask.Ask[wiretest.NoteInput](ctx, task, wiretest.NoteSpec, "note", "")
			return err
		},
		"refused_url": func(ctx context.Context, task *mcptask.Task) error {
			return task.AskURL(ctx, "pay", "Pay here.", "https://example.com/pay")
		},
		"refused_sample": func(ctx context.Context, task *mcptask.Task) error {
			_, err := task.Sample(ctx, "sum", mcptask.SampleRequest{MaxTokens: 10})
			return err
		},
		"refused_roots": func(ctx context.Context, task *mcptask.Task) error {
			_, err := task.Roots(ctx, "where")
			return err
		},
	} {
		spec := mcptask.ToolSpec{Name: name, InputSchema: wiretest.OpenObject, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}
		tools.Tools = append(tools.Tools, mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			err := ask(ctx, task)
			return fmt.Sprintf("%v %v %v %v: %v", errors.Is(err, mcptask.ErrDeclined), errors.Is(err, mcptask.ErrDismissed),
				errors.Is(err, mcptask.ErrInvalidAnswer), errors.Is(err, mcptask.ErrCannotAsk), err), nil
		}))
	}
	return tools
}

// TestRefusedWithError checks that a handler gets the client's words if the client answers a question with a JSON-RPC
// error, and an error that tells a refusal, a wrong answer and a client that cannot answer apart. It is the same in a
// task, in a plain call, and in a plain call that may go on as a task.
func TestRefusedWithError(t *testing.T) {
	t.Parallel()
	const (
		declined  = "true false false false: the question was declined: %s"
		invalid   = "false false true false: the answer does not fit its schema: %s"
		cannotAsk = "false false false true: the requestor cannot be asked: %s"
	)
	for _, fallback := range []mcptask.Fallback{mcptask.FallbackNone, mcptask.FallbackTools} {
		bubble.Test(t, func(t *testing.T) {
			url, _ := wiretest.ServeWith(t, wiretest.Setup{Bearer: true, Tools: []mcptask.Tools{refusedTools(fallback)}})
			for _, c := range []struct {
				tool   string
				code   int
				format string
			}{
				{"refused_sample", -1, declined}, // the specification's example
				{"refused_sample", 1, declined},
				{"refused_sample", -32603, cannotAsk},
				{"refused_sample", -32601, cannotAsk},
				{"refused_sample", -32602, invalid},
				{"refused_roots", -1, declined},
				{"refused_roots", -32603, cannotAsk},
				{"refused_url", -1, declined},
				{"refused_url", -32602, cannotAsk}, // the client has no such mode
				{"refused_form", -1, declined},
				{"refused_form", -32602, invalid}, // SDKs check what their user has entered
				{"refused_form", -32603, cannotAsk},
			} {
				const words = "User rejected sampling request"
				want := fmt.Sprintf(c.format, fmt.Sprintf("%s (code %d)", words, c.code))
				response := fmt.Sprintf(`"error":{"code":%d,"message":%q}`, c.code, words)
				p := askedPeer(t, url)
				if fallback == mcptask.FallbackTools && c.tool == "refused_form" {
					continue // the form stays open for the tool that takes its answer
				}
				id := p.Create(c.tool, nil)
				p.Respond(p.OpenGet().NextQuestion(id).ID, response)
				wantText(p, id, want)
				f := p.Send("tools/call", map[string]any{"name": c.tool, "arguments": map[string]any{}})
				p.Respond(f.Next().ID, response)
				if got := wiretest.ToolText(f.Next().Result); got != want {
					t.Errorf("%s plainly: %s, want %s", c.tool, got, want)
				}
			}
		})
	}
}
