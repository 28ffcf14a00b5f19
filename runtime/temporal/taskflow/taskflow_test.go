package taskflow

import (
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"google.golang.org/protobuf/proto"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// approval is the answer to the questions of these tests.
type approval struct {
	Approve bool `json:"approve"`
	Count   int  `json:"count"`
}

var approvalInput = mcptask.InputSpec{
	Name:    "Approval",
	Message: "Approve?",
	Schema:  `{"type":"object","properties":{"approve":{"type":"boolean"},"count":{"type":"integer"}},"required":["approve"]}`,
}

// newEnv returns an environment whose workflow was started for a task, unless memo is nil.
func newEnv(t *testing.T, memo *flowwire.Memo) *testsuite.TestWorkflowEnvironment {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
	if memo != nil {
		if err := env.SetMemoOnStart(map[string]any{flowwire.MemoTask: *memo}); err != nil {
			t.Fatal(err)
		}
	}
	return env
}

// readState queries the workflow.
func readState(t *testing.T, env *testsuite.TestWorkflowEnvironment) (state flowwire.State) {
	t.Helper()
	value, err := env.QueryWorkflow(flowwire.QueryState)
	if err == nil {
		err = value.Get(&state)
	}
	if err != nil {
		t.Error(err)
	}
	return state
}

// openKeys returns the keys of the open questions.
func openKeys(t *testing.T, env *testsuite.TestWorkflowEnvironment) string {
	t.Helper()
	var keys []string
	for _, q := range readState(t, env).Questions {
		keys = append(keys, q.Key)
	}
	return strings.Join(keys, " ")
}

// answer signals an answer.
func answer(env *testsuite.TestWorkflowEnvironment, key, content string) {
	env.SignalWorkflow(flowwire.SignalAnswer, flowwire.Answer{Key: key, Content: json.RawMessage(content)})
}

// run runs a workflow to its end and returns its result.
func run[Out any](t *testing.T, env *testsuite.TestWorkflowEnvironment, flow func(workflow.Context) (Out, error)) (out Out, err error) {
	t.Helper()
	env.ExecuteWorkflow(flow)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the workflow has not ended")
	}
	if err := env.GetWorkflowError(); err != nil {
		return out, err
	}
	return out, env.GetWorkflowResult(&out)
}

// TestReport checks that the query returns the newest report.
func TestReport(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{Task: "task-1"})
	env.RegisterDelayedCallback(func() {
		want := flowwire.State{Run: "default-test-run-id", Reports: 3, Done: 1, Total: 4, Message: "built"}
		if got := readState(t, env); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		want := flowwire.State{Run: "default-test-run-id", Reports: 4, Message: "cleaning up"}
		if got := readState(t, env); !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}, time.Hour+time.Minute)
	id, err := run(t, env, func(ctx workflow.Context) (string, error) {
		task := New(ctx)
		task.Message("starting")
		task.Progress(math.NaN(), math.Inf(1), "odd")
		task.Progress(1, 4, "built")
		if err := workflow.Sleep(ctx, time.Hour); err != nil {
			return "", err
		}
		task.Message("cleaning up")
		return task.ID(), workflow.Sleep(ctx, time.Hour)
	})
	if id != "task-1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}

// TestAsk checks questions one after another: their keys, and that answers count once and only for their
// question.
func TestAsk(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{Task: "task-1"})
	env.RegisterDelayedCallback(func() {
		q := readState(t, env).Questions
		if len(q) != 1 || q[0].Key != "ship" || q[0].Message != "Approve?" || q[0].Input.Name != "Approval" || !json.Valid(q[0].Input.Schema) {
			t.Errorf("%+v", q)
		}
		answer(env, "other", `{"approve":false}`)
		answer(env, "ship", `{"approve":true,"count":3.0}`)
		answer(env, "ship", `{"approve":false}`)
		answer(env, "ship@1.2", `{"approve":false}`) // before the question
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		if got := openKeys(t, env); got != "ship@1.2" {
			t.Errorf("open: %q", got)
		}
		answer(env, "ship", `{"approve":false}`)
		answer(env, "ship@1.2", `{"approve":true,"count":4}`)
	}, time.Hour+2*time.Minute)
	total, err := run(t, env, func(ctx workflow.Context) (int, error) {
		task, total := New(ctx), 0
		for range 2 {
			a, err := Ask[approval](ctx, task, approvalInput, "ship", "")
			if err != nil || !a.Approve {
				return 0, err
			}
			total += a.Count
			if err := workflow.Sleep(ctx, time.Hour); err != nil {
				return 0, err
			}
		}
		return total, nil
	})
	if total != 7 || err != nil {
		t.Errorf("%d, %v", total, err)
	}
}

