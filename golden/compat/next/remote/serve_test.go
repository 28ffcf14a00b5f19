package remote_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/next/jobs"
	"github.com/mcptaskgen/mcptaskgen/golden/compat/next/remote"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// impl has no more than the list.
type impl struct{ jobs.Jobs }

func (impl) Build(_ context.Context, _ *mcptask.Task, in jobs.BuildInput) (*jobs.Report, error) {
	return &jobs.Report{Done: true, Note: string(in.Mode)}, nil
}

type files struct{}

func (files) Describe(_ context.Context, in jobs.BuildInput) (string, error) {
	return "about " + in.Name, nil
}

func (files) Sort(_ context.Context, in jobs.Page[jobs.Mode]) (jobs.Page[jobs.Entry[jobs.Mode, jobs.Priority]], error) {
	return jobs.Page[jobs.Entry[jobs.Mode, jobs.Priority]]{Items: []jobs.Entry[jobs.Mode, jobs.Priority]{{Key: in.Items[0]}}}, nil
}

// TestHTTP calls the tools with the client that was made of their list, in each revision.
func TestHTTP(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			url := serve.HTTP(t, jobs.JobsTools(impl{}), jobs.FilesTools(files{}))
			conn, err := gosdk.Connect(ctx, url, gosdk.ClientOptions{Revision: revision})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			client := remote.NewJobsClient(conn)
			call, err := client.StartJobsBuild(ctx, remote.JobsBuildInput{Name: "api", Mode: remote.ModeFull})
			if err != nil {
				t.Fatal(err)
			}
			token, ok := call.Token()
			if !ok {
				t.Fatal("jobs_build is no task")
			}
			again, err := client.ResumeJobsBuild(token)
			if err != nil {
				t.Fatal(err)
			}
			built, err := again.Wait(ctx)
			wants(t, remote.JobsBuildOutput{Done: true, Note: pointer("full")}, built, err)
			described, err := client.Describe(ctx, remote.DescribeInput{Name: "api"})
			wants(t, "about api", described.Text(), err)
			sorted, err := client.Sort(ctx, remote.SortInput{Items: []remote.Mode{remote.ModeFast}})
			wants(t, []remote.Item{{Key: remote.ModeFast}}, sorted.Items, err)
		})
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
