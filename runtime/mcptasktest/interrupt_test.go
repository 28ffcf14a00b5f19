package mcptasktest_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// studio makes a film in six hours. It counts its effects on the world outside.
type studio struct {
	mu      sync.Mutex
	effects map[string]int
	told    func(effect string) // called after each effect, unless it is nil
}

// work takes a while, and then has an effect.
func (s *studio) work(ctx context.Context, effect string, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	s.mu.Lock()
	s.effects[effect]++
	s.mu.Unlock()
	if s.told != nil {
		s.told(effect)
	}
	return nil
}

// film has steps of an hour, ten reels of twelve minutes, a sleep of two hours and a question.
func (s *studio) film(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
	step := func(name string) error {
		_, err := mcptask.Step(ctx, task, name, func(ctx context.Context) (string, error) {
			return "", s.work(ctx, name+" "+mcptask.StepKey(task, name), time.Hour)
		})
		return err
	}
	if err := step("upload"); err != nil {
		return "", err
	}
	reel, _, err := mcptask.Load[int](ctx, task, "reel")
	for ; err == nil && reel < 10; err = mcptask.Save(ctx, task, "reel", reel) {
		if err := s.work(ctx, fmt.Sprint("reel ", reel), 12*time.Minute); err != nil {
			return "", err
		}
		reel++
	}
	if err != nil {
		return "", err
	}
	if err := mcptask.Sleep(ctx, task, "dry", 2*time.Hour); err != nil {
		return "", err
	}
	answer, err := mcptask.Ask[place](ctx, task, placeSpec, "where", "")
	if err != nil {
		return "", err
	}
	return answer.Region, step("publish")
}

// connect serves a studio in one revision.
func (s *studio) connect(t *testing.T, revision string, onLost mcptask.LostPolicy, options mcptasktest.Options) mcptask.Conn {
	s.effects = map[string]int{}
	policy := mcptask.Policy{Task: mcptask.TaskRequired, OnLost: onLost, Poll: time.Minute}
	return mcptasktest.Connect(wirecheck.TB(t), revision, options, mcptask.Tools{Service: "Studio", Impl: s, Capabilities: mcptask.Declared(), Tools: []mcptask.Tool{
		mcptask.NewTool(mcptask.ToolSpec{Name: "film", InputSchema: `{"type":"object"}`, Policy: policy}, s.film),
	}})
}

// checkEffects checks that all effects have happened once, but those that begin with twice.
func (s *studio) checkEffects(t *testing.T, twice string) {
	t.Helper()
	if len(s.effects) != 12 {
		t.Errorf("the effects are %v", s.effects)
	}
	for effect, n := range s.effects {
		if want := 1 + strings.Count(effect, twice); n != want {
			t.Errorf("%q happened %d times, want %d", effect, n, want)
		}
	}
}

// TestInterruptedSixHours interrupts six hours of work at points.
func TestInterruptedSixHours(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			var s studio
			conn := s.connect(t, revision, mcptask.RestartWhenLost, mcptasktest.Options{
				Interrupt: mcptasktest.Once(t, mcptasktest.After("upload"), mcptasktest.After("dry"), mcptasktest.Before("publish")),
				Answer:    mcptask.Answer(placeSpec, func(context.Context, mcptask.Question) (place, error) { return place{"eu"}, nil }),
			})
			began := time.Now()
			region, err := mcptask.Run[string](t.Context(), conn, "film", struct{}{})
			if took := time.Since(began); err != nil || region != "eu" || took.Round(5*time.Minute) != 6*time.Hour {
				t.Errorf("%q, %v after %s", region, err, took)
			}
			s.checkEffects(t, "none")
		})
	})
}

// TestInterrupt interrupts six hours of work between points: when an upload is done and not stored, in the middle of a
// reel and of a sleep, and while a question waits.
func TestInterrupt(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			var s studio
			var conn mcptask.Conn
			var once, asked sync.Once
			s.told = func(string) { once.Do(func() { mcptasktest.Interrupt(t, conn) }) }
			conn = s.connect(t, revision, mcptask.RestartWhenLost, mcptasktest.Options{
				Answer: mcptask.Answer(placeSpec, func(context.Context, mcptask.Question) (place, error) {
					asked.Do(func() { mcptasktest.Interrupt(t, conn) })
					return place{"eu"}, nil
				}),
			})
			began := time.Now()
			call, err := mcptask.Start[string](t.Context(), conn, "film", struct{}{})
			if err != nil {
				t.Fatal(err)
			}
			for _, at := range []time.Duration{3*time.Hour + 6*time.Minute, 5 * time.Hour} {
				time.Sleep(time.Until(began.Add(at)))
				mcptasktest.Interrupt(t, conn)
			}
			region, err := call.Wait(t.Context())
			const want = 7*time.Hour + 6*time.Minute // of them an hour of the upload and half a reel again
			if took := time.Since(began); err != nil || region != "eu" || took.Round(3*time.Minute) != want {
				t.Errorf("%q, %v after %s", region, err, took)
			}
			s.checkEffects(t, "upload")
		})
	})
}

