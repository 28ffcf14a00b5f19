package push

import (
	"context"
	"iter"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestQuestionIsNotRead checks that a question which waits for the session's own stream costs a read of its task
// only if it still waits when it is due.
func TestQuestionIsNotRead(t *testing.T) {
	for name, c := range map[string]struct {
		end   func(*peer, *taskstore.Input)
		reads bool
	}{
		"waits":             {func(*peer, *taskstore.Input) {}, true},
		"answered":          {func(_ *peer, in *taskstore.Input) { in.State = taskstore.InputAnswered }, false},
		"withdrawn":         {func(_ *peer, in *taskstore.Input) { in.State = taskstore.InputSuperseded }, false},
		"fetched elsewhere": {func(_ *peer, in *taskstore.Input) { in.Fetched = true }, false},
		"session over":      {func(p *peer, _ *taskstore.Input) { p.Close() }, false},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			store := &faulty{Store: taskstore.NewMemory(), reads: map[string]int{}}
			p := newReplicatedPeer(serve(t, store), "session")
			const poll = time.Minute
			r := create(t, store, taskstore.Record{ID: "task", Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "w"}, Poll: poll})
			p.Know(legacy, r)
			own := p.Connect(nil, "")
			write := func(in taskstore.Input) {
				moved := r
				moved.Inputs = []taskstore.Input{in}
				var err error
				if r, err = store.Update(context.Background(), r, moved, taskstore.Quota{}); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
			in := newQuestion("one")
			write(in)
			c.end(p, &in)
			write(in)
			before := store.countReads("task")
			time.Sleep(poll + fetchMargin)
			synctest.Wait()
			asked := false
			for _, m := range own.Take() {
				asked = asked || strings.Contains(string(m), "elicitation/create")
			}
			if reads := store.countReads("task") > before; reads != c.reads || asked != c.reads {
				t.Errorf("read: %v, asked: %v; want both %v", reads, asked, c.reads)
			}
		})
	}
}

// silent is a store whose feed has no news.
type silent struct{ taskstore.Store }

// Changes implements taskstore.Store.
func (s silent) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return func(func(taskstore.Change, error) bool) { <-ctx.Done() }
}

// TestFindsWhatAnotherSessionKnows checks that the session which has created a task on another replica gets its
// questions even if another session of its principal has named the task here first.
func TestFindsWhatAnotherSessionKnows(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		store := silent{taskstore.NewMemory()}
		h := serve(t, store)
		creates, names := newReplicatedPeer(h, "session"), newPeer(h, "p", elicits)
		own := creates.Connect(nil, "")
		synctest.Wait() // it has looked for its tasks
		r := create(t, store, taskstore.Record{
			ID:    strings.Repeat("A", 26) + taskserver.MarkOfSession(creates.name),
			Phase: taskstore.PhaseInputRequired, Claim: taskstore.Claim{Worker: "w"}, Revision: mcptask.Revision20251125, Inputs: []taskstore.Input{newQuestion("one")},
		})
		names.Know(legacy, r)
		h.observe(r) // the news comes later
		time.Sleep(time.Minute)
		synctest.Wait()
		if messages := own.Take(); len(messages) != 1 || !strings.Contains(string(messages[0]), "elicitation/create") {
			t.Errorf("got %q", messages)
		}
	})
}

// scanned is a store that counts its scans. They wait for release.
type scanned struct {
	taskstore.Store
	news         chan taskstore.Change
	release      chan struct{}
	running, all atomic.Int64
}

// Changes implements taskstore.Store.
func (s *scanned) Changes(ctx context.Context) iter.Seq2[taskstore.Change, error] {
	return func(yield func(taskstore.Change, error) bool) {
		for {
			select {
			case c := <-s.news:
				if !yield(c, nil) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// Scan implements taskstore.Inspector.
func (s *scanned) Scan(ctx context.Context, _ taskstore.Filter, _ taskstore.Position, _ int) ([]taskstore.Record, error) {
	s.all.Add(1)
	s.running.Add(1)
	defer s.running.Add(-1)
	select {
	case <-s.release:
		return nil, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// CountUnfinished implements taskstore.Inspector.
func (s *scanned) CountUnfinished(context.Context) ([]taskstore.Count, error) { return nil, nil }

// CountFailed implements taskstore.Inspector.
func (s *scanned) CountFailed(context.Context, time.Time) ([]taskstore.Count, error) { return nil, nil }

// Workers implements taskstore.Inspector.
func (s *scanned) Workers(context.Context) ([]taskstore.WorkerLease, error) { return nil, nil }

// ListSteps implements taskstore.Inspector.
func (s *scanned) ListSteps(context.Context, string) ([]taskstore.StepSummary, error) {
	return nil, nil
}

// TestMissedNewsOfManySessions checks that sessions look for their tasks a few at a time, and not once for each time
// that the feed may have missed something while they wait.
func TestMissedNewsOfManySessions(t *testing.T) {
	const sessions, misses, phases = 20, 5, 3
	bubble.Test(t, func(t *testing.T) {
		store := &scanned{Store: taskstore.NewMemory(), news: make(chan taskstore.Change), release: make(chan struct{})}
		h := serve(t, store)
		for i := range sessions {
			newReplicatedPeer(h, string(rune('a'+i))).Connect(nil, "")
		}
		for range misses {
			store.news <- taskstore.Change{Missed: true}
			synctest.Wait()
		}
		if n := store.running.Load(); n != readers {
			t.Errorf("%d scans at once, want %d", n, readers)
		}
		close(store.release)
		synctest.Wait()
		if n := store.all.Load(); n != 2*sessions*phases {
			t.Errorf("%d scans, want two for each session and phase: one that has begun before the news, and one after", n)
		}
	})
}

// slow is a store whose reads wait for release, if that is set.
type slow struct {
	taskstore.Store
	release atomic.Pointer[chan struct{}]
	reading atomic.Int64
}

// Get implements taskstore.Store.
func (s *slow) Get(ctx context.Context, id string) (taskstore.Record, error) {
	if release := s.release.Load(); release != nil {
		s.reading.Add(1)
		defer s.reading.Add(-1)
		select {
		case <-*release:
		case <-ctx.Done():
			return taskstore.Record{}, ctx.Err()
		}
	}
	return s.Store.Get(ctx, id)
}

// TestManyQuestionsAreDue checks that tasks are read a few at a time when many questions are due for the session's own
// stream together.
func TestManyQuestionsAreDue(t *testing.T) {
	const tasks = 20
	bubble.Test(t, func(t *testing.T) {
		store := &slow{Store: taskstore.NewMemory()}
		p := newReplicatedPeer(serve(t, store), "session")
		own := p.Connect(nil, "")
		for i := range tasks {
			p.Know(legacy, create(t, store, taskstore.Record{
				ID: string(rune('a' + i)), Phase: taskstore.PhaseInputRequired, Claim: taskstore.Claim{Worker: "w"}, Inputs: []taskstore.Input{newQuestion("one")},
			}))
		}
		synctest.Wait()
		release := make(chan struct{})
		store.release.Store(&release)
		time.Sleep(fetchMargin)
		synctest.Wait()
		if n := store.reading.Load(); n != readers {
			t.Errorf("%d reads at once, want %d", n, readers)
		}
		close(release)
		synctest.Wait()
		if n := len(own.Take()); n != tasks {
			t.Errorf("%d questions, want %d", n, tasks)
		}
	})
}
