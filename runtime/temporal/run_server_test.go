package temporal

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/client"
	sdktemporal "go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/durationpb"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
	"github.com/mcptaskgen/mcptaskgen/runtime/temporal/taskflow"
)

// approval is the answer to the questions of the workflows here.
type approval struct {
	Approve bool `json:"approve"`
}

var approvalInput = mcptask.InputSpec{
	Name: "Approval", Message: "Ship it?",
	Schema: `{"type":"object","properties":{"approve":{"type":"boolean"}},"required":["approve"]}`,
}

// flowAddress returns the address of a Temporal server for tests.
func flowAddress(t *testing.T) string {
	t.Helper()
	address := os.Getenv("MCPTASK_TEMPORAL")
	if address == "" {
		const missing = "MCPTASK_TEMPORAL does not name a Temporal server: run make temporal, or set it to HOST:PORT"
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	registerNamespace(t, address)
	return address
}

// registerNamespace makes the namespace that the tests use, if the server does not have it.
func registerNamespace(t *testing.T, address string) {
	t.Helper()
	c, err := client.NewNamespaceClient(client.Options{HostPort: address, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = c.Register(t.Context(), &workflowservice.RegisterNamespaceRequest{Namespace: "default", WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour)})
	var there *serviceerror.NamespaceAlreadyExists
	if err != nil && !errors.As(err, &there) {
		t.Fatal(err)
	}
	for { // until all services know it
		if _, err = c.Describe(t.Context(), "default"); err == nil || t.Context().Err() != nil {
			return
		}
	}
}

// quiet is a log.Logger of Temporal's SDK that drops everything.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// dialFlows connects to a Temporal server. The connection is made when it is used.
func dialFlows(t *testing.T, address, namespace string) client.Client {
	t.Helper()
	c, err := client.NewLazyClient(client.Options{HostPort: address, Namespace: namespace, Logger: quiet{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// startFlows runs a worker with the workflows of this file. It returns the options that run them.
func startFlows(t *testing.T, c client.Client) WorkflowOptions {
	t.Helper()
	options := WorkflowOptions{TaskQueue: t.Name() + rand.Text(), Poll: 50 * time.Millisecond}
	w := worker.New(c, options.TaskQueue, worker.Options{})
	for name, flow := range map[string]any{"Foreign": foreignFlow, "Release": releaseFlow, "Stubborn": stubbornFlow, "Failing": failingFlow, "Patient": patientFlow, "Large": largeFlow} {
		w.RegisterWorkflowWithOptions(flow, workflow.RegisterOptions{Name: name})
	}
	w.RegisterActivityWithOptions(pushImage, activity.RegisterOptions{Name: "Push"})
	if err := w.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Stop)
	return options
}

// pushImage is an activity that fails without an image.
func pushImage(_ context.Context, image string) (string, error) {
	if image == "" {
		return "", sdktemporal.NewNonRetryableApplicationError("no disk left", "Disk", nil)
	}
	return "pushed " + image, nil
}

// callPush calls pushImage.
func callPush(ctx workflow.Context, image string) (pushed string, err error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	return pushed, workflow.ExecuteActivity(ctx, "Push", image).Get(ctx, &pushed)
}

// foreignFlow is a workflow that knows nothing of tasks.
func foreignFlow(ctx workflow.Context, image string) (built, error) {
	workflow.GetSignalChannel(ctx, "go on").Receive(ctx, nil)
	pushed, err := callPush(ctx, image)
	return built{Image: pushed}, err
}

// releaseFlow reports its progress, asks in each of its runs, and continues as new.
func releaseFlow(ctx workflow.Context, image string, runs int) (built, error) {
	task := taskflow.New(ctx)
	task.Progress(float64(runs), 2, "releasing")
	a, err := taskflow.Ask[approval](ctx, task, approvalInput, "ship", "")
	if err != nil {
		return built{}, err
	}
	if !a.Approve {
		return built{}, errors.New("not approved")
	}
	if runs < 2 {
		return built{}, workflow.NewContinueAsNewError(ctx, "Release", image, runs+1)
	}
	if workflow.GetInfo(ctx).Attempt == 1 {
		return built{}, errors.New("the first attempt fails")
	}
	return built{Image: image + " of " + task.ID()}, nil
}

// stubbornFlow waits for its cancellation and cleans up.
func stubbornFlow(ctx workflow.Context) error {
	taskflow.New(ctx).Message("waiting")
	ctx.Done().Receive(ctx, nil)
	free, _ := workflow.NewDisconnectedContext(ctx)
	if _, err := callPush(free, "the cleanup"); err != nil {
		return err
	}
	return ctx.Err()
}

// failingFlow fails with the error of an activity, in words of its own.
func failingFlow(ctx workflow.Context) error {
	_, err := callPush(ctx, "")
	return fmt.Errorf("release of shop: %w", err)
}

// largeFlow returns more than Temporal takes.
func largeFlow(workflow.Context) (built, error) { return built{Image: strings.Repeat("x", 3<<20)}, nil }

// patientFlow asks two questions at once.
func patientFlow(ctx workflow.Context) (string, error) {
	task, done := taskflow.New(ctx), workflow.NewWaitGroup(ctx)
	refused := map[string]error{}
	for _, step := range []string{"a", "b"} {
		done.Add(1)
		workflow.Go(ctx, func(ctx workflow.Context) {
			defer done.Done()
			_, refused[step] = taskflow.Ask[approval](ctx, task, approvalInput, step, "Is "+step+" good?")
		})
	}
	done.Wait(ctx)
	return fmt.Sprintf("%v, %v", refused["a"], refused["b"]), nil
}

// runFlow is a handler that runs a workflow.
func runFlow(c client.Client, options WorkflowOptions, name string, args ...any) func(context.Context, *mcptask.Task) (built, error) {
	return func(ctx context.Context, task *mcptask.Task) (built, error) {
		return Run[built](ctx, task, c, options, name, args...)
	}
}

// awaitFlow waits until a workflow has ended, and returns its status.
func awaitFlow(t *testing.T, c client.Client, id string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	_ = c.GetWorkflow(t.Context(), id, "").Get(t.Context(), nil)
	return flowStatus(t, c, id)
}

// flowStatus returns the status of a workflow.
func flowStatus(t *testing.T, c client.Client, id string) enumspb.WorkflowExecutionStatus {
	t.Helper()
	described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	return described.GetWorkflowExecutionInfo().GetStatus()
}

// awaitStarted waits until Temporal has a workflow.
func awaitStarted(t *testing.T, c client.Client, id string) {
	t.Helper()
	for {
		err := c.SignalWorkflow(t.Context(), id, "", "hello", nil)
		if err == nil {
			return
		}
		if t.Context().Err() != nil || !strings.Contains(err.Error(), "not found") {
			t.Fatal(err)
		}
	}
}

// TestServerForeign checks that a workflow without package taskflow is a tool, and that a second run of
// the handler takes the result of the closed workflow.
func TestServerForeign(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	options := startFlows(t, c)
	s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
		if _, err := runFlow(c, options, "Foreign", "shop:1")(ctx, task); err != nil {
			return built{}, err
		}
		return runFlow(c, options, "Foreign", "shop:2")(ctx, task)
	})
	task := beginBuild(t, s)
	awaitStarted(t, c, task.ID+"/Foreign")
	if err := c.SignalWorkflow(t.Context(), task.ID+"/Foreign", "", "go on", nil); err != nil {
		t.Fatal(err)
	}
	if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "pushed shop:1") {
		t.Error(buildOutcome(r))
	}
}

// TestServerRelease checks a workflow that reports, asks and continues as new. Its second run is retried, and does not
// ask again. The histories of its runs can be replayed.
func TestServerRelease(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	options := startFlows(t, c)
	options.Start = func(_ context.Context, _ *mcptask.Task, o *client.StartWorkflowOptions) {
		o.RetryPolicy = &sdktemporal.RetryPolicy{InitialInterval: time.Millisecond, MaximumAttempts: 3}
	}
	s := newBuildServer(t, nil, buildPolicy, runFlow(c, options, "Release", "shop:1", 1))
	task := beginBuild(t, s)
	awaitBuild(t, s, task.ID, "the progress", func(r taskstore.Record) bool { return r.StatusMessage == "releasing (1/2)" })
	awaitAsked(t, s, task.ID, "Release/ship")
	replyTo(t, s, task.ID, "Release/ship", `{"action":"accept","content":{"approve":true}}`)
	awaitAsked(t, s, task.ID, "Release/ship@2")
	awaitBuild(t, s, task.ID, "the progress", func(r taskstore.Record) bool { return r.StatusMessage == "releasing (2/2)" })
	replyTo(t, s, task.ID, "Release/ship@2", `{"action":"accept","content":{"approve":true}}`)
	r := awaitBuild(t, s, task.ID, "its end", isBuilt)
	if !strings.Contains(buildOutcome(r), "shop:1 of "+task.ID) || len(r.Inputs) != 2 {
		t.Errorf("%s, %d questions", buildOutcome(r), len(r.Inputs))
	}
	replayer := worker.NewWorkflowReplayer()
	replayer.RegisterWorkflowWithOptions(releaseFlow, workflow.RegisterOptions{Name: "Release"})
	runs := 0
	for run := firstRun(t, c, task.ID+"/Release"); run != ""; runs++ {
		history := readHistory(t, c, task.ID+"/Release", run)
		saveHistory(t, history, fmt.Sprint("release-", runs)) // before the replay, which changes the memo in it
		if err := replayer.ReplayWorkflowHistory(quiet{}, history); err != nil {
			t.Errorf("replay: %v", err)
		}
		last := history.Events[len(history.Events)-1]
		run = last.GetWorkflowExecutionContinuedAsNewEventAttributes().GetNewExecutionRunId() + last.GetWorkflowExecutionFailedEventAttributes().GetNewExecutionRunId()
	}
	if runs != 3 {
		t.Errorf("%d runs", runs)
	}
}

// firstRun returns the first run of a workflow.
func firstRun(t *testing.T, c client.Client, id string) string {
	t.Helper()
	described, err := c.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	return described.GetWorkflowExecutionInfo().GetFirstRunId()
}

// TestServerQuestions checks two questions at once: one is declined, the other dismissed.
func TestServerQuestions(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	options := startFlows(t, c)
	s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
		refused, err := Run[string](ctx, task, c, options, "Patient")
		return built{Image: refused}, err
	})
	task := beginBuild(t, s)
	awaitAsked(t, s, task.ID, "Patient/a", "Patient/b")
	replyTo(t, s, task.ID, "Patient/b", `{"action":"cancel"}`)
	replyTo(t, s, task.ID, "Patient/a", `{"action":"decline"}`)
	if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "a: the question was declined, b: the question was dismissed") {
		t.Error(buildOutcome(r))
	}
}

