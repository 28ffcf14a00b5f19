package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/pipeline/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/terminal"
)

// patience is how long the demo waits for a person, who may watch only.
const patience = 10 * time.Second

// errLeft ends a demo that the person ends.
var errLeft = errors.New("ended by Ctrl-C")

// story shows the generated client. It stops at the first unexpected result.
type story struct {
	t *terminal.Terminal
	// connect connects to the server in a revision.
	connect func(ctx context.Context, revision string, answer mcptask.Answerer) (mcptask.Conn, error)
	// server is killed and comes back. nil leaves that part out.
	server *child
	// leave ends the demo.
	leave context.CancelCauseFunc

	ci *pipeline.CIClient // in 2026-07-28
	// killed is the call whose server was killed.
	killed *mcptask.Call[pipeline.RunReport]

	mu sync.Mutex
	// cancelTask is what Ctrl-C does once instead of ending the demo. If it is nil, Ctrl-C ends the demo.
	cancelTask func()
}

// newStory returns a story that is told on a terminal, or in lines if the file is none.
func newStory(in, out *os.File, leave context.CancelCauseFunc) *story {
	s := &story{leave: leave}
	s.t = terminal.New(terminal.Options{In: in, Out: out, Interrupt: s.interrupt})
	return s
}

// connectTo connects over HTTP.
func connectTo(url string) func(context.Context, string, mcptask.Answerer) (mcptask.Conn, error) {
	return func(ctx context.Context, revision string, answer mcptask.Answerer) (mcptask.Conn, error) {
		return gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision, Answer: answer})
	}
}

// interrupt does what Ctrl-C does.
func (s *story) interrupt() {
	s.mu.Lock()
	cancel := s.cancelTask
	s.cancelTask = nil
	s.mu.Unlock()
	if cancel != nil {
		cancel()
		return
	}
	s.leave(errLeft)
}

// setInterrupt says what the next Ctrl-C does.
func (s *story) setInterrupt(cancel func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelTask = cancel
}

// tell tells the story.
func (s *story) tell(ctx context.Context) error {
	conn, err := s.connect(ctx, mcptask.Revision20260728, s.answer())
	if err != nil {
		return err
	}
	defer conn.Close()
	s.ci = pipeline.NewCIClient(conn)
	s.t.Printf("This process is its generated client, in %s. Ctrl-C ends the demo.", conn.Revision())
	for _, part := range []func(context.Context) error{
		s.showResult, s.killServer, s.showQuestion, s.showCancel, s.showFailures, s.showRecovery, s.showRevisions,
	} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (s *story) title(text string) { s.t.Printf("\n%s", text) }

// say prints a line of a part.
func (s *story) say(format string, args ...any) { s.t.Printf("  "+format, args...) }

// answer asks the person. Without a terminal, or if the person only watches, it answers itself.
func (s *story) answer() mcptask.Answerer {
	return pipeline.AnswerApproval(func(ctx context.Context, q mcptask.Question) (pipeline.Approval, error) {
		if !s.t.CanAsk() {
			s.say("%s The demo says yes: nobody is at a terminal.", q.Message)
			return pipeline.Approval{Approve: true}, nil
		}
		s.say("The task asks you. After %v the demo says yes.", patience)
		asking, stop := context.WithTimeout(ctx, patience)
		defer stop()
		approval, err := askPerson(asking, s.t, q)
		if ctx.Err() == nil && asking.Err() != nil {
			s.say("The demo says yes.")
			return pipeline.Approval{Approve: true}, nil
		}
		return approval, err
	})
}

// askPerson asks a question at a terminal. The error says if the person refused.
func askPerson(ctx context.Context, t *terminal.Terminal, q mcptask.Question) (approval pipeline.Approval, err error) {
	content, err := t.Ask(ctx, q)
	if err != nil {
		return approval, err
	}
	return approval, json.Unmarshal(content, &approval)
}

// startPipeline starts a pipeline, which is always a task.
func (s *story) startPipeline(ctx context.Context, branch string) (*mcptask.Call[pipeline.RunReport], error) {
	call, err := s.ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: branch})
	if err != nil {
		return nil, err
	}
	s.say("run_pipeline became task %.8s.", call.TaskID())
	return call, nil
}

// follow shows a task until its end. The error is that of the connection.
func follow[Out any](ctx context.Context, s *story, call *mcptask.Call[Out]) (last mcptask.Snapshot, err error) {
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return last, err
		}
		s.t.Show("run_pipeline", snapshot)
		last = snapshot
	}
	return last, nil
}

// waitPipeline shows a pipeline until its end, and prints its report.
func (s *story) waitPipeline(ctx context.Context, call *mcptask.Call[pipeline.RunReport]) error {
	last, err := follow(ctx, s, call)
	if err != nil {
		return err
	}
	report, err := call.Wait(ctx)
	if err != nil {
		return err
	}
	s.say("It is %s: %d stages in %.1f s.", last.Status, len(report.Stages), report.Seconds)
	return nil
}

func (s *story) showResult(ctx context.Context) error {
	s.title("A call becomes a task. The client follows it, and gets its typed result.")
	call, err := s.startPipeline(ctx, "main")
	if err != nil {
		return err
	}
	return s.waitPipeline(ctx, call)
}

