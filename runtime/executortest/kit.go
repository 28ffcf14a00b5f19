package executortest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/guard"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// caller calls all tools.
var caller = taskserver.Caller{Principal: "alice", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}

// kit holds the servers of a test, the calls of their handlers and executors, and helpers.
type kit struct {
	testing.TB
	ctx   context.Context // ends with the patience of the harness
	h     Harness
	group string
	store taskstore.Store
	over  chan struct{} // closed at the end: no handler waits any longer

	mu      sync.Mutex
	changed chan struct{} // closed when something below changes
	nodes   []*node
	runs    map[string][]*handling // of handlers, by task
	calls   map[string][]*call     // of RunFuncs, by task, that have not returned
	engine  bool
	tooLate map[string]bool // the tasks whose first call got an ended context; if it is nil, no call gets one
}

// node is a server.
type node struct {
	k        *kit
	server   *taskserver.Server
	executor taskserver.Executor // of the harness; nil if the harness has no New
	store    *link

	// kit.mu guards these.
	hook   hook
	killed bool
	closed bool // Close has returned without an error
	// isExecutorClosed says that the test has closed the executor by itself.
	isExecutorClosed bool
	parks            map[string]bool // the tools whose runs are parked at an Engine while they wait
}

// hook acts around a call of Submit, Cancel or Answered. do carries the call out.
type hook func(method string, task taskserver.Submission, do func() error) error

// call is a call of a RunFunc.
type call struct {
	node *node
	ctx  context.Context
}

// handling is a run of a handler.
type handling struct {
	k    *kit
	node *node
	task *mcptask.Task
	ctx  context.Context
	text string
}

// arguments are those of all tools.
type arguments struct {
	Text string `json:"text"`
}

// tool is a tool of the servers.
type tool struct {
	name   string
	policy mcptask.Policy
	handle func(h *handling) (string, error)
}

var (
	fails    = mcptask.Policy{Task: mcptask.TaskRequired}
	restarts = mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}
)

// runTest tests one promise.
func (p promise) runTest(t testing.TB, h Harness) {
	ctx, cancel := context.WithTimeout(t.Context(), h.Patience)
	t.Cleanup(cancel)
	group := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, t.Name()) + "-" + rand.Text()[:8]
	k := &kit{
		TB: t, ctx: ctx, h: h, group: group, over: make(chan struct{}), changed: make(chan struct{}),
		runs: map[string][]*handling{}, calls: map[string][]*call{},
	}
	if h.Store != nil {
		k.store = h.Store(t)
	} else {
		k.store = taskstore.NewMemory()
	}
	t.Cleanup(k.close)
	p.test(k)
}

// close lets handlers end, and closes the servers and the store.
func (k *kit) close() {
	close(k.over)
	for _, n := range k.nodes {
		n.store.cut(false) // so that a server that was killed ends soon
	}
	var closing sync.WaitGroup
	for _, n := range k.nodes {
		closing.Go(func() {
			defer guard.Recover(nil, "the end of a server")
			n.close(false)
		})
	}
	closing.Wait()
	if err := k.store.Close(); err != nil {
		k.Errorf("the store does not close: %v", err)
	}
}

// start starts a server with tools.
func (k *kit) start(tools ...tool) *node {
	k.Helper()
	n := &node{k: k, store: &link{Store: k.store}, parks: map[string]bool{}}
	var store taskstore.Store = n.store
	if inspector, ok := k.store.(taskstore.Inspector); ok {
		store = inspectable{n.store, inspector}
	}
	options := taskserver.Options{Store: store, Concurrency: k.h.Slots, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))}
	if k.h.New != nil {
		options.Executor = n.makeExecutor
	}
	var bound []mcptask.Tool
	for _, tool := range tools {
		bound = append(bound, n.bind(tool))
		n.parks[tool.name] = tool.policy.OnLost == mcptask.RestartWhenLost
	}
	server, err := taskserver.New(options, mcptask.Tools{Service: "Tests", Impl: k, Tools: bound})
	if err != nil {
		k.Fatalf("a server does not start: %v", err)
	}
	n.server = server
	k.note(func() { k.nodes = append(k.nodes, n) })
	return n
}

// other returns a server other than the given one.
func (k *kit) other(than *node) *node {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, n := range k.nodes {
		if n != than && !n.killed {
			return n
		}
	}
	k.Fatal("executortest: there is no other server")
	return nil
}

// note makes a change to the kit's records, and wakes those that wait for it.
func (k *kit) note(change func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	change()
	close(k.changed)
	k.changed = make(chan struct{})
}

