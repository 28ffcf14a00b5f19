package executortest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// never is longer than any test.
const never = 24 * time.Hour

// nameRun returns the value of a step that a run has done.
func (h *handling) nameRun() string { return "run " + strconv.Itoa(h.task.Attempt()) }

// readSteps reads the stored steps of a task.
func (k *kit) readSteps(id string) map[string]taskstore.Step {
	k.Helper()
	steps, err := k.store.Steps(k.ctx, id)
	if err != nil {
		k.Fatalf("the steps of %s cannot be read: %v", id, err)
	}
	byName := map[string]taskstore.Step{}
	for _, step := range steps {
		byName[step.Name] = step
	}
	return byName
}

// awaitSteps waits until the steps of a task are stored.
func (n *node) awaitSteps(id string, names ...string) {
	n.k.Helper()
	n.awaitRecord(id, "with its steps", func(taskstore.Record) bool {
		steps := n.k.readSteps(id)
		return !slices.ContainsFunc(names, func(name string) bool { _, ok := steps[name]; return !ok })
	})
}

func testKillSteps(k *kit) {
	const nap = 15 * time.Second
	var works atomic.Int32
	var napped time.Time // when the first run began to sleep
	keys := make(chan string, 2)
	steps := tool{"steps", restarts, func(h *handling) (string, error) {
		keys <- mcptask.StepKey(h.task, "work")
		done, err := mcptask.Step(h.ctx, h.task, "work", func(context.Context) (string, error) {
			works.Add(1)
			return h.nameRun(), nil
		})
		if err != nil {
			return "", err
		}
		row, _, err := mcptask.Load[string](h.ctx, h.task, "row")
		if err != nil || h.task.Attempt() > 1 {
			if err == nil {
				err = mcptask.Sleep(h.ctx, h.task, "nap", never) // the stored end counts
			}
			if early := nap - time.Since(napped); err == nil && early > 0 {
				k.Errorf("Sleep returns %v early", early)
			}
			return done + ", row of " + row, err
		}
		if err := mcptask.Save(h.ctx, h.task, "row", h.nameRun()); err != nil {
			return "", err
		}
		napped = time.Now()
		return "", mcptask.Sleep(h.ctx, h.task, "nap", nap)
	}}
	a, b := k.start(steps), k.start(steps)
	id := a.begin("steps", "")
	first := k.awaitRun(id, 1).node
	second := k.other(first)
	second.awaitSteps(id, "work", "row", "nap")
	if k.h.New != nil {
		k.submitAgain(a.get(id), a, b)
	}
	first.kill()
	k.awaitRun(id, 2)
	k.wantText(second.awaitEnd(id), "run 1, row of run 1")
	if n := works.Load(); n != 1 {
		k.Errorf("the step was stored, and ran %d times", n)
	}
	if x, y := <-keys, <-keys; x != y {
		k.Errorf("the runs have the keys %s and %s for a step", x, y)
	}
	k.wantRuns(2, id)
}

func testStaleSteps(k *kit) {
	begun, free := []chan struct{}{make(chan struct{}), make(chan struct{})}, []chan struct{}{make(chan struct{}), make(chan struct{})}
	stale := make(chan error, 1)
	steps := tool{"steps", restarts, func(h *handling) (string, error) {
		run := min(h.task.Attempt(), len(free)) - 1
		value, err := mcptask.Step(h.ctx, h.task, "work", func(context.Context) (string, error) {
			close(begun[run])
			select {
			case <-free[run]:
				return h.nameRun(), nil
			case <-k.over:
				return "", errOver
			}
		})
		if run == 0 {
			stale <- errors.Join(err, mcptask.Save(h.ctx, h.task, "row", 1))
		}
		return value, err
	}}
	a, _ := k.start(steps), k.start(steps)
	id := a.begin("steps", "")
	first := k.awaitRun(id, 1).node
	second := k.other(first)
	k.awaitClosed("the work of run 1", begun[0])
	first.kill()
	k.awaitClosed("the work of run 2", begun[1])
	first.store.cut(false) // it was only cut off
	close(free[0])
	select {
	case err := <-stale:
		if err == nil {
			k.Errorf("a run that was taken for lost is told that its step is stored")
		}
	case <-k.ctx.Done():
		k.Fatalf("the step of the first run does not return")
	}
	if stored := k.readSteps(id); len(stored) > 0 {
		k.Errorf("a run that was taken for lost has stored %+v", stored)
	}
	close(free[1])
	k.wantText(second.awaitEnd(id), "run 2")
	if step := k.readSteps(id)["work"]; step.Attempt != 2 || string(step.Value) != `"run 2"` {
		k.Errorf("run %d has stored %s, want run 2", step.Attempt, step.Value)
	}
}

