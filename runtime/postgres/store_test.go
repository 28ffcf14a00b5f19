package postgres

import (
	"flag"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// TestMain runs a process that works on a store, or the tests. It makes random programs few, because a database is slow. -rapid.checks asks for more.
func TestMain(m *testing.M) {
	if worker, dsn, ok := strings.Cut(os.Getenv(childVariable), " "); ok {
		if err := runChild(worker, dsn); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv("RAPID_CHECKS") == "" {
		if err := flag.Set("rapid.checks", "5"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestStore runs the kit of all stores.
func TestStore(t *testing.T) {
	t.Parallel()
	testStore(t, pgtest.Database(t), Options{MaxConns: 4})
}

// testStore runs the kit of all stores on a database.
func testStore(t *testing.T, dsn string, o Options) {
	var mu sync.Mutex
	schemas := 0 // each store has one, since a schema is made sooner than a database
	shifts := map[string]*atomic.Int64{}
	open := func(t testing.TB, schema string) taskstore.Store {
		mu.Lock()
		defer mu.Unlock()
		if schema == "" {
			schemas++
			schema = fmt.Sprint("store", schemas)
			shifts[schema] = new(atomic.Int64)
		}
		o := o
		o.Schema, o.Logger = schema, slog.New(slog.DiscardHandler)
		s, err := Open(t.Context(), dsn, o)
		if err != nil {
			t.Fatal(err)
		}
		s.shift = shifts[schema]
		s.lookOften = 10 * time.Millisecond // the kit writes and waits for the feed many times
		return s
	}
	again := func(t testing.TB, s taskstore.Store) taskstore.Store { return open(t, s.(*Store).schema.name) }
	ways := map[string]func(t testing.TB, s taskstore.Store, id string) (undo func()){}
	for name, statement := range damages {
		ways[name] = func(t testing.TB, s taskstore.Store, id string) (undo func()) {
			return damage(t, s.(*Store), id, statement)
		}
	}
	t.Run("each", func(t *testing.T) { // its tests run at once, and end before the database is dropped
		storetest.Run(t, storetest.Stores{
			Open:   func(t testing.TB) taskstore.Store { return open(t, "") },
			Share:  again,
			Reopen: again,
			Damage: ways,
			Advance: func(_ testing.TB, s taskstore.Store, d time.Duration) {
				s.(*Store).shift.Add(d.Microseconds())
			},
		})
	})
}

// damages are ways in which a row becomes one that the store cannot read: statements for the task with the
// number $1.
var damages = map[string]string{
	"terms that are cut off":        `UPDATE @schema@.task SET terms = substr(terms, 1, length(terms) - 1) WHERE seq = $1`,
	"terms that are nonsense":       `UPDATE @schema@.task SET terms = '\x01ffffffffffffffffff01' WHERE seq = $1`,
	"terms that are empty":          `UPDATE @schema@.task SET terms = '' WHERE seq = $1`,
	"terms of a newer version":      `UPDATE @schema@.task SET terms = '\x02'::bytea || substr(terms, 2) WHERE seq = $1`,
	"a phase that is new":           `UPDATE @schema@.task SET phase = CASE WHEN phase < 9 THEN 5 ELSE 11 END WHERE seq = $1`,
	"an outcome that is new":        `UPDATE @schema@.task SET outcome = 77 WHERE seq = $1`,
	"an end without an outcome":     `UPDATE @schema@.task SET phase = CASE WHEN phase < 9 THEN 5 ELSE 9 END, outcome = 0 WHERE seq = $1`,
	"a creation in the year 200000": `UPDATE @schema@.task SET created = 6248000000000000000 WHERE seq = $1`,
	"a change in the year -100":     `UPDATE @schema@.task SET updated = -65300000000000000 WHERE seq = $1`,
	"questions that are cut":        `UPDATE @schema@.inputs SET body = substr(body, 1, 20) WHERE seq = $1`,
	"questions that are new":        `UPDATE @schema@.inputs SET body = '\x02'::bytea || substr(body, 2) WHERE seq = $1`,
	"a result that is new":          `UPDATE @schema@.task SET outcome = 1, result = '\x02' WHERE seq = $1`,
}

// damage changes the row of a task by a statement. It returns a function that puts the row back.
func damage(t testing.TB, s *Store, id, statement string) (undo func()) {
	t.Helper()
	execute := func(statement string, args ...any) {
		t.Helper()
		if _, err := s.pool.Exec(t.Context(), s.schema.sql(statement), args...); err != nil {
			t.Fatal(err)
		}
	}
	var seq, phase, outcome, created, updated int64
	var terms, result, inputs []byte
	if err := s.pool.QueryRow(t.Context(), s.schema.sql("SELECT t.seq, phase, outcome, created, updated, terms, result, i.body FROM @schema@.task t LEFT JOIN @schema@.inputs i USING (seq) WHERE id = $1"), []byte(id)).
		Scan(&seq, &phase, &outcome, &created, &updated, &terms, &result, &inputs); err != nil {
		t.Fatal(err)
	}
	execute(statement, seq)
	return func() {
		execute("UPDATE @schema@.task SET phase = $2, outcome = $3, terms = $4, result = $5, created = $6, updated = $7 WHERE seq = $1", seq, phase, outcome, terms, result, created, updated)
		execute("UPDATE @schema@.inputs SET body = $2 WHERE seq = $1", seq, inputs)
	}
}
