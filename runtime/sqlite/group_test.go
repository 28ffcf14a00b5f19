package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// checkTally checks that the accounts are the sums of their tasks, and that no body is left without
// its task.
func checkTally(t *testing.T, s *Store) {
	t.Helper()
	const sums = "SELECT %s, count(*), sum(phase < 9), sum(bytes) FROM task %s GROUP BY 1"
	want := strings.Join([]string{
		fmt.Sprintf(sums, "CAST('a' || account AS BLOB)", ""), fmt.Sprintf(sums, "CAST('s' AS BLOB)", ""),
		fmt.Sprintf(sums, "CAST('n' AS BLOB)", "WHERE principal = x''"),
	}, " UNION ALL ")
	queries := map[string]string{
		"wrong accounts":   "SELECT count(*) FROM (SELECT * FROM account EXCEPT SELECT * FROM (" + want + "))",
		"missing accounts": "SELECT count(*) FROM (SELECT * FROM (" + want + ") EXCEPT SELECT * FROM account)",
	}
	for _, table := range []string{"arguments", "inputs", "outcome"} {
		queries["orphans in "+table] = "SELECT count(*) FROM " + table + " WHERE seq NOT IN (SELECT seq FROM task)"
	}
	queries["orphans in step"] = "SELECT count(*) FROM step WHERE task NOT IN (SELECT seq FROM task)"
	for what, query := range queries {
		if err := s.read(t.Context(), "read", func(r *session) error {
			n, err := r.queryInt(query)
			if n != 0 {
				t.Errorf("%d %s", n, what)
			}
			return err
		}); err != nil {
			t.Error(err)
		}
	}
}