// await waits until the kit knows something.
func (k *kit) await(what string, isKnown func() bool) {
	k.Helper()
	for {
		k.mu.Lock()
		known, changed := isKnown(), k.changed
		k.mu.Unlock()
		if known {
			return
		}
		select {
		case <-changed:
		case <-k.ctx.Done():
			k.Fatalf("%s: not within %v", what, k.h.Patience)
		}
	}
}

// makeExecutor makes the executor of a server, and records the calls by it and to it.
func (n *node) makeExecutor(run taskserver.RunFunc) (taskserver.Executor, error) {
	k := n.k
	x, err := k.h.New(k.TB, k.group, func(ctx context.Context, taskID string) taskserver.RunEnd {
		defer n.enterCall(ctx, taskID)()
		ctx, cancel := context.WithCancel(context.WithValue(ctx, nodeKey{}, n))
		defer cancel()
		if k.isTooLate(taskID) {
			cancel()
		}
		return run(ctx, taskID)
	})
	if err != nil || x == nil {
		return nil, errors.Join(errors.New("executortest: New has made no executor"), err)
	}
	engine, isEngine := x.(taskserver.Engine)
	slots, hasSlots := x.(taskserver.Slots)
	k.note(func() { n.executor, k.engine = x, isEngine })
	watched := watchedExecutor{x, n}
	switch {
	case isEngine && hasSlots:
		return struct {
			watchedEngine
			taskserver.Slots
		}{watchedEngine{watched, engine}, slots}, nil
	case isEngine:
		return watchedEngine{watched, engine}, nil
	case hasSlots:
		return struct {
			watchedExecutor
			taskserver.Slots
		}{watched, slots}, nil
	}
	return watched, nil
}

// isTooLate reports whether the context of a call ends before the call, as with an executor that closes.
func (k *kit) isTooLate(taskID string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tooLate == nil || k.tooLate[taskID] {
		return false
	}
	k.tooLate[taskID] = true
	return true
}

// nodeKey is the key of the node among the values of a RunFunc's context.
type nodeKey struct{}

// enterCall notes a call of the RunFunc until leave is called.
func (n *node) enterCall(ctx context.Context, taskID string) (leave func()) {
	k, c := n.k, &call{n, ctx}
	k.note(func() {
		if n.closed {
			k.Errorf("the RunFunc is called for %s after Close has returned", taskID)
		}
		for _, other := range k.calls[taskID] {
			if k.engine && other.ctx.Err() == nil && !other.node.killed {
				k.Errorf("the engine calls the RunFunc for %s while an earlier call goes on, whose context has not ended", taskID)
			}
		}
		k.calls[taskID] = append(k.calls[taskID], c)
	})
	return func() {
		k.note(func() {
			k.calls[taskID] = slices.DeleteFunc(k.calls[taskID], func(other *call) bool { return other == c })
		})
	}
}

// watchedExecutor lets the test act around the calls of an executor.
type watchedExecutor struct {
	taskserver.Executor
	n *node
}

// Submit implements taskserver.Executor.
func (x watchedExecutor) Submit(ctx context.Context, task taskserver.Submission) error {
	return x.n.callHook("Submit", task, func() error { return x.Executor.Submit(ctx, task) })
}

// Close implements taskserver.Executor.
func (x watchedExecutor) Close(ctx context.Context) error {
	x.n.k.mu.Lock()
	isClosed := x.n.isExecutorClosed
	x.n.k.mu.Unlock()
	if isClosed {
		return nil
	}
	return x.Executor.Close(ctx)
}

// watchedEngine is a watchedExecutor that is an Engine.
type watchedEngine struct {
	watchedExecutor
	engine taskserver.Engine
}

// Name implements taskserver.Engine.
func (x watchedEngine) Name() string { return x.engine.Name() }

// Patience implements taskserver.Engine.
func (x watchedEngine) Patience() time.Duration { return x.engine.Patience() }

// Cancel implements taskserver.Engine.
func (x watchedEngine) Cancel(ctx context.Context, task taskserver.Submission) error {
	return x.n.callHook("Cancel", task, func() error { return x.engine.Cancel(ctx, task) })
}

// Answered implements taskserver.Engine.
func (x watchedEngine) Answered(ctx context.Context, task taskserver.Submission) error {
	return x.n.callHook("Answered", task, func() error { return x.engine.Answered(ctx, task) })
}

// callHook makes a call through the hook.
func (n *node) callHook(method string, task taskserver.Submission, do func() error) error {
	n.k.mu.Lock()
	h := n.hook
	n.k.mu.Unlock()
	if h == nil {
		return do()
	}
	return h(method, task, do)
}

// setHook sets the hook for later calls. It skips the test if the harness has no New.
func (n *node) setHook(h hook) {
	n.k.skipWithoutNew()
	n.k.note(func() { n.hook = h })
}

