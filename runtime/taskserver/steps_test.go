package taskserver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// ledger notes what happens outside of a handler.
type ledger struct {
	mu    sync.Mutex
	notes []string
}

func (l *ledger) note(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, fmt.Sprintf(format, args...))
}

// want checks the notes, in any order.
func (l *ledger) want(t *testing.T, notes ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	if got := slices.Sorted(slices.Values(l.notes)); !slices.Equal(got, slices.Sorted(slices.Values(notes))) {
		t.Errorf("outside: %q, want %q", got, notes)
	}
}

// step is a step of an hour that returns a number. The ledger gets the number and the step's key.
func (l *ledger) step(ctx context.Context, task *mcptask.Task, name string, n int) (int, error) {
	return mcptask.Step(ctx, task, name, func(ctx context.Context) (int, error) {
		select {
		case <-time.After(time.Hour):
			l.note("%s %d of %s", name, n, mcptask.StepKey(task, name))
			return n, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
}

// listSteps returns the steps of a task in one line.
func listSteps(t *testing.T, s *Backend, id string) string {
	t.Helper()
	steps, err := s.store.Steps(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, step := range steps {
		list = append(list, fmt.Sprintf("%s %s=%s in run %d", step.Kind, step.Name, step.Value, step.Attempt))
	}
	return strings.Join(list, ", ")
}

// TestSteps closes a server in the third of four steps. Another one goes on there.
func TestSteps(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var outside ledger
		var keys sync.Map
		tool := numberTool("t", mcptask.Policy{TTL: 24 * time.Hour, OnLost: mcptask.RestartWhenLost}, func(ctx context.Context, task *mcptask.Task, _ number) (sum number, err error) {
			keys.Store(mcptask.StepKey(task, "fetch"), true)
			for i, name := range []string{"fetch", "encode", "encode", "upload"} {
				n, err := outside.step(ctx, task, name, i)
				if err != nil {
					return sum, err
				}
				sum.N += n
			}
			return sum, nil
		})
		a := newServer(t, Options{Store: store}, tool)
		id := begin(t, a, alice, "t").ID
		time.Sleep(150 * time.Minute)
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		b := newServer(t, Options{Store: store}, tool)
		r := ended(t, b, alice, id)
		if outcomeText(r.Outcome) != `result {"content":[{"text":"{\"n\":6}","type":"text"}],"structuredContent":{"n":6}}` || time.Since(began) != 2*time.Hour {
			t.Errorf("%s after %v", outcomeText(r.Outcome), time.Since(began))
		}
		if want := "done fetch=0 in run 1, done encode=1 in run 1, done encode#2=2 in run 2, done upload=3 in run 2"; listSteps(t, b, id) != want {
			t.Errorf("stored: %s", listSteps(t, b, id))
		}
		key := func(name string) string {
			return mcptask.StepKey(mcptask.NewTask(nil, mcptask.TaskInfo{ID: id, Created: r.CreatedAt}), name)
		}
		outside.want(t, "fetch 0 of "+key("fetch"), "encode 1 of "+key("encode"), "encode 2 of "+key("encode"), "upload 3 of "+key("upload"))
		var moments []string
		for _, m := range r.Timeline.Moments() {
			if m.Kind == taskstore.EventStep {
				moments = append(moments, fmt.Sprint(m.Text, m.Attempt))
			}
		}
		if !slices.Equal(moments, []string{"fetch1", "encode1", "encode#22", "upload2"}) {
			t.Errorf("the timeline has %q", moments)
		}
		n := 0
		keys.Range(func(any, any) bool { n++; return true })
		if n != 1 || key("fetch") == key("encode") {
			t.Errorf("%d keys for one step", n)
		}
		if r.Worked != 270*time.Minute || r.StepBytes != int64(4*65+len("fetchencodeencode#2upload")) {
			t.Errorf("worked %v, %d bytes of steps", r.Worked, r.StepBytes)
		}
	})
}

// TestStepsAreFenced lets a run go on that was taken for lost. It can neither store its step nor begin another one.
func TestStepsAreFenced(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		line := &tapStore{Store: store}
		var outside ledger
		finish := make(chan struct{})
		a := newServer(t, Options{Store: line}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			_, err := mcptask.Step(ctx, task, "one", func(context.Context) (string, error) { <-finish; return "late", nil })
			outside.note("one: %v", err)
			_, err = mcptask.Step(ctx, task, "two", func(context.Context) (string, error) { outside.note("begun"); return "", nil })
			outside.note("two: %v", err)
			outside.note("save: %v", mcptask.Save(ctx, task, "row", 7))
			outside.note("sleep: %v", mcptask.Sleep(ctx, task, "rest", time.Hour))
			return in, err
		}))
		b := newServer(t, Options{Store: store}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			value, err := mcptask.Step(ctx, task, "one", func(context.Context) (string, error) { return "in time", nil })
			if err != nil || value != "in time" {
				t.Errorf("%q, %v", value, err)
			}
			time.Sleep(time.Hour)
			return in, err
		}))
		id := begin(t, a, alice, "t").ID
		synctest.Wait()
		line.set(cut)
		time.Sleep(leaseFor + renewEvery)
		line.set(nil)
		close(finish)
		if r := ended(t, b, alice, id); r.Outcome.Kind != taskstore.OutcomeResult || r.Attempt != 2 {
			t.Errorf("%s in run %d", outcomeText(r.Outcome), r.Attempt)
		}
		if want := `done one="in time" in run 2`; listSteps(t, b, id) != want {
			t.Errorf("stored: %s", listSteps(t, b, id))
		}
		lost := mcptask.ErrSuperseded.Error()
		outside.want(t, "one: "+lost, "two: "+lost, "save: "+lost, "sleep: "+lost)
	})
}

