package sqlite

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// The workers of a child that holds tasks.
const (
	oddWorker    = "w\x00\xff..\\:*?\n"
	sharedWorker = "shared" // the test's process is this worker too
	engineWorker = "engine" // outlasts its process
)

// longLease is the lease of workers that may die.
const longLease = taskstore.LastingLease - time.Minute

var heldWorkers = []string{oddWorker, sharedWorker, engineWorker}

// holdTask begins a long lease of a worker that has a task.
func holdTask(ctx context.Context, s *Store, worker string) error {
	r := durabletest.NewTask(10)
	r.Claim.Worker = worker
	if _, err := s.Create(ctx, r, taskstore.Quota{}); err != nil {
		return err
	}
	lease := longLease
	if worker == engineWorker {
		lease = taskstore.LastingLease
	}
	_, err := s.Beat(ctx, worker, lease, nil)
	return err
}

const (
	finder    = oddWorker + "/1" // a name under which the process of oddWorker finds orphans
	foundTool = "found"
)

// findTask makes a process the finder of a task.
func findTask(ctx context.Context, s *Store) error {
	r := durabletest.NewTask(10)
	r.Tool = foundTool
	if _, err := s.Create(ctx, r, taskstore.Quota{}); err != nil {
		return err
	}
	_, err := s.Lease(ctx, finder, longLease, []string{r.Tool}, 1)
	return err
}

// startHolder starts a child that holds tasks.
func startHolder(t testing.TB, path string) *child {
	t.Helper()
	c := startChild(t, "hold", path)
	if line := c.readLine(); line != "ready" {
		t.Fatalf("the child says %q", line)
	}
	return c
}

func beat(t testing.TB, s *Store, worker string) {
	t.Helper()
	if _, err := s.Beat(t.Context(), worker, longLease, nil); err != nil {
		t.Fatal(err)
	}
}

// wantTaken checks the workers whose tasks somebody gets.
func wantTaken(t *testing.T, s *Store, workers ...string) {
	t.Helper()
	former := map[string]string{} // by task
	all, err := s.Scan(t.Context(), taskstore.Filter{}, taskstore.Position{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range all {
		former[r.ID] = r.Claim.Worker
	}
	taken, err := s.Lease(t.Context(), "taker/1", time.Hour, []string{durabletest.NewTask(0).Tool, foundTool}, 100)
	var got []string
	for _, r := range taken {
		got = append(got, former[r.ID])
	}
	slices.Sort(got)
	if slices.Sort(workers); err != nil || !slices.Equal(got, workers) {
		t.Errorf("the tasks of %q are taken, want %q: %v", got, workers, err)
	}
}

// search looks and sweeps as a store does now and then.
func search(t *testing.T, s *Store) {
	t.Helper()
	if !s.lives.search(t.Context(), true, true) {
		t.Error("the search failed")
	}
}

func fileExists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return err == nil
}

// awaitFree reads the feed until tasks are free.
func awaitFree(t testing.TB, s *Store, do func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for c, err := range s.Changes(ctx) {
		switch {
		case err != nil:
			t.Fatal(err)
		case c.Missed:
			do()
		case c.Free:
			return
		}
	}
	t.Fatal("no tasks are free")
}

// TestKilledWorker kills a process with long leases. Another process gets its tasks, but not those of an engine, and not
// those of a worker that another process is too.
func TestKilledWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	beat(t, s, "survivor")
	beat(t, s, sharedWorker)
	other := startHolder(t, path)
	search(t, s)
	wantTaken(t, s)
	awaitFree(t, s, func() { _ = other.cmd.Process.Kill() })
	wantTaken(t, s, oddWorker, finder)
	_ = other.cmd.Wait()
	search(t, s)
	wantTaken(t, s)
	if fileExists(t, s.lives.pathOf(oddWorker)) || !fileExists(t, s.lives.pathOf(sharedWorker)) {
		t.Error("the file of the dead is left, or that of the living is gone")
	}
}

// TestKilledAlone kills the only process. The next one gets its tasks at once.
func TestKilledAlone(t *testing.T) {
	directory := t.TempDir()
	path := filepath.Join(directory, "tasks.db")
	other := startHolder(t, path)
	_ = other.cmd.Process.Kill()
	_ = other.cmd.Wait()
	link := filepath.Join(t.TempDir(), "link.db") // it has the same files
	if err := os.Symlink(path, link); err != nil {
		t.Skip(err)
	}
	s := openStore(t, link)
	wantTaken(t, s, oddWorker, finder, sharedWorker)
	if left, err := filepath.Glob(filepath.Join(directory, "*-worker-*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %q, %v", left, err)
	}
}

