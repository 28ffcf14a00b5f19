//go:build unix

package chaos

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestStepsOutliveKills kills the only server, and one of two, a few times each.
func TestStepsOutliveKills(t *testing.T) {
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		killInSteps(t, "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"), 1, 3)
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		killInSteps(t, "postgres:"+pgtest.Database(t), 2, 3)
	})
}

// usualLease is the lease of servers outside of tests.
const usualLease = 30 * time.Second

// killInSteps kills servers of a store at random moments while they work in steps.
func killInSteps(t *testing.T, store string, replicas, kills int) {
	t.Helper()
	const people = 16
	config := workerConfig{Store: store, SessionKey: sessionKey, Effects: filepath.Join(t.TempDir(), "effects"),
		Lease: usualLease} // so that the test prints the times of users
	if file, err := openEffects(config.Effects); err != nil || file.file.Close() != nil { // so that it is there
		t.Fatal(err)
	}
	f, log := newFleet(t, config, replicas, 0), &effectLog{path: config.Effects}
	f.startAll()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var crowd sync.WaitGroup
	for i := range people {
		crowd.Go(func() { f.callSteps(ctx, i) })
	}
	random := f.site.random()
	var first, last []time.Duration
	for kill := range kills {
		// Some kills hit a server that starts, or takes tasks over.
		i, atWork := random.IntN(replicas), kill == 0 || random.IntN(5) > 0
		if atWork {
			f.awaitWork(log, i)
		}
		time.Sleep(time.Duration(random.IntN(500)) * time.Millisecond)
		killed, at := f.workers[i].name, now()
		f.restart(i, syscall.SIGKILL)
		if !atWork {
			continue
		}
		if next := f.awaitSteps(log, killed); len(next) > 0 {
			first = append(first, slices.MinFunc(next, time.Time.Compare).Sub(at))
			last = append(last, slices.MaxFunc(next, time.Time.Compare).Sub(at))
			if took := last[len(last)-1]; took > usualLease/2 {
				t.Logf("kill %d: %v after its first effect %s was killed, and some of its tasks waited for its lease: %v",
					kill, at.Sub(log.begin(killed)).Round(time.Millisecond), killed, took.Round(time.Millisecond))
			}
		}
	}
	f.awaitAll()
	stop()
	crowd.Wait()
	ends := f.awaitStepsEnds()
	count, faults := checkSteps(log.read(t), ends)
	for i, fault := range faults {
		if i == faultsShown {
			t.Errorf("and %d more", len(faults)-i)
			break
		}
		t.Error(fault)
	}
	if count.runs <= count.tasks {
		t.Error("no kill has hit a task")
	}
	t.Logf("%d kills, %d servers; %v", kills, replicas, count)
	t.Logf("from a kill to the next step of any task of that process: %s", medianAndWorst(first))
	t.Logf("from a kill to the next step of the last of them: %s", medianAndWorst(last))
}

// medianAndWorst describes durations.
func medianAndWorst(all []time.Duration) string {
	if len(all) == 0 {
		return "not measured"
	}
	slices.Sort(all)
	return fmt.Sprintf("median %v, worst %v of %d", all[len(all)/2].Round(time.Millisecond), all[len(all)-1].Round(time.Millisecond), len(all))
}

// callSteps makes tasks, one after the other, until ctx ends. It makes a new one when the last has ended.
func (f *fleet) callSteps(ctx context.Context, person int) {
	random := rand.New(rand.NewPCG(f.site.crowd.seed, uint64(person))) //nolint:gosec // any number will do
	urls := f.site.crowd.urls
	l := &link{name: "steps", revision: modern, principal: fmt.Sprint("s", person), record: f.site.record, http: &http.Client{Transport: &http.Transport{}},
		choose: func() string { return urls[random.IntN(len(urls))] }}
	for call := 0; ctx.Err() == nil; call++ {
		in := workInput{Nonce: fmt.Sprint(person, ".", call), MS: 10 + random.IntN(80)}
		for made := l.create(ctx, toolSteps, in, "", ""); ctx.Err() == nil; {
			time.Sleep(time.Duration(20+random.IntN(60)) * time.Millisecond)
			if made.Task == "" { // it may have been made: the effects tell
				break
			}
			if seen := l.get(ctx, made.Task); seen.View != nil && seen.View.Status.isFinal() {
				break
			}
		}
	}
}