// awaitClosed waits until a channel is closed.
func (k *kit) awaitClosed(what string, c <-chan struct{}) {
	k.Helper()
	select {
	case <-c:
	case <-k.ctx.Done():
		k.Fatalf("%s: not within %v", what, k.h.Patience)
	}
}

func testCloseSteps(k *kit) {
	begun := make(chan struct{})
	works := tool{"works", restarts, func(h *handling) (string, error) {
		value, err := mcptask.Step(h.ctx, h.task, "work", func(ctx context.Context) (string, error) {
			if h.task.Attempt() == 1 {
				close(begun)
				<-ctx.Done() // it finishes its work nevertheless
			}
			return h.nameRun(), nil
		})
		if err == nil {
			err = context.Cause(h.ctx)
		}
		return value, err
	}}
	goOn, saved := make(chan struct{}), make(chan struct{})
	saves := tool{"saves", restarts, func(h *handling) (string, error) {
		row, ok, err := mcptask.Load[int](h.ctx, h.task, "row")
		if ok || err != nil {
			return strconv.Itoa(row), err
		}
		err = mcptask.Save(h.ctx, h.task, "row", 1)
		_, _ = h.hold(goOn)
		if err == nil {
			err = mcptask.Save(h.ctx, h.task, "row", 2)
		}
		close(saved)
		if err != nil {
			return "", err
		}
		return h.hold(nil)
	}}
	a := k.start(works, saves)
	worked, kept := a.begin("works", ""), a.begin("saves", "")
	k.awaitClosed("the work", begun)
	a.awaitSteps(kept, "row")
	b := k.start(works, saves)
	close(goOn)
	k.awaitClosed("the second position", saved) // which is not stored yet
	a.close(true)
	k.wantText(b.awaitEnd(worked), "run 1")
	k.wantText(b.awaitEnd(kept), "2")
	k.wantRuns(2, worked, kept)
}

func testAskingSteps(k *kit) {
	var works atomic.Int32
	steps := tool{"steps", restarts, func(h *handling) (string, error) {
		done, err := mcptask.Step(h.ctx, h.task, "work", func(context.Context) (string, error) {
			works.Add(1)
			return h.nameRun(), nil
		})
		if err != nil {
			return "", err
		}
		_, isSaved, err := mcptask.Load[int](h.ctx, h.task, "row")
		if !isSaved && err == nil {
			err = mcptask.Save(h.ctx, h.task, "row", 1)
		}
		if err != nil {
			return "", err
		}
		answer, err := h.ask(h.ctx, "ask")
		return done + ", " + answer, err
	}}
	a, b := k.start(steps), k.start(steps)
	id := a.begin("steps", "")
	a.awaitQuestion(id)
	a.awaitSteps(id, "work", "row")
	b.answer(id, "ask", "yes")
	k.wantText(a.awaitEnd(id), "run 1, yes")
	if n := works.Load(); n != 1 {
		k.Errorf("the step was stored, and ran %d times", n)
	}
	if row := k.readSteps(id)["row"]; row.Attempt != 1 {
		k.Errorf("run %d has saved its position, want run 1", row.Attempt)
	}
}

func testCancelSleeping(k *kit) {
	sleeps := tool{"sleeps", restarts, func(h *handling) (string, error) {
		nap, err := time.ParseDuration(h.text)
		if err != nil {
			return "", err
		}
		return h.text, mcptask.Sleep(h.ctx, h.task, "nap", nap)
	}}
	tools := []tool{echo(fails), sleeps}
	a, b := k.start(tools...), k.start(tools...)
	_, hasSlots := a.executor.(taskserver.Slots)
	asleep := 1
	if hasSlots || k.h.New == nil {
		asleep = 2*k.h.Slots + 1
	}
	var ids []string
	for range asleep {
		ids = append(ids, a.begin("sleeps", never.String()))
	}
	for _, id := range ids {
		a.awaitSteps(id, "nap")
	}
	k.runOthers(a, b)
	for _, id := range ids {
		h := k.awaitRun(id, 1)
		k.other(h.node).cancel(id)
		h.wantCause(mcptask.ErrCancelled)
		k.wantCancelled(a.awaitEnd(id))
	}
	const nap = "20s" // longer than the patience of most executors with a silent process
	slept := a.begin("sleeps", nap)
	k.wantText(a.awaitEnd(slept), nap)
	k.wantRuns(1, append(ids, slept)...)
}