// TestStepsRefused checks the errors of steps that cannot be stored.
func TestStepsRefused(t *testing.T) {
	limits := Limits{Step: 100, Steps: 300}
	const ok = `{"n":`
	step := func(ctx context.Context, task *mcptask.Task, name, value string) error {
		_, err := mcptask.Step(ctx, task, name, func(context.Context) (string, error) { return value, nil })
		return err
	}
	for name, c := range map[string]struct {
		handler func(context.Context, *mcptask.Task) error
		want    string
	}{
		"no name":  {func(ctx context.Context, task *mcptask.Task) error { return step(ctx, task, "", "") }, "needs a name"},
		"no UTF-8": {func(ctx context.Context, task *mcptask.Task) error { return step(ctx, task, "\xff", "") }, "not UTF-8"},
		"long name": {func(ctx context.Context, task *mcptask.Task) error {
			return step(ctx, task, strings.Repeat("x", 257), "")
		}, "has 257 bytes, and may have 256"},
		"no JSON": {func(ctx context.Context, task *mcptask.Task) error {
			return mcptask.Save(ctx, task, "row", func() {})
		}, `step \"row\": a value of type func() cannot be stored as JSON`},
		"big": {func(ctx context.Context, task *mcptask.Task) error {
			return step(ctx, task, "a", strings.Repeat("x", 99))
		}, `error the server's limit "step" of 100 is exceeded: store less in one step: keep files elsewhere, and store where they are`},
		"big position": {func(ctx context.Context, task *mcptask.Task) error {
			return mcptask.Save(ctx, task, "a", strings.Repeat("x", 99))
		}, `"limit":"step"`},
		"many": {func(ctx context.Context, task *mcptask.Task) error {
			return errors.Join(step(ctx, task, "a", strings.Repeat("x", 90)), mcptask.Save(ctx, task, "b", 1), step(ctx, task, "c", strings.Repeat("x", 90)))
		}, `{"limit":"steps","max":300}`},
		"a position again": {func(ctx context.Context, task *mcptask.Task) error {
			for i := range 100 {
				if err := mcptask.Save(ctx, task, "b", i); err != nil {
					return err
				}
			}
			return step(ctx, task, "a", strings.Repeat("x", 90))
		}, ok},
		"after a refusal": {func(ctx context.Context, task *mcptask.Task) error {
			for range 10 {
				if err := step(ctx, task, "a", strings.Repeat("x", 99)); err == nil {
					return errors.New("stored")
				}
			}
			return step(ctx, task, "a", strings.Repeat("x", 90))
		}, ok},
		"a step for a position": {func(ctx context.Context, task *mcptask.Task) error {
			return errors.Join(mcptask.Save(ctx, task, "a", 1), step(ctx, task, "a", ""))
		}, `the name \"a\" is that of a Save or Load of this run: give the step or the question another name`},
		"another type": {func(ctx context.Context, task *mcptask.Task) error {
			if err := mcptask.Save(ctx, task, "a", "text"); err != nil {
				return err
			}
			_, _, err := mcptask.Load[number](ctx, task, "a")
			return err
		}, `step \"a\": the stored value does not fit the type taskserver.number: json: cannot unmarshal string`},
		"its own error": {func(ctx context.Context, task *mcptask.Task) error {
			tries := 0
			for range 3 {
				if n, err := mcptask.Step(ctx, task, "a", func(context.Context) (int, error) {
					if tries++; tries < 3 {
						return 0, errors.New("not yet")
					}
					return tries, nil
				}); err == nil && n == 3 {
					return step(ctx, task, "b", "")
				}
			}
			return errors.New("not at last")
		}, ok},
	} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				s := newServer(t, Options{Limits: limits}, numberTool("t", mcptask.Policy{}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
					return in, c.handler(ctx, task)
				}))
				r := ended(t, s, alice, begin(t, s, alice, "t").ID)
				if got := outcomeText(r.Outcome); !strings.Contains(got, c.want) {
					t.Errorf("%s", got)
				}
				if name == "its own error" && listSteps(t, s, r.ID) != `done a=3 in run 1, done b="" in run 1` {
					t.Errorf("stored: %s", listSteps(t, s, r.ID))
				}
			})
		})
	}
}