// TestServerReplica checks that the end of a server leaves the workflow alone, and that another server joins it
// and does not ask again.
func TestServerReplica(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	options, store := startFlows(t, c), taskstore.NewMemory()
	run := func(ctx context.Context, task *mcptask.Task) (built, error) {
		refused, err := Run[string](ctx, task, c, options, "Patient")
		return built{Image: refused}, err
	}
	first := newBuildServer(t, store, buildPolicy, run)
	task := beginBuild(t, first)
	awaitAsked(t, first, task.ID, "Patient/a", "Patient/b")
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if status := flowStatus(t, c, task.ID+"/Patient"); status != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		t.Errorf("the workflow is %v", status)
	}
	second := newBuildServer(t, store, buildPolicy, run)
	replyTo(t, second, task.ID, "Patient/a", `{"action":"accept","content":{"approve":true}}`)
	replyTo(t, second, task.ID, "Patient/b", `{"action":"decline"}`)
	r := awaitBuild(t, second, task.ID, "its end", isBuilt)
	if !strings.Contains(buildOutcome(r), `\u003cnil\u003e, b: the question was declined`) && !strings.Contains(buildOutcome(r), "<nil>, b: the question was declined") || len(r.Inputs) != 2 || r.Attempt != 2 {
		t.Errorf("%s, %d questions, attempt %d", buildOutcome(r), len(r.Inputs), r.Attempt)
	}
}