// skipWithoutNew skips the test if the harness has no New.
func (k *kit) skipWithoutNew() {
	if k.h.New == nil {
		k.Skip("the executor cannot be reached: Harness.New is nil")
	}
}

// skipWithoutEngine skips the test if the executor is no Engine.
func (k *kit) skipWithoutEngine() {
	if !k.isEngine() {
		k.Skip("the executor is no taskserver.Engine")
	}
}

func (k *kit) isEngine() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.engine
}

// close closes the server. Unless it must succeed, an error of a server that was killed does not matter.
func (n *node) close(must bool) {
	err := n.server.Close()
	n.k.note(func() {
		if err != nil && (must || !n.killed) {
			n.k.Errorf("a server does not close: %v", err)
		}
		n.closed = err == nil && !n.killed
	})
}

// kill ends the server as with its process. It skips the test if the harness cannot.
func (n *node) kill() {
	if n.k.h.Kill == nil {
		n.k.Skip("no executor can be killed: Harness.Kill is nil")
	}
	n.k.note(func() { n.killed = true })
	n.store.cut(true)
	n.k.h.Kill(n.k.TB, n.executor)
}

// bind returns the tool of a server.
func (n *node) bind(t tool) mcptask.Tool {
	spec := mcptask.ToolSpec{Name: t.name, Policy: t.policy,
		InputSchema: `{"type":"object","properties":{"text":{"type":"string"}},"required":["text"]}`}
	return mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, in arguments) (string, error) {
		h := &handling{n.k, n, task, ctx, in.Text}
		n.k.noteRun(h, t.policy)
		return t.handle(h)
	})
}

// noteRun notes that a handler has begun.
func (k *kit) noteRun(h *handling, policy mcptask.Policy) {
	k.note(func() {
		id := h.task.ID()
		for _, former := range k.runs[id] {
			if policy.OnLost != mcptask.RestartWhenLost {
				k.Errorf("the handler of %s runs again, which it may not", id)
			} else if former.task.Attempt() == h.task.Attempt() {
				k.Errorf("two runs of %s are its run %d", id, h.task.Attempt())
			}
		}
		k.runs[id] = append(k.runs[id], h)
	})
}

// awaitRun waits for a run of a task's handler, counted from 1.
func (k *kit) awaitRun(id string, run int) *handling {
	k.Helper()
	k.await(fmt.Sprintf("run %d of %s", run, id), func() bool { return len(k.runs[id]) >= run })
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.runs[id][run-1]
}

// awaitRunning waits until a number of the tasks have begun.
func (k *kit) awaitRunning(ids []string, n int) {
	k.Helper()
	k.await(fmt.Sprintf("%d of %d tasks run", n, len(ids)), func() bool {
		begun := 0
		for _, id := range ids {
			begun += min(len(k.runs[id]), 1)
		}
		return begun >= n
	})
}

// countRuns returns how often a task's handler has run.
func (k *kit) countRuns(id string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.runs[id])
}

// wantRuns checks how often the handlers of tasks have run.
func (k *kit) wantRuns(want int, ids ...string) {
	k.Helper()
	for _, id := range ids {
		if n := k.countRuns(id); n != want {
			k.Errorf("the handler of %s has run %d times, want %d", id, n, want)
		}
	}
}

