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
	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// patience is how long the demo waits for a person, who may watch only.
const patience = 10 * time.Second

// errLeft ends a demo that the person ends.
var errLeft = errors.New("ended by Ctrl-C")

// story shows the generated client. It stops at the first unexpected result.
type story struct {
	t   *terminal.Terminal
	out *os.File
	// isColored means that the lines of the story have weight and color.
	isColored bool
	// brief leaves out the parts that are not about one task, its server and a person.
	brief bool
	// connect connects to the server in a revision.
	connect func(ctx context.Context, revision string, answer mcptask.Answerer) (mcptask.Conn, error)
	// server is killed and comes back. nil leaves that part out.
	server *child
	// leave ends the demo.
	leave context.CancelCauseFunc

	conn mcptask.Conn // in 2026-07-28
	ci   *pipeline.CIClient

	mu sync.Mutex
	// cancelTask is called once at Ctrl-C, in place of ending the demo. If it is nil, Ctrl-C ends the demo.
	cancelTask func()
}

// newStory returns a story that is told on a terminal, or in lines if out is not a terminal.
func newStory(in, out *os.File, leave context.CancelCauseFunc) *story {
	s := &story{out: out, leave: leave}
	s.t = terminal.New(in, out, s.interrupt)
	s.isColored = s.t.CanAsk() && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// connectTo connects over HTTP.
func connectTo(url string) func(context.Context, string, mcptask.Answerer) (mcptask.Conn, error) {
	return func(ctx context.Context, revision string, answer mcptask.Answerer) (mcptask.Conn, error) {
		return gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision, Answer: answer})
	}
}

// interrupt handles Ctrl-C.
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

// setInterrupt sets the action of the next Ctrl-C.
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
	s.conn, s.ci = conn, pipeline.NewCIClient(conn)
	s.t.Printf("This is its generated client, in MCP %s. Ctrl-C ends the demo.", conn.Revision())
	parts := []func(context.Context) error{
		s.showResult, s.showRestart, s.showQuestion, s.showCancel, s.showFailures, s.showRevisions,
	}
	if s.brief {
		parts = []func(context.Context) error{s.showResult, s.showRestart, s.showQuestion}
	}
	for _, part := range parts {
		if s.pause(ctx, 1200*time.Millisecond); ctx.Err() != nil {
			return ctx.Err()
		}
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// The colors of paint.
const (
	bold  = "1"
	red   = "31"
	green = "32"
)

// paint prints a line in a color. It bypasses the terminal, which prints without colors, so no bar may be on the
// screen. If the output is closed, it ends the demo.
func (s *story) paint(color, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if s.isColored {
		line = "\x1b[" + color + "m" + line + "\x1b[0m"
	}
	if _, err := fmt.Fprintln(s.out, line); err != nil {
		s.leave(errLeft)
	}
}

// pause lets a person read. Without a terminal it does not wait.
func (s *story) pause(ctx context.Context, length time.Duration) {
	if s.t.CanAsk() {
		wait(ctx, length)
	}
}

// wait waits, unless ctx ends first.
func wait(ctx context.Context, length time.Duration) {
	select {
	case <-time.After(length):
	case <-ctx.Done():
	}
}

func (s *story) title(text string) { s.paint(bold, "\n%s", text) }

// say prints a line of a part.
func (s *story) say(format string, args ...any) { s.t.Printf("  "+format, args...) }

// answer asks the person. Without a terminal, or if the person only watches, it answers itself.
func (s *story) answer() mcptask.Answerer {
	return pipeline.AnswerApproval(func(ctx context.Context, q mcptask.Question) (pipeline.Approval, error) {
		if !s.t.CanAsk() {
			s.say("%s Without a terminal, the demo answers yes itself.", q.Message)
			return pipeline.Approval{Approve: true}, nil
		}
		s.say("The task asks you. After %v the demo answers yes itself.", patience)
		asking, stop := context.WithTimeout(ctx, patience)
		defer stop()
		approval, err := askPerson(asking, s.t, q)
		if ctx.Err() == nil && asking.Err() != nil {
			s.say("The demo answers yes.")
			return pipeline.Approval{Approve: true}, nil
		}
		return approval, err
	})
}

// askPerson asks a question at a terminal. The error tells whether the person refused.
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
	s.say("run_pipeline is task %.8s.", call.TaskID())
	return call, nil
}

