package gosdk_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	"github.com/mcptaskgen/mcptaskgen/golden/variants/candidate"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memnet"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// No message tells the release candidate from the release. These tests check on which paths a server speaks it, and how
// it treats a client of the other revision.

// One principal sees the same tasks on both paths, each in its revision.
func TestCandidateBesideTheRelease(t *testing.T) {
	rules.Covers(t, "B-55", "B-67", "B-83")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
		peers := map[string]*wiretest.Peer{}
		for _, revision := range wiretest.AllRevisions {
			peers[revision] = wiretest.NewPeer(t, url, revision, "a")
		}
		stranger := wiretest.NewPeer(t, url, wiretest.CandidateRevision, "b")
		for _, made := range wiretest.AllRevisions {
			failed := peers[made].Create("run_pipeline", wiretest.PipelineArgs("broken"))
			endless := peers[made].Create("run_pipeline", wiretest.PipelineArgs("endless"))
			var times []string
			for _, seen := range wiretest.AllRevisions {
				p, want := peers[seen], "failed"
				if seen == wiretest.ModernRevision {
					want = "completed"
				}
				r := p.Until(failed, "failed", "completed")
				if r.Text("status") != want || r.Text("taskId") != failed {
					t.Errorf("made in %s, seen in %s: %s", made, seen, r.Body)
				}
				if updated := r.Text("lastUpdatedAt"); (updated == "") != (seen == wiretest.CandidateRevision) {
					t.Errorf("%s: lastUpdatedAt is %q", seen, updated)
				}
				times = append(times, r.Text("createdAt"))
				if seen == wiretest.ModernRevision {
					continue
				}
				if r := p.Task("tasks/result", failed).OK(); r.Get("isError") != true {
					t.Errorf("%s: %s", seen, r.Body)
				}
				if text := string(p.Call("tasks/list", nil).OK().Result); !strings.Contains(text, failed) || !strings.Contains(text, endless) {
					t.Errorf("%s lists %s", seen, text)
				}
			}
			if times[0] != times[1] || times[1] != times[2] {
				t.Errorf("created at %v", times)
			}
			stranger.Task("tasks/get", failed).Want(http.StatusOK, wiretest.InvalidParams)
			other := peers[wiretest.CandidateRevision]
			if made == wiretest.CandidateRevision {
				other = peers[wiretest.LegacyRevision]
			}
			other.Task("tasks/cancel", endless).OK() // on the other path
			peers[made].Until(endless, "cancelled")
		}
		// A session works only on the path that opened it.
		release, rc := peers[wiretest.LegacyRevision], peers[wiretest.CandidateRevision]
		rc.Task("tasks/get", "x", wiretest.WithHeader("Mcp-Session-Id", release.Session)).Want(http.StatusNotFound, wiretest.InvalidRequest)
		release.Task("tasks/get", "x", wiretest.WithHeader("Mcp-Session-Id", rc.Session)).Want(http.StatusNotFound, wiretest.InvalidRequest)
		// 2026-07-28 has no tasks on the candidate's path.
		modern := wiretest.NewPeer(t, url, wiretest.ModernRevision, "a")
		modern.URL = wiretest.RevisionURL(url, wiretest.CandidateRevision)
		if r := modern.Call("tools/call", map[string]any{"name": "deploy_service", "arguments": map[string]any{"service": "api", "environment": "staging"}}).OK(); r.Get("content") == nil {
			t.Errorf("%s", r.Body)
		}
		modern.Task("tasks/get", "x").Want(http.StatusNotFound, wiretest.MethodNotFound)
	})
}

// The server asks a task's question on whichever path its principal listens.
func TestCandidateQuestionOnTheOtherPath(t *testing.T) {
	rules.Covers(t, "B-47", "B-49")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url := wiretest.ServeAsk(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
		for made, asked := range map[string]string{wiretest.LegacyRevision: wiretest.CandidateRevision, wiretest.CandidateRevision: wiretest.LegacyRevision} {
			maker, other := wiretest.NewAskedPeer(t, url, made, "a", wiretest.AllCapabilities), wiretest.NewAskedPeer(t, url, asked, "a", wiretest.AllCapabilities)
			id := maker.Create("ask", wiretest.AskArguments("one"))
			maker.Until(id, "input_required")
			f := other.Result(id)
			other.Respond(f.NextQuestion(id).ID, wiretest.AcceptNote("there"))
			if last := f.Next(); wiretest.ToolText(last.Result) != "there" {
				t.Errorf("%s", last.Text)
			}
			maker.Until(id, "completed")
		}
	})
}

