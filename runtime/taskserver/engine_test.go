package taskserver_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memengine"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The tests of engines alone. Package executortest tests the promises of all executors.

var (
	carol    = taskserver.Caller{Principal: "carol", Revision: mcptask.Revision20260728, CanAsk: []string{"elicitation/create"}}
	fails    = mcptask.Policy{Task: mcptask.TaskRequired}
	restarts = mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}
)

// textTool is a tool without arguments.
func textTool(name string, policy mcptask.Policy, handler func(context.Context, *mcptask.Task) (string, error)) mcptask.Tool {
	return mcptask.NewTool(mcptask.ToolSpec{Name: name, InputSchema: mcptask.NoArguments, Policy: policy},
		func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) { return handler(ctx, task) })
}

// workFor returns a handler that works for a while.
func workFor(d time.Duration) func(context.Context, *mcptask.Task) (string, error) {
	return func(ctx context.Context, _ *mcptask.Task) (string, error) {
		select {
		case <-time.After(d):
			return "done", nil
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// askOnce is a handler that asks.
func askOnce(ctx context.Context, task *mcptask.Task) (string, error) {
	answer, err := mcptask.Ask[struct{ Text string }](ctx, task, mcptask.InputSpec{Name: "Text", Message: "Which?",
		Schema: `{"type":"object","properties":{"Text":{"type":"string"}}}`}, "step", "")
	return answer.Text, err
}

// makeExecutor is taskserver.Options.Executor.
type makeExecutor = func(taskserver.RunFunc) (taskserver.Executor, error)

func startServer(t *testing.T, store taskstore.Store, executor makeExecutor, tools ...mcptask.Tool) *taskserver.Server {
	t.Helper()
	s, err := taskserver.New(taskserver.Options{Store: store, Executor: executor}, mcptask.Tools{Service: "Texts", Impl: 1, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// call creates a task and waits until it runs as far as it can.
func call(t *testing.T, s *taskserver.Server, tool string) (id string) {
	t.Helper()
	reply, err := s.Backend().Call(t.Context(), carol, tool, nil, taskserver.CallRequest{Mode: taskserver.ModeTask})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return reply.Task.ID
}

// wait waits for the end of a task, for 20 hours at most, and returns its outcome in a word or two.
func wait(t *testing.T, s *taskserver.Server, id string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Hour)
	defer cancel()
	r, err := s.Backend().Await(ctx, carol, id)
	switch {
	case err != nil:
		t.Fatalf("%v, %+v", err, r)
	case r.Outcome.Kind == taskstore.OutcomeError && errors.Is(r.Outcome.Error, mcptask.ErrWorkerLost):
		return "lost"
	case r.Outcome.Kind == taskstore.OutcomeResult:
		var result struct{ Content []struct{ Text string } }
		if err := json.Unmarshal(r.Outcome.Result, &result); err != nil || len(result.Content) != 1 {
			t.Fatalf("%s: %v", r.Outcome.Result, err)
		}
		return result.Content[0].Text
	}
	return string(r.Outcome.Kind)
}

func give(t *testing.T, s *taskserver.Server, id, text string) {
	t.Helper()
	answer := json.RawMessage(`{"action":"accept","content":{"Text":"` + text + `"}}`)
	if err := s.Backend().Answer(t.Context(), carol, id, map[string]json.RawMessage{"step": answer}); err != nil {
		t.Fatal(err)
	}
}

// TestEngineKeepsTasks checks that the leases leave the tasks of an engine alone, as long as one of its servers lives
// and for an hour longer.
func TestEngineKeepsTasks(t *testing.T) {
	const longer = 3 * time.Hour
	tools := []mcptask.Tool{textTool("long", fails, workFor(longer)), textTool("ask", restarts, askOnce)}
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		store := taskstore.NewMemory()
		a, b := startServer(t, store, cluster.Join, tools...), startServer(t, store, cluster.Join, tools...)
		startServer(t, store, nil, tools...)
		ids := []string{call(t, a, "long"), call(t, b, "long")}
		asked := call(t, a, "ask")
		time.Sleep(2 * time.Hour)
		for _, id := range ids {
			if r, err := a.Backend().Get(t.Context(), carol, id); err != nil || r.Attempt != 1 || r.Claim.Worker != "memengine/tasks" {
				t.Errorf("%+v, %v", r, err)
			}
		}
		for _, id := range ids {
			if got := wait(t, b, id); got != "done" {
				t.Errorf("after %v: %s", longer, got)
			}
		}
		give(t, b, asked, "yes")
		if got := wait(t, b, asked); got != "yes" {
			t.Errorf("a question: %s", got)
		}
	})
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		store := taskstore.NewMemory()
		left := []mcptask.Tool{textTool("long", fails, workFor(longer)), textTool("again", restarts, workFor(longer))}
		a := startServer(t, store, cluster.Join, left...)
		long, again := call(t, a, "long"), call(t, a, "again")
		if err := a.Close(); err != nil {
			t.Fatal(err)
		}
		plain := startServer(t, store, nil, left...)
		time.Sleep(50 * time.Minute)
		for _, id := range []string{long, again} {
			if r, err := plain.Backend().Get(t.Context(), carol, id); err != nil || r.Done() || r.Attempt != 1 {
				t.Errorf("taken from the engine too early: %+v, %v", r, err)
			}
		}
		if got := wait(t, plain, long); got != "lost" {
			t.Errorf("a task that may not restart: %s", got)
		}
		if got := wait(t, plain, again); got != "done" {
			t.Errorf("a task that may restart: %s", got)
		}
	})
}

// TestEngineForgets checks that tasks that were deleted in the engine are submitted again.
func TestEngineForgets(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cluster := memengine.Cluster{Slots: 2}
		tools := []mcptask.Tool{textTool("fails", fails, workFor(time.Hour)), textTool("restarts", restarts, workFor(time.Hour)), textTool("ask", restarts, askOnce)}
		a := startServer(t, taskstore.NewMemory(), cluster.Join, tools...)
		asked := call(t, a, "ask")
		time.Sleep(time.Minute / 2)
		ran, again, queued := call(t, a, "fails"), call(t, a, "restarts"), call(t, a, "fails")
		if r, err := a.Backend().Get(t.Context(), carol, queued); err != nil || r.Attempt != 0 {
			t.Fatalf("%+v, %v", r, err)
		}
		for _, id := range []string{asked, ran, again, queued} {
			cluster.Forget(id)
		}
		give(t, a, asked, "yes")
		began := time.Now()
		for id, want := range map[string]string{asked: "yes", ran: "lost", again: "done", queued: "done"} {
			if got := wait(t, a, id); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		if took := time.Since(began); took > 2*time.Hour+time.Minute {
			t.Errorf("submitted again after %v", took)
		}
	})
}

