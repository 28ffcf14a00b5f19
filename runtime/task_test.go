package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/schema/rules"
)

func TestStepKeys(t *testing.T) {
	rules.Covers(t, "E-42")
	var task Task
	var got []string
	take := func(step string) (giveBack func()) {
		key, giveBack, err := task.takeStepKey(step)
		if err != nil {
			t.Error(err)
		}
		got = append(got, key)
		return giveBack
	}
	for _, step := range []string{"a", "b", "a", "a#2", "a", "a#3", "a#2", "a~form2", "a~-form2"} {
		take(step)
	}
	if s := fmt.Sprint(got); s != "[a b a#2 a#2#2 a#3 a#3#2 a#2#3 a~-form2 a~-form2#2]" {
		t.Error(s)
	}
	got = nil
	take("c")
	two := take("c")
	three := take("c")
	three()
	two()
	for range 3 {
		take("c")
	}
	if s := fmt.Sprint(got); s != "[c c#2 c#3 c#2 c#3 c#4]" {
		t.Error(s)
	}
}

// TestNamesOfPositions checks that a run has a name either for positions or for steps and questions.
func TestNamesOfPositions(t *testing.T) {
	ctx := t.Context()
	step := func(task *Task, name string) error {
		_, err := Step(ctx, task, name, func(context.Context) (int, error) { return 1, nil })
		return err
	}
	save := func(task *Task, name string) error { return Save(ctx, task, name, 1) }
	load := func(task *Task, name string) error {
		_, _, err := Load[int](ctx, task, name)
		return err
	}
	const isPosition, isStep = `the name "a" is that of a Save or Load`, `the name "a" is that of a step or a question`
	for name, c := range map[string]struct {
		work func(*Task) error
		want string
	}{
		"step, save":  {func(task *Task) error { return errors.Join(step(task, "a"), save(task, "a")) }, isStep},
		"step, load":  {func(task *Task) error { return errors.Join(step(task, "a"), load(task, "a")) }, isStep},
		"sleep, save": {func(task *Task) error { return errors.Join(Sleep(ctx, task, "a", 0), save(task, "a")) }, isStep},
		"save, step":  {func(task *Task) error { return errors.Join(save(task, "a"), step(task, "a")) }, isPosition},
		"load, sleep": {func(task *Task) error { return errors.Join(load(task, "a"), Sleep(ctx, task, "a", 0)) }, isPosition},
		"save, ask": {func(task *Task) error {
			_, err := task.Roots(ctx, "a")
			return errors.Join(err, save(task, "b"), step(task, "b"))
		}, `the name "b" is that of a Save`},
		"save within a step": {func(task *Task) error {
			_, err := Step(ctx, task, "a", func(context.Context) (int, error) { return 1, save(task, "a") })
			return err
		}, isStep},
		"a repeated name": {func(task *Task) error { return errors.Join(save(task, "a#2"), step(task, "a"), step(task, "a")) }, `the name "a#2" is that of a Save`},
		"after a failed step": {func(task *Task) error {
			_, err := Step(ctx, task, "a", func(context.Context) (int, error) { return 1, errors.New("no") })
			return errors.Join(err, save(task, "a"), load(task, "a"), save(task, "a"))
		}, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.work(NewTask(noHost{}, TaskInfo{}))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// noHost is a Host that stores no steps.
type noHost struct{}

func (noHost) Report(context.Context, float64, float64, string) {}
func (noHost) Ask(context.Context, Request) (json.RawMessage, error) {
	return json.RawMessage(`{"roots":[]}`), nil
}

// TestStepPanics tries a step again whose function has panicked. It is the same step.
func TestStepPanics(t *testing.T) {
	task := NewTask(noHost{}, TaskInfo{})
	try := func(f func(context.Context) (int, error)) {
		defer func() { _ = recover() }()
		_, _ = Step(t.Context(), task, "a", f)
	}
	try(func(context.Context) (int, error) { panic("no") })
	if key, _, err := task.takeStepKey("a"); key != "a" || err != nil {
		t.Errorf("the next key is %q, %v", key, err)
	}
}
