package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// resume resumes the call of a task.
func (s *session) resume(id string) (*mcptask.Call[*mcptask.Result], error) {
	return mcptask.Resume[*mcptask.Result](s.conn, "", mcptask.NewToken("", id))
}

// watch waits for a task and prints its result.
func (s *session) watch(ctx context.Context, id string) error {
	call, err := s.resume(id)
	if err != nil {
		return usageFailure(err)
	}
	return s.follow(ctx, id, call)
}

// answerTask answers a question of a task, and prints the task as JSON if the format is. key may be the question's type
// instead. If it is "", it answers the one that is open. If answer is "", the person is asked.
func (s *session) answerTask(ctx context.Context, id, key, answer string) error {
	call, err := s.resume(id)
	if err != nil {
		return usageFailure(err)
	}
	if answer != "" {
		s.answers, s.noInput, s.single = map[string]string{cmp.Or(key, "*"): answer}, true, true
	}
	if key != "*" {
		s.only = key
	}
	s.task = id
	isAnswered := false
	var last, now mcptask.Snapshot
updates:
	for snapshot, err := range call.Updates(ctx) {
		if err != nil {
			return err
		}
		select {
		case <-s.answered:
			isAnswered = true
		default:
		}
		last, now = now, snapshot
		switch {
		case now.Status != mcptask.StatusInputRequired, isAnswered && s.hasArrived(ctx, last, now):
			break updates
		case len(now.Questions) == 0 || slices.ContainsFunc(now.Questions, func(q mcptask.Question) bool { return !s.isForAnother(q) }):
		case isAnswered: // and the others stay open
			break updates
		default:
			return s.needAnswer(id, openQuestion{now.Questions[0], s.checkNames(now.Questions[0])})
		}
	}
	if !isAnswered {
		return &failure{code: exitUsage, kind: "no_question", task: id, error: errors.New("the task is not waiting for an answer")}
	}
	if s.format != formatText {
		return s.printLine(describeState(now))
	}
	return nil
}

// hasArrived reports whether the server has the one answer of the command line, though the task has more questions.
func (s *session) hasArrived(ctx context.Context, before, now mcptask.Snapshot) bool {
	q := s.taker()
	switch {
	case q == nil:
		return false
	case q.Key != "":
		return !slices.ContainsFunc(now.Questions, func(open mcptask.Question) bool { return open.Key == q.Key })
	case before.UpdatedAt.IsZero(), now.UpdatedAt.Equal(before.UpdatedAt): // the first state is from before the question was read
		return false
	}
	// Another question, though perhaps from before the answer.
	select {
	case <-time.After(settleWithin):
	case <-ctx.Done():
	}
	return true
}

// cancelTasks cancels tasks. The error is the first one's.
func (s *session) cancelTasks(ctx context.Context, ids []string) error {
	var first error
	for _, id := range ids {
		after, err := s.cancel(ctx, id)
		if err == nil && after.Done() && after.Status != mcptask.StatusCancelled {
			err = &failure{code: exitFailed, kind: "ended", task: id, error: fmt.Errorf("%s: the task has already ended: %s", id, after.Status)}
		}
		switch {
		case err != nil && ctx.Err() != nil:
			return err
		case err != nil && first == nil:
			first = describeFailure(fmt.Errorf("%s: %w", id, withoutSubject(err)), id)
		case err != nil:
		case s.format != formatText:
			if err := s.printLine(describeState(after)); err != nil {
				return err
			}
		case !s.quiet:
			fmt.Fprintf(s.stderr, "%s: the server accepted the cancellation\n", terminal.Printable(id, false))
		}
	}
	return first
}

// cancel cancels a task, and returns its state after that.
func (s *session) cancel(ctx context.Context, id string) (after mcptask.Snapshot, err error) {
	call, err := s.resume(id)
	if err != nil {
		return after, err
	}
	if err := call.Cancel(ctx); err != nil {
		return after, err
	}
	ctx, stop := context.WithTimeout(ctx, cancelWithin)
	defer stop()
	if after, err = s.conn.Task(ctx, id); err != nil { // a server may forget a cancelled task at once
		after = mcptask.Snapshot{TaskID: id, Status: mcptask.StatusCancelled}
	}
	return after, nil
}
