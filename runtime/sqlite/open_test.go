package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/leak"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// openStore opens a store and closes it at the end of the test.
func openStore(t *testing.T, path string) *Store {
	t.Helper()
	s, err := Open(path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// openFile opens a file with the bare driver.
func openFile(t *testing.T, path string) *sql.DB {
	t.Helper()
	db, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func execute(t *testing.T, db *sql.DB, statements string) {
	t.Helper()
	if _, err := db.Exec(statements); err != nil {
		t.Fatal(err)
	}
}

// TestOpenRefuses checks that a path that cannot be a store is an error with the path, the cause and the way out.
func TestOpenRefuses(t *testing.T) {
	directory := t.TempDir()
	in := func(name string) string { return filepath.Join(directory, name) }
	if err := os.WriteFile(in("text"), []byte(strings.Repeat("no database ", 100)), 0o600); err != nil {
		t.Fatal(err)
	}
	execute(t, openFile(t, in("foreign")), "CREATE TABLE task (name TEXT)")
	openStore(t, in("newer"))
	execute(t, openFile(t, in("newer")), "INSERT INTO schema_version VALUES (77)")
	steps, err := durable.ReadMigrations(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct{ path, want string }{
		{"", "give the path of a file"},
		{":memory:", "taskstore.NewMemory"},
		{"file:tasks.db", "give the path of a file"},
		{directory, "it is a directory; name a file in it, such as " + in("tasks.db")},
		{in("none/tasks.db"), "there is no directory " + in("none") + "; create it first"},
		{in("text"), "not a SQLite database; name another file"},
		{in("foreign"), "tables of another program; name a file of its own"},
		{in("newer"), fmt.Sprintf("schema version 77, and this program knows versions up to %d: run a program with the newer version", len(steps))},
	}
	if runtime.GOOS == "linux" { // not even root can write there
		cases = append(cases, struct{ path, want string }{"/proc/tasks.db", "this user may write there"})
	}
	if os.Geteuid() != 0 { // root can write anywhere
		if err := errors.Join(Migrate(t.Context(), in("readonly")), os.Chmod(in("readonly"), 0o400)); err != nil {
			t.Fatal(err)
		}
		cases = append(cases, struct{ path, want string }{in("readonly"), "must be writable for this user"})
	}
	for _, tc := range cases {
		s, err := Open(tc.path, Options{})
		if err == nil {
			_ = s.Close()
		}
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), tc.path) {
			t.Errorf("%q: %v\nwant: %s", tc.path, err, tc.want)
		}
		if tc.path != "" {
			if again := Migrate(t.Context(), tc.path); again == nil || again.Error() != err.Error() {
				t.Errorf("Migrate(%q): %v", tc.path, again)
			}
		}
	}
	var newer *durable.NewerSchemaError
	if _, err := Open(in("newer"), Options{}); !errors.As(err, &newer) {
		t.Error(err)
	}
}

// TestSynchronous checks that the option reaches SQLite, and that the file is in WAL mode.
func TestSynchronous(t *testing.T) {
	for o, want := range map[Synchronous]int64{Full: 2, Normal: 1} {
		s, err := Open(filepath.Join(t.TempDir(), "tasks.db"), Options{Synchronous: o})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := s.writer.queryInt("PRAGMA synchronous"); err != nil || got != want {
			t.Errorf("%v: %d, %v", o, got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestReadersCannotWrite checks that only one connection writes.
func TestReadersCannotWrite(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"))
	err := s.read(t.Context(), "read", func(r *session) error {
		_, err := r.exec("DELETE FROM task")
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "readonly") {
		t.Error(err)
	}
}

// TestNothingIsLeft checks that an idle store keeps no goroutines but those of database/sql and of the
// commits, and a closed one none and no file beside its own.
func TestNothingIsLeft(t *testing.T) {
	before := leak.Now()
	directory := t.TempDir()
	s := openStore(t, filepath.Join(directory, "tasks.db"))
	ctx, cancel := context.WithCancel(t.Context())
	for range s.Changes(ctx) {
		if err := durabletest.LiveOnce(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		break
	}
	cancel()
	before.AtMost(t, 2)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	before.NoneLeft(t)
	if files, err := os.ReadDir(directory); err != nil || len(files) != 1 {
		t.Errorf("%v, %v", files, err)
	}
	if info, err := os.Stat(s.path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := s.Create(t.Context(), durabletest.NewTask(0), taskstore.Quota{}); !errors.Is(err, mcptask.ErrServerClosed) {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), "x"); !errors.Is(err, mcptask.ErrServerClosed) {
		t.Error(err)
	}
	for _, err := range s.Changes(t.Context()) {
		t.Errorf("the feed of a closed store has a change, or %v", err)
	}
}

// TestManyOpenAtOnce checks that processes that start together create and migrate one file.
func TestManyOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	const stores = 6
	failed := make(chan error, stores)
	for range stores {
		go func() {
			s, err := Open(path, Options{})
			if err == nil {
				err = errors.Join(durabletest.LiveOnce(t.Context(), s), s.Close())
			}
			failed <- err
		}()
	}
	for range stores {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
}

// TestLockedFile checks that a write waits for another program's transaction as long as its context
// lasts, that reads do not wait, and that the store goes on afterwards.
func TestLockedFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	r, err := s.Create(t.Context(), durabletest.NewTask(0), taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	other := openFile(t, path)
	other.SetMaxOpenConns(1)
	execute(t, other, "BEGIN IMMEDIATE")
	short, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := s.Create(short, durabletest.NewTask(0), taskstore.Quota{}); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := s.Beat(short, "w", time.Minute, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if _, err := s.Get(t.Context(), r.ID); err != nil {
		t.Error(err)
	}
	created := make(chan error)
	go func() { _, err := s.Create(t.Context(), durabletest.NewTask(0), taskstore.Quota{}); created <- err }()
	execute(t, other, "ROLLBACK")
	if err := <-created; err != nil {
		t.Error(err)
	}
}

var writeFixture = flag.Bool("write-fixture", false, "write the fixture of the newest schema version, once, together with its migration")

// fixtureTasks are the tasks of a fixture. They never change: files of users have such tasks.
func fixtureTasks() []taskstore.Record {
	at := func(seconds int) time.Time { return time.Date(2026, 11, 22, 12, 0, seconds, 123_000, time.UTC) }
	full := taskstore.Record{
		ID: "full", Version: 1, Principal: "p\xff", Account: "p\xff", Tool: "run", Arguments: []byte("{ \"n\": 1 }"), Revision: mcptask.Revision20251125,
		IdempotencyKey: "key", ExternalID: "name", CanAsk: []string{"elicitation/create"}, CreatedAt: at(0), Poll: time.Second,
		Trace: "00-1-2-01\nvendor=x", Phase: taskstore.PhaseInputRequired, StatusMessage: "asks", Progress: taskstore.Progress{Done: 1.5, Total: 4},
		CancelRequested: true, UpdatedAt: at(1), ExpiresAt: at(0).AddDate(100, 0, 0), Attempt: 2, Tries: 1, Claim: taskstore.Claim{Worker: "worker"},
		Inputs: []taskstore.Input{
			{Request: mcptask.Request{Key: "step", Method: "elicitation/create", Params: []byte(`{"message":"?"}`), Schema: []byte(`{}`)}, State: taskstore.InputOutstanding},
			{Request: mcptask.Request{Key: "step#2", Method: "roots/list"}, State: taskstore.InputAnswered, Error: &mcptask.Error{Code: -1, Message: "no", Data: []byte(`1`)}},
		},
	}
	done := taskstore.Record{
		ID: "done", Version: 1, Tool: "run", CreatedAt: at(2), UpdatedAt: at(3), TerminalAt: at(3), ExpiresAt: at(2).AddDate(100, 0, 0), Phase: taskstore.PhaseDone,
		Outcome: &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(`{"content":[],"isError":true}`), IsError: true},
	}
	failed := done
	long := []byte(`"` + strings.Repeat("long", 300) + `"`)
	done.Arguments, done.Outcome = long, &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: long}
	failed.ID, failed.CreatedAt = "failed", at(4)
	failed.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: &mcptask.Error{Code: -32603, Message: "worker lost"}}
	return []taskstore.Record{full, done, failed}
}

// fixtureSteps are the steps of a further task of the fixtures that have steps, and the task.
func fixtureSteps() (r taskstore.Record, steps []taskstore.Step) {
	at := time.Date(2026, 11, 28, 12, 0, 0, 123_000, time.UTC)
	steps = []taskstore.Step{
		{Name: "up\x00load\xff", Kind: taskstore.StepDone, Value: []byte(` {"n": 1.0}`), At: at, Attempt: 1},
		{Name: "row", Kind: taskstore.StepPosition, Value: []byte("7"), At: at.Add(time.Microsecond), Attempt: 2},
	}
	return taskstore.Record{
		ID: "stepped", Version: 2, Principal: "p", Account: "p", Tool: "run", CreatedAt: at, UpdatedAt: at, ExpiresAt: at.AddDate(100, 0, 0),
		Phase: taskstore.PhaseRunning, StepBytes: steps[0].Size() + steps[1].Size(), Worked: time.Minute + time.Nanosecond,
	}, steps
}

// firstStepVersion is the version of the schema from which on fixtures have steps.
const firstStepVersion = 5

// TestMigrations opens a populated file of each earlier version of the schema.
func TestMigrations(t *testing.T) {
	steps, err := durable.ReadMigrations(migrations, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	if *writeFixture {
		dumpFixture(t, len(steps))
	}
	for _, step := range steps {
		fixture, err := os.ReadFile(fmt.Sprintf("testdata/v%d.sql", step.Version))
		if err != nil {
			t.Fatalf("%v: write it with the flag -write-fixture, and commit it with its migration", err)
		}
		path := filepath.Join(t.TempDir(), "tasks.db")
		execute(t, openFile(t, path), string(fixture))
		s := openStore(t, path)
		checkFixture(t, s, step.Version)
		if version, err := s.writer.queryInt("SELECT max(version) FROM schema_version"); err != nil || version != int64(len(steps)) {
			t.Errorf("version %d, %v", version, err)
		}
		fresh := filepath.Join(t.TempDir(), "fresh.db")
		openStore(t, fresh)
		if diff := cmp.Diff(readSchema(t, fresh), readSchema(t, path)); diff != "" {
			t.Errorf("version %d migrates to another schema (- new file, + migrated):\n%s", step.Version, diff)
		}
	}
}

// checkFixture checks that a store has the fixture's tasks and works.
func checkFixture(t *testing.T, s *Store, version int) {
	t.Helper()
	tasks := fixtureTasks()
	if version >= firstStepVersion {
		stepped, want := fixtureSteps()
		tasks = append(tasks, stepped)
		steps, err := s.Steps(t.Context(), stepped.ID)
		if diff := cmp.Diff(want, steps); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
	}
	for _, want := range tasks {
		got, err := s.Get(t.Context(), want.ID)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%v: %s", err, diff)
		}
	}
	if r, err := s.Get(t.Context(), "expired"); !errors.Is(err, taskstore.ErrRecordExpired) || r.Principal != "q" {
		t.Errorf("%+v, %v", r, err)
	}
	checkTally(t, s)
	again := fixtureTasks()[0]
	again.ID = "again"
	if former, err := s.Create(t.Context(), again, taskstore.Quota{}); !errors.Is(err, taskstore.ErrExists) || former.ID != "full" {
		t.Errorf("%q, %v", former.ID, err)
	}
	if err := durabletest.LiveOnce(t.Context(), s); err != nil {
		t.Error(err)
	}
}

// dumpFixture writes the statements that make a populated file of the newest version.
func dumpFixture(t *testing.T, version int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	for _, r := range fixtureTasks() {
		if _, err := s.Create(t.Context(), r, taskstore.Quota{}); err != nil {
			t.Fatal(err)
		}
	}
	stepped, steps := fixtureSteps()
	r, err := s.Create(t.Context(), stepped, taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), r, stepped, taskstore.Quota{}, steps...); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), "worker", time.Hour, nil); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString("-- A populated file of this version, as its users have it. Do not change it.\n" + MigrationSQL() + "\n")
	db := openFile(t, path)
	for _, table := range []string{"worker", "account", "task", "arguments", "inputs", "outcome", "step", "change"} {
		b.WriteString(dumpTable(t, db, table))
	}
	b.WriteString("INSERT INTO tombstone VALUES (CAST('expired' AS BLOB), CAST('q' AS BLOB), 9000000000000000);\n")
	if err := os.WriteFile(fmt.Sprintf("testdata/v%d.sql", version), []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}

// dumpTable returns the statements that insert the rows of a table.
func dumpTable(t *testing.T, db *sql.DB, table string) string {
	t.Helper()
	rows, err := db.Query("SELECT * FROM " + table)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for rows.Next() {
		values, targets := make([]any, len(columns)), make([]any, len(columns))
		for i := range values {
			targets[i] = &values[i]
		}
		if err := rows.Scan(targets...); err != nil {
			t.Fatal(err)
		}
		texts := make([]string, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case nil:
				texts[i] = "NULL"
			case []byte:
				texts[i] = fmt.Sprintf("x'%x'", v)
			default:
				texts[i] = fmt.Sprint(v)
			}
		}
		fmt.Fprintf(&b, "INSERT INTO %s VALUES (%s);\n", table, strings.Join(texts, ", "))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// readSchema returns the statements of a file's tables and indexes.
func readSchema(t *testing.T, path string) map[string]string {
	t.Helper()
	rows, err := openFile(t, path).Query("SELECT name, coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rows.Close() }()
	schema := map[string]string{}
	for rows.Next() {
		var name, text string
		if err := rows.Scan(&name, &text); err != nil {
			t.Fatal(err)
		}
		schema[name] = text
	}
	if err := rows.Err(); err != nil || len(schema) == 0 {
		t.Fatalf("%v, %v", schema, err)
	}
	return schema
}

// TestMigrationSQL checks that a file that was made with the statements for the shell is one that
// Open takes and need not migrate.
func TestMigrationSQL(t *testing.T) {
	byHand, byOpen := filepath.Join(t.TempDir(), "hand.db"), filepath.Join(t.TempDir(), "open.db")
	execute(t, openFile(t, byHand), MigrationSQL())
	s := openStore(t, byHand)
	if err := durabletest.LiveOnce(t.Context(), s); err != nil {
		t.Error(err)
	}
	if err := Migrate(t.Context(), byOpen); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readSchema(t, byOpen), readSchema(t, byHand)); diff != "" {
		t.Error(diff)
	}
}
