package gosdk_test

import (
	"context"
	"errors"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// repeated finds a repetition in an error: a package's name, or one part right after itself.
func repeated(text string) string {
	for _, name := range []string{"mcptask: ", "gosdk: ", "invalid arguments", "question", "run_pipeline", "deploy_service", "lint_file"} {
		if strings.Count(text, name) > 1 {
			return name
		}
	}
	parts := strings.Split(text, ": ")
	for i := range parts[1:] {
		if parts[i] == parts[i+1] {
			return parts[i]
		}
	}
	return ""
}

// TestErrorsSayItOnce provokes the errors that users read, and checks that none says a thing twice and that each names
// the tool once.
func TestErrorsSayItOnce(t *testing.T) {
	wiretest.EachRevision(t, func(t *testing.T, revision string) {
		url, _ := wiretest.Serve(t, taskserver.Options{})
		other, _ := wiretest.Serve(t, taskserver.Options{})
		var log wiretest.SafeBuffer
		answers := mcptask.Answer(mcptask.InputSpec{Name: "Unasked", Schema: `{"type":"object"}`}, func(context.Context, mcptask.Question) (struct{}, error) {
			return struct{}{}, mcptask.ErrDeclined
		})
		conn, err := gosdk.Connect(t.Context(), url, gosdk.ClientOptions{Revision: revision, Answer: answers, Logger: slog.New(slog.NewTextHandler(&log, nil))})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		ci := pipeline.NewCIClient(conn)
		elsewhere := wiretest.Connect(t, other, revision, mcptask.Answerer{})
		run := func(branch string) error {
			_, err := ci.RunPipeline(t.Context(), pipeline.RunInput{Repository: "https://example.com/r", Branch: branch})
			return err
		}
		tool := func(name string, in any, options ...mcptask.CallOption) error {
			_, err := mcptask.Run[struct{}](t.Context(), conn, name, in, options...)
			return err
		}
		lost := func(wait bool) error {
			call := startRun(t, ci, "endless")
			token, _ := call.Token()
			moved, err := elsewhere.ResumeRunPipeline(token)
			if err != nil {
				return err
			}
			cancel(t, call)
			if wait {
				_, err = moved.Wait(t.Context())
				return err
			}
			return moved.Cancel(t.Context())
		}
		for name, tc := range map[string]struct {
			err  error
			want string // a regular expression
		}{
			"a panic":             {run("panic"), `^run_pipeline: internal error \(code -32603\)$`},
			"a tool error":        {run("broken"), `^run_pipeline: the branch does not build$`},
			"a JSON-RPC error":    {run("refused"), `^run_pipeline: the repository is locked \(code 4050\)$`},
			"invalid arguments":   {tool("deploy_service", map[string]any{"service": 5}), `^deploy_service: invalid arguments: `},
			"a missing argument":  {tool("lint_file", map[string]any{}), `^lint_file: invalid arguments: `},
			"an unknown tool":     {tool("no_such_tool", map[string]any{}), `^no_such_tool: unknown tool`},
			"a negative ttl":      {tool("run_pipeline", map[string]any{}, mcptask.TTL(-1)), `^run_pipeline: the TTL is -1ns`},
			"a short key":         {tool("run_pipeline", pipeline.RunInput{Repository: "https://example.com/r"}, mcptask.IdempotencyKey("k")), `^run_pipeline: an idempotency key`},
			"no answerer":         {tool("deploy_service", pipeline.DeployInput{Service: "api", Environment: "production"}), `^deploy_service: ship: the question was dismissed$`},
			"what is not encoded": {tool("run_pipeline", func() {}), `^run_pipeline: encode the arguments: json: unsupported type`},
			"a task of another":   {lost(true), `^run_pipeline: there is no task with that ID: this server keeps tasks in memory, so a restart loses them \(code -32602\)$`},
			"its cancellation":    {lost(false), `^run_pipeline: there is no task with that ID: `},
			"a bad token":         {func() error { _, err := ci.ResumeRunPipeline("x"); return err }(), `token`},
			"an expired wait": {func() error {
				ctx, stop := context.WithTimeout(t.Context(), time.Second)
				defer stop()
				_, err := ci.RunPipeline(ctx, pipeline.RunInput{Repository: "https://example.com/r", Branch: "endless"})
				return err
			}(), `deadline exceeded`},
		} {
			switch {
			case tc.err == nil:
				t.Errorf("%s: no error", name)
			case repeated(tc.err.Error()) != "":
				t.Errorf("%s: %q says %q twice", name, tc.err, repeated(tc.err.Error()))
			case !regexp.MustCompile(tc.want).MatchString(tc.err.Error()):
				t.Errorf("%s: %q, want %s", name, tc.err, tc.want)
			}
		}
		if err := lost(true); !errors.Is(err, mcptask.ErrNotFound) {
			t.Errorf("%v", err)
		}
		if !strings.Contains(log.String(), "a question was not answered") || !strings.Contains(log.String(), "input=Approval") {
			t.Errorf("the log does not tell of the question without an answerer: %s", log.String())
		}
		_ = conn.Close()
		if err := run("any"); !errors.Is(err, mcptask.ErrDisconnected) || repeated(err.Error()) != "" {
			t.Errorf("after Close: %v", err)
		}
	})
	_, err := gosdk.Connect(t.Context(), "http://127.0.0.1:1/mcp", gosdk.ClientOptions{})
	if err == nil || repeated(err.Error()) != "" {
		t.Errorf("nobody listens: %v", err)
	}
}
