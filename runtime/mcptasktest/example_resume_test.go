package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// runPipeline starts a pipeline, or continues the one whose token is in the file. The key names this piece of work.
func runPipeline(
	ctx context.Context, client *pipeline.CIClient, key, file string, in pipeline.RunInput,
) (pipeline.RunReport, error) {
	var call *mcptask.Call[pipeline.RunReport]
	token, err := os.ReadFile(file)
	switch {
	case err == nil:
		call, err = client.ResumeRunPipeline(mcptask.Token(token))
	case errors.Is(err, fs.ErrNotExist):
		call, err = client.StartRunPipeline(ctx, in, mcptask.IdempotencyKey(key))
	}
	if err != nil {
		return pipeline.RunReport{}, err
	}
	return finish(ctx, call, file)
}

// finish waits for a call. It keeps the call's token in the file until the task has ended or is gone.
func finish[Out any](ctx context.Context, call *mcptask.Call[Out], file string) (Out, error) {
	var none Out
	token, isTask := call.Token()
	if isTask {
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			return none, err
		}
	}
	for snapshot, err := range call.Updates(ctx) {
		if errors.Is(err, mcptask.ErrNotFound) || errors.Is(err, mcptask.ErrExpired) {
			return none, errors.Join(err, os.Remove(file))
		}
		if err != nil { // the task may go on: the file stays
			return none, err
		}
		fmt.Println(snapshot.Status, snapshot.Message)
	}
	out, err := call.Wait(ctx) // the call is done
	if isTask && ctx.Err() == nil {
		err = errors.Join(err, os.Remove(file))
	}
	return out, err
}

// TestResumedCall interrupts a program that runs pipelines: while it waits, and before it has kept the token.
func TestResumedCall(t *testing.T) {
	in := pipeline.RunInput{Repository: "https://example.com/shop", Steps: []string{"build", "test", "ship"}}
	const key = "release 2026-11-23 of the shop"
	waits := func(t *testing.T, client *pipeline.CIClient, file string) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
		defer cancel()
		if _, err := runPipeline(ctx, client, key, file, in); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	hasNoToken := func(t *testing.T, client *pipeline.CIClient, _ string) {
		if _, err := client.StartRunPipeline(t.Context(), in, mcptask.IdempotencyKey(key)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Minute)
	}
	for name, interrupted := range map[string]func(*testing.T, *pipeline.CIClient, string){"waits": waits, "has no token": hasNoToken} {
		t.Run(name, func(t *testing.T) {
			mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
				bubble.Test(t, func(t *testing.T) {
					file := filepath.Join(t.TempDir(), "token")
					client := pipeline.NewCIClient(mcptasktest.Connect(t, revision, mcptasktest.Options{}, pipeline.CITools(ci{})))
					began := time.Now()
					interrupted(t, client, file)
					report, err := runPipeline(t.Context(), client, key, file, in)
					if took := time.Since(began); err != nil || len(report.Steps) != 3 || took > 65*time.Minute {
						t.Errorf("%+v, %v after %s: the work of an hour was not continued", report, err, took)
					}
					if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
						t.Errorf("the token is left: %v", err)
					}
				})
			})
		})
	}
}

// TestResumedCallIsGone deletes the token of a task that the server does not have.
func TestResumedCallIsGone(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "token")
		connect := func() *pipeline.CIClient {
			return pipeline.NewCIClient(mcptasktest.Connect(t, mcptask.Revision20260728, mcptasktest.Options{}, pipeline.CITools(ci{})))
		}
		call, err := connect().StartRunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/shop"})
		if err != nil {
			t.Fatal(err)
		}
		token, _ := call.Token()
		if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = runPipeline(t.Context(), connect(), "unused", file, pipeline.RunInput{}) // another server
		if _, left := os.Stat(file); !errors.Is(err, mcptask.ErrNotFound) || !errors.Is(left, fs.ErrNotExist) {
			t.Errorf("%v, and the token: %v", err, left)
		}
	})
}