// TestServerCancel checks that the cancellation of a task cancels the workflow, which cleans up.
func TestServerCancel(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	s := newBuildServer(t, nil, buildPolicy, runFlow(c, startFlows(t, c), "Stubborn"))
	task := beginBuild(t, s)
	awaitBuild(t, s, task.ID, "the message", func(r taskstore.Record) bool { return r.StatusMessage == "waiting" })
	if _, _, err := s.Backend().Cancel(t.Context(), builder, task.ID); err != nil {
		t.Fatal(err)
	}
	if status := awaitFlow(t, c, task.ID+"/Stubborn"); status != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		t.Errorf("the workflow is %v", status)
	}
}

// TestServerFailure checks the words of failures: of an activity, of an operator, and of requests that Temporal
// refuses.
func TestServerFailure(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	options := startFlows(t, c)
	terminate := func(id string) error { return c.TerminateWorkflow(t.Context(), id, "", "no reason") }
	cancel := func(id string) error { return c.CancelWorkflow(t.Context(), id, "") }
	for want, x := range map[string]struct {
		run func(context.Context, *mcptask.Task) (built, error)
		do  func(id string) error
	}{
		"release of shop: no disk left":        {runFlow(c, options, "Failing"), nil},
		"the workflow Stubborn was terminated": {runFlow(c, options, "Stubborn"), terminate},
		"the workflow Stubborn was cancelled":  {runFlow(c, options, "Stubborn"), cancel},
		"its namespace does not exist":         {runFlow(dialFlows(t, flowAddress(t), "nowhere"), options, "Foreign"), nil},
		"too large for Temporal":               {runFlow(c, options, "Foreign", strings.Repeat("x", 3<<20)), nil},
	} {
		s := newBuildServer(t, nil, buildPolicy, x.run)
		task := beginBuild(t, s)
		if x.do != nil {
			awaitStarted(t, c, task.ID+"/Stubborn")
			if err := x.do(task.ID + "/Stubborn"); err != nil {
				t.Fatal(err)
			}
		}
		if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), want) || strings.Contains(buildOutcome(r), "identity") {
			t.Errorf("got %s, want %s", buildOutcome(r), want)
		}
	}
}

