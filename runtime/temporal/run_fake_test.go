package temporal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/internal/flowwire"
)

// fakeTemporal is a client.Client of a Temporal whose workflows the test makes.
type fakeTemporal struct {
	client.Client
	// fail, if it is not nil, returns the error of a call: start, describe, get, query, signal, cancel.
	fail func(call string) error
	// starting has each start that is requested, if canStart is not nil. It goes on when canStart is closed, or when
	// its context ends.
	starting, canStart chan struct{}
	// lose, if it is not nil, answers the next start that takes place.
	lose func() error
	// begun has each workflow when it starts.
	begun chan *fakeFlow

	mu    sync.Mutex
	flows map[string]*fakeFlow // by ID
	calls map[string]int
}

// fakeFlow is a workflow.
type fakeFlow struct {
	options client.StartWorkflowOptions
	name    string
	args    []any
	ended   chan struct{} // closed by end
	signals chan flowwire.Answer
	cancels chan string // the reasons

	mu     sync.Mutex
	state  func() (flowwire.State, error) // answers queries; nil means that there is no such query
	result any
	err    error
	runID  string
}

func newFakeTemporal() *fakeTemporal {
	return &fakeTemporal{begun: make(chan *fakeFlow, 10), flows: map[string]*fakeFlow{}, calls: map[string]int{}}
}

// count counts a call and returns its error.
func (c *fakeTemporal) count(call string) error {
	c.mu.Lock()
	c.calls[call]++
	fail := c.fail
	c.mu.Unlock()
	if fail == nil {
		return nil
	}
	return fail(call)
}

// counted returns how often a call came.
func (c *fakeTemporal) counted(call string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[call]
}

// setFail sets fail.
func (c *fakeTemporal) setFail(fail func(call string) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fail = fail
}

// find returns a workflow.
func (c *fakeTemporal) find(id string) (*fakeFlow, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if f := c.flows[id]; f != nil {
		return f, nil
	}
	return nil, serviceerror.NewNotFound("workflow not found for ID: " + id)
}

// ExecuteWorkflow implements client.Client.
func (c *fakeTemporal) ExecuteWorkflow(ctx context.Context, options client.StartWorkflowOptions, workflow any, args ...any) (client.WorkflowRun, error) {
	if err := c.count("start"); err != nil {
		return nil, err
	}
	if c.canStart != nil {
		c.starting <- struct{}{}
		select {
		case <-c.canStart:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.flows[options.ID]
	if f == nil {
		f = &fakeFlow{options: options, name: workflow.(string), args: args, runID: "run-1",
			ended: make(chan struct{}), signals: make(chan flowwire.Answer, 100), cancels: make(chan string, 10)}
		c.flows[options.ID] = f
		c.begun <- f
	}
	if lose := c.lose; lose != nil {
		c.lose = nil
		return nil, lose()
	}
	return fakeRun{client: c, flow: f, id: f.runID}, nil
}

// GetWorkflow implements client.Client.
func (c *fakeTemporal) GetWorkflow(_ context.Context, id, run string) client.WorkflowRun {
	f, _ := c.find(id)
	return fakeRun{client: c, flow: f, id: run}
}

// DescribeWorkflowExecution implements client.Client.
func (c *fakeTemporal) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if err := c.count("describe"); err != nil {
		return nil, err
	}
	f, err := c.find(id)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	info := &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: f.runID}}
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: info}, nil
}

// failCall makes each call of a name run fail, which may panic.
func (c *fakeTemporal) failCall(name string, fail func() error) {
	c.setFail(func(call string) error {
		if call != name {
			return nil
		}
		return fail()
	})
}