// begin creates a task and returns its ID.
func (n *node) begin(name, text string) string {
	n.k.Helper()
	encoded, err := json.Marshal(arguments{text})
	if err != nil {
		n.k.Fatal(err)
	}
	reply, err := n.server.Backend().Call(n.k.ctx, caller, name, encoded, taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil || reply.Task == nil {
		n.k.Fatalf("no task of %s: %+v, %v", name, reply, err)
	}
	return reply.Task.ID
}

// beginMany creates tasks with the texts 0, 1, 2 and so on.
func (n *node) beginMany(name string, count int) (ids []string) {
	n.k.Helper()
	for i := range count {
		ids = append(ids, n.begin(name, fmt.Sprint(i)))
	}
	return ids
}

// awaitEnd waits for the end of a task.
func (n *node) awaitEnd(id string) taskstore.Record {
	n.k.Helper()
	r, err := n.server.Backend().Await(n.k.ctx, caller, id)
	if err != nil {
		n.k.Fatalf("%s does not end: %v, %s", id, err, describe(r))
	}
	return r
}

// get reads a task.
func (n *node) get(id string) taskstore.Record {
	n.k.Helper()
	r, err := n.server.Backend().Get(n.k.ctx, caller, id)
	if err != nil {
		n.k.Fatalf("%s is not found: %v", id, err)
	}
	return r
}

// awaitRecord waits until a record has something.
func (n *node) awaitRecord(id, what string, has func(taskstore.Record) bool) taskstore.Record {
	n.k.Helper()
	r, err := n.server.Backend().Get(n.k.ctx, caller, id)
	for err == nil && !has(r) && !r.Done() {
		r, err = n.server.Backend().Changed(n.k.ctx, caller, id, r.Version)
	}
	if err != nil || !has(r) {
		n.k.Fatalf("%s: not %s: %v, %s", id, what, err, describe(r))
	}
	return r
}

// awaitQuestion waits until a task waits for an answer. If an Engine runs the handler, and it may restart, its run has
// been parked by then.
func (n *node) awaitQuestion(id string) taskstore.Record {
	n.k.Helper()
	return n.awaitRecord(id, "waiting for an answer", func(r taskstore.Record) bool {
		open := r.Outstanding()
		if len(open) == 0 {
			return false
		}
		return !n.parks[r.Tool] || !n.k.isEngine() || open[0].Parked
	})
}

// answer answers a question.
func (n *node) answer(id, key, text string) {
	n.k.Helper()
	content, err := json.Marshal(map[string]any{"action": "accept", "content": arguments{text}})
	if err == nil {
		err = n.server.Backend().Answer(n.k.ctx, caller, id, map[string]json.RawMessage{key: content})
	}
	if err != nil {
		n.k.Fatalf("%s: the answer to %s is not taken: %v", id, key, err)
	}
}

// cancel cancels a task.
func (n *node) cancel(id string) {
	n.k.Helper()
	r, done, err := n.server.Backend().Cancel(n.k.ctx, caller, id)
	if err != nil || done || r.Outcome == nil || r.Outcome.Kind != taskstore.OutcomeCancelled {
		n.k.Fatalf("%s is not cancelled: %v, %s", id, err, describe(r))
	}
}

// stop asks a task to stop.
func (n *node) stop(id string) {
	n.k.Helper()
	if err := n.server.Backend().Stop(n.k.ctx, caller, id); err != nil {
		n.k.Fatalf("%s is not asked to stop: %v", id, err)
	}
}

// awaitEnded waits for the end of a handler's context.
func (h *handling) awaitEnded() {
	h.k.Helper()
	select {
	case <-h.ctx.Done():
	case <-h.k.ctx.Done():
		h.k.Fatalf("%s: the context of the handler has not ended", h.task.ID())
	}
}

// wantCause waits for the end of a handler's context, and checks its cause.
func (h *handling) wantCause(want error) {
	h.k.Helper()
	h.awaitEnded()
	if cause := context.Cause(h.ctx); !errors.Is(cause, want) {
		h.k.Errorf("%s: the cause of the end of the handler's context is %v, want %v", h.task.ID(), cause, want)
	}
}

// wantText checks that a task has ended with a text.
func (k *kit) wantText(r taskstore.Record, want string) {
	k.Helper()
	var result struct {
		Content []struct{ Text string }
	}
	if r.Outcome == nil || r.Outcome.Kind != taskstore.OutcomeResult || r.Outcome.IsError ||
		json.Unmarshal(r.Outcome.Result, &result) != nil || len(result.Content) != 1 || result.Content[0].Text != want {
		k.Errorf("%s: want the result %.60q", describe(r), want)
	}
}

// wantCancelled checks that a task has ended as cancelled.
func (k *kit) wantCancelled(r taskstore.Record) {
	k.Helper()
	if r.Outcome == nil || r.Outcome.Kind != taskstore.OutcomeCancelled {
		k.Errorf("%s: want it cancelled", describe(r))
	}
}

// wantLost checks that a task has ended with the error worker_lost.
func (k *kit) wantLost(r taskstore.Record) {
	k.Helper()
	if r.Outcome == nil || r.Outcome.Kind != taskstore.OutcomeError || !errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost) {
		k.Errorf("%s: want the error worker_lost", describe(r))
	}
}

// describe returns a record in a line.
func describe(r taskstore.Record) string {
	text := fmt.Sprintf("task %s of %s, %s, version %d, attempt %d, tries %d, worker %q", r.ID, r.Tool, r.Phase, r.Version, r.Attempt, r.Tries, r.Claim.Worker)
	for _, in := range r.Inputs {
		text += fmt.Sprintf(", question %s %s", in.Key, in.State)
		if in.Parked {
			text += " parked"
		}
	}
	if o := r.Outcome; o != nil {
		text += fmt.Sprintf(", outcome %s %.200s", o.Kind, o.Result)
		if o.Error != nil {
			text += o.Error.Error()
		}
	}
	return text
}
