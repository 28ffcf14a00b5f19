package golden_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/mcptaskgen/mcptaskgen/generator"
	"github.com/mcptaskgen/mcptaskgen/generator/commandline"
	"github.com/mcptaskgen/mcptaskgen/golden/variants/client"
	"github.com/mcptaskgen/mcptaskgen/golden/variants/newest"
	"github.com/mcptaskgen/mcptaskgen/golden/variants/server"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/schema"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// variants are the packages that are generated otherwise, each as its line for go generate says.
func variants(t *testing.T) map[string]generator.Config {
	t.Helper()
	configs := map[string]generator.Config{}
	files, err := filepath.Glob(filepath.Join("variants", "*", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Dir(file)
		for _, comment := range lines(source) {
			line, err := commandline.ParseLine(comment, file, filepath.Base(dir))
			if err != nil {
				t.Errorf("%s: %v", file, err)
			} else if line != nil {
				line.Config.Dir, line.Config.Patterns = "", []string{"./" + filepath.ToSlash(dir)}
				configs[filepath.ToSlash(dir)] = line.Config
			}
		}
	}
	return configs
}

// TestVariants holds the files, and that each revision that is off unless it is named is in one.
func TestVariants(t *testing.T) {
	revisions := schema.ReleasedRevisions()
	for dir, cfg := range variants(t) {
		revisions = append(revisions, cfg.Revisions...)
		out, err := generator.Generate(t.Context(), cfg)
		if err != nil {
			t.Error(err)
			continue
		}
		if *update {
			if _, err := out.Write(); err != nil {
				t.Error(err)
			}
		}
		text, err := out.Diff()
		if err != nil || text != "" {
			t.Errorf("%s is stale: %v\n%s", dir, err, text)
		}
		for path, content := range out.Files {
			checkLayout(t, path, string(content))
		}
	}
	for _, revision := range schema.Revisions() {
		if !slices.Contains(revisions, revision) {
			t.Errorf("no package below variants is generated for %s", revision)
		}
	}
}

type jobs struct{}

func (jobs) Run(ctx context.Context, task *mcptask.Task, in server.Job) (server.Done, error) {
	approval, err := server.AskApproval(ctx, task, "go", "")
	if err != nil || !approval.Approve {
		return server.Done{}, errors.Join(errors.New("not approved"), err)
	}
	return server.Done{Text: in.Name}, nil
}

// TestHalves: what one program has of a declaration calls what another has.
func TestHalves(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			answer := client.AnswerApproval(func(context.Context, mcptask.Question) (client.Approval, error) {
				return client.Approval{Approve: true}, nil
			})
			conn := mcptasktest.Connect(wirecheck.TB(t), revision, mcptasktest.Options{Answer: answer}, server.JobsTools(jobs{}))
			done, err := client.NewJobsClient(conn).Run(t.Context(), client.Job{Name: "a"})
			if err != nil || done.Text != "a" {
				t.Errorf("%+v, %v", done, err)
			}
		})
	})
}

type newestJobs struct{}

func (newestJobs) Run(_ context.Context, task *mcptask.Task, in newest.Job) (newest.Done, error) {
	return newest.Done{Text: in.Name + task.ID()}, nil
}

// TestRevisions: where a revision is left out, its clients see no tasks, and are answered plainly.
func TestRevisions(t *testing.T) {
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
			got := map[string]bool{"a task": isTask, "an ID": done.Text != "a"}
			want := revision == mcptask.Revision20260728
			if d := cmp.Diff(map[string]bool{"a task": want, "an ID": want}, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	})
}
