package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// toolSteps does its work in steps, and restarts. Its runs are written down as effects, not in a history.
const toolSteps Tool = "steps_restart"

// stepNames are the steps of toolSteps, in their order.
var stepNames = []string{"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9"}

// effect is a line in the file of effects, which all processes append to.
type effect struct {
	At            time.Time
	Process, Task string
	Attempt       int
	Step, Key     string
	// Value is what the step has returned in the run. It is 0 in the line of the work itself.
	Value int `json:",omitempty"`
}

// effects appends to the file of effects.
type effects struct{ file *os.File }

// openEffects opens the file of effects.
func openEffects(path string) (effects, error) {
	file, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	return effects{file}, err
}

// write appends an effect durably. The line begins with a newline: a killed process may have left a part of its last line.
func (f effects) write(e effect) error {
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(f.file, "\n%s\n", line); err != nil {
		return err
	}
	return f.file.Sync()
}

// effectLog has the file of effects as a test has read it.
type effectLog struct {
	path  string
	end   int64
	lines []effect
}

// read reads on, and returns all lines.
func (l *effectLog) read(t *testing.T) []effect {
	t.Helper()
	file, err := os.Open(l.path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }() // it is only read
	data, err := io.ReadAll(io.NewSectionReader(file, l.end, math.MaxInt64-l.end))
	if err != nil {
		t.Fatal(err)
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	l.end += int64(len(data))
	for line := range bytes.Lines(data) {
		var e effect
		if json.Unmarshal(line, &e) == nil { // otherwise the process was killed while it wrote
			l.lines = append(l.lines, e)
		}
	}
	return l.lines
}

// begin returns when a process has written its first line.
func (l *effectLog) begin(process string) time.Time {
	return l.lines[slices.IndexFunc(l.lines, func(e effect) bool { return e.Process == process })].At
}

// takeSteps does ten steps. Each works a while before and after its effect. The value of a step is the run that did it.
func (n notes) takeSteps(ctx context.Context, task *mcptask.Task, in workInput) (string, error) {
	var values []string
	for _, name := range stepNames {
		e := effect{Process: n.process, Task: task.ID(), Attempt: task.Attempt(), Step: name, Key: mcptask.StepKey(task, name)}
		pause := func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(time.Duration(in.MS) * time.Millisecond / 2):
				return nil
			}
		}
		value, err := mcptask.Step(ctx, task, name, func(ctx context.Context) (int, error) {
			if err := pause(ctx); err != nil {
				return 0, err
			}
			e.At = n.now()
			if err := n.effects.write(e); err != nil {
				return 0, err
			}
			return task.Attempt(), pause(ctx)
		})
		if err != nil {
			return "", err
		}
		e.At, e.Value = n.now(), value
		if err := n.effects.write(e); err != nil {
			return "", err
		}
		values = append(values, fmt.Sprint(value))
	}
	return strings.Join(values, ","), nil
}

// stepsEnd is what is known of a task of toolSteps at its end.
type stepsEnd struct {
	result string
	steps  []taskstore.Step
}

// stepsCount counts what has happened in the tasks of toolSteps.
type stepsCount struct{ tasks, runs, steps, again int }

// String describes the count.
func (c stepsCount) String() string {
	return fmt.Sprintf("%d tasks in %d runs: %d steps were stored, and %d ran that were not stored", c.tasks, c.runs, c.steps, c.again)
}

