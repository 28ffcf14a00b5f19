package client_test

import (
	"context"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/compat/next/client"
	"github.com/mcptaskgen/mcptaskgen/golden/compat/next/server"
	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

type impl struct{}

func (impl) Run(ctx context.Context, task *mcptask.Task, in server.Job) (server.Done, error) {
	approval, err := server.AskApproval(ctx, task, "go", "")
	if err != nil || !approval.Approve {
		return server.Done{}, err
	}
	return server.Done{Text: in.Name}, nil
}

// TestHalves calls a server that has one half of a declaration with a client that has the other
// half, in each revision.
func TestHalves(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			conn, err := gosdk.Connect(t.Context(), serve.HTTP(t, server.JobsTools(impl{})), gosdk.ClientOptions{
				Revision: revision,
				Answer: client.AnswerApproval(func(context.Context, mcptask.Question) (client.Approval, error) {
					return client.Approval{Approve: true}, nil
				}),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			done, err := client.NewJobsClient(conn).Run(t.Context(), client.Job{Name: "a"})
			if err != nil || done.Text != "a" {
				t.Errorf("%+v, %v", done, err)
			}
		})
	}
}
