package postgres

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/wiretest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// longLease is a lease of a process that no test outlasts.
const longLease = taskstore.LastingLease - time.Minute

// childVariable makes the test binary a process that works on a store: its value is a worker and a DSN.
const childVariable = "MCPTASK_POSTGRES_CHILD"

// runChild keeps a worker alive, and the lease of an engine, until its standard input ends.
func runChild(worker, dsn string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	s, err := Open(ctx, dsn, Options{})
	if err != nil {
		return err
	}
	for name, lease := range map[string]time.Duration{worker: longLease, "engine": taskstore.LastingLease} {
		if _, err := s.Beat(ctx, name, lease, nil); err != nil {
			return err
		}
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0) // the test has ended
	}()
	for _, err := range s.Changes(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// startWorker starts a process that keeps a worker alive, and waits until its lock is held.
func startWorker(t testing.TB, dsn, worker string) *os.Process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+worker+" "+dsn)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill() //nolint:errcheck // it may have been killed
		cmd.Wait()         //nolint:errcheck // it was killed
	})
	awaitProof(t, dsn, worker)
	return cmd.Process
}

// held selects the workers whose locks are held.
const held = `SELECT convert_from(worker, 'UTF8') FROM mcptask.alive a JOIN pg_locks l ON l.locktype = 'advisory' AND l.granted AND l.mode = 'ExclusiveLock' AND l.objsubid = 1
	AND (l.classid::bigint << 32 | l.objid::bigint) = a.key WHERE l.database = (SELECT oid FROM pg_database WHERE datname = current_database()) AND a.boot = ` + boot

// awaitProof waits until the locks of all workers are held.
func awaitProof(t testing.TB, dsn string, workers ...string) {
	t.Helper()
	wiretest.Await(t, func() string {
		list := query(t, dsn, held)
		for _, w := range workers {
			if !slices.Contains(list, w) {
				return fmt.Sprintf("%s has no lock: %v", w, list)
			}
		}
		return ""
	})
}

// awaitLooks waits until a store has ended the lease of a worker that is dead from the start. Until then it has also
// looked often enough at all others.
func awaitLooks(t testing.TB, dsn string) {
	t.Helper()
	dead := rand.Text()
	insertFree(t, dsn, dead, boot)
	wiretest.Eventually(t, "the lease of a dead worker ends", func() bool {
		return len(query(t, dsn, "SELECT 1 FROM mcptask.worker WHERE id = $1", []byte(dead))) == 0
	})
}

// insertFree inserts the lease of a worker, and a row of a server's start whose lock nobody holds.
func insertFree(t testing.TB, dsn, worker, boot string) {
	t.Helper()
	query(t, dsn, "INSERT INTO mcptask.worker VALUES ($1, 9223372036854775807)", []byte(worker))
	query(t, dsn, "INSERT INTO mcptask.alive VALUES ($1, hashtextextended($2, 1), "+boot+")", []byte(worker), worker)
}

// wantLeases checks that workers have their leases.
func wantLeases(t testing.TB, dsn string, workers ...string) {
	t.Helper()
	list := query(t, dsn, "SELECT convert_from(id, 'UTF8') FROM mcptask.worker")
	for _, w := range workers {
		if !slices.Contains(list, w) {
			t.Errorf("%s was taken for dead: there are leases of %v", w, list)
		}
	}
}

// openHarmed opens a store that may lose its connections, without a word, and soon trusts again in what it sees.
func openHarmed(t testing.TB, dsn string) *Store {
	t.Helper()
	s := openStore(t, dsn, Options{Logger: slog.New(slog.DiscardHandler)})
	s.trustAfter = 2 * time.Second
	return s
}

// beat lets a worker of a store whose feed is read begin its lease.
func beat(t testing.TB, s *Store, worker string) {
	t.Helper()
	newsOf(t, s)
	if _, err := s.Beat(t.Context(), worker, longLease, nil); err != nil {
		t.Fatal(err)
	}
}

// createFor stores a task of a worker.
func createFor(t testing.TB, s *Store, worker string) taskstore.Record {
	t.Helper()
	r := newTask("task of "+worker, "a")
	r.Claim.Worker = worker
	return create(t, s, r)
}

// isFreed admits the news that there are tasks without a lease.
func isFreed(c taskstore.Change) bool { return c.Free }