// TestAskAtOnce checks that goroutines of a workflow may ask at once, and that the answers come in any order.
func TestAskAtOnce(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{})
	env.RegisterDelayedCallback(func() {
		if got := openKeys(t, env); got != "a b" {
			t.Errorf("open: %q", got)
		}
		answer(env, "b", `{"approve":true,"count":2}`)
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		if got := openKeys(t, env); got != "a" {
			t.Errorf("open: %q", got)
		}
		answer(env, "a", `{"approve":true,"count":1}`)
	}, 2*time.Minute)
	order, err := run(t, env, func(ctx workflow.Context) (order []int, err error) {
		task, done := New(ctx), workflow.NewWaitGroup(ctx)
		for _, step := range []string{"a", "b"} {
			done.Add(1)
			workflow.Go(ctx, func(ctx workflow.Context) {
				defer done.Done()
				a, failed := Ask[approval](ctx, task, approvalInput, step, "Go on?")
				order, err = append(order, a.Count), errors.Join(err, failed)
			})
		}
		done.Wait(ctx)
		return order, err
	})
	if !reflect.DeepEqual(order, []int{2, 1}) || err != nil {
		t.Errorf("%v, %v", order, err)
	}
}

// TestRefused checks that refusals are the errors of package mcptask, and that they come out of the workflow in
// words.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		answer flowwire.Answer
		is     error
		text   string
	}{
		{flowwire.Answer{Refusal: flowwire.RefusedDeclined}, mcptask.ErrDeclined, "ship: the question was declined"},
		{flowwire.Answer{Refusal: flowwire.RefusedDismissed, Text: mcptask.ErrDismissed.Error()}, mcptask.ErrDismissed, "ship: the question was dismissed"},
		{flowwire.Answer{Refusal: flowwire.RefusedCannotAsk, Text: "the requestor cannot be asked: why"}, mcptask.ErrCannotAsk, "ship: the requestor cannot be asked: why"},
		{flowwire.Answer{Refusal: flowwire.RefusedInvalid}, mcptask.ErrInvalidAnswer, "ship: the answer does not fit its schema"},
		{flowwire.Answer{Refusal: "of a later version"}, nil, "ship: the question was not answered"},
		{flowwire.Answer{Refusal: flowwire.RefusedOther, Text: "too many questions"}, nil, "ship: too many questions"},
	} {
		env := newEnv(t, &flowwire.Memo{})
		env.RegisterDelayedCallback(func() {
			c.answer.Key = "ship"
			env.SignalWorkflow(flowwire.SignalAnswer, c.answer)
		}, time.Minute)
		_, err := run(t, env, func(ctx workflow.Context) (approval, error) {
			a, err := Ask[approval](ctx, New(ctx), approvalInput, "ship", "")
			for _, sentinel := range []error{mcptask.ErrDeclined, mcptask.ErrDismissed, mcptask.ErrCannotAsk, mcptask.ErrInvalidAnswer} {
				if errors.Is(err, sentinel) != errors.Is(c.is, sentinel) {
					t.Errorf("%s: errors.Is(%v, %v)", c.answer.Refusal, err, sentinel)
				}
			}
			return a, err
		})
		var failed *temporal.ApplicationError
		if !errors.As(err, &failed) || failed.Message() != c.text {
			t.Errorf("%s: %v", c.answer.Refusal, err)
		}
	}
}

// explosive panics when it is decoded.
type explosive struct{}