// TestInterruptedForGood checks that a task that may not restart fails as in production.
func TestInterruptedForGood(t *testing.T) {
	mcptasktest.EachRevision(t, func(t *testing.T, revision string) {
		bubble.Test(t, func(t *testing.T) {
			var s studio
			conn := s.connect(t, revision, mcptask.FailWhenLost, mcptasktest.Options{
				Interrupt: func(p mcptasktest.Point) bool {
					return p == mcptasktest.Point{TaskID: p.TaskID, Tool: "film", Step: "upload", After: true, Attempt: 1}
				},
				Server: taskserver.Options{Logger: slog.New(slog.DiscardHandler)}, // it warns of the lost task
			})
			if _, err := mcptask.Run[string](t.Context(), conn, "film", struct{}{}); !errors.Is(err, mcptask.ErrWorkerLost) || len(s.effects) != 1 {
				t.Errorf("%v, and the effects are %v", err, s.effects)
			}
		})
	})
}

// TestInterruptedHandler checks what an interrupted handler sees. The next run needs its slot.
func TestInterruptedHandler(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		var seen error
		spec := mcptask.ToolSpec{Name: "wait", InputSchema: `{"type":"object"}`, Policy: mcptask.Policy{Task: mcptask.TaskRequired, OnLost: mcptask.RestartWhenLost}}
		tool := mcptask.NewTool(spec, func(ctx context.Context, task *mcptask.Task, _ struct{}) (string, error) {
			if task.Attempt() > 1 {
				return "done", nil
			}
			<-ctx.Done()
			_, seen = mcptask.Step(context.WithoutCancel(ctx), task, "late", func(context.Context) (int, error) { return 1, nil })
			if !errors.Is(context.Cause(ctx), mcptask.ErrSuperseded) || !task.Interrupted(ctx) {
				t.Errorf("the context ended with %v, interrupted %v", context.Cause(ctx), task.Interrupted(ctx))
			}
			return "", seen
		})
		options := mcptasktest.Options{Server: taskserver.Options{Concurrency: 1, Logger: slog.New(slog.DiscardHandler)}}
		conn := mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, options, mcptask.Tools{Service: "Wait", Impl: struct{}{}, Tools: []mcptask.Tool{tool}})
		call, err := mcptask.Start[string](t.Context(), conn, "wait", struct{}{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		mcptasktest.Interrupt(t, conn)
		if out, err := call.Wait(t.Context()); err != nil || out != "done" || seen == nil {
			t.Errorf("%q, %v; a step of the interrupted run: %v", out, err, seen)
		}
	})
}

// recorder is a test whose failures are recorded.
type recorder struct {
	exampleT
	failures []string
}

func (r *recorder) Error(args ...any) { r.failures = append(r.failures, fmt.Sprint(args...)) }
func (r *recorder) Errorf(f string, args ...any) {
	r.failures = append(r.failures, fmt.Sprintf(f, args...))
}

// TestVainInterruptions checks that an interruption that does not happen fails the test.
func TestVainInterruptions(t *testing.T) {
	var r recorder
	interrupt := mcptasktest.Once(&r, mcptasktest.Before("upload"), mcptasktest.After("uplaod"))
	for _, p := range []struct {
		mcptasktest.Point
		want bool
	}{
		{mcptasktest.Point{TaskID: "1", Step: "upload", Attempt: 1}, true},
		{mcptasktest.Point{TaskID: "1", Step: "upload", Attempt: 2}, false},
		{mcptasktest.Point{TaskID: "1", Step: "upload", Attempt: 2, After: true}, false},
		{mcptasktest.Point{TaskID: "2", Step: "upload", Attempt: 1}, true},
	} {
		if got := interrupt(p.Point); got != p.want {
			t.Errorf("%+v: interrupted %v", p.Point, got)
		}
	}
	r.end()
	bubble.Test(t, func(t *testing.T) {
		mcptasktest.Interrupt(&r, mcptasktest.Connect(wirecheck.TB(t), mcptask.Revision20260728, mcptasktest.Options{}))
	})
	mcptasktest.Interrupt(&r, nil)
	want := []string{
		`mcptasktest: no run reached mcptasktest.After("uplaod"); the points were mcptasktest.Before("upload"), mcptasktest.After("upload")` +
			"\n\tremove it from Once, or correct the step",
		"mcptasktest: Interrupt found no run of a task: interrupt while a handler runs, and leave Options.Server.Executor nil",
		"mcptasktest: Interrupt has got a <nil>: pass the connection that Connect has returned",
	}
	if !slices.Equal(r.failures, want) {
		t.Errorf("the failures are %q", r.failures)
	}
}