// killServer kills the server while a task runs, and starts it again.
func (s *story) killServer(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	s.title("The server dies while a task runs.")
	call, err := s.startPipeline(ctx, "main")
	if err != nil {
		return err
	}
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return err
		}
		if snapshot.Progress.Done >= 1 {
			s.say("It is at stage %s.", snapshot.Message)
			break
		}
	}
	killed := s.server.pid()
	if err := s.server.kill(); err != nil {
		return err
	}
	if err := s.server.start(ctx); err != nil {
		return err
	}
	s.say("Killed process %d. Process %d serves in its place, with the same file.", killed, s.server.pid())
	s.say("Within 40 seconds it sees that the task is nobody's. Meanwhile:")
	s.killed = call
	return nil
}

// showRecovery shows the task that the killed server left.
func (s *story) showRecovery(ctx context.Context) error {
	if s.killed == nil {
		return nil
	}
	s.title("The task of the dead server goes on: by onlost=restart, it runs again.")
	return s.waitPipeline(ctx, s.killed)
}

func (s *story) showQuestion(ctx context.Context) error {
	s.title("A deployment to production asks a person first.")
	report, err := s.ci.DeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "production"})
	var refused *mcptask.ToolError
	switch {
	case errors.As(err, &refused):
		s.say("%s.", refused.Result.Text())
	case err != nil:
		return err
	default:
		s.say("Version %s is shipped.", report.Version)
	}
	return nil
}

func (s *story) showCancel(ctx context.Context) error {
	s.title("A pipeline that takes a minute is cancelled.")
	call, err := s.startPipeline(ctx, "slow")
	if err != nil {
		return err
	}
	wait := 2 * time.Second
	cancelled := make(chan error, 1)
	cancel := sync.OnceFunc(func() { cancelled <- call.Cancel(ctx) })
	if s.t.CanAsk() {
		wait = patience / 2
		s.say("Ctrl-C cancels it. Or the demo does, after %v.", wait)
		s.setInterrupt(cancel)
		defer s.setInterrupt(nil)
	}
	defer time.AfterFunc(wait, cancel).Stop()
	last, err := follow(ctx, s, call)
	if err != nil {
		return err
	}
	if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
		return fmt.Errorf("the cancelled pipeline ended with %w", err)
	}
	if err := <-cancelled; err != nil {
		return err
	}
	s.say("It is %s, and its handler has stopped.", last.Status)
	return nil
}

func (s *story) showFailures(ctx context.Context) error {
	s.title("A tool that fails, and a server that refuses, are different errors in Go.")
	_, err := s.ci.RunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: "broken"})
	var toolErr *mcptask.ToolError
	if !errors.As(err, &toolErr) {
		return fmt.Errorf("the broken branch ended with %w", err)
	}
	s.say("*mcptask.ToolError: %s", toolErr.Result.Text())
	_, err = s.ci.RunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: "locked"})
	var wire *mcptask.Error
	if !errors.As(err, &wire) || wire.Code != codeLocked {
		return fmt.Errorf("the locked repository ended with %w", err)
	}
	s.say("*mcptask.Error: %v", wire)
	return nil
}

// difference is what a revision did in a call that both made.
type difference struct {
	failed mcptask.Status
	isTask bool
}

func (s *story) showRevisions(ctx context.Context) error {
	s.title("The same server speaks " + mcptask.Revision20251125 + " too, at the same URL. What differs:")
	did := map[string]difference{}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		conn, err := s.connect(ctx, revision, mcptask.Answerer{})
		if err != nil {
			return err
		}
		did[revision], err = observe(ctx, pipeline.NewCIClient(conn))
		if err := errors.Join(err, conn.Close()); err != nil {
			return err
		}
	}
	first, second := did[mcptask.Revision20251125], did[mcptask.Revision20260728]
	s.compare("a tool that fails", fmt.Sprintf("its task is %s", first.failed), fmt.Sprintf("it is %s, and the error is its result", second.failed))
	s.compare("a quick tool", fmt.Sprintf("%s, as the client asks for", describeTask(first.isTask)), fmt.Sprintf("%s: the server decides", describeTask(second.isTask)))
	s.compare("a question", "a request of its own", "a part of the task's state")
	return nil
}

// compare prints what each revision does.
func (s *story) compare(subject, first, second string) {
	s.say("%-18s %s: %s", subject, mcptask.Revision20251125, first)
	s.say("%-18s %s: %s", "", mcptask.Revision20260728, second)
}

func describeTask(isTask bool) string {
	if isTask {
		return "a task"
	}
	return "no task"
}

// observe makes the calls whose outcome depends on the revision.
func observe(ctx context.Context, ci *pipeline.CIClient) (difference, error) {
	call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: "broken"})
	if err != nil {
		return difference{}, err
	}
	var d difference
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return d, err
		}
		d.failed = snapshot.Status
	}
	deployment, err := ci.StartDeployService(ctx, pipeline.DeployInput{Service: "api", Environment: "staging"})
	if err != nil {
		return d, err
	}
	_, d.isTask = deployment.Token()
	_, err = deployment.Wait(ctx)
	return d, err
}