// TestServerReset checks that a workflow that an operator resets goes on, and gets the answer that it had.
func TestServerReset(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	s := newBuildServer(t, nil, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
		refused, err := Run[string](ctx, task, c, startFlows(t, c), "Patient")
		return built{Image: refused}, err
	})
	task := beginBuild(t, s)
	awaitAsked(t, s, task.ID, "Patient/a", "Patient/b")
	replyTo(t, s, task.ID, "Patient/a", `{"action":"decline"}`)
	run := firstRun(t, c, task.ID+"/Patient")
	for events := c.GetWorkflowHistory(t.Context(), task.ID+"/Patient", run, true, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); ; {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		if event.GetEventType() == enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED {
			break
		}
	}
	if _, err := c.ResetWorkflowExecution(t.Context(), &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: "default", WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: task.ID + "/Patient", RunId: run},
		Reason: "a test", WorkflowTaskFinishEventId: 4, RequestId: rand.Text(),
		ResetReapplyExcludeTypes: []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL},
	}); err != nil {
		t.Fatal(err)
	}
	replyTo(t, s, task.ID, "Patient/b", `{"action":"decline"}`)
	if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "a: the question was declined, b: the question was declined") {
		t.Error(buildOutcome(r))
	}
}

// TestServerOutage checks that tasks wait while Temporal cannot be reached: for the start, and for the result.
func TestServerOutage(t *testing.T) {
	p := startProxy(t, flowAddress(t))
	direct := dialFlows(t, flowAddress(t), "default")
	options := startFlows(t, direct)
	s := newBuildServer(t, nil, buildPolicy, runFlow(dialFlows(t, p.address, "default"), options, "Foreign", "shop:1"))
	p.set(false)
	task := beginBuild(t, s)
	awaitBuild(t, s, task.ID, "the outage", func(r taskstore.Record) bool { return strings.Contains(r.StatusMessage, "Temporal does not answer") })
	p.set(true)
	awaitBuild(t, s, task.ID, "the start", func(r taskstore.Record) bool { return r.StatusMessage == "the workflow has started" })
	p.set(false)
	if err := direct.SignalWorkflow(t.Context(), task.ID+"/Foreign", "", "go on", nil); err != nil {
		t.Fatal(err)
	}
	awaitFlow(t, direct, task.ID+"/Foreign")
	p.set(true)
	if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "pushed shop:1") {
		t.Error(buildOutcome(r))
	}
}

// proxy passes connections on to a server, or cuts them.
type proxy struct {
	address, server string
	mu              sync.Mutex
	isUp            bool
	open            []net.Conn
}

// startProxy starts a proxy of a server.
func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{address: l.Addr().String(), server: server, isUp: true}
	var accepting sync.WaitGroup
	accepting.Go(func() {
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			p.pass(in)
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		p.set(false)
		accepting.Wait()
	})
	return p
}