// follow shows a task until its end. The error is that of the connection.
func (s *story) follow(ctx context.Context, call *mcptask.Call[pipeline.RunReport]) (last mcptask.Snapshot, err error) {
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
	last, err := s.follow(ctx, call)
	if err != nil {
		return err
	}
	report, err := call.Wait(ctx)
	if err != nil {
		return err
	}
	s.paint(green, "  The task is %s: %d stages in %.1f s.", last.Status, len(report.Stages), report.Seconds)
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

// showRestart kills the server while a task runs, and starts it again.
func (s *story) showRestart(ctx context.Context) error {
	if s.server == nil {
		return nil
	}
	s.title("The server is killed in the middle of a task, which goes on at that stage.")
	call, err := s.startPipeline(ctx, "main")
	if err != nil {
		return err
	}
	stage, err := s.awaitThirdStage(ctx, call)
	if err != nil {
		return err
	}
	killed := s.server.pid()
	if err := s.server.kill(); err != nil {
		return err
	}
	s.paint(red, "  Killed process %d at stage %s.", killed, stage)
	s.pause(ctx, time.Second)
	started := time.Now()
	if err := s.server.start(ctx); err != nil {
		return err
	}
	s.say("Process %d serves in its place, with the same SQLite file.", s.server.pid())
	snapshot, err := s.conn.Task(ctx, call.TaskID())
	for err == nil && !snapshot.UpdatedAt.After(started) { // Updates would not show it: it looks the same as before
		wait(ctx, 50*time.Millisecond)
		snapshot, err = s.conn.Task(ctx, call.TaskID())
	}
	if err != nil {
		return err
	}
	s.say("%.1f s after its start it goes on at stage %s.", snapshot.UpdatedAt.Sub(started).Seconds(), snapshot.Message)
	return s.waitPipeline(ctx, call)
}

// awaitThirdStage shows a pipeline until its third stage runs, and returns that.
func (s *story) awaitThirdStage(ctx context.Context, call *mcptask.Call[pipeline.RunReport]) (stage string, err error) {
	bar := terminal.New(nil, s.out, nil) // closing it removes the bar of a task that goes on
	defer bar.Close()
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return "", err
		}
		bar.Show("run_pipeline", snapshot)
		if snapshot.Progress.Done >= 2 {
			s.pause(ctx, 300*time.Millisecond)
			return snapshot.Message, nil
		}
	}
	return "", errors.New("the pipeline ended before its server was killed")
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
		s.paint(green, "  Version %s is shipped.", report.Version)
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
		wait = 3 * time.Second
		s.say("Ctrl-C now cancels this task instead. After %v the demo cancels it itself.", wait)
		s.setInterrupt(cancel)
		defer s.setInterrupt(nil)
	}
	defer time.AfterFunc(wait, cancel).Stop()
	last, err := s.follow(ctx, call)
	if err != nil {
		return err
	}
	if _, err := call.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
		return fmt.Errorf("the cancelled pipeline ended with %w", err)
	}
	if err := <-cancelled; err != nil {
		return err
	}
	s.say("The task is %s, and its handler has stopped.", last.Status)
	return nil
}

func (s *story) showFailures(ctx context.Context) error {
	s.title("In Go, a tool that fails is another error than a server that refuses.")
	_, err := s.ci.RunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: "broken"})
	var failed *pipeline.StageFailed
	if !errors.As(err, &failed) {
		return fmt.Errorf("the broken branch ended with %w", err)
	}
	s.say("It fails, *pipeline.StageFailed: %v", failed)
	_, err = s.ci.RunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: "locked"})
	var wire *mcptask.Error
	if !errors.As(err, &wire) || wire.Code != codeLocked {
		return fmt.Errorf("the locked repository ended with %w", err)
	}
	s.say("It refuses, *mcptask.Error: %v", wire)
	return nil
}

// outcome is the outcome of a revision in calls that both revisions made.
type outcome struct {
	failed mcptask.Status
	isTask bool
}

// showRevisions prints the differences between the revisions, once the server has shown them.
func (s *story) showRevisions(ctx context.Context) error {
	s.title("The same server speaks " + mcptask.Revision20251125 + " too, at the same URL. Three things differ:")
	for revision, want := range map[string]outcome{
		mcptask.Revision20251125: {mcptask.StatusFailed, true}, mcptask.Revision20260728: {mcptask.StatusCompleted, false},
	} {
		conn, err := s.connect(ctx, revision, mcptask.Answerer{})
		if err != nil {
			return err
		}
		got, err := observe(ctx, pipeline.NewCIClient(conn))
		if err := errors.Join(err, conn.Close()); err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("in %s the calls ended with %+v, not %+v", revision, got, want)
		}
	}
	s.say("A tool error makes the task failed. In 2026-07-28, completed with an error.")
	s.say("The client chooses which calls are tasks. In 2026-07-28, the server does.")
	s.say("A question is a request of its own. In 2026-07-28, it is part of the task.")
	return nil
}

// observe makes the calls whose outcome depends on the revision.
func observe(ctx context.Context, ci *pipeline.CIClient) (outcome, error) {
	call, err := ci.StartRunPipeline(ctx, pipeline.RunInput{Repository: "shop", Branch: "broken"})
	if err != nil {
		return outcome{}, err
	}
	var d outcome
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