// TestKilledWorker kills a process. Another one gets its tasks long before the lease ends. A lease that outlasts
// processes stays.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	wait := newsOf(t, s)
	r := createFor(t, s, "dead")
	worker := startWorker(t, dsn, "dead")
	if rows := query(t, dsn, "SELECT convert_from(worker, 'UTF8') FROM mcptask.alive"); len(rows) != 1 {
		t.Errorf("rows of %v: the lease of the engine outlasts the process", rows)
	}
	if err := worker.Kill(); err != nil {
		t.Fatal(err)
	}
	wait("the death", isFreed)
	wantLeases(t, dsn, "engine")
	taken, err := s.Lease(t.Context(), "next", time.Minute, []string{r.Tool}, 10)
	if err != nil || len(taken) != 1 || taken[0].ID != r.ID {
		t.Errorf("%d tasks were taken, %v", len(taken), err)
	}
	if rows := query(t, dsn, "SELECT worker FROM mcptask.alive"); len(rows) > 0 {
		t.Errorf("rows of %v are left", rows)
	}
}

// faults are what the living survive, by name.
var faults = map[string]func(t *testing.T, server *pgtest.Server, dsn string){
	"all connections end": func(t *testing.T, _ *pgtest.Server, dsn string) { terminate(t, dsn, "%") },
	"the listening connection ends": func(t *testing.T, _ *pgtest.Server, dsn string) {
		if terminate(t, dsn, listening) == 0 {
			t.Error("nobody listens")
		}
	},
	"the server restarts":         func(t *testing.T, server *pgtest.Server, _ string) { server.Restart(t, syscall.SIGINT) },
	"the server restarts at once": func(t *testing.T, server *pgtest.Server, _ string) { server.Restart(t, syscall.SIGQUIT) },
	"the server crashes": func(t *testing.T, _ *pgtest.Server, dsn string) {
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // it ends with the server
		var pid int
		if err := conn.QueryRow(t.Context(), "SELECT pid FROM pg_stat_activity WHERE application_name = 'mcptask' LIMIT 1").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		backend, err := os.FindProcess(pid)
		if err == nil {
			err = backend.Kill()
		}
		if err != nil {
			t.Fatal(err)
		}
		wiretest.Eventually(t, "all connections end", func() bool { return conn.Ping(t.Context()) != nil })
		wiretest.Eventually(t, "the server is there again", func() bool {
			again, err := pgx.Connect(t.Context(), dsn)
			return err == nil && again.Close(t.Context()) == nil
		})
	},
}

// TestLivingKeepTasks does harm to the connections of living workers. None is taken for dead.
func TestLivingKeepTasks(t *testing.T) {
	t.Parallel()
	harmLiving(t, 3, 1)
}

// harmLiving does all harms to some living workers, each a number of times.
func harmLiving(t *testing.T, number, rounds int) {
	server := pgtest.Start(t, pgtest.Options{})
	for name, harm := range faults {
		t.Run(name, func(t *testing.T) {
			dsn := server.Database(t)
			var living []string
			for i := range number {
				s := openHarmed(t, dsn)
				living = append(living, fmt.Sprint("living", i))
				beat(t, s, living[i])
				createFor(t, s, living[i])
			}
			for range rounds {
				awaitProof(t, dsn, living...)
				harm(t, server, dsn)
				awaitLooks(t, dsn)
				wantLeases(t, dsn, living...)
			}
			awaitProof(t, dsn, living...)
		})
	}
}

// TestOtherBoot checks that a lock that ended with the server says nothing about its worker.
func TestOtherBoot(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	beat(t, openStore(t, dsn, Options{}), "living")
	awaitProof(t, dsn, "living")
	insertFree(t, dsn, "before", boot+" - 1")
	awaitLooks(t, dsn)
	wantLeases(t, dsn, "before")
}

// TestConfirmation checks that it takes several looks in a row to end a lease.
func TestConfirmation(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{}) // it does not look by itself, since nobody reads its feed
	insertFree(t, dsn, "free", boot)
	var found map[free]int
	for i := range confirmLooks {
		wantLeases(t, dsn, "free")
		var err error
		if found, err = s.endDead(t.Context(), found); err != nil || len(found) != 1 {
			t.Fatalf("look %d: %v, %v", i, found, err)
		}
	}
	if rows := query(t, dsn, "SELECT id FROM mcptask.worker"); len(rows) > 0 {
		t.Errorf("%d leases are left", len(rows))
	}
}

