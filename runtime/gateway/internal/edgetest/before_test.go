package edgetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// asker implements the tools that ask before they start.
type asker struct{ ran chan string }

func (a asker) AskFirst(_ context.Context, task *mcptask.Task, in questions.Input, sure questions.Sure, which questions.Which) (questions.Report, error) {
	a.ran <- in.Name + " " + which.One
	return questions.Report{Done: sure.Yes && len(which.Many) == 1 && which.Note == nil}, nil
}

func (a asker) AskOnly(_ context.Context, which questions.Which) error {
	a.ran <- which.One
	return nil
}

// TestAskedBefore calls tools that ask first, as tasks and as ordinary calls. The client declares
// in both cases what it can answer.
func TestAskedBefore(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			impl := asker{make(chan string, 10)}
			var refuse bool
			answers := mcptask.Answers(
				questions.AnswerSure(func(context.Context, mcptask.Question) (questions.Sure, error) {
					if refuse {
						return questions.Sure{}, mcptask.ErrDeclined
					}
					return questions.Sure{Yes: true}, nil
				}),
				questions.AnswerWhich(func(context.Context, mcptask.Question) (questions.Which, error) {
					return questions.Which{One: "a", Many: []string{"b"}, Count: 1, When: time.Unix(0, 0).UTC()}, nil
				}))
			client := questions.NewAskerClient(mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Answer: answers}, questions.AskerTools(impl)))
			for name, options := range map[string][]mcptask.CallOption{"task": nil, "plain": {mcptask.Plain()}} {
				report, err := client.AskFirst(t.Context(), questions.Input{Name: name}, options...)
				if err != nil || !report.Done {
					t.Fatalf("%s: %+v, %v", name, report, err)
				}
				if got := <-impl.ran; got != name+" a" {
					t.Errorf("%s: %q", name, got)
				}
			}
			if err := client.AskOnly(t.Context()); err != nil || <-impl.ran != "a" {
				t.Error(err)
			}
			refuse = true
			_, err := client.AskFirst(t.Context(), questions.Input{Name: "refused"})
			var toolErr *mcptask.ToolError
			if !errors.As(err, &toolErr) || !strings.Contains(toolErr.Result.Text(), "Sure") {
				t.Errorf("refused: %v", err)
			}
			if len(impl.ran) != 0 {
				t.Error("the handler ran without its answers")
			}
		})
	})
}

// TestPlainOfARequiredTool asks for an ordinary call of a tool that requires a task. The call still
// runs as a task, in both revisions.
func TestPlainOfARequiredTool(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, mcptask.Options{})
		call, err := wiretest.Connect(t, url, revision, mcptask.Answerer{}).StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: "broken"}, mcptask.Plain())
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := call.Token(); !ok {
			t.Error("not a task")
		}
	})
}
