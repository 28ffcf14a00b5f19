package mcptasktest_test

import (
	"errors"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
)

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

// failing counts the failures of a test that must fail.
type failing struct {
	testing.TB
	failures int
	cleanups []func()
}

func (f *failing) Helper()               {}
func (f *failing) Errorf(string, ...any) { f.failures++ }
func (f *failing) Logf(string, ...any)   {}
func (f *failing) Cleanup(c func())      { f.cleanups = append(f.cleanups, c) }
func (f *failing) end() int {
	for _, c := range f.cleanups {
		c()
	}
	return f.failures
}

func TestScriptsThatDoNotFit(t *testing.T) {
	unasked := &failing{TB: t}
	mcptasktest.NewTask(unasked, mcptasktest.Decline[pipeline.Approval]("other"))
	if unasked.end() != 1 {
		t.Error("the script accepted an answer to no question")
	}
	missing := &failing{TB: t}
	task := mcptasktest.NewTask(missing)
	_, err := ci{}.DeployService(t.Context(), task, pipeline.DeployInput{})
	if !errors.Is(err, mcptask.ErrCannotAsk) || missing.end() != 1 {
		t.Errorf("a question without an answer: %v", err)
	}
	wrong := &failing{TB: t}
	task = mcptasktest.NewTask(wrong, mcptasktest.Accept("ship", pipeline.LintInput{Path: "x"}))
	if _, err := (ci{}).DeployService(t.Context(), task, pipeline.DeployInput{}); err == nil || wrong.end() != 1 {
		t.Errorf("an answer of another type: %v", err)
	}
	unfit := &failing{TB: t}
	task = mcptasktest.NewTask(unfit, mcptasktest.Accept("which", questions.Which{One: "c", Many: []string{"a"}}))
	if _, err := questions.AskWhich(t.Context(), task, "which", ""); !errors.Is(err, mcptask.ErrInvalidAnswer) || unfit.end() != 1 {
		t.Errorf("an answer that its schema refuses: %v", err)
	}
}