// TestDeadFinder checks that several leases end at once, those of the names under which the dead found orphans too, and
// no others.
func TestDeadFinder(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	r := createFor(t, s, "w/1")
	for _, worker := range []string{"w", "w2"} {
		insertFree(t, dsn, worker, boot)
	}
	for _, worker := range []string{"w/1", "w/2", "w-1", "w0", "v/1"} {
		query(t, dsn, "INSERT INTO mcptask.worker VALUES (convert_to($1, 'UTF8'), 9223372036854775807)", worker)
	}
	var freed []taskstore.Change
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var found map[free]int
	for c, err := range s.Changes(ctx) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Missed:
			for range confirmLooks {
				if found, err = s.endDead(ctx, found); err != nil {
					t.Fatal(err)
				}
			}
		case c.Free:
			freed = append(freed, c)
			cancel()
		}
	}
	if got := query(t, dsn, "SELECT encode(id, 'escape') FROM mcptask.worker ORDER BY id"); !slices.Equal(got, []string{"v/1", "w-1", "w0"}) {
		t.Errorf("the leases of %q are left", got)
	}
	if taken, err := s.Lease(t.Context(), "next", time.Minute, []string{r.Tool}, 10); err != nil || len(taken) != 1 || len(freed) != 1 {
		t.Errorf("%d tasks were taken after %d changes, %v", len(taken), len(freed), err)
	}
}