// TestLostFile removes the file of a worker that lives. It keeps its tasks, and makes the file again.
func TestLostFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, other := openStore(t, path), openStore(t, path)
	if err := holdTask(t.Context(), s, "w"); err != nil {
		t.Fatal(err)
	}
	file := s.lives.pathOf("w")
	for range 2 {
		if !fileExists(t, file) {
			t.Error("there is no file")
		}
		search(t, other)
		wantTaken(t, other)
		if err := os.Remove(file); err != nil {
			t.Skip(err) // Windows removes no open file
		}
		search(t, other)
		wantTaken(t, other)
		beat(t, s, "w")
	}
	// Somebody has put another file there.
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	looker := lockUnused(file)
	beat(t, s, "w")
	if err := looker.Unlock(); err != nil { // without having done anything
		t.Fatal(err)
	}
	search(t, other)
	wantTaken(t, other)
	if err := s.Release(t.Context(), "w"); err != nil {
		t.Fatal(err)
	}
	if wantTaken(t, other, "w"); fileExists(t, file) {
		t.Error("the file is left")
	}
}

// TestFailedBeat checks that a worker which could not begin its lease leaves no file.
func TestFailedBeat(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	if err := s.write(t.Context(), "write to", func(w *transaction) error {
		_, err := w.exec("ALTER TABLE worker RENAME TO away")
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), "w", longLease, nil); err == nil {
		t.Error("there is a lease")
	}
	if fileExists(t, s.lives.pathOf("w")) {
		t.Error("there is a file")
	}
}

// TestCleaner lets a worker live while somebody removes its file again and again, and others look. Nobody takes it for
// dead.
func TestCleaner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s, other := openStore(t, path), openStore(t, path)
	if err := holdTask(t.Context(), s, "w"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var busy sync.WaitGroup
	busy.Go(func() {
		for c, err := range other.Changes(ctx) {
			if c.Free || err != nil {
				t.Errorf("the worker counts as dead: %v", err)
			}
		}
	})
	busy.Go(func() {
		for ctx.Err() == nil {
			_ = os.Remove(s.lives.pathOf("w"))
		}
	})
	for range 2 {
		busy.Go(func() {
			for ctx.Err() == nil {
				other.lives.search(ctx, true, false)
			}
		})
	}
	for range 150 {
		beat(t, s, "w")
	}
	cancel()
	busy.Wait()
	beat(t, s, "w")
	if lockUnused(s.lives.pathOf("w")) != nil || !fileExists(t, s.lives.pathOf("w")) {
		t.Error("the worker has no locked file")
	}
}

// TestSweep checks that files without a worker are removed, and no others.
func TestSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	beat(t, s, "alive")
	notes := path + "-worker-notes"
	for _, file := range []string{s.lives.pathOf("dead"), notes} {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	search(t, openStore(t, path))
	if fileExists(t, s.lives.pathOf("dead")) || !fileExists(t, notes) || !fileExists(t, s.lives.pathOf("alive")) {
		t.Error("not the file of the dead is gone, or not it alone")
	}
}

// TestNoFile checks that a worker that can make no file has its lease, and that the log has one warning.
func TestNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	var log bytes.Buffer
	s, err := Open(path, Options{Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close() //nolint:errcheck // it is closed below
	for _, worker := range []string{"w1", "w2"} {
		if err := os.MkdirAll(filepath.Join(s.lives.pathOf(worker), "kept"), 0o700); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if err := holdTask(t.Context(), s, worker); err != nil {
				t.Error(err)
			}
		}
	}
	other := openStore(t, path)
	search(t, other)
	wantTaken(t, other)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if text := log.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "its tasks wait until its lease ends") || !strings.Contains(text, s.lives.pathOf("w1")) {
		t.Errorf("the log has %q", text)
	}
}

// TestClosedStore checks that a closed store has no goroutine and no file. Its leases last.
func TestClosedStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	other := openStore(t, path)
	before := leak.Now()
	s := openStore(t, path)
	if err := holdTask(t.Context(), s, "w"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	before.NoneLeft(t)
	if fileExists(t, s.lives.pathOf("w")) {
		t.Error("the file is left")
	}
	search(t, other)
	wantTaken(t, other)
}

// BenchmarkLook measures a look at workers that live.
func BenchmarkLook(b *testing.B) {
	for _, workers := range []int{1, 10, 100} {
		b.Run(fmt.Sprint("workers=", workers), func(b *testing.B) {
			s := openBench(b)
			for i := range workers {
				beat(b, s, fmt.Sprint(i))
			}
			for b.Loop() {
				if err := s.lives.look(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkTakeover measures the time from the kill of a process until another one has its tasks.
func BenchmarkTakeover(b *testing.B) {
	path := filepath.Join(b.TempDir(), "tasks.db")
	s, err := Open(path, Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	beat(b, s, "survivor")
	var took []time.Duration
	for b.Loop() {
		b.StopTimer()
		other := startHolder(b, path)
		time.Sleep(rand.N(lookEvery)) // so that the kill has no fixed place between two looks
		var killed time.Time
		b.StartTimer()
		var taken []taskstore.Record
		awaitFree(b, s, func() {
			killed = time.Now()
			_ = other.cmd.Process.Kill()
		})
		for len(taken) == 0 && err == nil {
			taken, err = s.Lease(b.Context(), "taker/1", time.Hour, []string{durabletest.NewTask(0).Tool}, 100)
		}
		if err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(killed))
		_ = other.cmd.Wait()
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds())/1000, "median-ms")
	b.ReportMetric(float64(took[len(took)-1].Microseconds())/1000, "worst-ms")
}
