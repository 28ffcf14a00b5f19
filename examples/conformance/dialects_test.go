package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/conformance/fixture"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

func TestMain(m *testing.M) { peer.Main(m, main) }

// spoken lists the revisions of the server and the client.
var spoken = parseRevisions("all")

// TestDialects calls the fixture's tools with their generated client, in every revision at once. Most of the
// time goes to polls, so the revisions run at once, more of them than parallel subtests may be.
func TestDialects(t *testing.T) {
	t.Parallel()
	url := peer.ServeSelf(t, "-dialects", "all")
	var revisions sync.WaitGroup
	defer revisions.Wait()
	for _, revision := range spoken {
		at := url
		if revision == mcptask.Revision20251125RC {
			at = strings.TrimSuffix(url, "/mcp") + candidatePath
		}
		revisions.Go(func() { t.Run(revision, func(t *testing.T) { callTools(t, at, revision) }) })
	}
}

func callTools(t *testing.T, url, revision string) {
	t.Helper()
	tools := dial(t, url, revision)
	call, err := tools.StartSlowCompute(t.Context(), fixture.SlowComputeInput{Seconds: 0.3, Label: "x"})
	if err != nil {
		t.Fatal(err)
	}
	_, isTask := call.Token()
	if text, err := call.Wait(t.Context()); err != nil || !isTask || text != "computed x in 0.3 s" {
		t.Errorf("%q, %v, a task: %v", text, err, isTask)
	}
	var failed *mcptask.ToolError
	if _, err := tools.FailingJob(t.Context()); !errors.As(err, &failed) {
		t.Errorf("%v", err)
	}
	var broken *mcptask.Error
	if _, err := tools.ProtocolErrorJob(t.Context()); !errors.As(err, &broken) || broken.Code != mcptask.CodeInternalError {
		t.Errorf("%v", err)
	}
	if text, err := tools.ConfirmDelete(t.Context(), fixture.ConfirmDeleteInput{Filename: "a"}); err != nil || text != "a was deleted" {
		t.Errorf("%q, %v", text, err)
	}
}

// TestDefaultDialects calls a server that speaks the default revisions in every revision.
func TestDefaultDialects(t *testing.T) {
	t.Parallel()
	url := peer.ServeSelf(t)
	for _, revision := range spoken {
		call, err := dial(t, url, revision).StartSlowCompute(t.Context(), fixture.SlowComputeInput{Label: "x"})
		if err != nil {
			t.Fatal(err)
		}
		if text, err := call.Wait(t.Context()); err != nil || !strings.HasPrefix(text, "computed x") {
			t.Errorf("%s: %q, %v", revision, text, err)
		}
		if _, isTask := call.Token(); isTask != strings.Contains(","+defaultRevisions+",", ","+revision+",") {
			t.Errorf("%s: a task: %v", revision, isTask)
		}
	}
	if err := serve(t.Context(), mode{addr: "127.0.0.1:0", store: "memory", revisions: parseRevisions("2025-11-25,2025-11-26")}); err == nil || !strings.Contains(err.Error(), "2025-11-26") {
		t.Errorf("%v", err)
	}
}

// dial connects a client that agrees to whatever it is asked.
func dial(t *testing.T, url, revision string) *fixture.FixtureClient {
	t.Helper()
	conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{
		Revision: revision,
		Answer: fixture.AnswerConfirmation(func(context.Context, mcptask.Question) (fixture.Confirmation, error) {
			return fixture.Confirmation{Confirm: true}, nil
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	})
	return fixture.NewFixtureClient(conn)
}