// deafEngine does not take news for a while.
type deafEngine struct {
	taskserver.Engine
	deaf *atomic.Bool
}

func (x deafEngine) tell(tell func() error) error {
	if x.deaf.Load() {
		return errors.New("try again later")
	}
	return tell()
}

// Cancel implements taskserver.Engine.
func (x deafEngine) Cancel(ctx context.Context, task taskserver.Submission) error {
	return x.tell(func() error { return x.Engine.Cancel(ctx, task) })
}

// Answered implements taskserver.Engine.
func (x deafEngine) Answered(ctx context.Context, task taskserver.Submission) error {
	return x.tell(func() error { return x.Engine.Answered(ctx, task) })
}

// TestEngineIsToldAgain checks that an engine that fails for some seconds gets the missed calls again.
func TestEngineIsToldAgain(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		var deaf atomic.Bool
		join := func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			return deafEngine{x.(taskserver.Engine), &deaf}, err
		}
		s := startServer(t, taskstore.NewMemory(), join, textTool("ask", restarts, askOnce))
		answered, stopped := call(t, s, "ask"), call(t, s, "ask")
		time.Sleep(5 * time.Second) // their runs have ended
		deaf.Store(true)
		began := time.Now()
		time.AfterFunc(5*time.Second, func() { deaf.Store(false) })
		give(t, s, answered, "yes")
		if err := s.Backend().Stop(t.Context(), carol, stopped); err != nil {
			t.Fatal(err)
		}
		if got := wait(t, s, answered); got != "yes" {
			t.Errorf("answered: %s", got)
		}
		if got := wait(t, s, stopped); got != "cancelled" {
			t.Errorf("stopped: %s", got)
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("after %v", took)
		}
	})
}

