package executortest

import (
	"fmt"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// askers are tools that ask.
var askers = []tool{asking("asks", fails), asking("asks_again", restarts)}

func testCancelAsking(k *kit) {
	a, b := k.start(askers...), k.start(askers...)
	for _, asker := range askers {
		id := a.begin(asker.name, "step")
		a.awaitQuestion(id)
		b.cancel(id)
		k.awaitRun(id, 1).awaitEnded()
		k.wantCancelled(a.awaitEnd(id))
		k.wantRuns(1, id)
	}
}

func testStopAsking(k *kit) {
	a, b := k.start(askers...), k.start(askers...)
	for _, asker := range askers {
		id := a.begin(asker.name, "step")
		a.awaitQuestion(id)
		b.stop(id)
		k.wantCancelled(a.awaitEnd(id))
	}
}

func testAnswerElsewhere(k *kit) {
	a, b := k.start(askers...), k.start(askers...)
	for _, asker := range askers {
		for _, at := range []*node{a, b} {
			id := a.begin(asker.name, "step")
			a.awaitQuestion(id)
			at.answer(id, "step", "yes")
			k.wantText(a.awaitEnd(id), "yes")
		}
	}
}

func testWaitingTasks(k *kit) {
	const unbounded = 8 // tasks, if there is no bound of handlers
	tools := append([]tool{echo(fails)}, askers...)
	a, b := k.start(tools...), k.start(tools...)
	_, hasSlots := a.executor.(taskserver.Slots)
	if k.h.New != nil && k.h.Slots > 0 && !hasSlots && !k.isEngine() {
		k.Skip("the executor is neither a taskserver.Engine nor has it taskserver.Slots: tasks that wait hold their place")
	}
	ids := map[string]string{} // to their tools
	for _, asker := range askers {
		if asker.policy == fails && k.h.Slots > 0 && k.h.New != nil && !hasSlots {
			continue
		}
		for range max(2*k.h.Slots+1, unbounded) {
			ids[a.begin(asker.name, "step")] = asker.name
		}
	}
	for id := range ids {
		a.awaitRecord(id, "waiting for an answer", func(r taskstore.Record) bool { return len(r.Outstanding()) > 0 })
	}
	k.runOthers(a, b)
	for id := range ids {
		b.answer(id, "step", "answer to "+id)
	}
	for id := range ids {
		k.wantText(a.awaitEnd(id), "answer to "+id)
	}
}

func testOneOfTwo(k *kit) {
	a, b := k.start(askingTwo), k.start(askingTwo)
	id := a.begin(askingTwo.name, "")
	r := a.awaitQuestion(id)
	key := r.Outstanding()[0].Key
	b.answer(id, key, "to "+key)
	k.wantText(a.awaitEnd(id), "to "+key)
}

func testAttempts(k *kit) {
	twice := restarts
	twice.Attempts = 2
	a, b := k.start(asking("asks", twice)), k.start(asking("asks", twice))
	id := a.begin("asks", "1,2,3,4,5")
	for i := range 5 {
		step := fmt.Sprint(i + 1)
		a.awaitRecord(id, "at step "+step, func(r taskstore.Record) bool { open := r.Outstanding(); return len(open) > 0 && open[0].Key == step })
		a.awaitQuestion(id)
		b.answer(id, step, step)
	}
	r := a.awaitEnd(id)
	k.wantText(r, "1,2,3,4,5")
	if r.Tries > 1 {
		k.Errorf("%s: the runs that have waited count as tries", describe(r))
	}
}

// keepUntold keeps servers from telling the engine about events of tasks.
func keepUntold(nodes ...*node) {
	for _, n := range nodes {
		n.setHook(func(method string, _ taskserver.Submission, do func() error) error {
			if method == "Submit" {
				return do()
			}
			return nil
		})
	}
}

func testCancelLost(k *kit) {
	tools := append([]tool{holding("hold", restarts, nil)}, askers...)
	a, b := k.start(tools...), k.start(tools...)
	k.skipWithoutEngine()
	keepUntold(a, b)
	id := a.begin("hold", "1")
	h := k.awaitRun(id, 1)
	k.other(h.node).cancel(id)
	h.wantCause(mcptask.ErrCancelled)
	for _, asker := range askers {
		id := a.begin(asker.name, "step")
		a.awaitQuestion(id)
		b.stop(id)
		k.wantCancelled(a.awaitEnd(id))
	}
}

func testAnswerLost(k *kit) {
	a, b := k.start(askers...), k.start(askers...)
	k.skipWithoutEngine()
	keepUntold(a, b)
	for _, asker := range askers {
		id := a.begin(asker.name, "step")
		a.awaitQuestion(id)
		b.answer(id, "step", "yes")
		k.wantText(a.awaitEnd(id), "yes")
	}
}
