//go:build long

package proof

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/localpg"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/runtime/executortest"
	"github.com/mcptaskgen/mcptaskgen/runtime/postgres"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskserver"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// riverJob is the job that runs the handler of a task.
type riverJob struct {
	TaskID string `json:"task_id"`
}

// Kind implements river.JobArgs.
func (riverJob) Kind() string { return "mcptask" }

// riverExecutor is an executor on River. It is no Engine: River does not find out in time that a worker is lost, but
// the leases of the store do, and the server that takes the task inserts another job. The record of the task decides
// which job runs it.
type riverExecutor struct {
	river.WorkerDefaults[riverJob]
	run    taskserver.RunFunc
	client *river.Client[pgx.Tx]
	queue  string
	line   *cutter
	pool   *pgxpool.Pool

	closing context.Context // ends when Close begins
	close   context.CancelFunc
}

// River delivers a job again if it has not returned by then, whether or not its process lives. So a job is not lost
// if its process ends before the record says that the handler has begun. After that, the record knows the run that
// goes on.
const (
	riverTimeout = 10 * time.Second
	riverRescue  = 15 * time.Second
)

// riverSlots is how many handlers a process runs at once.
const riverSlots = 8

// newRiverExecutor makes an executor on the tables of River in a database. Those with the same queue
// share their tasks.
func newRiverExecutor(ctx context.Context, dsn, queue string, logger *slog.Logger, run taskserver.RunFunc) (*riverExecutor, error) {
	config, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	x := &riverExecutor{run: run, queue: queue, line: &cutter{dial: config.ConnConfig.DialFunc}}
	x.closing, x.close = context.WithCancel(context.WithoutCancel(ctx))
	config.MaxConns = 6
	config.ConnConfig.DialFunc = x.line.connect
	if x.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, err
	}
	workers := river.NewWorkers()
	river.AddWorker(workers, x)
	x.client, err = river.NewClient(riverpgxv5.New(x.pool), &river.Config{
		Queues:               map[string]river.QueueConfig{queue: {MaxWorkers: riverSlots}},
		Workers:              workers,
		JobTimeout:           riverTimeout,
		RescueStuckJobsAfter: riverRescue,
		FetchCooldown:        5 * time.Millisecond,
		FetchPollInterval:    200 * time.Millisecond,
		Logger:               logger,
	})
	if err == nil {
		err = x.client.Start(context.WithoutCancel(ctx))
	}
	if err != nil {
		x.close()
		x.pool.Close()
		return nil, err
	}
	return x, nil
}

// Work implements river.Worker. The context of the job says nothing of the run: it ends with riverTimeout.
func (x *riverExecutor) Work(ctx context.Context, job *river.Job[riverJob]) error {
	run, end := context.WithCancel(context.WithoutCancel(ctx))
	defer end()
	defer context.AfterFunc(x.closing, end)()
	x.run(run, job.Args.TaskID) // whatever comes of it: who takes the task next inserts another job
	return nil
}

// Submit implements taskserver.Executor.
func (x *riverExecutor) Submit(ctx context.Context, task taskserver.Submission) error {
	_, err := x.client.Insert(ctx, riverJob{task.TaskID}, &river.InsertOpts{Queue: x.queue})
	return err
}

// Close implements taskserver.Executor.
func (x *riverExecutor) Close(ctx context.Context) error {
	x.close()
	err := x.client.StopAndCancel(ctx)
	if err == nil {
		x.pool.Close()
	}
	return err
}

// migrateRiver makes the tables of River.
func migrateRiver(t *testing.T, dsn string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	migrator, err := rivermigrate.New(riverpgxv5.New(pool), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil); err != nil {
		t.Fatal(err)
	}
}

// TestRiver tests an executor on River, whose jobs are in the database of the store.
func TestRiver(t *testing.T) {
	t.Parallel()
	dsn := startRiver(t)
	logger := slog.New(slog.DiscardHandler) // of connections that the tests cut
	executortest.Run(t, executortest.Harness{
		New: func(t testing.TB, group string, run taskserver.RunFunc) (taskserver.Executor, error) {
			return newRiverExecutor(t.Context(), dsn, strings.ToLower(group), logger, run)
		},
		Store: func(t testing.TB) taskstore.Store {
			schema := fmt.Sprintf("tasks_%x", rand.Uint64())
			store, err := postgres.Open(t.Context(), dsn, postgres.Options{Schema: schema, MaxConns: 4, Logger: logger})
			if err != nil {
				t.Fatal(err)
			}
			return store
		},
		Kill:    func(_ testing.TB, x taskserver.Executor) { x.(*riverExecutor).line.kill() },
		Slots:   riverSlots,
		Subtest: inParallel,
	})
}

// TestRiverDeliversAgain checks that a job is delivered again if its process ends before the handler has begun. No
// lease of the store ends then: the server that has submitted the task lives.
func TestRiverDeliversAgain(t *testing.T) {
	t.Parallel()
	dsn := startRiver(t)
	begun, again := make(chan string, 8), make(chan string, 8)
	start := func(run taskserver.RunFunc) *riverExecutor {
		x, err := newRiverExecutor(t.Context(), dsn, "again", slog.New(slog.DiscardHandler), run)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	first := start(func(ctx context.Context, id string) taskserver.RunEnd {
		begun <- id
		<-ctx.Done()
		return taskserver.RunLeft
	})
	if err := first.Submit(t.Context(), taskserver.Submission{TaskID: "a"}); err != nil {
		t.Fatal(err)
	}
	if id := <-begun; id != "a" {
		t.Fatalf("the task %s runs", id)
	}
	first.line.kill()
	second := start(func(_ context.Context, id string) taskserver.RunEnd {
		again <- id
		return taskserver.RunOver
	})
	if id := <-again; id != "a" {
		t.Errorf("the task %s runs again", id)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	_ = first.Close(ended) // whose connections are gone
	if err := second.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// startRiver starts a database with the tables of River, and returns its DSN.
func startRiver(t *testing.T) string {
	t.Helper()
	server, err := localpg.Start(t.Context())
	if errors.Is(err, localpg.ErrMissing) {
		peer.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	migrateRiver(t, server.DSN())
	return server.DSN()
}
