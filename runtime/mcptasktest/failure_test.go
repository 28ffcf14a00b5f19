package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
)

// envFail has TestScriptsThatDoNotFit run the tests that must fail.
const envFail = "MCPTASKTEST_FAIL"

// misfits are tests whose scripts do not fit, and their reports at the line of NewTask.
var misfits = map[string]struct {
	test func(*testing.T)
	want string
}{
	"missing": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.Decline[pipeline.Approval]("shop")) // reported here: missing
		_, err := ci{}.DeployService(t.Context(), task, pipeline.DeployInput{})        // called here: missing
		if !errors.Is(err, mcptask.ErrCannotAsk) {
			t.Errorf("the handler got %v", err)
		}
	}, `mcptasktest: step "ship" has no scripted answer
	asked: elicitation/create "Ship it?", answered by Approval {approve: boolean}
	at: connect_test.go:LINE, called at failure_test.go:CALLED
	other scripts that are left: mcptasktest.Decline[pipeline.Approval]("shop")
	add to NewTask: mcptasktest.Accept("ship", pipeline.Approval{})`},
	"unasked": {func(t *testing.T) {
		mcptasktest.NewTask(t, mcptasktest.AcceptURL("pay")) // reported here: unasked
	}, `mcptasktest: the handler never asked at step "pay"; its questions were at no step
	remove mcptasktest.AcceptURL("pay"), or correct the step`},
	"stored": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.Stored("uplaod", 1)) // reported here: stored
		got, err := mcptask.Step(t.Context(), task, "upload", func(context.Context) (int, error) { return 2, nil })
		if got != 2 || err != nil {
			t.Errorf("the handler got %v, %v", got, err)
		}
	}, `mcptasktest: the handler never came to step "uplaod"; its steps were "upload"
	remove mcptasktest.Stored("uplaod", …), or correct the step`},
	"type": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.Accept("ship", pipeline.LintInput{Path: "x"})) // reported here: type
		_, err := ci{}.DeployService(t.Context(), task, pipeline.DeployInput{})                   // called here: type
		if !errors.Is(err, mcptask.ErrCannotAsk) {
			t.Errorf("the handler got %v", err)
		}
	}, `mcptasktest: step "ship" asks for something else than its script answers: mcptasktest.Accept("ship", pipeline.LintInput{…})
	asked: elicitation/create "Ship it?", answered by Approval {approve: boolean}
	at: connect_test.go:LINE, called at failure_test.go:CALLED
	other scripts that are left: none
	replace it by: mcptasktest.Accept("ship", pipeline.Approval{})`},
	"model": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.AcceptURL("pay")) // reported here: model
		_, _, err := asking(t.Context(), task)                       // called here: model
		if !errors.Is(err, mcptask.ErrCannotAsk) {
			t.Errorf("the handler got %v", err)
		}
	}, `mcptasktest: step "summary" has no scripted answer
	asked: sampling/createMessage {"messages":[{"role":"user","content":{"text":"Sum it up.","type":"text"}}],"maxTokens":100}
	at: script_test.go:LINE, called at failure_test.go:CALLED
	other scripts that are left: mcptasktest.AcceptURL("pay")
	add to NewTask: mcptasktest.SampleText("summary", "text")`},
	"roots": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.SampleText("summary", "Short.")) // reported here: roots
		_, _, err := asking(t.Context(), task)                                      // called here: roots
		if !errors.Is(err, mcptask.ErrCannotAsk) {
			t.Errorf("the handler got %v", err)
		}
	}, `mcptasktest: step "where" has no scripted answer
	asked: roots/list {}
	at: script_test.go:LINE, called at failure_test.go:CALLED
	other scripts that are left: none
	add to NewTask: mcptasktest.Roots("where", mcptask.Root{URI: "file:///home/ann"})`},
	"page": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.SampleText("pay", "yes"))     // reported here: page
		err := task.AskURL(t.Context(), "pay", "Pay", "https://example.com/pay") // called here: page
		if !errors.Is(err, mcptask.ErrCannotAsk) {
			t.Errorf("the handler got %v", err)
		}
	}, `mcptasktest: step "pay" asks for something else than its script answers: mcptasktest.SampleText("pay", …)
	asked: elicitation/create "Pay", the page https://example.com/pay
	at: failure_test.go:CALLED
	other scripts that are left: none
	replace it by: mcptasktest.AcceptURL("pay")`},
	"empty": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.Sample("summary", mcptask.SampleResult{})) // reported here: empty
		if _, _, err := asking(t.Context(), task); err == nil {                               // called here: empty
			t.Error("the handler got no error")
		}
	}, `mcptasktest: the scripted answer for step "summary" is invalid: json: error calling MarshalJSON for type mcptask.SampleContent: mcptask: the content of a message has no blocks: add one, such as TextContent returns
	asked: sampling/createMessage {"messages":[{"role":"user","content":{"text":"Sum it up.","type":"text"}}],"maxTokens":100}
	at: script_test.go:LINE, called at failure_test.go:CALLED
	other scripts that are left: none
	replace it by an answer that fits: mcptasktest.SampleText("summary", "text")`},
	"invalid": {func(t *testing.T) {
		task := mcptasktest.NewTask(t, mcptasktest.Accept("which", questions.Which{One: "c", Many: []string{"a"}})) // reported here: invalid
		_, err := questions.AskWhich(t.Context(), task, "which", "")                                                // called here: invalid
		if !errors.Is(err, mcptask.ErrInvalidAnswer) {
			t.Errorf("the handler got %v", err)
		}
	}, `mcptasktest: the scripted answer for step "which" is invalid: the answer does not fit its schema: one: got "c", want "a" or "b"
	asked: elicitation/create "Which?", answered by Which {count?: integer, many: list of "a"|"b", note?: string, one: "a"|"b", when: string}
	at: failure_test.go:CALLED
	other scripts that are left: none
	replace it by an answer that fits: mcptasktest.Accept("which", questions.Which{})`},
}

// TestMisfit is a test that fails. TestScriptsThatDoNotFit runs it.
func TestMisfit(t *testing.T) {
	if os.Getenv(envFail) == "" {
		return // it runs in another process
	}
	for name, m := range misfits {
		t.Run(name, m.test)
	}
}

// TestScriptsThatDoNotFit checks the reports of a test whose script does not fit, and their lines.
func TestScriptsThatDoNotFit(t *testing.T) {
	source, err := os.ReadFile("failure_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for name, m := range misfits {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestMisfit$/^"+name+"$")
		cmd.Env = append(os.Environ(), envFail+"=1")
		out, err := cmd.CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
			t.Errorf("%s does not fail: %v\n%s", name, err, out)
		}
		want := fmt.Sprintf("failure_test.go:%d: %s\nFAIL\n", lineOf(source, "reported here: "+name), m.want)
		want = strings.ReplaceAll(want, "CALLED", fmt.Sprint(lineOf(source, "called here: "+name)))
		got := regexp.MustCompile(`(connect|script)_test.go:\d+`).ReplaceAllString(string(out), "${1}_test.go:LINE")
		got = regexp.MustCompile(`(?m)^ +`).ReplaceAllString(got, "")
		if !strings.Contains(got, want) || strings.Contains(got, "the handler got") {
			t.Errorf("%s reports\n%s\nwant\n%s", name, got, want)
		}
	}
}

// lineOf returns the number of the line that ends with a comment.
func lineOf(source []byte, comment string) int {
	before, _, _ := strings.Cut(string(source), "// "+comment+"\n")
	return strings.Count(before, "\n") + 1
}