// TestMixedWrites makes writes of all kinds at once, some with contexts that end, and checks the
// sums.
func TestMixedWrites(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	quota := taskstore.Quota{Account: taskstore.Usage{Stored: 20, Unfinished: 12, Bytes: 40_000}, Server: taskstore.Usage{Stored: 50}}
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(uint64(i), 2))
			for range 60 {
				ctx, cancel := context.WithCancel(t.Context())
				if random.IntN(10) == 0 {
					time.AfterFunc(time.Duration(random.IntN(2000))*time.Microsecond, cancel)
				}
				if err := writeAny(ctx, s, random, quota); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	group.Wait()
	checkTally(t, s)
	for {
		page, err := s.Scan(t.Context(), taskstore.Filter{}, taskstore.Position{}, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 {
			break
		}
		for _, r := range page {
			// A write whose context has ended may be made later, and expire the task first.
			if err := s.Delete(t.Context(), r); err != nil && !errors.Is(err, taskstore.ErrNoRecord) {
				t.Error(err)
			}
		}
	}
	checkTally(t, s)
}

// writeAny makes one random write. It returns an unexpected error.
func writeAny(ctx context.Context, s *Store, random *rand.Rand, quota taskstore.Quota) error {
	id := fmt.Sprint("t", random.IntN(40))
	r, err := s.Get(ctx, id)
	switch n := random.IntN(6); {
	case errors.Is(err, taskstore.ErrNoRecord):
		r = durabletest.NewTask(random.IntN(3000))
		r.ID, r.Principal, r.Account = id, []string{"", "p", "q"}[random.IntN(3)], []string{"x", "y"}[random.IntN(2)]
		if random.IntN(3) == 0 {
			r.IdempotencyKey = fmt.Sprint("key", random.IntN(5))
		}
		_, err = s.Create(ctx, r, quota)
	case err != nil:
	case n == 0:
		err = s.Delete(ctx, r)
	case n == 1:
		next := r
		next.ExpiresAt = time.Now()
		_, err = s.Update(ctx, r, next, quota)
	case n == 2:
		_, err = s.Expire(ctx, 3)
	case n == 3 && !r.Done():
		_, err = s.Update(ctx, r, durabletest.Finish(r), quota)
	default:
		next := r
		next.StatusMessage, next.StepBytes = strings.Repeat("x", random.IntN(1000)), random.Int64N(1000)
		next.Inputs = append(next.Inputs, taskstore.Input{Request: mcptask.Request{Key: fmt.Sprint(len(next.Inputs))}, State: taskstore.InputOutstanding})
		_, err = s.Update(ctx, r, next, quota, taskstore.Step{Name: fmt.Sprint(random.IntN(3))})
	}
	var exceeded *taskstore.QuotaError
	if errors.As(err, &exceeded) || errors.Is(err, taskstore.ErrExists) || errors.Is(err, taskstore.ErrConflict) || errors.Is(err, taskstore.ErrNoRecord) {
		return nil
	}
	return err
}

// TestPlans checks that the cost of the frequent queries does not grow with the number of tasks: each
// reads an index.
func TestPlans(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	late := taskstore.Filter{Failed: true, EndedFrom: time.UnixMicro(1)}
	where, _ := durable.JoinConditions(durable.ConditionsOf(late, taskstore.Position{ID: "t"}, "", ""))
	scanFailed := selectBare + where + durable.OrderOf(late) + " LIMIT +?" // which sorts those that have failed lately
	for _, query := range []string{
		selectRow, selectName, bareByID, wholeByID, barePage, bareExpired, byTombstone, deleteOldTombstones, deadWorkers, selectOrphans,
		selectHeld, hasWork, countUnfinished, countFailed, scanFailed, updateReport, updateTask, updateEnd, updateExpiry, deleteTask, selectNews, trimChanges,
		selectSteps, selectStepHeads, upsertStep, firstTool, selectWaiting, selectBare + "WHERE 1 ORDER BY created DESC, id DESC LIMIT +?",
		selectBare + "WHERE 1 AND principal = ? AND (created, id) < (?, ?) ORDER BY created DESC, id DESC LIMIT +?",
	} {
		var plan []string
		if err := s.read(t.Context(), "read", func(r *session) error {
			return r.query("EXPLAIN QUERY PLAN "+query, func(rows *sql.Rows) error {
				var id, parent, unused int
				var detail string
				err := rows.Scan(&id, &parent, &unused, &detail)
				plan = append(plan, detail)
				return err
			}, make([]any, strings.Count(query, "?"))...)
		}); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		if strings.Contains(query, "LIMIT ?") {
			t.Errorf("%s\nis compiled again for each limit, see prepare", query)
		}
		for _, step := range plan {
			scansAll := strings.HasPrefix(step, "SCAN task") && !strings.Contains(step, "USING") || strings.HasPrefix(step, "SCAN tombstone") || strings.HasPrefix(step, "SCAN change")
			if scansAll || strings.Contains(step, "TEMP B-TREE FOR ORDER BY") && query != scanFailed {
				t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
			}
		}
		if query == selectOrphans && !strings.Contains(strings.Join(plan, "\n"), "INDEX task_worker (worker=? AND tool=? AND rowid>?)") {
			t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
		}
		if (query == countFailed || query == scanFailed) && !strings.Contains(strings.Join(plan, "\n"), "INDEX task_failed (terminal>?)") {
			t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
		}
		if query == selectSteps && !strings.Contains(strings.Join(plan, "\n"), "SEARCH step USING PRIMARY KEY (task=?)") {
			t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
		}
		if query == selectHeld && !strings.HasSuffix(strings.Join(plan, "\n"), "(id=?)") {
			t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
		}
	}
}

// TestFeedMisses checks that a reader hears of it if the news that it needs has been trimmed away.
func TestFeedMisses(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	started := false
	for c, err := range s.Changes(t.Context()) {
		switch {
		case err != nil || !c.Missed:
			t.Fatalf("%+v, %v", c, err)
		case started:
			return
		}
		started = true
		s.tail.publish([]news{{n: s.tail.last + 2}})
	}
	t.Error("the feed has ended")
}

// TestChangesAreTrimmed checks that the table for other processes does not grow without end.
func TestChangesAreTrimmed(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	if err := s.write(t.Context(), "write to", func(w *transaction) error {
		for range 3*keepChanges + 1 {
			if _, err := w.record([]taskstore.Change{{Free: true}}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.read(t.Context(), "read", func(r *session) error {
		n, err := r.queryInt("SELECT count(*) FROM change")
		if n < keepChanges || n > keepChanges+trimEvery {
			t.Errorf("%d rows", n)
		}
		return err
	}); err != nil {
		t.Error(err)
	}
}

// TestFeedFails checks that a fault of the poll ends the feeds with an error, and that new ones work.
func TestFeedFails(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	fault := errors.New("the disk is gone")
	for range 2 {
		var last error
		for _, err := range s.Changes(t.Context()) {
			last = err
			s.tail.feed.Fail(fault)
		}
		if !errors.Is(last, fault) {
			t.Error(last)
		}
	}
	for c, err := range s.Changes(t.Context()) {
		if c.ID == "" && err == nil {
			if err := durabletest.LiveOnce(t.Context(), s); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err != nil || c.Version != 1 {
			t.Errorf("%+v, %v", c, err)
		}
		break
	}
}

// TestRolledBackWriteLeavesNothing checks that a transaction that fails or panics leaves neither rows nor a
// lock.
func TestRolledBackWriteLeavesNothing(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	r := durabletest.NewTask(10)
	for _, fault := range []func() error{func() error { return errors.New("a fault") }, func() error { panic("a fault") }} {
		func() {
			defer func() { _ = recover() }()
			_ = s.write(t.Context(), "write to", func(w *transaction) error {
				if err := insertRecord(w.session, &r, &durable.Row{Mark: durable.EncodeMark(&r)}); err != nil {
					t.Error(err)
				}
				return fault()
			})
		}()
	}
	if _, err := s.Get(t.Context(), r.ID); !errors.Is(err, taskstore.ErrNoRecord) {
		t.Error(err)
	}
	if err := durabletest.LiveOnce(t.Context(), s); err != nil {
		t.Error(err)
	}
}
