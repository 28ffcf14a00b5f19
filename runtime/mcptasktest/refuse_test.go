package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// place is the input of a question for one of two regions.
type place struct {
	Region string `json:"region"`
}

var placeSpec = mcptask.InputSpec{Name: "Place", Message: "Which region?",
	Schema: `{"type":"object","properties":{"region":{"type":"string","enum":["eu","us"]}},"required":["region"]}`}

// TestWrongAnswerAndRefusal checks two errors in each revision, in a task and in a plain call: the client's answer does
// not fit the form, and the user does not let the model answer. In 2025-11-25 the handler gets them. In 2026-07-28
// the server refuses the answer, and no response refuses a request to the model, so the caller gets them.
func TestWrongAnswerAndRefusal(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		tool := func(name string, ask func(context.Context, *mcptask.Task) error) mcptask.Tool {
			spec := mcptask.ToolSpec{Name: name, InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskOptional}}
			return mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
				err := ask(ctx, task)
				return fmt.Sprintf("invalid %v, declined %v, cannot ask %v: %v", errors.Is(err, mcptask.ErrInvalidAnswer),
					errors.Is(err, mcptask.ErrDeclined), errors.Is(err, mcptask.ErrCannotAsk), err), nil
			})
		}
		tools := mcptask.Tools{Service: "Refuse", Impl: struct{}{}, Tools: []mcptask.Tool{
			tool("form", func(ctx context.Context, task *mcptask.Task) error {
				_, err := mcptask.Ask[place](ctx, task, placeSpec, "where", "")
				return err
			}),
			tool("sample", func(ctx context.Context, task *mcptask.Task) error {
				_, err := task.Sample(ctx, "sum", mcptask.SampleRequest{MaxTokens: 1})
				return err
			}),
		}}
		options := mcptasktest.Options{
			Answer: mcptask.Answer(placeSpec, func(context.Context, mcptask.Question) (place, error) { return place{"moon"}, nil }),
			Sample: func(context.Context, mcptask.SampleRequest) (*mcptask.SampleResult, error) {
				return nil, fmt.Errorf("%w: not this prompt", mcptask.ErrDeclined)
			},
		}
		for _, c := range []struct{ tool, legacy, modern string }{
			{"form", "invalid true, declined false, cannot ask false: the answer does not fit its schema", "-32602"},
			{"sample", "invalid false, declined true, cannot ask false: the question was declined", "not this prompt"},
		} {
			for kind, opts := range map[string][]mcptask.CallOption{"task": nil, "plain": {mcptask.Plain()}} {
				t.Run(c.tool+" "+kind, func(t *testing.T) {
					bubble.Test(t, func(t *testing.T) {
						conn := mcptasktest.Connect(wirecheck.TB(t), revision, options, tools)
						got, err := mcptask.Run[string](t.Context(), conn, c.tool, struct{}{}, opts...)
						if revision == mcptask.Revision20251125 && (err != nil || !strings.HasPrefix(got, c.legacy)) {
							t.Errorf("%q, %v, want %q", got, err, c.legacy)
						}
						if revision == mcptask.Revision20260728 && (err == nil || !strings.Contains(err.Error(), c.modern)) {
							t.Errorf("%q, %v, want an error with %q", got, err, c.modern)
						}
						said := fmt.Sprint(got, err)
						for _, words := range []string{"does not fit", "answer to"} {
							if strings.Count(said, words) > 1 {
								t.Errorf("it is said twice: %s", said)
							}
						}
					})
				})
			}
		}
	})
}