// TestPositions saves a position each millisecond. It is stored ten times a second, and handed over whole by a server
// that closes. After a crash it is up to savePause old.
func TestPositions(t *testing.T) {
	const rows = 2500
	for name, crash := range map[string]bool{"closed": false, "crashed": true} {
		t.Run(name, func(t *testing.T) {
			bubble.Test(t, func(t *testing.T) {
				store := taskstore.NewMemory()
				var writes atomic.Int32
				count := func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
					if method == "Update" {
						writes.Add(1)
					}
					return do()
				}
				line := &tapStore{Store: store, tap: count}
				var from []int
				tool := numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
					row, _, err := mcptask.Load[int](ctx, task, "row")
					from = append(from, row)
					for ; row < rows && err == nil; row++ {
						time.Sleep(time.Millisecond)
						err = mcptask.Save(ctx, task, "row", row+1)
					}
					return in, err
				})
				a := newServer(t, Options{Store: line}, tool)
				id := begin(t, a, alice, "t").ID
				time.Sleep(1050*time.Millisecond + time.Microsecond)
				if n := writes.Load(); n < 10 || n > 12 {
					t.Errorf("%d writes in a second", n)
				}
				least := 1050
				if crash {
					line.set(cut)
					least -= int(savePause / time.Millisecond)
				} else if err := a.server.Close(); err != nil {
					t.Fatal(err)
				}
				b := newServer(t, Options{Store: store}, tool)
				if r := ended(t, b, alice, id); r.Outcome.Kind != taskstore.OutcomeResult {
					t.Errorf("%s", outcomeText(r.Outcome))
				}
				line.set(nil)
				if len(from) != 2 || from[0] != 0 || from[1] < least || from[1] > 1051 {
					t.Errorf("the runs began at %d", from)
				}
			})
		})
	}
}

// TestSleep sleeps over a restart, and over a deadline. Another handler has the slot meanwhile.
func TestSleep(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		policy := mcptask.Policy{TTL: 24 * time.Hour, Deadline: time.Minute, OnLost: mcptask.RestartWhenLost}
		tools := []mcptask.Tool{numberTool("sleep", policy, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			return in, mcptask.Sleep(ctx, task, "night", 8*time.Hour)
		}), numberTool("double", mcptask.Policy{}, double)}
		a := newServer(t, Options{Store: store, Concurrency: 1}, tools...)
		began := time.Now()
		id := begin(t, a, alice, "sleep").ID
		synctest.Wait()
		if r := ended(t, a, alice, begin(t, a, alice, "double").ID); outcomeText(r.Outcome) != doubled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
		time.Sleep(3 * time.Hour)
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		b := newServer(t, Options{Store: store}, tools...)
		if r := ended(t, b, alice, id); r.Outcome.Kind != taskstore.OutcomeResult || r.Attempt != 2 || time.Since(began) != 8*time.Hour || r.Worked != 0 {
			t.Errorf("%s after %v, of which it worked %v", outcomeText(r.Outcome), time.Since(began), r.Worked)
		}
		asleep := begin(t, b, alice, "sleep").ID
		synctest.Wait()
		if _, _, err := b.Cancel(t.Context(), alice, asleep); err != nil {
			t.Fatal(err)
		}
		if r := ended(t, b, alice, asleep); r.Outcome.Kind != taskstore.OutcomeCancelled {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}

