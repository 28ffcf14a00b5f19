package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/pipeline"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

// TestListTasks lists more tasks than a page has, and resumes one by its ID.
func TestListTasks(t *testing.T) {
	rules.Covers(t, "C-70", "C-71")
	t.Parallel()
	options := taskserver.Options{
		Principal: func(context.Context) (string, error) { return "ann", nil },
		Limits:    wiretest.NoPollLimits,
	}
	const all = 120
	eachServedWay(t, mcptask.Revision20251125, options, pipeline.CITools(wiretest.CI{}), func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		ctx := within(t, time.Hour)
		conn := connect(gosdk.ClientOptions{})
		ci := pipeline.NewCIClient(conn)
		for range all {
			if _, err := startRun(t, ci, "main", "build").Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		tasks, err := conn.(mcptask.Lister).ListTasks(ctx)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]bool{}
		for _, task := range tasks {
			seen[task.TaskID] = true
			if task.Status != mcptask.StatusCompleted || task.Tool != "run_pipeline" {
				t.Errorf("%+v", task)
			}
		}
		if len(tasks) != all || len(seen) != all {
			t.Errorf("%d tasks, %d of them different", len(tasks), len(seen))
		}
		call, err := mcptask.Resume[*mcptask.Result](conn, "", mcptask.NewToken("", tasks[all/2].TaskID))
		if err != nil {
			t.Fatal(err)
		}
		if result, err := call.Wait(ctx); err != nil || len(result.Structured) == 0 {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

// TestListTasksNowhere asks for a list in the revision that has none.
func TestListTasksNowhere(t *testing.T) {
	t.Parallel()
	eachServedWay(t, mcptask.Revision20260728, taskserver.Options{}, pipeline.CITools(wiretest.CI{}), func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
		_, err := connect(gosdk.ClientOptions{}).(mcptask.Lister).ListTasks(t.Context())
		var wire *mcptask.Error
		if !errors.As(err, &wire) || wire.Code != mcptask.CodeMethodNotFound {
			t.Errorf("%v", err)
		}
	})
}

// TestAnswerAny answers a form by its schema alone.
func TestAnswerAny(t *testing.T) {
	t.Parallel()
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			eachServedWay(t, revision, taskserver.Options{}, pipeline.CITools(wiretest.CI{}), func(t *testing.T, connect func(gosdk.ClientOptions) mcptask.Conn) {
				var asked mcptask.Question
				conn := connect(gosdk.ClientOptions{Answer: mcptask.AnswerAny(func(_ context.Context, q mcptask.Question) (json.RawMessage, error) {
					asked = q
					return json.RawMessage(`{"approve":true}`), nil
				})})
				in := pipeline.DeployInput{Service: "api", Environment: "production"}
				result, err := mcptask.Run[*mcptask.Result](within(t, wiretest.Patience), conn, "deploy_service", in)
				if err != nil || result.IsError {
					t.Fatalf("%+v, %v", result, err)
				}
				if asked.Message == "" || len(asked.Schema) == 0 {
					t.Errorf("%+v", asked)
				}
			})
		})
	}
}
