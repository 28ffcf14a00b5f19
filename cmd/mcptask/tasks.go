package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/indent"
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
		return &failure{code: exitUsage, kind: "no_question", task: id, error: errors.New("the task asks nothing")}
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

// printTasks lists the tasks of the caller.
func printTasks(ctx context.Context, s *session) error {
	tasks, err := s.listTasks(ctx)
	var wire *mcptask.Error
	if errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound {
		return &failure{code: exitFailed, kind: "no_list", error: errors.New("the server lists no tasks: it does not know who calls, or speaks a revision " +
			"without a list. If it has authentication, send a token with --token-env. The IDs of tasks are also in its log and in the output of mcptask call --detach")}
	}
	if err != nil {
		return err
	}
	if s.stale {
		tasks = slices.DeleteFunc(tasks, func(t mcptask.Snapshot) bool { return t.Stale == "" })
	}
	slices.SortFunc(tasks, func(a, b mcptask.Snapshot) int { return b.CreatedAt.Compare(a.CreatedAt) })
	return s.printList(tasks)
}

// takeListRevision takes the one revision that has a list of tasks, unless the person names one.
func (c *config) takeListRevision() {
	c.server.Revision = cmp.Or(c.server.Revision, mcptask.Revision20251125)
}

// listTasks returns the tasks of the caller.
func (s *session) listTasks(ctx context.Context) ([]mcptask.Snapshot, error) {
	lister, ok := s.conn.(mcptask.Lister)
	if !ok {
		return nil, usageFailure(errors.New("this connection lists no tasks"))
	}
	return lister.ListTasks(ctx)
}

// printList prints tasks, a line each.
func (s *session) printList(tasks []mcptask.Snapshot) error {
	s.terminal.Close()
	switch s.format {
	case formatLines:
		for _, task := range tasks {
			if err := s.printLine(describeState(task)); err != nil {
				return err
			}
		}
		return nil
	case formatJSON:
		all := []state{}
		for _, task := range tasks {
			all = append(all, describeState(task))
		}
		text, err := json.Marshal(all)
		fmt.Fprintf(s.stdout, "%s\n", indent.JSON(text))
		return err
	}
	w := tabwriter.NewWriter(s.stdout, 0, 0, 2, ' ', 0)
	for _, task := range tasks {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", terminal.Printable(task.TaskID, false), terminal.Printable(string(task.Status), false), task.CreatedAt.Local().Format(time.DateTime), terminal.Printable(cmp.Or(task.Stale, task.Message), false))
	}
	return w.Flush()
}