// TestDeadlineCountsWork checks that the deadline counts the time that a handler works, in all of its runs, and not the
// time in which it waits.
func TestDeadlineCountsWork(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		policy := mcptask.Policy{TTL: 24 * time.Hour, Deadline: time.Minute, OnLost: mcptask.RestartWhenLost, Task: mcptask.TaskOptional}
		work := func(ctx context.Context, d time.Duration) error {
			_, err := after(d)(ctx, nil, number{})
			return err
		}
		tools := []mcptask.Tool{
			numberTool("waits", policy, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
				err := errors.Join(work(ctx, 29*time.Second), task.WithoutSlot(ctx, func(ctx context.Context) error { return work(ctx, time.Hour) }))
				if _, asked := confirm(ctx, task, in); asked != nil && task.ID() != "" {
					return in, asked
				}
				return in, errors.Join(err, work(ctx, time.Duration(in.N)*time.Second))
			}),
			numberTool("runs", policy, func(ctx context.Context, _ *mcptask.Task, in number) (number, error) { return in, work(ctx, time.Hour) }),
		}
		a := newServer(t, Options{Store: store}, tools...)
		for n, want := range map[string]string{`{"n":30}`: "result", `{"n":32}`: mcptask.ErrDeadline.Error()} {
			reply, err := a.Call(t.Context(), alice, "waits", []byte(n), CallRequest{Mode: ModeTask})
			if err != nil {
				t.Fatal(err)
			}
			asks(t, a, alice, reply.Task.ID)
			time.Sleep(time.Hour)
			if err := answer(t, a, alice, reply.Task.ID, "ship", yes); err != nil {
				t.Fatal(err)
			}
			r := ended(t, a, alice, reply.Task.ID)
			if missed := r.Outcome.Error; want == "result" != (r.Outcome.Kind == taskstore.OutcomeResult) || missed != nil && !errors.Is(missed, mcptask.ErrDeadline) {
				t.Errorf("%s: %s, want %s", n, outcomeText(r.Outcome), want)
			}
			plain, err := a.Call(t.Context(), Caller{Principal: "alice"}, "waits", []byte(n), CallRequest{})
			if err != nil || want == "result" != (plain.Outcome.Kind == taskstore.OutcomeResult) {
				t.Errorf("%s in a plain call: %s, %v", n, outcomeText(plain.Outcome), err)
			}
		}
		id := begin(t, a, alice, "runs").ID
		time.Sleep(40 * time.Second)
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		b := newServer(t, Options{Store: store}, tools...)
		if r := ended(t, b, alice, id); !errors.Is(r.Outcome.Error, mcptask.ErrDeadline) || time.Since(began) != 20*time.Second || r.Worked != time.Minute {
			t.Errorf("%s after %v, worked %v", outcomeText(r.Outcome), time.Since(began), r.Worked)
		}
	})
}

// TestStepsThroughFaults stores steps in a store that is away for a while, and in one that is full.
func TestStepsThroughFaults(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		line := &tapStore{Store: taskstore.NewMemory()}
		begun := make(chan struct{})
		s := newServer(t, Options{Store: line}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			_, err := mcptask.Step(ctx, task, "a", func(context.Context) (int, error) { <-begun; return 1, nil })
			return in, err
		}))
		id := begin(t, s, alice, "t").ID
		synctest.Wait()
		line.set(cut)
		close(begun)
		time.Sleep(20 * time.Second)
		line.set(nil)
		if r := ended(t, s, alice, id); r.Outcome.Kind != taskstore.OutcomeResult || listSteps(t, s, id) != "done a=1 in run 1" {
			t.Errorf("%s: %s", outcomeText(r.Outcome), listSteps(t, s, id))
		}
	})
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Limits: Limits{Bytes: 3000}}, numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			if err := mcptask.Save(ctx, task, "a", strings.Repeat("x", 3000)); err != nil {
				return in, err
			}
			time.Sleep(time.Second)
			err := mcptask.Save(ctx, task, "a", "")
			var refused *mcptask.Error
			if !errors.As(err, &refused) || refused.Limit() != "bytes" {
				t.Errorf("the next Save returns %v", err)
			}
			_, err = mcptask.Step(ctx, task, "b", func(context.Context) (string, error) { return strings.Repeat("x", 3000), nil })
			return in, err
		}))
		r := ended(t, s, alice, begin(t, s, alice, "t").ID)
		if r.Outcome.Error == nil || r.Outcome.Error.Limit() != "bytes" {
			t.Errorf("%s", outcomeText(r.Outcome))
		}
	})
}

// TestStepHooks checks that hooks learn of steps that are begun, and not of those that are stored already.
func TestStepHooks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var told ledger
		hooks := Hooks{Step: func(ctx context.Context, info StepInfo) (context.Context, func(error)) {
			return ctx, func(err error) { told.note("run %d: %s %s: %v", info.Task.Attempt, info.Kind, info.Name, err) }
		}}
		tool := numberTool("t", restart, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			for _, fails := range []error{nil, errors.New("no")} {
				_, _ = mcptask.Step(ctx, task, fmt.Sprint("a", fails), func(context.Context) (int, error) { return 1, fails })
			}
			return in, mcptask.Sleep(ctx, task, "s", time.Minute)
		})
		a := newServer(t, Options{Store: store, Hooks: []Hooks{hooks}}, tool)
		id := begin(t, a, alice, "t").ID
		time.Sleep(time.Second)
		if err := a.server.Close(); err != nil {
			t.Fatal(err)
		}
		b := newServer(t, Options{Store: store, Hooks: []Hooks{hooks}}, tool)
		ended(t, b, alice, id)
		told.want(t, "run 1: done a<nil>: <nil>", "run 1: done ano: no", "run 1: sleep s: context canceled", "run 2: done ano: no", "run 2: sleep s: <nil>")
	})
}