// UnmarshalJSON implements json.Unmarshaler.
func (*explosive) UnmarshalJSON([]byte) error { panic("boom") }

// TestUnreadableAnswer checks that an answer that its type does not take is an error that the workflow
// can handle, and blocks nothing.
func TestUnreadableAnswer(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{})
	env.RegisterDelayedCallback(func() {
		env.SignalWorkflow(flowwire.SignalAnswer, "no answer at all")
		answer(env, "panics", `{}`)
	}, time.Minute)
	env.RegisterDelayedCallback(func() { answer(env, "mismatch", `{"count":"many"}`) }, 2*time.Minute)
	_, err := run(t, env, func(ctx workflow.Context) (bool, error) {
		task := New(ctx)
		if _, err := Ask[explosive](ctx, task, approvalInput, "panics", ""); !errors.Is(err, mcptask.ErrInvalidAnswer) {
			t.Errorf("panic: %v", err)
		}
		_, err := Ask[approval](ctx, task, approvalInput, "mismatch", "")
		if !errors.Is(err, mcptask.ErrInvalidAnswer) || !strings.Contains(err.Error(), "count") {
			t.Errorf("mismatch: %v", err)
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestWithdraw checks that the end of its context withdraws a question.
func TestWithdraw(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{})
	env.RegisterDelayedCallback(func() {
		if got := openKeys(t, env); got != "ship" {
			t.Errorf("open: %q", got)
		}
	}, time.Minute)
	env.RegisterDelayedCallback(func() {
		if got := openKeys(t, env); got != "" {
			t.Errorf("still open: %q", got)
		}
		answer(env, "ship", `{"approve":true}`)
	}, 90*time.Minute)
	_, err := run(t, env, func(ctx workflow.Context) (bool, error) {
		task := New(ctx)
		short, cancel := workflow.WithCancel(ctx)
		workflow.Go(ctx, func(ctx workflow.Context) {
			_ = workflow.Sleep(ctx, time.Hour)
			cancel()
		})
		if _, err := Ask[approval](short, task, approvalInput, "ship", ""); !temporal.IsCanceledError(err) {
			t.Errorf("asked: %v", err)
		}
		if _, err := Ask[approval](short, task, approvalInput, "late", ""); !temporal.IsCanceledError(err) {
			t.Errorf("asked late: %v", err)
		}
		return true, workflow.Sleep(ctx, time.Hour)
	})
	if err != nil {
		t.Error(err)
	}
}

// TestAskNobody checks the questions that cannot be asked.
func TestAskNobody(t *testing.T) {
	env := newEnv(t, nil)
	_, err := run(t, env, func(ctx workflow.Context) (bool, error) {
		task := New(ctx)
		if task.ID() != "" {
			t.Errorf("ID: %q", task.ID())
		}
		if _, err := Ask[approval](ctx, task, approvalInput, "ship", ""); !errors.Is(err, mcptask.ErrCannotAsk) {
			t.Errorf("without a task: %v", err)
		}
		task.isStartedByRun = true
		for step, input := range map[string]mcptask.InputSpec{"": approvalInput, "\xff": approvalInput, "ship": {Name: "Approval", Schema: "{"}} {
			if _, err := Ask[approval](ctx, task, input, step, ""); err == nil || errors.Is(err, mcptask.ErrCannotAsk) {
				t.Errorf("step %q: %v", step, err)
			}
		}
		return true, nil
	})
	if err != nil {
		t.Error(err)
	}
}

// TestLargeState checks that neither a long message nor a large question hides the state of the workflow.
func TestLargeState(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{Task: "task-1"})
	env.RegisterDelayedCallback(func() {
		state := readState(t, env)
		if len(state.Message) > maxMessage+len("…") || !strings.HasPrefix(state.Message, "ééé") || len(state.Questions) != 1 {
			t.Errorf("%d bytes of a message, and %d questions", len(state.Message), len(state.Questions))
		}
		answer(env, "small", `{"approve":true}`)
	}, time.Minute)
	_, err := run(t, env, func(ctx workflow.Context) (bool, error) {
		task := New(ctx)
		task.Message(strings.Repeat("é", 3<<20) + "\xff")
		if _, err := Ask[map[string]any](ctx, task, approvalInput, "large", strings.Repeat("x", maxQuestions)); err == nil {
			t.Error("a large question was asked")
		}
		if _, err := Ask[map[string]any](ctx, task, approvalInput, "escaped", strings.Repeat("<", maxQuestions/5)); err == nil { // six bytes each
			t.Error("a question that is large in JSON was asked")
		}
		if _, err := Ask[map[string]any](ctx, task, approvalInput, "a@2", ""); err == nil { // could be the key of another step
			t.Error("a step with an @ was asked")
		}
		answer, err := Ask[struct{ Approve bool }](ctx, task, approvalInput, "small", "")
		return answer.Approve, err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestContinuedRun checks that a run that was continued as new does not get the answers of the run
// before, and that each run prepares the memo of the next one.
func TestContinuedRun(t *testing.T) {
	env := newEnv(t, &flowwire.Memo{Task: "task-1", Run: 1})
	env.OnUpsertMemo(map[string]any{flowwire.MemoTask: flowwire.Memo{Task: "task-1", Run: 2}}).Return(nil).Once()
	env.RegisterDelayedCallback(func() {
		if got := openKeys(t, env); got != "ship@2" {
			t.Errorf("open: %q", got)
		}
		answer(env, "ship", `{"approve":false}`)
		answer(env, "ship@2", `{"approve":true}`)
	}, time.Minute)
	env.RegisterDelayedCallback(func() { answer(env, "ship@2.2", `{"approve":true}`) }, 2*time.Minute)
	approved, err := run(t, env, func(ctx workflow.Context) (bool, error) {
		task := New(ctx)
		first, err := Ask[approval](ctx, task, approvalInput, "ship", "")
		if err != nil {
			return false, err
		}
		second, err := Ask[approval](ctx, task, approvalInput, "ship", "")
		return first.Approve && second.Approve, err
	})
	if !approved || err != nil {
		t.Errorf("%v, %v", approved, err)
	}
	env.AssertExpectations(t)
}

// reversal is a codec that no other data converter reads.
type reversal struct{}

// Encode implements converter.PayloadCodec.
func (reversal) Encode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	reversed := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		data, err := proto.Marshal(p)
		if err != nil {
			return nil, err
		}
		for a, b := 0, len(data)-1; a < b; a, b = a+1, b-1 {
			data[a], data[b] = data[b], data[a]
		}
		reversed[i] = &commonpb.Payload{Metadata: map[string][]byte{"encoding": []byte("reversed")}, Data: data}
	}
	return reversed, nil
}

// Decode implements converter.PayloadCodec.
func (r reversal) Decode(payloads []*commonpb.Payload) ([]*commonpb.Payload, error) {
	plain := make([]*commonpb.Payload, len(payloads))
	for i, p := range payloads {
		data := make([]byte, len(p.Data))
		for a, b := range p.Data {
			data[len(data)-1-a] = b
		}
		plain[i] = &commonpb.Payload{}
		if err := proto.Unmarshal(data, plain[i]); err != nil {
			return nil, err
		}
	}
	return plain, nil
}

// TestDataConverter checks that the memo is read with the worker's data converter, such as one that encrypts.
func TestDataConverter(t *testing.T) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestWorkflowEnvironment()
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // a second is little on a busy machine
	env.SetDataConverter(converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), reversal{}))
	if err := env.SetMemoOnStart(map[string]any{flowwire.MemoTask: flowwire.Memo{Task: "task-1"}}); err != nil {
		t.Fatal(err)
	}
	env.RegisterDelayedCallback(func() { answer(env, "ship", `{"approve":true}`) }, time.Minute)
	id, err := run(t, env, func(ctx workflow.Context) (string, error) {
		task := New(ctx)
		_, err := Ask[approval](ctx, task, approvalInput, "ship", "")
		return task.ID(), err
	})
	if id != "task-1" || err != nil {
		t.Errorf("%q, %v", id, err)
	}
}
