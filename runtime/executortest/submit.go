package executortest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// toSubmission returns the Submission of a task.
func toSubmission(r taskstore.Record) taskserver.Submission {
	return taskserver.Submission{TaskID: r.ID, Account: r.Account, Principal: r.Principal, Tool: r.Tool, Until: r.ExpiresAt, Trace: r.Trace}
}

// submitAgain submits a task at servers, past their hooks.
func (k *kit) submitAgain(r taskstore.Record, nodes ...*node) {
	k.Helper()
	for _, n := range nodes {
		if err := n.executor.Submit(k.ctx, toSubmission(r)); err != nil {
			k.Errorf("%s is not submitted again: %v", r.ID, err)
		}
	}
}

// runOthers runs other tasks at servers to their ends, so that an executor has had time for earlier submissions.
func (k *kit) runOthers(nodes ...*node) {
	k.Helper()
	for _, n := range nodes {
		for i := range 3 {
			k.wantText(n.awaitEnd(n.begin("echo", fmt.Sprint(i))), fmt.Sprint(i))
		}
	}
}

func testRunsOnce(k *kit) {
	const (
		megabyte  = 1 << 20
		envelopes = 1 << 10 // the JSON around a text
	)
	text := strings.Repeat("x", megabyte-envelopes)
	n := k.start(tool{"grows", restarts, func(h *handling) (string, error) {
		if h.text != text || h.task.Principal() != caller.Principal || h.task.Attempt() != 1 {
			k.Errorf("the handler gets %d bytes of arguments for %q in run %d", len(h.text), h.task.Principal(), h.task.Attempt())
		}
		return strings.Repeat("y", 4*megabyte-envelopes), nil
	}})
	id := n.begin("grows", text)
	k.wantText(n.awaitEnd(id), strings.Repeat("y", 4*megabyte-envelopes))
	k.wantRuns(1, id)
}

func testManyTasks(k *kit) {
	const each = 50
	a, b := k.start(echo(restarts)), k.start(echo(restarts))
	var begun sync.WaitGroup
	var fromA, fromB []string
	for n, ids := range map[*node]*[]string{a: &fromA, b: &fromB} {
		begun.Go(func() {
			defer guard.Recover(nil, "the creation of tasks")
			*ids = n.beginMany("echo", each)
		})
	}
	begun.Wait()
	if len(fromA)+len(fromB) < 2*each {
		k.FailNow()
	}
	for i := range each {
		k.wantText(b.awaitEnd(fromA[i]), fmt.Sprint(i))
		k.wantText(a.awaitEnd(fromB[i]), fmt.Sprint(i))
	}
	k.wantRuns(1, append(fromA, fromB...)...)
}

func testSubmitAgain(k *kit) {
	k.skipWithoutNew()
	free := make(chan struct{})
	tools := []tool{echo(fails), holding("fails", fails, free), holding("restarts", restarts, free)}
	a, b := k.start(tools...), k.start(tools...)
	a.setHook(func(_ string, task taskserver.Submission, do func() error) error {
		if task.Tool == "echo" {
			return do()
		}
		return nil // it stays queued
	})
	ids := []string{a.begin("fails", "1"), a.begin("restarts", "2")}
	for _, id := range ids {
		k.submitAgain(a.get(id), a, b, a, b)
	}
	for _, id := range ids {
		k.awaitRun(id, 1)
		k.submitAgain(a.get(id), a, b)
	}
	k.runOthers(a, b)
	close(free)
	for i, id := range ids {
		r := a.awaitEnd(id)
		k.wantText(r, fmt.Sprint(i+1))
		k.submitAgain(r, a, b)
	}
	k.runOthers(a, b)
	k.wantRuns(1, ids...)
}

func testUnknownTask(k *kit) {
	k.skipWithoutNew()
	n := k.start(echo(fails))
	for range k.h.Slots + 1 {
		k.submitAgain(taskstore.Record{ID: rand.Text(), Principal: caller.Principal, Account: caller.Account(), Tool: "echo", ExpiresAt: time.Now().Add(time.Hour)}, n)
	}
	k.runOthers(n)
}

func testSubmitEnded(k *kit) {
	k.skipWithoutNew()
	n := k.start(echo(restarts))
	ctx, cancel := context.WithCancel(k.ctx)
	cancel()
	r := n.awaitEnd(n.begin("echo", "1"))
	returned := make(chan struct{})
	go func() {
		defer guard.Recover(nil, "Submit")
		defer close(returned)
		_ = n.executor.Submit(ctx, toSubmission(r))
	}()
	select {
	case <-returned:
	case <-k.ctx.Done():
		k.Fatalf("Submit has not returned, although its context has ended")
	}
	k.runOthers(n)
	k.wantRuns(1, r.ID)
}

func testSubmitFails(k *kit) {
	k.skipWithoutNew()
	a, b := k.start(echo(fails)), k.start(echo(fails))
	var mu sync.Mutex
	failures := 0
	busy := func(_ string, _ taskserver.Submission, do func() error) error {
		mu.Lock()
		defer mu.Unlock()
		if failures++; failures <= 3 {
			return errors.New("executortest: try again later")
		}
		return do()
	}
	a.setHook(busy)
	b.setHook(busy)
	id := a.begin("echo", "1")
	k.wantText(b.awaitEnd(id), "1")
	k.wantRuns(1, id)
}

func testNeverSubmitted(k *kit) {
	now := time.Now()
	lost := taskstore.Record{
		ID: rand.Text(), Principal: caller.Principal, Account: caller.Account(), Tool: "echo", Arguments: json.RawMessage(`{"text":"1"}`),
		Revision: caller.Revision, Phase: taskstore.PhaseQueued, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour), Poll: time.Second,
		Claim: taskstore.Claim{Worker: "a server that ended"},
	}
	if _, err := k.store.Create(k.ctx, lost, taskstore.Quota{}); err != nil {
		k.Fatal(err)
	}
	a, _ := k.start(echo(fails)), k.start(echo(fails))
	k.wantText(a.awaitEnd(lost.ID), "1")
	k.wantRuns(1, lost.ID)
}
