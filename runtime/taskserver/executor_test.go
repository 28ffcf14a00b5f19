package taskserver_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/executortest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/memengine"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pool"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
)

// slots is how many handlers each executor runs at once.
const slots = 4

// TestExecutors checks the executor that servers have by default, and executors of users' of each kind.
func TestExecutors(t *testing.T) {
	t.Run("default", func(t *testing.T) {
		executortest.Run(t, executortest.Harness{Kill: func(testing.TB, taskserver.Executor) {}, Slots: slots, Subtest: bubble.Run})
	})
	t.Run("pool", func(t *testing.T) {
		executortest.Run(t, executortest.Harness{
			New: func(_ testing.TB, _ string, run taskserver.RunFunc) (taskserver.Executor, error) {
				return pooled{pool.New(slots, func() {}), run}, nil
			},
			Kill: func(testing.TB, taskserver.Executor) {}, Slots: slots, Subtest: bubble.Run,
		})
	})
	t.Run("queue", func(t *testing.T) {
		queues := map[string]*queue{}
		executortest.Run(t, executortest.Harness{
			New: func(_ testing.TB, group string, run taskserver.RunFunc) (taskserver.Executor, error) {
				if queues[group] == nil {
					queues[group] = &queue{}
				}
				return queues[group].join(run), nil
			},
			Kill:  func(_ testing.TB, x taskserver.Executor) { x.(*reader).die() },
			Slots: slots, Subtest: bubble.Run,
		})
	})
	t.Run("engine", func(t *testing.T) {
		clusters := map[string]*memengine.Cluster{}
		executortest.Run(t, executortest.Harness{
			New: func(_ testing.TB, group string, run taskserver.RunFunc) (taskserver.Executor, error) {
				if clusters[group] == nil {
					clusters[group] = &memengine.Cluster{Slots: slots}
				}
				return clusters[group].Join(run)
			},
			Kill:  func(_ testing.TB, x taskserver.Executor) { memengine.Kill(x) },
			Slots: slots, Subtest: bubble.Run,
		})
	})
}

// pooled is an executor of one process.
type pooled struct {
	*pool.Pool
	run taskserver.RunFunc
}

// Submit implements taskserver.Executor.
func (x pooled) Submit(_ context.Context, task taskserver.Submission) error {
	return x.Run(pool.Place{}, func(ctx context.Context) { x.run(ctx, task.TaskID) })
}

// Release implements taskserver.Slots.
func (x pooled) Release(taskserver.Submission) { x.Pool.Release(pool.Place{}) }

// Acquire implements taskserver.Slots.
func (x pooled) Acquire(ctx context.Context, _ taskserver.Submission) {
	x.Pool.Acquire(ctx, pool.Place{})
}

// queue passes tasks to the executors of several servers. It knows nothing but the submitted IDs, however often each
// came.
type queue struct {
	mu      sync.Mutex
	waiting []string
	readers []*reader
}

// reader is the executor of a server. It acknowledges a task when its RunFunc has returned.
type reader struct {
	queue   *queue
	run     taskserver.RunFunc
	running sync.WaitGroup
	life    context.Context
	end     context.CancelFunc
	unacked []string
	busy    int
	gone    bool
}

func (q *queue) join(run taskserver.RunFunc) *reader {
	q.mu.Lock()
	defer q.mu.Unlock()
	x := &reader{queue: q, run: run}
	x.life, x.end = context.WithCancel(context.Background())
	q.readers = append(q.readers, x)
	q.deliver()
	return x
}

// deliver gives waiting tasks to readers in turn. mu is held.
func (q *queue) deliver() {
	for i := 0; i < len(q.readers) && len(q.waiting) > 0; i++ {
		x := q.readers[0]
		q.readers = append(q.readers[1:], x)
		if x.gone || x.busy == slots {
			continue
		}
		taskID := q.waiting[0]
		q.waiting = q.waiting[1:]
		x.busy++
		x.unacked = append(x.unacked, taskID)
		x.running.Go(func() {
			x.run(x.life, taskID)
			x.ack(taskID)
		})
		i = -1
	}
}

func (x *reader) ack(taskID string) {
	q := x.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	x.busy--
	for i, id := range x.unacked {
		if id == taskID {
			x.unacked = append(x.unacked[:i], x.unacked[i+1:]...)
			break
		}
	}
	q.deliver()
}

// die delivers the tasks again that are not acknowledged.
func (x *reader) die() {
	q := x.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	x.gone = true
	q.waiting = append(q.waiting, x.unacked...)
	x.unacked = nil
	q.deliver()
}

// Submit implements taskserver.Executor.
func (x *reader) Submit(ctx context.Context, task taskserver.Submission) error {
	q := x.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	if x.gone || ctx.Err() != nil {
		return errors.New("no submission")
	}
	q.waiting = append(q.waiting, task.TaskID)
	q.deliver()
	return nil
}

// Close implements taskserver.Executor.
func (x *reader) Close(ctx context.Context) error {
	x.queue.mu.Lock()
	x.gone = true
	x.queue.mu.Unlock()
	x.end()
	done := make(chan struct{})
	go func() { x.running.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
