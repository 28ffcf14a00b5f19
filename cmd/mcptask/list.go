package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/mcptaskgen/mcptaskgen/internal/indent"
	"github.com/mcptaskgen/mcptaskgen/internal/terminal"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// taskList is a list of the caller's tasks.
type taskList struct {
	statuses []string // the only ones, or nil
	tool     string   // the only one, or ""
	stale    bool     // only tasks that the server cannot run
	limit    int      // of tasks; 0 means all
}

// defaultLimit is how many tasks a person gets.
const defaultLimit = 20

// statuses are the values of --status.
var statuses = []string{
	string(mcptask.StatusWorking), string(mcptask.StatusInputRequired), string(mcptask.StatusCompleted), string(mcptask.StatusFailed), string(mcptask.StatusCancelled),
}

// run prints the list.
func (l taskList) run(ctx context.Context, s *session) error {
	tasks, err := s.listTasks(ctx)
	var wire *mcptask.Error
	if errors.As(err, &wire) && wire.Code == mcptask.CodeMethodNotFound {
		return &failure{code: exitFailed, kind: "no_list", error: errors.New("the server lists no tasks: it does not know who calls, or speaks a revision " +
			"without a list. If it has authentication, send a token with --token-env. The IDs of tasks are also in its log and in the output of mcptask call --detach")}
	}
	if err != nil {
		return err
	}
	hasTool := func(t mcptask.Snapshot) bool { return t.Tool != "" }
	if l.tool != "" && len(tasks) > 0 && !slices.ContainsFunc(tasks, hasTool) {
		return &failure{code: exitFailed, kind: "no_tools", error: errors.New("--tool: the server does not name the tools of its tasks")}
	}
	tasks = slices.DeleteFunc(tasks, func(t mcptask.Snapshot) bool {
		return l.stale && t.Stale == "" || l.tool != "" && t.Tool != l.tool || len(l.statuses) > 0 && !slices.Contains(l.statuses, string(t.Status))
	})
	slices.SortFunc(tasks, func(a, b mcptask.Snapshot) int { return b.CreatedAt.Compare(a.CreatedAt) })
	more := 0
	if l.limit > 0 && len(tasks) > l.limit {
		tasks, more = tasks[:l.limit], len(tasks)-l.limit
	}
	if err := s.printList(tasks); err != nil {
		return err
	}
	switch {
	case s.format != formatText || s.quiet:
	case len(tasks) == 0:
		s.terminal.Printf("no tasks")
	case more > 0:
		s.terminal.Printf("%d more: --limit 0 lists all", more)
	}
	return nil
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
	now := time.Now()
	var rows [][]string
	if isTerminal(s.stdout) && len(tasks) > 0 {
		rows = append(rows, []string{"TASK", "STATUS", "AGE", "TOOL", "MESSAGE"})
	}
	for _, task := range tasks {
		rows = append(rows, []string{task.TaskID, string(task.Status), formatAge(now, task.CreatedAt), cmp.Or(task.Tool, "-"), cmp.Or(task.Stale, task.Message)})
	}
	return terminal.PrintTable(s.stdout, rows)
}

// formatAge formats how long ago a time was, in its largest unit.
func formatAge(now, then time.Time) string {
	age := max(now.Sub(then), 0)
	switch {
	case then.IsZero():
		return "-"
	case age < time.Minute:
		return fmt.Sprintf("%ds", age/time.Second)
	case age < time.Hour:
		return fmt.Sprintf("%dm", age/time.Minute)
	case age < 48*time.Hour:
		return fmt.Sprintf("%dh", age/time.Hour)
	}
	return fmt.Sprintf("%dd", age/(24*time.Hour))
}