// TestEngineCancels checks that a task that somebody cancels in the engine ends at once.
func TestEngineCancels(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		cluster := memengine.Cluster{Slots: 1}
		var cause error
		s := startServer(t, taskstore.NewMemory(), cluster.Join, textTool("ask", restarts, askOnce), textTool("long", fails,
			func(ctx context.Context, task *mcptask.Task) (string, error) {
				_, err := workFor(time.Hour)(ctx, task)
				cause = context.Cause(ctx)
				return "", err
			}))
		asked := call(t, s, "ask")
		time.Sleep(5 * time.Second)
		running, queued := call(t, s, "long"), call(t, s, "long")
		for _, id := range []string{asked, queued, running} {
			began := time.Now()
			cluster.Cancel(id)
			if got := wait(t, s, id); got != "cancelled" || time.Since(began) != 0 {
				t.Errorf("%s after %v", got, time.Since(began))
			}
		}
		if !errors.Is(cause, mcptask.ErrCancelled) {
			t.Errorf("the handler ended by %v", cause)
		}
	})
}

// TestEngineGivesUp checks that the result of a run is dropped if the engine has given it up, in the same process.
func TestEngineGivesUp(t *testing.T) {
	ends := map[string]error{"result": nil, "tool error": errors.New("late"), "error": mcptask.Errorf(mcptask.CodeInternalError, "late")}
	for name, late := range ends {
		for _, policy := range []mcptask.Policy{fails, restarts} {
			for _, isEarly := range []bool{false, true} { // the first run returns before the second begins
				bubble.Run(t, name, func(t *testing.T) {
					var cluster memengine.Cluster
					free := make(chan struct{})
					var cause error
					s := startServer(t, taskstore.NewMemory(), cluster.Join, textTool("deaf", policy,
						func(ctx context.Context, task *mcptask.Task) (string, error) {
							if task.Attempt() > 1 {
								return workFor(time.Minute)(ctx, task)
							}
							if isEarly {
								<-ctx.Done()
							} else {
								<-free
							}
							cause = context.Cause(ctx)
							return "late", late
						}))
					id := call(t, s, "deaf")
					cluster.GiveUp(id)
					synctest.Wait()
					close(free)
					want := "done"
					if policy == fails {
						want = "lost"
					}
					got := wait(t, s, id)
					synctest.Wait()
					if got != want || !errors.Is(cause, mcptask.ErrSuperseded) {
						t.Errorf("%s, want %s; the first run ended by %v", got, want, cause)
					}
				})
			}
		}
	}
}

// TestExecutorNotMade checks the errors of a server whose executor is not made, and that calls of its RunFunc leave all
// tasks alone.
func TestExecutorNotMade(t *testing.T) {
	var cluster memengine.Cluster
	broken := errors.New("no connection")
	cases := map[string]struct {
		make func(run taskserver.RunFunc) (taskserver.Executor, error)
		want string
	}{
		"an error": {func(taskserver.RunFunc) (taskserver.Executor, error) { return nil, broken }, "mcptask: Options.Executor: no connection"},
		"nil":      {func(taskserver.RunFunc) (taskserver.Executor, error) { return nil, nil }, "mcptask: Options.Executor has returned nil"},
		"an engine without a name": {func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			return namelessEngine{x.(taskserver.Engine)}, err
		}, "mcptask: Options.Executor is an engine without a name: let Name return what its servers share"},
		"an engine without a store": {cluster.Join, "mcptask: Options.Executor is an engine, whose tasks outlive this server: set Options.Store to a store that does so too"},
	}
	for name, c := range cases {
		bubble.Run(t, name, func(t *testing.T) {
			ended := make(chan taskserver.RunEnd, 1)
			began := time.Now()
			s, err := taskserver.New(taskserver.Options{Executor: func(run taskserver.RunFunc) (taskserver.Executor, error) {
				go func() { ended <- run(t.Context(), "a task of another server") }()
				return c.make(run)
			}}, mcptask.Tools{Service: "Texts", Impl: 1, Tools: []mcptask.Tool{textTool("ask", fails, askOnce)}})
			if s != nil || err == nil || err.Error() != c.want || time.Since(began) != 0 {
				t.Errorf("%v after %v", err, time.Since(began))
			}
			if end := <-ended; end != taskserver.RunLeft {
				t.Errorf("the RunFunc returns %d", end)
			}
		})
	}
}

