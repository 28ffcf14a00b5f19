package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
)

// asking asks each kind of question that is not generated.
func asking(ctx context.Context, task *mcptask.Task) (said mcptask.SampleResult, roots []mcptask.Root, err error) {
	result, err := task.Sample(ctx, "summary", mcptask.SampleRequest{MaxTokens: 100, Messages: []mcptask.SampleMessage{
		{Role: "user", Content: []mcptask.Content{mcptask.TextContent("Sum it up.")}},
	}})
	if err != nil {
		return said, nil, err
	}
	if roots, err = task.Roots(ctx, "where"); err != nil {
		return said, nil, err
	}
	return *result, roots, task.AskURL(ctx, "pay", "Pay the bill", "https://example.com/pay")
}

func TestScriptedRequests(t *testing.T) {
	text, where := mcptasktest.SampleText("summary", "Short."), mcptasktest.Roots("where", mcptask.Root{URI: "file:///home/ann"})
	pay := mcptasktest.AcceptURL("pay")
	for name, tc := range map[string]struct {
		scripts []mcptasktest.Script
		want    error
	}{
		"all":           {[]mcptasktest.Script{text, where, pay}, nil},
		"in any order":  {[]mcptasktest.Script{pay, where, text}, nil},
		"a result":      {[]mcptasktest.Script{mcptasktest.Sample("summary", mcptask.SampleResult{Content: []mcptask.Content{mcptask.TextContent("Short.")}}), where, pay}, nil},
		"declined":      {[]mcptasktest.Script{text, where, mcptasktest.DeclineURL("pay")}, mcptask.ErrDeclined},
		"dismissed":     {[]mcptasktest.Script{text, where, mcptasktest.DismissURL("pay")}, mcptask.ErrDismissed},
		"no pages":      {[]mcptasktest.Script{text, where, mcptasktest.CannotAsk("pay")}, mcptask.ErrCannotAsk},
		"no roots":      {[]mcptasktest.Script{text, mcptasktest.CannotAsk("where")}, mcptask.ErrCannotAsk},
		"no model":      {[]mcptasktest.Script{mcptasktest.CannotAsk("summary")}, mcptask.ErrCannotAsk},
		"no prompt":     {[]mcptasktest.Script{mcptasktest.DeclineSample("summary")}, mcptask.ErrDeclined},
		"an empty list": {[]mcptasktest.Script{text, mcptasktest.Roots("where"), pay}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			said, roots, err := asking(t.Context(), mcptasktest.NewTask(t, tc.scripts...))
			if !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if name == "all" && (said.Content.Text() != "Short." || len(roots) != 1 || roots[0].URI != "file:///home/ann") {
				t.Errorf("%s, %v", said, roots)
			}
		})
	}
	_, err := ci{}.DeployService(t.Context(), mcptasktest.NewTask(t, mcptasktest.CannotAsk("ship")), pipeline.DeployInput{})
	if !errors.Is(err, mcptask.ErrCannotAsk) {
		t.Errorf("a form that cannot be shown: %v", err)
	}
}

func TestScriptedAnswers(t *testing.T) {
	for _, tc := range []struct {
		script mcptasktest.Script
		want   error
	}{
		{mcptasktest.Accept("ship", pipeline.Approval{Approve: true}), nil},
		{mcptasktest.Decline[pipeline.Approval]("ship"), mcptask.ErrDeclined},
		{mcptasktest.Dismiss[pipeline.Approval]("ship"), mcptask.ErrDismissed},
	} {
		task := mcptasktest.NewTask(t, tc.script)
		_, err := ci{}.DeployService(t.Context(), task, pipeline.DeployInput{Service: "api", Version: "1"})
		if !errors.Is(err, tc.want) {
			t.Errorf("%v, want %v", err, tc.want)
		}
	}
}

// TestScriptedSteps calls a handler directly: in its first run, and in a later one.
func TestScriptedSteps(t *testing.T) {
	handler := func(ctx context.Context, task *mcptask.Task) (rows []int, err error) {
		first, err := mcptask.Step(ctx, task, "first", func(context.Context) (int, error) { return 7, nil })
		if err != nil {
			return nil, err
		}
		row, ok, err := mcptask.Load[int](ctx, task, "row")
		if !ok {
			row = first
		}
		for ; err == nil && row < 10; row++ {
			rows = append(rows, row)
			err = mcptask.Save(ctx, task, "row", row+1)
		}
		if last, _, err := mcptask.Load[int](ctx, task, "row"); last != 10 || err != nil {
			t.Errorf("the position is %d, %v", last, err)
		}
		return rows, errors.Join(err, mcptask.Sleep(ctx, task, "night", 1000*time.Hour))
	}
	for want, scripts := range map[string][]mcptasktest.Script{
		"1 [7 8 9] <nil>": nil,
		"2 [9] <nil>":     {mcptasktest.Stored("first", 3), mcptasktest.Stored("row", 9)},
	} {
		task := mcptasktest.NewTask(t, scripts...)
		rows, err := handler(t.Context(), task)
		if got := fmt.Sprint(task.Attempt(), rows, err); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	task := mcptasktest.NewTask(t, mcptasktest.Stored("row", "text"))
	if mcptask.StepKey(task, "a") == mcptask.StepKey(mcptasktest.NewTask(t), "a") {
		t.Error("two tasks have one key")
	}
	_, _, err := mcptask.Load[int](t.Context(), task, "row")
	_, other := mcptask.Step(t.Context(), task, "row", func(context.Context) (int, error) { return 0, nil })
	if err == nil || other == nil || !strings.Contains(other.Error(), "give the step or the question another name") {
		t.Errorf("a value of another type: %v; a step with the name of a position: %v", err, other)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := mcptask.Step(ctx, task, "late", func(context.Context) (int, error) { return 0, nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("a step after the end: %v", err)
	}
}