// TestNoWorkerListens checks that a store listens only while it has a worker, or its feed is read, and that none starts
// to listen after its end.
func TestNoWorkerListens(t *testing.T) {
	t.Parallel()
	s := openStore(t, pgtest.Database(t), Options{})
	for range 2 {
		if _, err := s.Beat(t.Context(), "w", longLease, nil); err != nil {
			t.Fatal(err)
		}
		if g := s.follower.current.Load(); g == nil || !g.listening.Load() {
			t.Error("it does not listen")
		}
		if err := s.Release(t.Context(), "w"); err != nil {
			t.Fatal(err)
		}
		wiretest.Eventually(t, "it listens no more", func() bool { return s.follower.current.Load() == nil })
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s.workers.add("w", longLease)
	s.workers.start(s, func(context.Context) { t.Error("it starts") })
	s.running.Wait()
}

// TestCutWorkerHidesItself ends the connection that listens of a worker that cannot connect again. It is not taken for
// dead, since its row is gone.
func TestCutWorkerHidesItself(t *testing.T) {
	t.Parallel()
	server := pgtest.Start(t, pgtest.Options{})
	dsn := server.Database(t)
	config, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	s := openHarmed(t, dsn)
	beat(t, s, "living")
	createFor(t, s, "living")
	awaitProof(t, dsn, "living")
	query(t, dsn+" dbname=postgres", "ALTER DATABASE "+config.Database+" ALLOW_CONNECTIONS false")
	query(t, dsn+" dbname=postgres", "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE $1", listening)
	wiretest.Eventually(t, "its row is gone", func() bool {
		var rows int
		err := s.pool.QueryRow(t.Context(), "SELECT count(*) FROM mcptask.alive").Scan(&rows)
		return err == nil && rows == 0
	})
	query(t, dsn+" dbname=postgres", "ALTER DATABASE "+config.Database+" ALLOW_CONNECTIONS true")
	awaitProof(t, dsn, "living")
	awaitLooks(t, dsn)
	wantLeases(t, dsn, "living")
}

// TestLossCostsTrust checks that a process that has lost its connection does not judge others for a while: they may have
// lost theirs too.
func TestLossCostsTrust(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openHarmed(t, dsn)
	s.trustAfter = time.Hour
	beat(t, s, "living")
	awaitProof(t, dsn, "living")
	g := s.follower.current.Load()
	if !g.isTrusted() {
		t.Error("it does not look")
	}
	terminate(t, dsn, listening)
	wiretest.Eventually(t, "it has noticed", func() bool { return g.lost.Load() != nil })
	awaitProof(t, dsn, "living")
	if g.isTrusted() {
		t.Error("it looks again at once")
	}
}

// TestPooledWorkerHasNoProof ends the connections of a pooler. Workers behind it are not taken for dead.
func TestPooledWorkerHasNoProof(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	beat(t, openHarmed(t, dsn), "direct")
	s := openHarmed(t, pgtest.StartPooler(t, dsn, pgtest.SessionMode))
	beat(t, s, "pooled")
	createFor(t, s, "pooled")
	awaitProof(t, dsn, "direct")
	terminate(t, dsn, "%")
	awaitLooks(t, dsn)
	wantLeases(t, dsn, "pooled", "direct")
}

// TestProxiedWorkerHasNoProof checks that a store takes a lock only if no proxy can end its connection.
func TestProxiedWorkerHasNoProof(t *testing.T) {
	t.Parallel()
	p, proxied := newProxy(t)
	for dsn, locks := range map[string]int{proxied: 0, strings.Replace(proxied, p.Addr().String(), p.target, 1): 1} {
		s := openStore(t, dsn, Options{})
		beat(t, s, "worker")
		wiretest.Eventually(t, "it listens", func() bool { return s.follower.current.Load().listening.Load() })
		if list := query(t, dsn, "SELECT objid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock'"); len(list) != locks {
			t.Errorf("%s: %d locks instead of %d", dsn, len(list), locks)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestIsDirect(t *testing.T) {
	tcp := func(text string) net.Addr {
		a, err := net.ResolveTCPAddr("tcp", text)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	for _, c := range []struct {
		local net.Addr
		host  string
		port  uint16
		want  bool
	}{
		{&net.UnixAddr{}, "", 0, true},
		{&net.UnixAddr{}, "10.0.0.1", 1, false},
		{tcp("10.0.0.1:1"), "10.0.0.1", 1, true},
		{tcp("10.0.0.1:1"), "::ffff:10.0.0.1", 1, true},
		{tcp("[fe80::1%1]:1"), "fe80::1", 1, true},
		{tcp("10.0.0.1:1"), "10.0.0.1", 2, false},
		{tcp("10.0.0.1:1"), "10.0.0.2", 1, false},
		{tcp("10.0.0.1:1"), "", 0, false},
		{nil, "10.0.0.1", 1, false},
	} {
		if got := isDirect(c.local, c.host, c.port); got != c.want {
			t.Errorf("%v, %s, %d: %v", c.local, c.host, c.port, got)
		}
	}
}

// TestProofEnds releases a worker, and closes the store of another one. The leases decide about both.
func TestProofEnds(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	for _, worker := range []string{"released", "closed"} {
		beat(t, s, worker)
	}
	awaitProof(t, dsn, "released", "closed")
	if err := s.Release(t.Context(), "released"); err != nil {
		t.Fatal(err)
	}
	wiretest.Eventually(t, "only one is left", func() bool { return len(query(t, dsn, "SELECT worker FROM mcptask.alive")) == 1 })
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if rows := query(t, dsn, "SELECT worker FROM mcptask.alive"); len(rows) > 0 {
		t.Errorf("rows of %v are left", rows)
	}
	wantLeases(t, dsn, "closed")
}

// TestEndedLeaseWins checks that a lock does not keep the tasks of a worker whose lease has ended.
func TestEndedLeaseWins(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	s, other := openStore(t, dsn, Options{}), openStore(t, dsn, Options{})
	beat(t, s, "hangs")
	r := createFor(t, s, "hangs")
	awaitProof(t, dsn, "hangs")
	other.shift.Add(taskstore.LastingLease.Microseconds())
	if taken, err := other.Lease(t.Context(), "next", time.Minute, []string{r.Tool}, 10); err != nil || len(taken) != 1 {
		t.Errorf("%d tasks were taken, %v", len(taken), err)
	}
}

// TestProofIsRefused opens a store whose role has no rights to the table of the locks. Everything else works.
func TestProofIsRefused(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	other := openStore(t, dsn, Options{})
	query(t, dsn, "ALTER TABLE mcptask.alive RENAME TO away")
	log := new(syncBuffer)
	s := openStore(t, dsn, Options{Logger: slog.New(slog.NewTextHandler(log, nil))})
	wait := newsOf(t, s)
	wiretest.Eventually(t, "it says so, and listens", func() bool {
		return strings.Contains(log.String(), "proof of life") && s.follower.current.Load().listening.Load()
	})
	wait("a change", is(createFor(t, other, "w").ID, 1))
}

// syncBuffer is a buffer for several goroutines.
type syncBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.String()
}

// BenchmarkTakeover measures the time from the death of a process until another one has its tasks.
func BenchmarkTakeover(b *testing.B) {
	dsn := pgtest.Start(b, pgtest.Options{Durable: true}).Database(b)
	s := openStore(b, dsn, Options{})
	news := newsOf(b, s)
	var times []time.Duration
	for i := range b.N {
		b.StopTimer()
		name := fmt.Sprint("dead", i)
		r := createFor(b, s, name)
		worker := startWorker(b, dsn, name)
		b.StartTimer()
		began := time.Now()
		if err := worker.Kill(); err != nil {
			b.Fatal(err)
		}
		news("the death", isFreed)
		taken, err := s.Lease(b.Context(), "next", time.Minute, []string{r.Tool}, 10)
		if err != nil || len(taken) != 1 {
			b.Fatalf("%d tasks were taken, %v", len(taken), err)
		}
		times = append(times, time.Since(began))
		if _, err := s.Update(b.Context(), taken[0], finish(taken[0]), taskstore.Quota{}); err != nil {
			b.Fatal(err)
		}
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Milliseconds()), "median-ms")
	b.ReportMetric(float64(times[len(times)-1].Milliseconds()), "worst-ms")
}
