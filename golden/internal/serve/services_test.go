package serve_test

import (
	"context"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/services"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

type servicesBuilds struct{}

func (servicesBuilds) Run(ctx context.Context, _ *mcptask.Task, in services.Job) (services.Report, error) {
	select {
	case <-time.After(5 * time.Minute):
		return services.Report{Names: []string{in.Name}}, nil
	case <-ctx.Done():
		return services.Report{}, ctx.Err()
	}
}

func (servicesBuilds) List(context.Context) (services.Report, error) { return services.Report{}, nil }

type servicesReleases struct{}

func (servicesReleases) Run(_ context.Context, _ *mcptask.Task, in services.Job, sure services.Sure) (services.Report, error) {
	if !sure.Yes {
		return services.Report{}, nil
	}
	return services.Report{Names: []string{in.Name, "released"}}, nil
}

func (servicesReleases) Undo(ctx context.Context, task *mcptask.Task, in services.Job) (services.Report, error) {
	sure, err := services.AskSure(ctx, task, "undo", "Undo "+in.Name+"?")
	if err != nil || !sure.Yes {
		return services.Report{}, err
	}
	return services.Report{Names: []string{in.Name, "undone"}}, nil
}

func TestServices(t *testing.T) {
	answer := func(s *serve.Session) mcptask.Answerer {
		return services.AnswerSure(serve.Answers(s, services.Sure{Yes: true}))
	}
	serve.Each(t, answer, []string{"Sure"}, func(s *serve.Session) {
		build, release := services.NewBuildsClient(s), services.NewReleasesClient(s)
		job := services.Job{Name: "a"}
		begin := time.Now()
		serve.Returns(s, "builds_run", build.Run, job, services.Report{Names: []string{"a"}})
		if took := time.Since(begin); took < 5*time.Minute {
			s.Errorf("five minutes took %v", took)
		}
		serve.Wants(s, "builds_list", services.Report{}, func() (services.Report, error) { return build.List(s.Context()) })
		serve.Returns(s, "releases.run", release.Run, job, services.Report{Names: []string{"a", "released"}})
		serve.Returns(s, "releases.undo", release.Undo, job, services.Report{Names: []string{"a", "undone"}})
	}, services.BuildsTools(servicesBuilds{}), services.ReleasesTools(servicesReleases{}))
}