// TestRunFuncIsEarly checks that an executor may call the RunFunc before the server is there.
func TestRunFuncIsEarly(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var cluster memengine.Cluster
		tool := textTool("again", restarts, workFor(time.Minute))
		first := startServer(t, store, cluster.Join, tool)
		id := call(t, first, "again")
		if err := first.Close(); err != nil {
			t.Fatal(err)
		}
		s := startServer(t, store, func(run taskserver.RunFunc) (taskserver.Executor, error) {
			x, err := cluster.Join(run)
			time.Sleep(time.Minute) // the run has begun
			return x, err
		}, tool)
		if got := wait(t, s, id); got != "done" {
			t.Error(got)
		}
	})
}

// TestRunEnds checks the results of the RunFunc.
func TestRunEnds(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		var run taskserver.RunFunc
		s := startServer(t, taskstore.NewMemory(), func(r taskserver.RunFunc) (taskserver.Executor, error) {
			run = r
			return cluster.Join(r)
		}, textTool("ask", restarts, askOnce), textTool("quick", fails, workFor(0)))
		closed, cancel := context.WithCancel(t.Context())
		cancel()
		cancelled, cancelCause := context.WithCancelCause(t.Context())
		cancelCause(mcptask.ErrCancelled)
		asked, over := call(t, s, "ask"), call(t, s, "quick")
		time.Sleep(5 * time.Second)
		for _, c := range []struct {
			what, id string
			ctx      context.Context
			want     taskserver.RunEnd
		}{
			{"a task that waits for an answer", asked, t.Context(), taskserver.RunWaits},
			{"with an executor that closes", asked, closed, taskserver.RunLeft},
			{"a task that is cancelled in the engine", asked, cancelled, taskserver.RunOver},
			{"after that", asked, t.Context(), taskserver.RunOver},
			{"a task that has ended", over, t.Context(), taskserver.RunOver},
			{"no task", strings.Repeat("A", 26), t.Context(), taskserver.RunOver},
			{"no task, cancelled", strings.Repeat("A", 26), cancelled, taskserver.RunOver},
		} {
			if got := run(c.ctx, c.id); got != c.want {
				t.Errorf("%s: %d, want %d", c.what, got, c.want)
			}
		}
	})
}