// A server speaks nothing of the candidate unless the options name it, not even on a path of its own.
func TestCandidateIsOff(t *testing.T) {
	rules.Covers(t, "B-04", "B-06", "B-07")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		tasks, sdk := newServer(t, taskserver.Options{Limits: wiretest.NoPollLimits}, wiretest.AllRevisionsCITools())
		server := memnet.NewServer(wirecheck.RevisionHandler(t, wiretest.CandidateRevision,
			gosdk.NewRevisionHandler(tasks, wiretest.CandidateRevision, func(*http.Request) *mcp.Server { return sdk }, nil)), nil)
		t.Cleanup(func() {
			server.Close()
			wiretest.EndSessions(sdk)
		})
		p := wiretest.NewPeer(t, server.URL, wiretest.CandidateRevision, "")
		if p.Opened.Get("capabilities", "tasks") != nil {
			t.Errorf("%s", p.Opened.Body)
		}
		if r := p.Call("tools/list", nil).OK(); strings.Contains(string(r.Result), "taskHint") || strings.Contains(string(r.Result), "taskSupport") {
			t.Errorf("%s", r.Body)
		}
		staging := map[string]any{"service": "api", "environment": "staging"}
		if r := p.Call("tools/call", map[string]any{"name": "deploy_service", "arguments": staging, "task": map[string]any{}}).OK(); r.Get("content") == nil {
			t.Errorf("%s", r.Body)
		}
		for _, method := range []string{"tasks/get", "tasks/result", "tasks/list", "tasks/cancel"} {
			p.Task(method, "x").Want(http.StatusOK, wiretest.MethodNotFound)
		}
		if deployStaging(t, wiretest.Connect(t, server.URL, wiretest.CandidateRevision, mcptask.Answerer{})) {
			t.Error("a task at a server that has none")
		}
	})
}

// A client of one revision on the path of the other makes no task. A tool that requires a task says so.
func TestCandidateMistaken(t *testing.T) {
	rules.Covers(t, "B-09", "B-11", "B-13")
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		url, _ := wiretest.ServeWith(t, wiretest.Setup{Revision: wiretest.CandidateRevision})
		for path, revision := range map[string]string{url: wiretest.CandidateRevision, wiretest.RevisionURL(url, wiretest.CandidateRevision): wiretest.LegacyRevision} {
			ci := wiretest.Connect(t, path, revision, mcptask.Answerer{})
			if deployStaging(t, ci) {
				t.Errorf("%s: a task", revision)
			}
			_, err := ci.RunPipeline(t.Context(), pipeline.RunInput{Repository: repository})
			var refused *mcptask.Error
			if !errors.As(err, &refused) || refused.Code != mcptask.CodeMethodNotFound || !strings.Contains(refused.Message, "must be called as a task") {
				t.Errorf("%s: %v", revision, err)
			}
		}
		// A client that names no revision never finds the candidate. It makes plain calls instead.
		conn := dial(t, wiretest.RevisionURL(url, wiretest.CandidateRevision), gosdk.ClientOptions{})
		if conn.Revision() == wiretest.CandidateRevision {
			t.Error("found without its name")
		}
		_ = deployStaging(t, pipeline.NewCIClient(conn))
	})
}

// jobs implements the package that is generated for the candidate.
type jobs struct{}

func (jobs) Run(ctx context.Context, task *mcptask.Task, in candidate.Job) (candidate.Done, error) {
	switch in.Name {
	case "endless":
		<-ctx.Done()
		return candidate.Done{}, ctx.Err()
	case "broken":
		return candidate.Done{}, errors.New("it does not build")
	}
	return candidate.Done{Text: in.Name + " as " + task.ID()}, nil
}

func (jobs) Ship(ctx context.Context, task *mcptask.Task, in candidate.Job) (candidate.Done, error) {
	approval, err := candidate.AskApproval(ctx, task, "ship", "")
	if err != nil || !approval.Approve {
		return candidate.Done{}, errors.Join(errors.New("not approved"), err)
	}
	return candidate.Done{Text: in.Name}, nil
}

func (jobs) Look(_ context.Context, in candidate.Job) (candidate.Done, error) {
	return candidate.Done{Text: in.Name}, nil
}

