package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestCheckFindsLostWrites checks that the promises hold on a store of one process, and that the checker finds faults
// if the same store loses a few writes.
func TestCheckFindsLostWrites(t *testing.T) {
	t.Parallel()
	t.Run("no write lost", func(t *testing.T) {
		t.Parallel()
		store := taskstore.NewMemory()
		defer closeStore(t, store)
		s := serveHere(t, store)
		s.crowd.hurry = true
		s.crowd.runFor(t.Context(), time.Second)
		s.check(t, time.Minute)
	})
	t.Run("one of 200", func(t *testing.T) {
		t.Parallel()
		findLostWrites(t, 200)
	})
}

// findLostWrites lets clients work on a store that loses writes until the checker finds a fault.
func findLostWrites(t *testing.T, every int) {
	t.Helper()
	store := newLossyStore(taskstore.NewMemory(), every)
	defer closeStore(t, store)
	s := serveHere(t, store)
	s.crowd.hurry = true
	begun := time.Now()
	for wanted := every; ; wanted += every {
		for writes, _ := store.count(); writes < wanted; writes, _ = store.count() {
			s.crowd.runFor(t.Context(), time.Second)
		}
		// The test does not wait for tasks that a lost write has left without an end. All other tasks take a tenth of
		// this.
		s.audit(t, 4*time.Second)
		writes, lost := store.count()
		if faults := Check(s.history(t)); len(faults) > 0 {
			t.Logf("%d faults after %d writes of %d tasks in %v, of which %d were lost, such as %v", len(faults), writes, s.crowd.tasks.Load(),
				time.Since(begun).Round(time.Second), lost, faults[0])
			return
		}
		if lost >= 20 {
			t.Fatalf("%d writes of %d are lost, and the checker finds nothing", lost, writes)
		}
	}
}

func closeStore(t *testing.T, store taskstore.Store) {
	t.Helper()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}

// site holds the servers and clients of a test.
type site struct {
	record   *recorder
	crowd    *crowd
	journals string // the files that servers have written
}

// newSite makes the clients of servers.
func newSite(t *testing.T, urls []string, sticky bool, people int) *site {
	t.Helper()
	seed := uint64(time.Now().UnixNano()) //nolint:gosec // any number will do
	if given := seedGiven(t); given != 0 {
		seed = given
	}
	t.Logf("seed %d", seed)
	record := &recorder{}
	return &site{record, newCrowd(record, urls, sticky, people, seed), t.TempDir()}
}

// random returns random numbers of the test's own.
func (s *site) random() *rand.Rand { return rand.New(rand.NewPCG(s.crowd.seed, 1<<32)) }

// serveHere serves in this process.
func serveHere(t *testing.T, store taskstore.Store) *site {
	t.Helper()
	server := httptest.NewUnstartedServer(nil)
	s := newSite(t, []string{"http://" + server.Listener.Addr().String()}, true, 16)
	journal, err := OpenJournal(filepath.Join(s.journals, "here"))
	if err != nil {
		t.Fatal(err)
	}
	n := notes{journal: journal, process: "here"}
	ctx, cancel := context.WithCancel(context.Background())
	var clock sync.WaitGroup
	clock.Go(func() { n.watchClock(ctx) })
	tasks, handler, err := newServer(n, store, "", usualConcurrency)
	if err != nil {
		t.Fatal(err)
	}
	server.Config.Handler = handler
	server.Start()
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
		server.CloseClientConnections()
		server.Close()
		cancel()
		clock.Wait()
		if err := journal.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// runFor lets the clients work for a while.
func (c *crowd) runFor(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	c.run(ctx)
}

// audit reads all tasks until they have ended.
func (s *site) audit(t *testing.T, patience time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.crowd.audit(ctx)
}

// history returns all that was written down.
func (s *site) history(t *testing.T) *History {
	t.Helper()
	h := s.record.history
	files, err := filepath.Glob(filepath.Join(s.journals, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := h.ReadJournal(file); err != nil {
			t.Fatal(err)
		}
	}
	return &h
}

// faultsShown is how many faults a test explains.
const faultsShown = 5

// check audits the tasks and fails the test if the checker finds faults.
func (s *site) check(t *testing.T, patience time.Duration) {
	t.Helper()
	s.audit(t, patience)
	h := s.history(t)
	t.Log(summarize(h))
	faults := Check(h)
	for i, f := range faults {
		if i == faultsShown {
			break
		}
		t.Errorf("%v\n%s", f, h.Explain(f.Task))
	}
	if len(faults) > faultsShown {
		t.Errorf("and %d more", len(faults)-faultsShown)
	}
}

// summarize counts the events in a history.
func summarize(h *History) string {
	counts := map[string]int{}
	unexplained := map[string]int{}
	tasks := map[string]bool{}
	for _, o := range h.Operations {
		counts[fmt.Sprintf("%s %s", o.Action, o.Reply)]++
		if o.Error != "" {
			unexplained[shorten(o.Error)]++
		}
		if o.Task != "" {
			tasks[o.Task] = true
		}
	}
	for _, r := range h.Runs {
		counts["run "+string(r.Moment)]++
	}
	for _, d := range h.Processes {
		counts["process "+string(d.Harm)]++
	}
	return fmt.Sprintf("%d tasks; %v; errors: %v", len(tasks), counts, unexplained)
}

// addresses differ from error to error.
var addresses = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// shorten cuts from an error the parts that differ between runs.
func shorten(text string) string {
	return fmt.Sprintf("%.100s", addresses.ReplaceAllString(text, "ADDRESS"))
}
