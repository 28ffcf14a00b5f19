package golden_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/variants/newest"
	"github.com/mcptaskgen/mcptaskgen/golden/variants/proposal"
	"github.com/mcptaskgen/mcptaskgen/golden/variants/server"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

type proposalJobs struct{}

// Run asks, works for four minutes with a report at each, and says that it has.
func (proposalJobs) Run(ctx context.Context, task *mcptask.Task, in proposal.Job) (proposal.Done, error) {
	approval, err := proposal.AskApproval(ctx, task, "go", "")
	if err != nil || !approval.Approve {
		return proposal.Done{}, errors.Join(errors.New("not approved"), err)
	}
	for done := range 4 {
		task.Progress(ctx, float64(done), 4, "working")
		select {
		case <-time.After(time.Minute):
		case <-ctx.Done():
			return proposal.Done{}, ctx.Err()
		}
	}
	return proposal.Done{Text: in.Name}, nil
}

// TestProposal calls the generated server of the proposal SEP-1686 with its generated client: a question on the way, the
// answer at the moment of the end, cancellation, and a call that is resumed.
func TestProposal(t *testing.T) {
	rules.Covers(t, "A-06", "A-07", "A-24", "A-39", "A-40", "A-45", "A-47")
	bubble.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		conn := mcptasktest.Connect(wirecheck.TB(t), mcptask.RevisionSEP1686, mcptasktest.Options{
			Answer: proposal.AnswerApproval(func(_ context.Context, q mcptask.Question) (proposal.Approval, error) {
				if asked.Add(1); q.TaskID == "" {
					t.Errorf("a question of no task: %+v", q)
				}
				time.Sleep(time.Minute) // a person thinks
				return proposal.Approval{Approve: true}, nil
			}),
		}, proposal.JobsTools(proposalJobs{}))
		if conn.Revision() != mcptask.RevisionSEP1686 {
			t.Fatalf("the connection speaks %s", conn.Revision())
		}
		jobs := proposal.NewJobsClient(conn)
		began := time.Now()
		call, err := jobs.StartRun(t.Context(), proposal.Job{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		token, ok := call.Token()
		if !ok {
			t.Fatal("no task")
		}
		seen := map[mcptask.Status]bool{}
		for s, err := range call.Updates(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			seen[s.Status] = true
		}
		if done, err := call.Wait(t.Context()); err != nil || done.Text != "a" || asked.Load() != 1 {
			t.Errorf("%+v, %v, asked %d times", done, err, asked.Load())
		}
		if took := time.Since(began); took != 5*time.Minute || !seen[mcptask.StatusInputRequired] || !seen[mcptask.StatusWorking] {
			t.Errorf("after %v, through %v", took, seen)
		}
		again, err := jobs.ResumeRun(token)
		if err != nil {
			t.Fatal(err)
		}
		if done, err := again.Wait(t.Context()); err != nil || done.Text != "a" {
			t.Errorf("%+v, %v", done, err)
		}
		if call, err = jobs.StartRun(t.Context(), proposal.Job{Name: "b"}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if err := call.Cancel(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := call.Wait(t.Context()); !errors.Is(err, mcptask.ErrCancelled) {
			t.Error(err)
		}
	})
}

type jobs struct{ server.JobsWorkflows }

func (jobs) Run(ctx context.Context, task *mcptask.Task, in server.Job) (server.Done, error) {
	_, err := server.AskApproval(ctx, task, "go", "")
	return server.Done{Text: in.Name}, err
}

// TestProposalElsewhere connects clients and servers that have no revision in common, though both have sessions. Calls
// are answered without a task: those of a client of 2025-11-25 by a server of the proposal alone, and the other way
// round.
func TestProposalElsewhere(t *testing.T) {
	const revision = mcptask.Revision20251125
	bubble.Test(t, func(t *testing.T) {
		only := func(revision string) mcptasktest.Options {
			return mcptasktest.Options{Server: taskserver.Options{Revisions: []string{revision}}}
		}
		for _, conn := range []mcptask.Conn{
			mcptasktest.Connect(wirecheck.TB(t), revision, only(mcptask.RevisionSEP1686), proposal.JobsTools(proposalJobs{})),
			mcptasktest.Connect(wirecheck.TB(t), mcptask.RevisionSEP1686, only(revision), server.JobsTools(jobs{})),
		} {
			call, err := proposal.NewJobsClient(conn).StartRun(t.Context(), proposal.Job{Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := call.Token(); ok {
				t.Errorf("a client of %s got a task", conn.Revision())
			}
			var tool *mcptask.ToolError // the client cannot be asked
			if _, err := call.Wait(t.Context()); !errors.As(err, &tool) {
				t.Error(err)
			}
		}
	})
}

type newestJobs struct{}

func (newestJobs) Run(_ context.Context, task *mcptask.Task, in newest.Job) (newest.Done, error) {
	return newest.Done{Text: in.Name + task.ID()}, nil
}

// TestOneRevision calls a server that was generated for one revision. Clients of another get answers without tasks.
func TestOneRevision(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{}, newest.JobsTools(newestJobs{}))
			call, err := newest.NewJobsClient(conn).StartRun(t.Context(), newest.Job{Name: "a"})
			if err != nil {
				t.Fatal(err)
			}
			done, err := call.Wait(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, isTask := call.Token()
			if want, hasID := revision == mcptask.Revision20260728, done.Text != "a"; isTask != want || hasID != want {
				t.Errorf("the client got a task: %v; the handler got an ID: %v; want %v", isTask, hasID, want)
			}
		})
	})
}