// pass connects a connection with the server.
func (p *proxy) pass(in net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	out, err := new(net.Dialer).DialContext(context.Background(), "tcp", p.server)
	if !p.isUp || err != nil {
		_ = in.Close()
		return
	}
	p.open = append(p.open, in, out)
	for _, ends := range [][2]net.Conn{{in, out}, {out, in}} {
		go func() {
			_, _ = io.Copy(ends[0], ends[1])
			_ = ends[0].Close()
		}()
	}
}

// set lets connections through, or cuts them.
func (p *proxy) set(isUp bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.isUp = isUp
	if isUp {
		return
	}
	for _, c := range p.open {
		_ = c.Close()
	}
	p.open = nil
}

// TestServerExecutor checks workflows as tools whose handlers are run by Temporal too: a question outlasts the
// patience of the executor, and a cancellation goes down.
func TestServerExecutor(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	options := startFlows(t, c)
	executor := NewExecutor(c, Options{TaskQueue: options.TaskQueue + "-tasks", Patience: -1})
	s := newServerOf(t, taskserver.Options{Store: taskstore.NewMemory(), Executor: executor}, buildPolicy, func(ctx context.Context, task *mcptask.Task) (built, error) {
		if task.Principal() == "bob" {
			return Run[built](ctx, task, c, options, "Stubborn")
		}
		refused, err := Run[string](ctx, task, c, options, "Patient")
		return built{Image: refused}, err
	})
	task := beginBuild(t, s)
	awaitAsked(t, s, task.ID, "Patient/a", "Patient/b")
	replyTo(t, s, task.ID, "Patient/a", `{"action":"decline"}`)
	awaitAsked(t, s, task.ID, "Patient/b")
	replyTo(t, s, task.ID, "Patient/b", `{"action":"decline"}`)
	if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "a: the question was declined, b: the question was declined") {
		t.Error(buildOutcome(r))
	}
	bob := taskserver.Caller{Principal: "bob", Revision: mcptask.Revision20260728}
	reply, err := s.Backend().Call(t.Context(), bob, "build", json.RawMessage(`{}`), taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	awaitStarted(t, c, reply.Task.ID+"/Stubborn")
	if _, _, err := s.Backend().Cancel(t.Context(), bob, reply.Task.ID); err != nil {
		t.Fatal(err)
	}
	if status := awaitFlow(t, c, reply.Task.ID+"/Stubborn"); status != enumspb.WORKFLOW_EXECUTION_STATUS_CANCELED {
		t.Errorf("the workflow is %v", status)
	}
}

// TestServerHeartbeats checks that Temporal takes heartbeats of a run.
func TestServerHeartbeats(t *testing.T) {
	address := flowAddress(t)
	taken := make(chan error, 100)
	watch := func(ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		err := invoke(ctx, method, request, reply, conn, options...)
		if strings.HasSuffix(method, "/RecordActivityTaskHeartbeat") {
			taken <- err
		}
		return err
	}
	c, err := client.Dial(client.Options{HostPort: address, Logger: quiet{}, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(watch)},
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	executor := NewExecutor(c, Options{TaskQueue: "heartbeats-" + rand.Text(), Heartbeat: 6 * time.Second})
	s := newServerOf(t, taskserver.Options{Store: taskstore.NewMemory(), Executor: executor}, buildPolicy, func(ctx context.Context, _ *mcptask.Task) (built, error) {
		for left := 2; left > 0; {
			select {
			case err := <-taken:
				if err == nil { // on a busy machine one may be late
					left--
				}
			case <-ctx.Done():
				return built{}, ctx.Err()
			}
		}
		return built{Image: "alive"}, nil
	})
	task := beginBuild(t, s)
	if r := awaitBuild(t, s, task.ID, "its end", isBuilt); !strings.Contains(buildOutcome(r), "alive") {
		t.Error(buildOutcome(r))
	}
}

// TestServerLargeResult checks that the task says so if Temporal does not take the result of its workflow.
func TestServerLargeResult(t *testing.T) {
	c := dialFlows(t, flowAddress(t), "default")
	s := newBuildServer(t, nil, buildPolicy, runFlow(c, startFlows(t, c), "Large"))
	task := beginBuild(t, s)
	awaitBuild(t, s, task.ID, "the message", func(r taskstore.Record) bool { return strings.Contains(r.StatusMessage, "its result is too large") })
	if _, _, err := s.Backend().Cancel(t.Context(), builder, task.ID); err != nil {
		t.Fatal(err)
	}
	_ = c.TerminateWorkflow(t.Context(), task.ID+"/Large", "", "it does not end by itself")
}