// awaitWork waits until the worker of an address has done a step.
func (f *fleet) awaitWork(log *effectLog, i int) {
	f.t.Helper()
	name := f.workers[i].name
	f.awaitEffects(log, func(lines []effect) string {
		if !slices.ContainsFunc(lines, func(e effect) bool { return e.Process == name }) {
			return name + " does no step"
		}
		return ""
	})
}

// awaitSteps waits until each task that a killed process has left in the middle does its next step, and returns the times
// of these steps.
func (f *fleet) awaitSteps(log *effectLog, killed string) (next []time.Time) {
	f.t.Helper()
	f.awaitEffects(log, func(lines []effect) string {
		next = nil
		left := map[string]bool{}
		for _, e := range lines {
			switch {
			case e.Value == 0 && e.Process == killed:
				left[e.Task] = true
			case e.Value == 0 && left[e.Task]:
				next = append(next, e.At)
				delete(left, e.Task)
			case e.Step == stepNames[len(stepNames)-1]: // its last step was stored
				delete(left, e.Task)
			}
		}
		if len(left) > 0 {
			return fmt.Sprintf("%d tasks of %s do not go on", len(left), killed)
		}
		return ""
	})
	return next
}

// awaitEffects waits until the effects miss nothing.
func (f *fleet) awaitEffects(log *effectLog, missing func([]effect) string) {
	f.t.Helper()
	began := time.Now()
	for what := missing(log.read(f.t)); what != ""; what = missing(log.read(f.t)) {
		if time.Since(began) > f.settleWithin() {
			f.t.Fatal(what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// awaitStepsEnds waits until all tasks in the store have ended.
func (f *fleet) awaitStepsEnds() map[string]stepsEnd {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), f.settleWithin())
	defer cancel()
	store, err := openStore(ctx, f.config.Store)
	if err != nil {
		f.t.Fatal(err)
	}
	defer closeStore(f.t, store)
	const page = 100
	scan := func(filter taskstore.Filter, after taskstore.Position) []taskstore.Record {
		records, err := store.(taskstore.Inspector).Scan(ctx, filter, after, page)
		if err != nil {
			f.t.Fatal(err)
		}
		return records
	}
	for left := scan(taskstore.Filter{Unfinished: true}, taskstore.Position{}); len(left) > 0; left = scan(taskstore.Filter{Unfinished: true}, taskstore.Position{}) {
		time.Sleep(20 * time.Millisecond)
	}
	ends := map[string]stepsEnd{}
	var after taskstore.Position
	for records := scan(taskstore.Filter{}, after); len(records) > 0; records = scan(taskstore.Filter{}, after) {
		for _, r := range records {
			after = taskstore.Position{CreatedAt: r.CreatedAt, ID: r.ID}
			r, err := store.Get(ctx, r.ID) // with its result
			if err != nil {
				f.t.Fatal(err)
			}
			steps, err := store.Steps(ctx, r.ID)
			if err != nil {
				f.t.Fatal(err)
			}
			slices.SortFunc(steps, func(a, b taskstore.Step) int { return strings.Compare(a.Name, b.Name) })
			var result wireResult
			if r.Outcome.Kind != taskstore.OutcomeResult || json.Unmarshal(r.Outcome.Result, &result) != nil {
				f.t.Errorf("the task %s has ended with %+v", r.ID, r.Outcome)
			}
			ends[r.ID] = stepsEnd{result.text(), steps}
		}
	}
	for _, o := range f.site.record.history.Operations {
		if _, ok := ends[o.Task]; o.Task != "" && !ok {
			f.t.Errorf("the task %s was acknowledged, and is lost", o.Task)
		}
	}
	return ends
}
