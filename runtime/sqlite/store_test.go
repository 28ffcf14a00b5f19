package sqlite

import (
	"log/slog"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/steady"
	"github.com/mcptaskgen/mcptaskgen/runtime/storetest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// clocked is a Store whose clock a test moves, together with that of other handles of its file.
type clocked struct {
	*Store
	ahead *atomic.Int64
}

func openClocked(t testing.TB, path string, ahead *atomic.Int64) taskstore.Store {
	t.Helper()
	s, err := Open(path, Options{Synchronous: Normal, Logger: slog.New(slog.DiscardHandler)}) // not that of TestKill, but much faster
	if err != nil {
		t.Fatal(err)
	}
	s.now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	s.past = steady.New(s.now)
	return clocked{s, ahead}
}

// TestStore checks that the store keeps every promise.
func TestStore(t *testing.T) {
	again := func(t testing.TB, s taskstore.Store) taskstore.Store {
		former := s.(clocked)
		return openClocked(t, former.path, former.ahead)
	}
	ways := map[string]func(t testing.TB, s taskstore.Store, id string) (undo func()){}
	for name, statement := range damages {
		ways[name] = func(t testing.TB, s taskstore.Store, id string) (undo func()) { return damage(t, s, id, statement) }
	}
	storetest.Run(t, storetest.Stores{
		Damage: ways,
		Open: func(t testing.TB) taskstore.Store {
			return openClocked(t, filepath.Join(t.TempDir(), "tasks #1 100%?.db"), new(atomic.Int64))
		},
		Share:   again,
		Reopen:  again,
		Advance: func(_ testing.TB, s taskstore.Store, d time.Duration) { s.(clocked).ahead.Add(int64(d)) },
	})
}

// damages are ways in which a row becomes one that the store cannot read: statements for the task with the
// ID ?1, whose number is ?2.
var damages = map[string]string{
	"terms that are cut off":        "UPDATE task SET terms = substr(terms, 1, length(terms) - 1) WHERE id = ?1",
	"terms that are nonsense":       "UPDATE task SET terms = x'01ffffffffffffffffff01' WHERE id = ?1",
	"terms that are empty":          "UPDATE task SET terms = x'' WHERE id = ?1",
	"terms of a newer version":      "UPDATE task SET terms = CAST(x'02' || substr(terms, 2) AS BLOB) WHERE id = ?1",
	"a phase that is new":           "UPDATE task SET phase = iif(phase < 9, 5, 11) WHERE id = ?1",
	"an outcome that is new":        "UPDATE task SET outcome = 77, is_error = 2 WHERE id = ?1",
	"an end without an outcome":     "UPDATE task SET phase = iif(phase < 9, 5, 9), outcome = 0 WHERE id = ?1",
	"a creation in the year 200000": "UPDATE task SET created = 6248000000000000000 WHERE id = ?1",
	"a change in the year -100":     "UPDATE task SET updated = -65300000000000000 WHERE id = ?1",
	"questions that are cut":        "UPDATE inputs SET body = substr(body, 1, 20) WHERE seq = ?2",
	"questions that are new":        "UPDATE inputs SET body = CAST(x'02' || substr(body, 2) AS BLOB) WHERE seq = ?2",
	"a result that is new":          "UPDATE task SET outcome = 1, result = x'02' WHERE id = ?1",
}

// damage changes the row of a task by a statement. It returns a function that puts the row back.
func damage(t testing.TB, s taskstore.Store, id, statement string) (undo func()) {
	t.Helper()
	db, err := openDatabase(s.(clocked).path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	execute := func(statement string, args ...any) {
		t.Helper()
		if _, err := db.Exec(statement, args...); err != nil {
			t.Fatal(err)
		}
	}
	var seq, phase, outcome, isError, created, updated int64
	var terms, result, inputs []byte
	if err := db.QueryRow("SELECT seq, phase, outcome, is_error, created, updated, terms, result, (SELECT body FROM inputs WHERE seq = task.seq) FROM task WHERE id = ?", []byte(id)).
		Scan(&seq, &phase, &outcome, &isError, &created, &updated, &terms, &result, &inputs); err != nil {
		t.Fatal(err)
	}
	execute(statement, []byte(id), seq)
	return func() {
		execute("UPDATE task SET phase = ?, outcome = ?, is_error = ?, created = ?, updated = ?, terms = ?, result = ? WHERE seq = ?", phase, outcome, isError, created, updated, terms, result, seq)
		execute("UPDATE inputs SET body = ? WHERE seq = ?", inputs, seq)
	}
}
