package executortest

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
)

func testCloseRestarts(k *kit) {
	free := make(chan struct{})
	hold := holding("hold", restarts, free)
	a, _ := k.start(hold), k.start(hold)
	id := a.begin("hold", "1")
	first := k.awaitRun(id, 1)
	second := k.other(first.node)
	first.node.close(true)
	first.wantCause(context.Canceled)
	if !first.task.Interrupted(first.ctx) {
		k.Errorf("the handler is not told that another run goes on: %v", context.Cause(first.ctx))
	}
	again := k.awaitRun(id, 2)
	if again.node != second || again.task.Attempt() != 2 {
		k.Errorf("run %d, at the server that has closed: %v", again.task.Attempt(), again.node == first.node)
	}
	close(free)
	r := second.awaitEnd(id)
	k.wantText(r, "1")
	if r.Tries > 1 {
		k.Errorf("%s: the run that was handed over counts as a try", describe(r))
	}
	k.wantRuns(2, id)
}

func testCloseFails(k *kit) {
	hold := holding("hold", fails, nil)
	a, _ := k.start(hold), k.start(hold)
	id := a.begin("hold", "1")
	first := k.awaitRun(id, 1).node
	second := k.other(first)
	first.close(true)
	k.wantLost(second.awaitEnd(id))
	k.wantRuns(1, id)
}

func testCloseQueued(k *kit) {
	const unbounded = 4 // tasks, if there is no bound of handlers
	free := make(chan struct{})
	hold := holding("hold", restarts, free)
	a := k.start(hold)
	ids := a.beginMany("hold", 2*k.h.Slots+unbounded)
	k.awaitRunning(ids, 1)
	b := k.start(hold)
	a.close(true)
	close(free)
	for i, id := range ids {
		k.wantText(b.awaitEnd(id), fmt.Sprint(i))
	}
}

func testCloseEnded(k *kit) {
	k.skipWithoutNew()
	free := make(chan struct{})
	a := k.start(deaf(fails, free))
	id := a.begin("deaf", "")
	h := k.awaitRun(id, 1)
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	k.note(func() { a.isExecutorClosed = true })
	returned := make(chan error, 1)
	go func() {
		defer guard.Recover(nil, "Close")
		returned <- a.executor.Close(ctx)
	}()
	select {
	case err := <-returned:
		if !errors.Is(err, context.Canceled) {
			k.Errorf("Close returns %v, although a handler runs and its context has ended", err)
		}
	case <-k.ctx.Done():
		k.Fatalf("Close has not returned, although its context has ended")
	}
	h.wantCause(context.Canceled)
	close(free)
	k.wantText(a.awaitEnd(id), "run 1")
}

func testKillRestarts(k *kit) {
	free := make(chan struct{})
	hold := holding("hold", restarts, free)
	a, _ := k.start(hold), k.start(hold)
	id := a.begin("hold", "1")
	first := k.awaitRun(id, 1).node
	second := k.other(first)
	first.kill()
	if again := k.awaitRun(id, 2); again.node != second || again.task.Attempt() != 2 {
		k.Errorf("run %d, at the server that was killed: %v", again.task.Attempt(), again.node == first)
	}
	close(free)
	k.wantText(second.awaitEnd(id), "1")
	k.wantRuns(2, id)
}

func testKillAsking(k *kit) {
	a, _ := k.start(askers...), k.start(askers...)
	for _, asker := range askers {
		id := a.begin(asker.name, "step")
		a.awaitQuestion(id)
		first := k.awaitRun(id, 1).node
		second := k.other(first)
		first.kill()
		second.answer(id, "step", "yes")
		r := second.awaitEnd(id)
		if asker.policy == restarts {
			k.wantText(r, "yes")
		} else {
			k.wantLost(r)
		}
		a = k.start(askers...)
	}
}

func testKillFails(k *kit) {
	hold := holding("hold", fails, nil)
	a, _ := k.start(hold), k.start(hold)
	id := a.begin("hold", "1")
	first := k.awaitRun(id, 1).node
	second := k.other(first)
	first.kill()
	k.wantLost(second.awaitEnd(id))
	k.wantRuns(1, id)
}

func testPoison(k *kit) {
	const attempts = 3
	policy := restarts
	policy.Attempts = attempts
	poison := holding("poison", policy, nil)
	a := k.start(poison)
	for range attempts { // one is left
		k.start(poison)
	}
	id := a.begin("poison", "1")
	var last *node
	for run := range attempts {
		last = k.awaitRun(id, run+1).node
		last.kill()
	}
	k.wantLost(k.other(last).awaitEnd(id))
	k.wantRuns(attempts, id)
}

func testWritesNothing(k *kit) {
	free := []chan struct{}{make(chan struct{}), make(chan struct{})}
	tool := deaf(restarts, free...)
	a, _ := k.start(tool), k.start(tool)
	id := a.begin("deaf", "")
	first := k.awaitRun(id, 1).node
	second := k.other(first)
	first.kill()
	k.awaitRun(id, 2)
	first.store.cut(false) // it was only cut off
	close(free[0])
	if k.h.New != nil {
		k.await("the end of the first run", func() bool {
			for _, c := range k.calls[id] {
				if c.node == first {
					return false
				}
			}
			return true
		})
	}
	if r := second.get(id); r.Done() || r.StatusMessage != "" {
		k.Errorf("%s: it has what the first run says: %q", describe(r), r.StatusMessage)
	}
	close(free[1])
	k.wantText(second.awaitEnd(id), "run 2")
}
