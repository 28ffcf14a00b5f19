package serve_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/golden/internal/serve"
	"github.com/mcptaskgen/mcptaskgen/golden/questions"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

var questionsTime = time.Date(2026, 11, 20, 8, 30, 0, 0, time.UTC)

type questionsImpl struct{}

func questionsAnswer(sure questions.Sure, which questions.Which) bool {
	return sure.Yes && which.One == "a" && len(which.Many) == 2 && which.Count == 3 && which.When.Equal(questionsTime) && *which.Note == "n"
}

func (questionsImpl) AskFirst(_ context.Context, _ *mcptask.Task, _ questions.Input, sure questions.Sure, which questions.Which) (questions.Report, error) {
	return questions.Report{Done: questionsAnswer(sure, which)}, nil
}

func (questionsImpl) AskOnly(_ context.Context, which questions.Which) error {
	if !questionsAnswer(questions.Sure{Yes: true}, which) {
		return errors.New("another answer")
	}
	return nil
}

func (questionsImpl) AskInside(ctx context.Context, task *mcptask.Task, _ questions.Input) (questions.Report, error) {
	which, err := questions.AskWhich(ctx, task, "which", "")
	if err != nil {
		return questions.Report{}, err
	}
	for range 2 {
		sure, err := questions.AskSure(ctx, task, "sure", "")
		if err != nil || !questionsAnswer(sure, which) {
			return questions.Report{}, err
		}
	}
	return questions.Report{Done: true}, nil
}

func TestQuestions(t *testing.T) {
	note := "n"
	answer := func(s *serve.Session) mcptask.Answerer {
		return mcptask.Answers(
			questions.AnswerSure(serve.Answers(s, questions.Sure{Yes: true})),
			questions.AnswerWhich(serve.Answers(s, questions.Which{One: "a", Many: []string{"a", "b"}, Count: 3, When: questionsTime, Note: &note})))
	}
	serve.Each(t, answer, []string{"Sure", "Which"}, func(s *serve.Session) {
		client, insider := questions.NewAskerClient(s), questions.NewInsiderClient(s)
		done := questions.Report{Done: true}
		serve.Returns(s, "ask_first", client.AskFirst, questions.Input{Name: "a"}, done)
		serve.Returns(s, "ask_inside", insider.AskInside, questions.Input{}, done)
		serve.Wants(s, "ask_only", struct{}{}, func() (struct{}, error) { return struct{}{}, client.AskOnly(s.Context()) })
	}, questions.AskerTools(questionsImpl{}), questions.InsiderTools(questionsImpl{}))
}