// The generated client of a package for the candidate, which replaces the release.
func TestCandidateEndToEnd(t *testing.T) {
	rules.Covers(t, "B-08", "B-09", "B-12", "B-18", "B-48", "B-68", "B-82", "B-83")
	t.Parallel()
	options := taskserver.Options{Revisions: []string{wiretest.CandidateRevision}}
	eachServedWay(t, wiretest.CandidateRevision, options, candidate.JobsTools(jobs{}), func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, wiretest.Patience)
		client := candidate.NewJobsClient(connect(gosdk.ClientOptions{
			Answer: candidate.AnswerApproval(func(context.Context, mcptask.Question) (candidate.Approval, error) {
				return candidate.Approval{Approve: true}, nil
			}),
		}))
		call, err := client.StartRun(ctx, candidate.Job{Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		token, isTask := call.Token()
		done, err := call.Wait(ctx)
		if err != nil || !isTask || !strings.HasPrefix(done.Text, "a as ") {
			t.Errorf("%+v, %v, a task: %v", done, err, isTask)
		}
		if call, err = client.ResumeRun(token); err != nil {
			t.Fatal(err)
		}
		if again, err := call.Wait(ctx); err != nil || again != done {
			t.Errorf("%+v, %v", again, err)
		}
		var broken *mcptask.ToolError
		if _, err := client.Run(ctx, candidate.Job{Name: "broken"}); !errors.As(err, &broken) {
			t.Errorf("%v", err)
		}
		endless, err := client.StartRun(ctx, candidate.Job{Name: "endless"})
		if err != nil {
			t.Fatal(err)
		}
		cancel(t, endless)
		if _, err := endless.Wait(ctx); !errors.Is(err, mcptask.ErrCancelled) {
			t.Errorf("%v", err)
		}
		for name, run := range map[string]func(context.Context, candidate.Job, ...mcptask.CallOption) (candidate.Done, error){"b": client.Ship, "c": client.Look} {
			if done, err := run(ctx, candidate.Job{Name: name}); err != nil || done.Text != name {
				t.Errorf("%+v, %v", done, err)
			}
		}
	})
}

// Notifications of a task's status do not change how often the client polls, whatever they say. Neither does their
// absence.
func TestCandidateStatusChangesNothing(t *testing.T) {
	rules.Covers(t, "B-43", "B-44", "B-81")
	for name, told := range map[string]string{"none": "", "true": "working", "false": "completed"} {
		t.Run(name, inBubble(func(t *testing.T) {
			ended := false
			s := polled(t, wiretest.CandidateRevision, func(s *scripted, n int) (r reply) {
				switch {
				case ended:
					r = refusal(wiretest.InvalidParams, "") // it is deleted
				case n <= 30:
					r = s.state("t", "working")
				}
				return r
			})
			if told != "" {
				s.on("HTTP GET", func(c call) reply {
					return reply{stream: func(send func(string)) {
						for range 5 {
							time.Sleep(3 * time.Second)
							send(`{"jsonrpc":"2.0","method":"notifications/tasks/status","params":{` + s.task("t", told) + `}}`)
						}
						<-c.ctx.Done()
					}}
				})
			}
			conn := s.connect(gosdk.ClientOptions{})
			call := start(t, conn)
			began := time.Now()
			wantNumber(t, call, 1)
			polls := s.of("tasks/get")
			if len(polls) != 31 || time.Since(began) < 30*time.Second {
				t.Errorf("%d polls in %v", len(polls), time.Since(began))
			}
			for _, gap := range gaps(polls) {
				if gap < time.Second {
					t.Errorf("polled after %v", gap)
				}
			}
			ended = true
			if _, err := start(t, conn).Wait(t.Context()); !errors.Is(err, mcptask.ErrNotFound) && !errors.Is(err, mcptask.ErrExpired) {
				t.Errorf("a task that is gone: %v", err)
			}
		}))
	}
}

// A server that may ask for tasks reads the candidate's capabilities as leniently.
func TestCandidateRemoteDeclared(t *testing.T) {
	rules.Covers(t, "B-02", "B-03", "B-04")
	t.Parallel()
	url := wiretest.ServeAsk(t, wiretest.Setup{Revision: wiretest.CandidateRevision, Bearer: true})
	for tasks, augmented := range map[string]bool{
		`{"requests":{"elicitation":{"create":{}}}}`: true, `{"requests":{"elicitation":{"create":true}}}`: true,
		`{"requests":{"elicitation":{"create":false}}}`: false, `{"requests":{"elicitation":{"create":null}}}`: false,
		`{"requests":{"elicitation":{"create":1}}}`: false, `{"requests":{"elicitation":true}}`: false,
		`{"requests":{"sampling":{"createMessage":true}}}`: false, `{}`: false, `true`: false, `null`: false,
	} {
		t.Run(tasks, func(t *testing.T) {
			t.Parallel()
			p := wiretest.NewAskedPeer(t, url, wiretest.CandidateRevision, "a", wiretest.TaskCapabilities(tasks))
			f := p.OpenGet()
			id := p.Create("ask", wiretest.AskArguments("one"))
			q := f.NextQuestion(id)
			if (q.Params.Task != nil) != augmented {
				t.Errorf("%s", q.Text)
			}
			p.Respond(q.ID, wiretest.AcceptNote("now"))
			if got := p.TaskText(id); got != "now" {
				t.Error(got)
			}
		})
	}
}