// QueryWorkflow implements client.Client.
func (c *fakeTemporal) QueryWorkflow(_ context.Context, id, _, query string, _ ...any) (converter.EncodedValue, error) {
	if err := c.count("query"); err != nil {
		return nil, err
	}
	f, err := c.find(id)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	read := f.state
	f.mu.Unlock()
	if read == nil {
		return nil, serviceerror.NewQueryFailed("unknown queryType " + query + ". KnownQueryTypes=[__stack_trace]")
	}
	state, err := read()
	if err != nil {
		return nil, err
	}
	return encodeQueried(state)
}

// encodeQueried returns a value as a query does.
func encodeQueried(v any) (converter.EncodedValue, error) {
	payloads, err := converter.GetDefaultDataConverter().ToPayloads(v)
	return client.NewValue(payloads), err
}

// SignalWorkflow implements client.Client.
func (c *fakeTemporal) SignalWorkflow(_ context.Context, id, _, signal string, value any) error {
	if err := c.count("signal"); err != nil {
		return err
	}
	f, err := c.find(id)
	if err == nil && signal == flowwire.SignalAnswer {
		f.signals <- value.(flowwire.Answer)
	}
	return err
}

// CancelWorkflowWithOptions implements client.Client.
func (c *fakeTemporal) CancelWorkflowWithOptions(_ context.Context, options client.CancelWorkflowOptions) error {
	if err := c.count("cancel"); err != nil {
		return err
	}
	f, err := c.find(options.WorkflowID)
	if err != nil {
		return err
	}
	select {
	case <-f.ended:
		return serviceerror.NewNotFound("workflow execution already completed")
	default:
	}
	f.cancels <- options.Reason
	return nil
}

// fakeRun is a handle of a workflow.
type fakeRun struct {
	client.WorkflowRun
	client *fakeTemporal
	flow   *fakeFlow
	id     string
}

// GetID implements client.WorkflowRun.
func (r fakeRun) GetID() string { return r.flow.options.ID }

// GetRunID implements client.WorkflowRun.
func (r fakeRun) GetRunID() string { return r.id }

// Get implements client.WorkflowRun.
func (r fakeRun) Get(ctx context.Context, out any) error {
	if err := r.client.count("get"); err != nil {
		return err
	}
	r.flow.mu.Lock()
	ended := r.flow.ended
	r.flow.mu.Unlock()
	select {
	case <-ended:
	default:
		select {
		case <-ended:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	r.flow.mu.Lock()
	defer r.flow.mu.Unlock()
	if r.flow.err != nil || out == nil {
		return r.flow.err
	}
	data, err := json.Marshal(r.flow.result)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("%w: %w", converter.ErrUnableToDecode, err)
	}
	return nil
}

// show sets the workflow's answer to queries.
func (f *fakeFlow) show(state flowwire.State) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.state = func() (flowwire.State, error) { return state, nil }
}

// receive returns the next answer that the workflow gets, within an hour.
func (f *fakeFlow) receive(t *testing.T) (answer flowwire.Answer) {
	t.Helper()
	select {
	case answer = <-f.signals:
	case <-time.After(time.Hour):
		t.Fatal("the workflow got no answer")
	}
	return answer
}

// end ends the workflow.
func (f *fakeFlow) end(result any, err error) {
	f.mu.Lock()
	f.result, f.err = result, err
	f.mu.Unlock()
	close(f.ended)
}

// restart puts a new run in place of the one that has ended.
func (f *fakeFlow) restart(runID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.runID, f.ended, f.err = runID, make(chan struct{}), nil
}

// askFor makes a question of approvals.
func askFor(keys ...string) (questions []flowwire.Question) {
	for _, key := range keys {
		questions = append(questions, flowwire.Question{Key: key, Message: "Ship it?", Input: flowwire.Input{
			Name: "Approval", Schema: json.RawMessage(`{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`),
		}})
	}
	return questions
}

// built is the output of the tools of these tests.
type built struct {
	Image string `json:"image"`
}