// TestEngineLosesRun checks that the timeline and the hooks tell of each run that an engine takes for lost, and of no
// other one.
func TestEngineLosesRun(t *testing.T) {
	closeServer := func(t *testing.T, a *taskserver.Server, _ taskserver.Executor) {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	}
	kill := func(_ *testing.T, _ *taskserver.Server, x taskserver.Executor) { memengine.Kill(x) }
	for name, c := range map[string]struct {
		tool mcptask.Tool
		end  func(*testing.T, *taskserver.Server, taskserver.Executor)
		want string
	}{
		"closed":        {textTool("t", restarts, workFor(time.Hour)), closeServer, "created started left started ended"},
		"killed":        {textTool("t", restarts, workFor(time.Hour)), kill, "created started lost started ended"},
		"may not again": {textTool("t", fails, workFor(time.Hour)), kill, "created started lost ended"},
		"parked": {textTool("t", restarts, askOnce), func(t *testing.T, a *taskserver.Server, x taskserver.Executor) {
			time.Sleep(time.Minute)
			kill(t, a, x)
		}, "created started asked left answered started ended"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			var cluster memengine.Cluster
			store := taskstore.NewMemory()
			var mu sync.Mutex
			var told []string
			hooks := []taskserver.Hooks{{Task: func(_ context.Context, e taskserver.TaskEvent) {
				mu.Lock()
				defer mu.Unlock()
				told = append(told, string(e.Kind))
			}}}
			start := func() (s *taskserver.Server, x taskserver.Executor) {
				s, err := taskserver.New(taskserver.Options{Store: store, Hooks: hooks, Executor: func(run taskserver.RunFunc) (_ taskserver.Executor, err error) {
					x, err = cluster.Join(run)
					return x, err
				}}, mcptask.Tools{Service: "Texts", Impl: 1, Tools: []mcptask.Tool{c.tool}})
				if err != nil {
					t.Fatal(err)
				}
				return s, x
			}
			a, first := start()
			id := call(t, a, "t")
			b, _ := start()
			c.end(t, a, first)
			if strings.Contains(c.want, "asked") {
				give(t, b, id, "yes")
			}
			wait(t, b, id)
			synctest.Wait()
			r, err := b.Backend().Get(t.Context(), carol, id)
			if err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, m := range r.Timeline.Moments() {
				kinds = append(kinds, string(m.Kind))
			}
			if got := strings.Join(kinds, " "); got != c.want {
				t.Errorf("the timeline has: %s\nwant: %s", got, c.want)
			}
			if got := strings.Join(told, " "); got != c.want {
				t.Errorf("hooks were told: %s\nwant: %s", got, c.want)
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestParkedQuestion checks that hooks are told that a question of a run that was parked has no answer yet.
func TestParkedQuestion(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var cluster memengine.Cluster
		told := make(chan error, 2)
		hooks := taskserver.Hooks{Question: func(ctx context.Context, _ taskserver.QuestionInfo) (context.Context, func(error)) {
			return ctx, func(err error) { told <- err }
		}}
		s, err := taskserver.New(taskserver.Options{Store: taskstore.NewMemory(), Hooks: []taskserver.Hooks{hooks}, Executor: cluster.Join},
			mcptask.Tools{Service: "Texts", Impl: 1, Tools: []mcptask.Tool{textTool("ask", restarts, askOnce)}})
		if err != nil {
			t.Fatal(err)
		}
		call(t, s, "ask")
		if err := <-told; !errors.Is(err, mcptask.ErrSuperseded) {
			t.Errorf("the hook was told %v, want %v", err, mcptask.ErrSuperseded)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestChangedWhileParked declares a tool anew while its run is parked. The next run meets the declaration of then, whatever
// the earlier one has done.
func TestChangedWhileParked(t *testing.T) {
	const old = `{"type":"object","properties":{"Text":{"type":"string"}}}`
	tool := func(arguments, form string) mcptask.Tool {
		return mcptask.NewTool(mcptask.ToolSpec{Name: "ask", InputSchema: arguments, Policy: restarts}, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			answer, err := mcptask.Ask[map[string]any](ctx, task, mcptask.InputSpec{Name: "Text", Schema: form}, "step", "")
			return fmt.Sprint(answer), err
		})
	}
	for name, c := range map[string]struct {
		arguments, form string
		keys            []string
		want            string
	}{
		"arguments": {`{"type":"object","required":["codec"]}`, old, []string{"step"}, "missing property"},
		"form":      {mcptask.NoArguments, `{"type":"object","properties":{"Text":{"type":"string"},"Paid":{"type":"string"}},"required":["Paid"]}`, []string{"step", "step~form2"}, "map[Paid:yes]"},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			cluster, store := memengine.Cluster{Patience: time.Second}, taskstore.NewMemory()
			first := startServer(t, store, cluster.Join, tool(mcptask.NoArguments, old))
			id := call(t, first, "ask")
			time.Sleep(time.Minute)
			if err := first.Close(); err != nil {
				t.Fatal(err)
			}
			second := startServer(t, store, cluster.Join, tool(c.arguments, c.form))
			for i, key := range c.keys {
				r, err := second.Backend().Get(t.Context(), carol, id)
				if err != nil || len(r.Outstanding()) != 1 || r.Outstanding()[0].Key != key {
					t.Fatalf("%+v, %v", r.Outstanding(), err)
				}
				response := []string{`{"action":"accept","content":{"Text":"yes"}}`, `{"action":"accept","content":{"Paid":"yes"}}`}[i]
				if err := second.Backend().Answer(t.Context(), carol, id, map[string]json.RawMessage{key: json.RawMessage(response)}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
			}
			r, err := second.Backend().Get(t.Context(), carol, id) // which leaves it to nobody else
			if err != nil || !r.Done() {
				t.Fatalf("%s, %v", r.Phase, err)
			}
			if got := fmt.Sprint(r.Outcome.Error, string(r.Outcome.Result)); !strings.Contains(got, c.want) {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}