// checkSteps compares the effects of tasks with their ends, and returns the faults. A step may have run before the run that
// has stored it, and never after, always with the same key. All runs have seen the value that is stored.
func checkSteps(lines []effect, ends map[string]stepsEnd) (count stepsCount, faults []string) {
	report := func(task, format string, args ...any) {
		faults = append(faults, "task "+task+": "+fmt.Sprintf(format, args...))
	}
	type place struct{ task, step string }
	work, values, keys, runs := map[place][]effect{}, map[place][]effect{}, map[string]place{}, map[string]bool{}
	for _, e := range lines {
		at := place{e.Task, e.Step}
		runs[fmt.Sprint(e.Task, e.Attempt)] = true
		if other, ok := keys[e.Key]; ok && other != at {
			report(e.Task, "the step %s has the key of the step %s of the task %s", e.Step, other.step, other.task)
		}
		keys[e.Key] = at
		if e.Value == 0 {
			work[at] = append(work[at], e)
		} else {
			values[at] = append(values[at], e)
		}
		if _, ok := ends[e.Task]; !ok {
			report(e.Task, "it has run, and has no end")
		}
	}
	for task, end := range ends {
		count.tasks++
		var stored []string
		for _, step := range end.steps {
			stored = append(stored, string(step.Value))
			count.steps++
			at, done, key := place{task, step.Name}, 0, ""
			for _, e := range work[at] {
				switch {
				case e.Attempt > step.Attempt:
					report(task, "run %d did the step %s, which run %d had stored", e.Attempt, e.Step, step.Attempt)
				case e.Attempt == step.Attempt:
					done++
				default:
					count.again++
				}
				if key != "" && key != e.Key {
					report(task, "the step %s ran with the keys %s and %s", e.Step, key, e.Key)
				}
				key = e.Key
			}
			if done != 1 {
				report(task, "run %d has stored the step %s, and did it %d times", step.Attempt, step.Name, done)
			}
			if string(step.Value) != fmt.Sprint(step.Attempt) {
				report(task, "run %d has stored the step %s with the value %s", step.Attempt, step.Name, step.Value)
			}
			for _, e := range values[at] {
				if fmt.Sprint(e.Value) != string(step.Value) {
					report(task, "run %d got %d from the step %s, which is stored with the value %s", e.Attempt, e.Value, e.Step, step.Value)
				}
			}
		}
		names := make([]string, 0, len(end.steps))
		for _, step := range end.steps {
			names = append(names, step.Name)
		}
		if !slices.Equal(names, stepNames) {
			report(task, "it has ended with the steps %q", names)
		}
		if end.result != strings.Join(stored, ",") {
			report(task, "its result is %q, and its steps are %q", end.result, stored)
		}
	}
	count.runs = len(runs)
	return count, faults
}

// TestCheckStepsFindsFaults checks that checkSteps finds each fault, and none without one.
func TestCheckStepsFindsFaults(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(lines *[]effect, end *stepsEnd)
		fault  string
	}{
		"none":          {func(*[]effect, *stepsEnd) {}, ""},
		"stored, again": {func(l *[]effect, _ *stepsEnd) { *l = append(*l, effect{Task: "t", Step: "s4", Key: "s4", Attempt: 3}) }, "run 3 did the step s4, which run 2 had stored"},
		"twice in a run": {func(l *[]effect, _ *stepsEnd) {
			*l = append(*l, effect{Task: "t", Step: "s4", Key: "s4", Attempt: 2})
		}, "did it 2 times"},
		"stored, not done": {func(_ *[]effect, end *stepsEnd) { end.steps[3].Attempt = 2; end.steps[3].Value = []byte("2") }, "did it 0 times"},
		"another key":      {func(l *[]effect, _ *stepsEnd) { (*l)[9].Key = "x" }, "ran with the keys"},
		"shared key":       {func(l *[]effect, _ *stepsEnd) { (*l)[2].Key = "s0" }, "has the key of the step s0"},
		"another value":    {func(l *[]effect, _ *stepsEnd) { (*l)[1].Value = 2 }, "got 2 from the step s0"},
		"lost step":        {func(_ *[]effect, end *stepsEnd) { end.steps = end.steps[:9] }, "it has ended with the steps"},
		"another result":   {func(_ *[]effect, end *stepsEnd) { end.result = "1,1" }, `its result is "1,1"`},
		"no end":           {func(l *[]effect, _ *stepsEnd) { *l = append(*l, effect{Task: "u", Step: "s0", Key: "y", Attempt: 1}) }, "has no end"},
	} {
		t.Run(name, func(t *testing.T) {
			// Run 1 is killed in s4, and run 2 goes on there.
			var lines []effect
			end := stepsEnd{result: "1,1,1,1,2,2,2,2,2,2"}
			for i, step := range stepNames {
				run := 1
				if i >= 4 {
					run = 2
				}
				e := effect{Task: "t", Step: step, Key: step, Attempt: run}
				if i == 4 {
					early := e
					early.Attempt = 1
					lines = append(lines, early)
				}
				lines = append(lines, e)
				e.Value = run
				lines = append(lines, e)
				end.steps = append(end.steps, taskstore.Step{Name: step, Kind: taskstore.StepDone, Attempt: run, Value: []byte(fmt.Sprint(run))})
			}
			c.change(&lines, &end)
			count, faults := checkSteps(lines, map[string]stepsEnd{"t": end})
			if all := strings.Join(faults, "\n"); (c.fault == "") != (all == "") || !strings.Contains(all, c.fault) {
				t.Errorf("the faults are %q, want one with %q", all, c.fault)
			}
			if want := (stepsCount{1, 2, 10, 1}); c.fault == "" && count != want {
				t.Errorf("%v, want %v", count, want)
			}
		})
	}
}