// away are the failures of a call that pass, beside those of Temporal itself.
var away = map[string]func() error{
	"keys":        func() error { return errors.New("the key server is away") },
	"credentials": func() error { return serviceerror.NewPermissionDenied("expired", "") },
	"panic":       func() error { panic("boom") },
}

var builder = taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}

// buildPolicy is that of the tools of these tests.
var buildPolicy = mcptask.Policy{Task: mcptask.TaskOptional, TTL: time.Hour, OnLost: mcptask.RestartWhenLost}

// newBuildServer makes a server with the tool build. A nil store is one of its own.
func newBuildServer(t *testing.T, store taskstore.Store, policy mcptask.Policy, build func(context.Context, *mcptask.Task) (built, error)) *taskserver.Server {
	t.Helper()
	return newServerOf(t, taskserver.Options{Store: store}, policy, build)
}

// newServerOf makes a server with the tool build.
func newServerOf(t *testing.T, options taskserver.Options, policy mcptask.Policy, build func(context.Context, *mcptask.Task) (built, error)) *taskserver.Server {
	t.Helper()
	spec := mcptask.ToolSpec{Name: "build", InputSchema: `{"type":"object"}`, OutputSchema: `{"type":"object"}`, Policy: policy}
	tool := mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ struct{}) (built, error) { return build(ctx, task) })
	s, err := taskserver.New(options, mcptask.Tools{Service: "Builds", Impl: struct{}{}, Tools: []mcptask.Tool{tool}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// runBuild is a handler that runs the workflow Build.
func runBuild(c client.Client) func(context.Context, *mcptask.Task) (built, error) {
	return func(ctx context.Context, task *mcptask.Task) (built, error) {
		return Run[built](ctx, task, c, WorkflowOptions{TaskQueue: "builds"}, "Build", "main")
	}
}

// beginBuild starts a task.
func beginBuild(t *testing.T, s *taskserver.Server) taskstore.Record {
	t.Helper()
	reply, err := s.Backend().Call(t.Context(), builder, "build", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil || reply.Task == nil {
		t.Fatalf("%+v, %v", reply, err)
	}
	return *reply.Task
}

// awaitBuild waits until a task is as wanted.
func awaitBuild(t *testing.T, s *taskserver.Server, id, what string, wanted func(taskstore.Record) bool) taskstore.Record {
	t.Helper()
	r, err := s.Backend().Get(t.Context(), builder, id)
	for err == nil && !wanted(r) {
		if r.Done() {
			t.Fatalf("the task is over before %s: %s %s", what, r.Phase, buildOutcome(r))
		}
		r, err = s.Backend().Changed(t.Context(), builder, id, r.Version)
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return r
}

// isBuilt says that a task is over.
func isBuilt(r taskstore.Record) bool { return r.Done() }

// awaitAsked waits until a task has exactly these questions open.
func awaitAsked(t *testing.T, s *taskserver.Server, id string, keys ...string) taskstore.Record {
	t.Helper()
	return awaitBuild(t, s, id, "a question", func(r taskstore.Record) bool { return slices.Equal(openInputs(r), keys) })
}

// openInputs returns the keys of a task's open questions.
func openInputs(r taskstore.Record) (keys []string) {
	for _, in := range r.Inputs {
		if in.State == taskstore.InputOutstanding {
			keys = append(keys, in.Key)
		}
	}
	slices.Sort(keys)
	return keys
}

// replyTo answers a question of a task.
func replyTo(t *testing.T, s *taskserver.Server, id, key, response string) {
	t.Helper()
	if err := s.Backend().Answer(t.Context(), builder, id, map[string]json.RawMessage{key: json.RawMessage(response)}); err != nil {
		t.Fatal(err)
	}
}

// buildOutcome returns the result or the error of a task.
func buildOutcome(r taskstore.Record) string {
	switch {
	case r.Outcome == nil:
		return "none"
	case r.Outcome.Error != nil:
		return r.Outcome.Error.Error()
	}
	return string(r.Outcome.Result)
}
