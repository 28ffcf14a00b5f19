// Package taskflowtest is for tests of workflows that use package taskflow, in the test environment of
// Temporal's SDK. It takes the place of the server: it starts the workflow for a task, reads its progress
// and answers its questions.
//
// Call [StartForTask] before ExecuteWorkflow, and the other functions in callbacks of
// RegisterDelayedCallback, while the workflow waits.
package taskflowtest

import (
	"encoding/json"
	"testing"

	"go.temporal.io/sdk/testsuite"

	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// StartForTask makes the workflow that env executes next the workflow of a task. Without it, the workflow is one that
// temporal.Run did not start: its questions return mcptask.ErrCannotAsk.
func StartForTask(t testing.TB, env *testsuite.TestWorkflowEnvironment, taskID string) {
	t.Helper()
	if err := env.SetMemoOnStart(map[string]any{flowwire.MemoTask: flowwire.Memo{Task: taskID}}); err != nil {
		t.Fatal(err)
	}
}

// Progress is a workflow's last report and its open questions.
type Progress struct {
	Done, Total float64
	Message     string
	// Questions has the messages of the open questions by their keys. The key is the name of the step, or
	// step@1.2 if the workflow asks it a second time.
	Questions map[string]string
}

// ReadProgress returns the progress of the workflow, as the server reads it.
func ReadProgress(t testing.TB, env *testsuite.TestWorkflowEnvironment) Progress {
	t.Helper()
	state := queryState(t, env)
	p := Progress{Done: state.Done, Total: state.Total, Message: state.Message, Questions: map[string]string{}}
	for _, q := range state.Questions {
		p.Questions[q.Key] = q.Message
	}
	return p
}

// Answer accepts the open question of a step with an answer, which is encoded as JSON. If the workflow does
// not ask it, the test fails. For a step that was asked before, step is the key that [ReadProgress] returns.
func Answer(t testing.TB, env *testsuite.TestWorkflowEnvironment, step string, answer any) {
	t.Helper()
	content, err := json.Marshal(answer)
	if err != nil {
		t.Fatalf("the answer to %s: %v", step, err)
	}
	send(t, env, flowwire.Answer{Key: step, Content: content})
}

// Refuse refuses the open question of a step with mcptask.ErrDeclined, ErrDismissed, ErrCannotAsk or
// ErrInvalidAnswer.
func Refuse(t testing.TB, env *testsuite.TestWorkflowEnvironment, step string, refusal error) {
	t.Helper()
	send(t, env, flowwire.Answer{Key: step, Refusal: flowwire.NewRefusal(refusal), Text: refusal.Error()})
}

// send sends an answer to an open question.
func send(t testing.TB, env *testsuite.TestWorkflowEnvironment, answer flowwire.Answer) {
	t.Helper()
	var open []string
	for _, q := range queryState(t, env).Questions {
		if q.Key == answer.Key {
			env.SignalWorkflow(flowwire.SignalAnswer, answer)
			return
		}
		open = append(open, q.Key)
	}
	t.Fatalf("the workflow does not ask %q now, it asks %q", answer.Key, open)
}

// queryState asks the workflow for its state.
func queryState(t testing.TB, env *testsuite.TestWorkflowEnvironment) flowwire.State {
	t.Helper()
	var state flowwire.State
	value, err := env.QueryWorkflow(flowwire.QueryState)
	if err == nil {
		err = value.Get(&state)
	}
	if err != nil {
		t.Fatalf("the workflow does not tell its progress: it calls taskflow.New first, see docs/temporal.md: %v", err)
	}
	return state
}
