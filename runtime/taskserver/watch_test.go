package taskserver

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestWatch checks that one loop sees the first state of each task, its last state however slow the loop is, and no
// task that is not the caller's or does not exist.
func TestWatch(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{}, numberTool("t", mcptask.Policy{TTL: time.Hour}, func(ctx context.Context, task *mcptask.Task, in number) (number, error) {
			for i := range 10 {
				task.Progress(ctx, float64(i), 10, "on")
				time.Sleep(10 * time.Second)
			}
			return in, nil
		}))
		ids := []string{"made up", begin(t, s, bob, "t").ID}
		for range 3 {
			ids = append(ids, begin(t, s, alice, "t").ID)
		}
		ids = append(ids, ids[4]) // twice
		first, last := map[string]taskstore.Phase{}, map[string]taskstore.Phase{}
		steps := 0
		for r, err := range s.Watch(t.Context(), alice, ids...) {
			if err != nil {
				t.Fatal(err)
			}
			if first[r.ID] == "" {
				first[r.ID] = r.Phase
			}
			if last[r.ID] == taskstore.PhaseDone {
				t.Error("a task that has ended comes again")
			}
			last[r.ID] = r.Phase
			if steps++; steps == 5 {
				time.Sleep(time.Minute) // and misses most of the reports
			}
		}
		for _, id := range ids[2:] {
			if first[id] != taskstore.PhaseRunning || last[id] != taskstore.PhaseDone {
				t.Errorf("the task is %q first and %q last", first[id], last[id])
			}
		}
		if len(first) != 3 || steps < 9 || steps > 3*11 {
			t.Errorf("%d tasks in %d steps", len(first), steps)
		}
		synctest.Wait()
		wantForgotten(t, s)
	})
}

// TestWatchEnds checks how a watch ends early: by the loop, its context, the expiry of its task and the server's end.
func TestWatchEnds(t *testing.T) {
	for name, end := range map[string]struct {
		by   func(s *Backend, cancel func(), id string)
		want error
	}{
		"context": {func(_ *Backend, cancel func(), _ string) { cancel() }, context.Canceled},
		"server":  {func(s *Backend, _ func(), _ string) { go func() { _ = s.server.Close() }() }, newShutdownError()},
		"expiry":  {func(*Backend, func(), string) { time.Sleep(2 * time.Hour) }, nil},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			// With a store of its own, a server that closes would end the task first.
			s := newServer(t, Options{Store: taskstore.NewMemory(), Logger: (&logged{}).logger()}, numberTool("t", mcptask.Policy{TTL: time.Hour}, hang))
			id := begin(t, s, alice, "t").ID
			for range s.Watch(t.Context(), alice, id) {
				break
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var got error
			for r, err := range s.Watch(ctx, alice, id) {
				if got = err; err == nil {
					if r.ID != id {
						t.Errorf("got %q", r.ID)
					}
					end.by(s, cancel, id)
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(end.want) {
				t.Errorf("it ends with %v, want %v", got, end.want)
			}
		})
	}
}

// TestWatchMissesNothing checks that a watch sees the end of a task although the store's feed says nothing, and waits
// for a store that fails.
func TestWatchMissesNothing(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := taskstore.NewMemory()
		var broken atomic.Bool
		deaf := &tapStore{Store: store, tap: func(_ context.Context, method string, _ *taskstore.Record, do func() error) error {
			switch {
			case method == "Change":
				return nil
			case method == "Get" && broken.Load():
				return errors.New("the disk is slow")
			}
			return do()
		}}
		a := newServer(t, Options{Store: store}, numberTool("t", mcptask.Policy{TTL: time.Hour}, hang))
		b := newServer(t, Options{Store: deaf, Logger: (&logged{}).logger()})
		id := begin(t, a, alice, "t").ID
		var phases []taskstore.Phase
		for r, err := range b.Watch(t.Context(), alice, id) {
			if err != nil {
				t.Fatal(err)
			}
			phases = append(phases, r.Phase)
			if len(phases) > 1 {
				continue
			}
			broken.Store(true)
			if _, _, err := a.Cancel(t.Context(), alice, id); err != nil {
				t.Fatal(err)
			}
			time.AfterFunc(StoreWait+10*time.Second, func() { broken.Store(false) })
		}
		if fmt.Sprint(phases) != "[running done]" {
			t.Errorf("%v", phases)
		}
	})
}

// TestWatchReadsOnce checks that a watch reads its task when it begins and after each change, and no more often. Await
// reads once before, to find out whose the task is.
func TestWatchReadsOnce(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		type reader struct{}
		var reads atomic.Int32
		store := &tapStore{Store: taskstore.NewMemory(), tap: func(ctx context.Context, _ string, _ *taskstore.Record, do func() error) error {
			if ctx.Value(reader{}) != nil {
				reads.Add(1)
			}
			return do()
		}}
		s := newServer(t, Options{Store: store, Logger: (&logged{}).logger()}, numberTool("t", mcptask.Policy{TTL: time.Hour}, hang))
		id := begin(t, s, alice, "t").ID
		synctest.Wait() // until it runs
		ctx := context.WithValue(t.Context(), reader{}, true)
		var readers sync.WaitGroup
		readers.Go(func() {
			if _, err := s.Await(ctx, alice, id); err != nil {
				t.Error(err)
			}
		})
		readers.Go(func() {
			for _, err := range s.Watch(ctx, alice, id) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		synctest.Wait()
		if got := reads.Swap(0); got != 2+1 {
			t.Errorf("they have read %d times", got)
		}
		if _, _, err := s.Cancel(t.Context(), alice, id); err != nil {
			t.Fatal(err)
		}
		readers.Wait()
		if got := reads.Load(); got != 1+1 {
			t.Errorf("they have read %d times more after the end of the task", got)
		}
	})
}
