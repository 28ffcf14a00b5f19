package executortest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

func testValues(k *kit) {
	k.skipWithoutNew()
	n := k.start(tool{"values", fails, func(h *handling) (string, error) {
		if h.ctx.Value(nodeKey{}) != h.node {
			k.Errorf("the handler's context has no value of the RunFunc's context")
		}
		return h.text, nil
	}})
	k.wantText(n.awaitEnd(n.begin("values", "1")), "1")
}

func testEndedContext(k *kit) {
	const tasks = 5
	k.skipWithoutNew()
	k.tooLate = map[string]bool{}
	a, b := k.start(echo(fails)), k.start(echo(fails))
	ids := a.beginMany("echo", tasks)
	for i, id := range ids {
		k.wantText(b.awaitEnd(id), fmt.Sprint(i))
	}
	k.wantRuns(1, ids...)
}

func testToolElsewhere(k *kit) {
	const tasks = 5
	a, _ := k.start(echo(fails)), k.start(holding("hold", fails, nil))
	ids := a.beginMany("echo", tasks)
	for i, id := range ids {
		k.wantText(a.awaitEnd(id), fmt.Sprint(i))
	}
	k.wantRuns(1, ids...)
}

func testPanics(k *kit) {
	n := k.start(panicking, echo(fails))
	var ids []string
	for range k.h.Slots + 1 {
		ids = append(ids, n.begin(panicking.name, "panic"), n.begin(panicking.name, "exit"))
	}
	for _, id := range ids {
		if r := n.awaitEnd(id); r.Outcome.Kind != taskstore.OutcomeError || r.Outcome.Error.Code != mcptask.CodeInternalError || errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) {
			k.Errorf("%s: want an internal error", describe(r))
		}
	}
	k.wantRuns(1, ids...)
	k.runOthers(n)
}

func testTimeouts(k *kit) {
	late := restarts
	late.Deadline = time.Second
	tools := []tool{holding("late", late, nil)}
	ttls := []time.Duration{5 * time.Second, 30 * time.Second, 2 * time.Minute}
	for _, ttl := range ttls {
		expired := restarts
		expired.TTL = ttl
		tools = append(tools, holding(ttl.String(), expired, nil))
	}
	n := k.start(tools...)
	missed := n.begin("late", "1")
	if r := n.awaitEnd(missed); r.Outcome.Kind != taskstore.OutcomeError || errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) {
		k.Errorf("%s: want the error of its deadline", describe(r))
	}
	k.wantRuns(1, missed)
	for _, ttl := range ttls {
		gone := n.begin(ttl.String(), "2")
		if _, err := n.server.Backend().Await(k.ctx, caller, gone); !errors.Is(err, mcptask.ErrExpired) {
			k.Fatalf("the end of the ttl: %v", err)
		}
		if k.countRuns(gone) > 0 {
			k.awaitRun(gone, 1).wantCause(mcptask.ErrExpired)
			k.wantRuns(1, gone)
			return
		}
	}
	k.Errorf("no handler begins within %v", ttls[len(ttls)-1]) // the ttl counts from the creation
}

func testCancelQueued(k *kit) {
	free := make(chan struct{})
	tools := []tool{echo(fails), holding("hold", restarts, free)}
	a := k.start(tools...)
	if k.h.New != nil {
		a.setHook(func(_ string, task taskserver.Submission, do func() error) error {
			if task.Tool == "echo" {
				return do()
			}
			return nil
		})
		id := a.begin("hold", "1")
		r := a.get(id)
		a.cancel(id)
		k.submitAgain(r, a)
		k.runOthers(a)
		k.wantRuns(0, id)
		a.setHook(nil)
	}
	if k.h.Slots == 0 {
		return
	}
	ids := a.beginMany("hold", k.h.Slots+2)
	k.awaitRunning(ids, 1)
	queued := slices.IndexFunc(ids, func(id string) bool { r := a.get(id); return r.Attempt == 0 })
	if queued < 0 {
		k.Fatalf("%d handlers run at once, want %d at most", len(ids), k.h.Slots)
	}
	a.cancel(ids[queued])
	begun := a.get(ids[queued]).Attempt // it may have begun meanwhile
	close(free)
	k.runOthers(a)
	k.wantRuns(begun, ids[queued])
	for _, id := range ids {
		a.awaitEnd(id)
	}
}

func testCancelRunning(k *kit) {
	a, b := k.start(holding("hold", restarts, nil)), k.start(holding("hold", restarts, nil))
	for _, begin := range []*node{a, b} {
		for _, isOther := range []bool{false, true} {
			id := begin.begin("hold", "1")
			h := k.awaitRun(id, 1)
			at := h.node
			if isOther {
				at = k.other(at)
			}
			at.cancel(id)
			h.wantCause(mcptask.ErrCancelled)
			k.wantCancelled(h.node.awaitEnd(id))
			k.wantRuns(1, id)
		}
	}
}

func testStopRunning(k *kit) {
	stopping := tool{"stop", restarts, func(h *handling) (string, error) {
		_, _ = h.hold(nil)
		return h.text, nil
	}}
	k.start(stopping)
	a := k.start(stopping)
	for i := range 2 {
		id := a.begin("stop", fmt.Sprint(i))
		h := k.awaitRun(id, 1)
		at := h.node
		if i > 0 {
			at = k.other(at)
		}
		at.stop(id)
		h.wantCause(mcptask.ErrCancelled)
		k.wantText(a.awaitEnd(id), fmt.Sprint(i))
		k.wantRuns(1, id)
	}
}
