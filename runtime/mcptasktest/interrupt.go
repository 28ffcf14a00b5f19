package mcptasktest

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/tuning"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// Point is a moment in a run of a handler at which Options.Interrupt may end the run.
type Point struct {
	// TaskID is the ID of the task, and Tool its tool.
	TaskID, Tool string
	// Step is the name of a step or of a mcptask.Sleep. It is name#2 if the run uses a name again.
	Step string
	// After says that the result of the step is stored, or that the sleep is over. Otherwise the work of the step is
	// about to begin, or the sleep.
	After bool
	// Attempt counts the runs of the task, from 1.
	Attempt int
}

// Before is the point at which the work of a step begins, or a sleep.
func Before(step string) Point { return Point{Step: step} }

// After is the point at which the result of a step is stored, or a sleep is over.
func After(step string) Point { return Point{Step: step, After: true} }

// String returns the Go expression that makes the point.
func (p Point) String() string {
	if p.After {
		return fmt.Sprintf("mcptasktest.After(%q)", p.Step)
	}
	return fmt.Sprintf("mcptasktest.Before(%q)", p.Step)
}

// Once returns a function for Options.Interrupt. It interrupts each task once at each of the points. A point that no run
// has reached by the end of the test fails the test.
func Once(t testing.TB, points ...Point) func(Point) bool {
	t.Helper()
	var mu sync.Mutex
	var passed []string                                 // the points of all runs
	reached, done := map[Point]bool{}, map[Point]bool{} // done has TaskID, Step and After
	t.Cleanup(func() {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		for _, p := range points {
			if !reached[p] {
				t.Errorf("mcptasktest: no run reached %v; the points were %s\n\tremove it from Once, or correct the step", p, listOr(passed, "none"))
			}
		}
	})
	return func(p Point) bool {
		mu.Lock()
		defer mu.Unlock()
		if text := p.String(); !slices.Contains(passed, text) {
			passed = append(passed, text)
		}
		point := Point{Step: p.Step, After: p.After}
		reached[point] = true
		one := Point{TaskID: p.TaskID, Step: p.Step, After: p.After}
		if done[one] || !slices.Contains(points, point) {
			return false
		}
		done[one] = true
		return true
	}
}

// Interrupt ends the runs of all tasks of a server as if its process had been killed and another one had taken the
// tasks, see Options.Interrupt. conn is a connection that Connect has returned. A test calls Interrupt at a time, or
// from a fake that the handler calls. Interrupt fails the test if no handler of a task runs.
func Interrupt(t testing.TB, conn mcptask.Conn) {
	t.Helper()
	c, ok := conn.(*testConn)
	switch {
	case !ok:
		t.Errorf("mcptasktest: Interrupt has got a %T: pass the connection that Connect has returned", conn)
	case loseRuns(c.tasks, "", 0) == 0:
		t.Error("mcptasktest: Interrupt found no run of a task: interrupt while a handler runs, and leave Options.Server.Executor nil")
	}
}

// newHooks returns hooks that interrupt the runs of a server at points.
func newHooks(interrupt func(Point) bool) taskserver.Hooks {
	var server *taskserver.Server
	made := make(chan struct{}) // a server may run the tasks of its store before it is made
	meet := func(ctx context.Context, info taskserver.StepInfo, isAfter bool) {
		if ctx.Err() == nil && interrupt(Point{info.Task.ID, info.Task.Tool, info.Name, isAfter, info.Task.Attempt}) {
			<-made
			loseRuns(server, info.Task.ID, info.Task.Attempt)
		}
	}
	return taskserver.Hooks{
		Server: func(s *taskserver.Server) {
			server = s
			close(made)
		},
		Step: func(ctx context.Context, info taskserver.StepInfo) (context.Context, func(error)) {
			meet(ctx, info, false)
			return ctx, func(err error) {
				if err == nil {
					meet(ctx, info, true)
				}
			}
		},
	}
}

// loseRuns ends an attempt of a task, or the runs of all tasks if the ID is "". It returns how many there were.
func loseRuns(server *taskserver.Server, taskID string, attempt int) int {
	lose, ok := server.Backend().Attached(tuning.LoseRuns{}, func() any { return nil }).(func(string, int) int)
	if !ok {
		return 0
	}
	return lose(taskID, attempt)
}
