package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/next/jobs"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

type impl struct{}

func (impl) Build(_ context.Context, _ *mcptask.Task, in jobs.BuildInput) (*jobs.Report, error) {
	if in.Name == "broken" {
		return nil, errors.New("it does not compile")
	}
	return &jobs.Report{Done: true, Note: string(in.Mode)}, nil
}

func (impl) Deploy(ctx context.Context, task *mcptask.Task, _ jobs.BuildInput) (jobs.Report, error) {
	answer, err := jobs.AskApproval(ctx, task, "ship", "Ship it?")
	return jobs.Report{Done: answer.Approve, Note: string(answer.Mode)}, err
}

func (impl) Remove(_ context.Context, _ *mcptask.Task, in jobs.BuildInput, sure jobs.Approval) (jobs.Report, error) {
	return jobs.Report{Done: sure.Approve, Note: in.Name}, nil
}

func (impl) Render(_ context.Context, _ *mcptask.Task, in jobs.BuildInput) (*mcptask.Result, error) {
	return &mcptask.Result{Content: []mcptask.Content{mcptask.TextContent(in.Name), mcptask.TextContent("done")}}, nil
}

func (impl) Clean(context.Context, *mcptask.Task) error { return nil }

func (impl) Hang(ctx context.Context, _ *mcptask.Task) error {
	<-ctx.Done()
	return ctx.Err()
}

func (impl) Describe(_ context.Context, in jobs.BuildInput) (string, error) {
	return "about " + in.Name, nil
}

func (impl) Sort(_ context.Context, in jobs.Page[jobs.Mode]) (jobs.Page[jobs.Entry[jobs.Mode, jobs.Priority]], error) {
	var out jobs.Page[jobs.Entry[jobs.Mode, jobs.Priority]]
	for _, mode := range in.Items {
		out.Items = append(out.Items, jobs.Entry[jobs.Mode, jobs.Priority]{Key: mode, Value: pointer(jobs.PriorityHigh)})
	}
	return out, nil
}

// TestHTTP calls every tool with the typed client, in each revision.
func TestHTTP(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			asked := map[string]bool{} // one call at a time
			conn, err := gosdk.Connect(ctx, serve.HTTP(t, jobs.JobsTools(impl{}), jobs.FilesTools(impl{})), gosdk.ClientOptions{
				Revision: revision,
				Answer: jobs.AnswerApproval(func(_ context.Context, q mcptask.Question) (jobs.Approval, error) {
					asked[q.Message] = true
					return jobs.Approval{Approve: true, Mode: jobs.ModeFull}, nil
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client, files := jobs.NewJobsClient(conn), jobs.NewFilesClient(conn)
			in := jobs.BuildInput{Name: "api", Mode: jobs.ModeFast}

			built, err := client.Build(ctx, in)
			wants(t, &jobs.Report{Done: true, Note: "fast"}, built, err)
			deployed, err := client.Deploy(ctx, in)
			wants(t, jobs.Report{Done: true, Note: "full"}, deployed, err)
			removed, err := client.Remove(ctx, in)
			wants(t, jobs.Report{Done: true, Note: "api"}, removed, err)
			wants(t, map[string]bool{"Ship it?": true, "Are you sure?": true}, asked, nil)
			rendered, err := client.Render(ctx, in)
			wants(t, "api\ndone", rendered.Text(), err)
			if err := client.Clean(ctx); err != nil {
				t.Error(err)
			}
			text, err := files.Describe(ctx, in)
			wants(t, "about api", text, err)
			sorted, err := files.Sort(ctx, jobs.Page[jobs.Mode]{Items: []jobs.Mode{jobs.ModeFull}})
			wants(t, []jobs.Entry[jobs.Mode, jobs.Priority]{{Key: jobs.ModeFull, Value: pointer(jobs.PriorityHigh)}}, sorted.Items, err)

			var failed *mcptask.ToolError
			if _, err := client.Build(ctx, jobs.BuildInput{Name: "broken"}); !errors.As(err, &failed) {
				t.Errorf("a failed tool: %v", err)
			}
			if _, err := client.Build(ctx, jobs.BuildInput{}); err == nil {
				t.Error("the server took an empty name")
			}
			resumes(t, client, in)
			cancels(t, client)
		})
	}
}

// resumes takes up a task by its token.
func resumes(t *testing.T, client *jobs.JobsClient, in jobs.BuildInput) {
	t.Helper()
	call, err := client.StartBuild(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	token, ok := call.Token()
	if !ok {
		t.Fatal("Build is no task")
	}
	again, err := client.ResumeBuild(token)
	if err != nil {
		t.Fatal(err)
	}
	report, err := again.Wait(t.Context())
	wants(t, &jobs.Report{Done: true, Note: "fast"}, report, err)
	var last mcptask.Snapshot
	for snapshot, err := range again.Updates(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		last = snapshot
	}
	if last.Status != jobs.TaskStatusCompleted {
		t.Errorf("Build is %s", last.Status)
	}
}

// cancels ends a task that would not end.
func cancels(t *testing.T, client *jobs.JobsClient) {
	t.Helper()
	call, err := client.StartHang(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := call.Cancel(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := call.Wait(t.Context()); !errors.Is(err, mcptask.ErrCancelled) {
		t.Errorf("a cancelled task: %v", err)
	}
}

// TestFallback: a client that knows no tasks follows one with the fallback tools.
func TestFallback(t *testing.T) {
	ctx := t.Context()
	client := mcp.NewClient(&mcp.Implementation{Name: "plain", Version: "1"}, nil)
	transport := &mcp.StreamableClientTransport{Endpoint: serve.HTTP(t, jobs.JobsTools(impl{}))}
	session, err := client.Connect(ctx, transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := session.Close(); err != nil {
			t.Error(err)
		}
	}()
	call := func(tool string, arguments map[string]any) (running struct{ Task, Status string }) {
		t.Helper()
		result, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		structured, err := json.Marshal(result.StructuredContent)
		if err == nil {
			err = json.Unmarshal(structured, &running)
		}
		if err != nil {
			t.Fatalf("%s: %s: %v", tool, structured, err)
		}
		return running
	}
	hung := call("jobs_hang", nil)
	if hung.Task == "" || hung.Status != string(jobs.TaskStatusWorking) {
		t.Fatalf("jobs_hang: %+v", hung)
	}
	of := map[string]any{"task": hung.Task}
	if got := call("jobs_task_status", of); got != hung {
		t.Errorf("jobs_task_status: %+v", got)
	}
	call("jobs_task_cancel", of)
	if got := call("jobs_task_status", of); got.Status == string(jobs.TaskStatusWorking) {
		t.Errorf("cancelled, and yet: %+v", got)
	}
}

func wants[T any](t *testing.T, want, got T, err error) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
}

// pointer returns a pointer to a value.
func pointer[T any](v T) *T { return &v }
