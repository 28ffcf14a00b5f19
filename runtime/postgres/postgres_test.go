package postgres

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// openStore opens a store, which is closed at the end of the test.
func openStore(t testing.TB, dsn string, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), dsn, o)
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

// newTask returns a running task.
func newTask(id, account string) taskstore.Record {
	now := time.Now().UTC().Truncate(time.Microsecond)
	return taskstore.Record{
		ID: id, Principal: account, Account: account, Tool: "tool", Arguments: []byte(`{"a":1}`), Revision: mcptask.Revision20260728,
		Phase: taskstore.PhaseRunning, Claim: taskstore.Claim{Worker: "w"}, CreatedAt: now, UpdatedAt: now, ExpiresAt: now.Add(time.Hour), Poll: time.Second,
	}
}

// finish returns a task as a finished one.
func finish(r taskstore.Record) taskstore.Record {
	r.Phase, r.Claim.Worker = taskstore.PhaseDone, ""
	r.Outcome = &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: []byte(`{"content":[]}`)}
	r.TerminalAt = r.UpdatedAt
	return r
}

// create stores a task.
func create(t testing.TB, s *Store, r taskstore.Record) taskstore.Record {
	t.Helper()
	stored, err := s.Create(t.Context(), r, taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

// query runs a statement besides the store, and returns the first value of each row.
func query(t testing.TB, dsn, sql string, args ...any) []string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // the statement has told already
	rows, err := conn.Query(t.Context(), sql, args...)
	if err != nil {
		t.Fatal(err)
	}
	values, err := pgx.CollectRows(rows, pgx.RowTo[any])
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, fmt.Sprint(v))
	}
	return texts
}

// newsOf reads a feed. It returns a function that waits for a change that the condition admits.
func newsOf(t testing.TB, s *Store) func(what string, admits func(taskstore.Change) bool) taskstore.Change {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	next, stop := iter.Pull2(s.Changes(ctx))
	t.Cleanup(func() { cancel(); stop() })
	wait := func(what string, admits func(taskstore.Change) bool) taskstore.Change {
		t.Helper()
		for {
			c, err, ok := next()
			if err != nil || !ok {
				t.Fatalf("the feed ended before %s: %v", what, err)
			}
			if admits(c) {
				return c
			}
		}
	}
	wait("the first news", func(c taskstore.Change) bool { return c.Missed })
	return wait
}

// is admits a version of a task. Missed news may have it too, but a test does not expect that.
func is(id string, version int64) func(taskstore.Change) bool {
	return func(c taskstore.Change) bool { return c.ID == id && c.Version == version }
}

func TestLife(t *testing.T) {
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	r := newTask("t", "a")
	r.IdempotencyKey = "k"
	r = create(t, s, r)
	again := newTask("other", "a")
	again.IdempotencyKey = "k"
	if got, err := s.Create(t.Context(), again, taskstore.Quota{}); !errors.Is(err, taskstore.ErrExists) || got.ID != "t" {
		t.Errorf("%q, %v", got.ID, err)
	}
	asked := r
	asked.Phase, asked.Inputs = taskstore.PhaseInputRequired, []taskstore.Input{{Request: mcptask.Request{Key: "q", Method: "elicitation/create"}, State: taskstore.InputOutstanding}}
	asked, err := s.Update(t.Context(), r, asked, taskstore.Quota{}, taskstore.Step{Name: "a"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := s.Update(t.Context(), asked, finish(asked), taskstore.Quota{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Update(t.Context(), asked, finish(asked), taskstore.Quota{}); !errors.Is(err, taskstore.ErrConflict) {
		t.Error(err)
	}
	other := openStore(t, dsn, Options{})
	listed := done
	listed.Arguments, listed.Inputs, listed.Outcome = nil, nil, &taskstore.Outcome{Kind: done.Outcome.Kind}
	for _, handle := range []*Store{s, other} {
		got, err := handle.Get(t.Context(), "t")
		if err != nil || !cmp.Equal(got, done) {
			t.Errorf("%v: %s", err, cmp.Diff(done, got))
		}
		list, err := handle.List(t.Context(), "a", taskstore.Position{}, 10)
		if err != nil || len(list) != 1 || !cmp.Equal(list[0], listed) {
			t.Errorf("%v: %s", err, cmp.Diff([]taskstore.Record{listed}, list))
		}
	}
	s.shift.Store(time.Hour.Microseconds() + time.Minute.Microseconds())
	if gone, err := s.Expire(t.Context(), 10); err != nil || len(gone) != 1 || gone[0].Outcome == nil {
		t.Errorf("%v, %v", gone, err)
	}
	if got, err := other.Get(t.Context(), "t"); !errors.Is(err, taskstore.ErrRecordExpired) || got.Principal != "a" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, table := range []string{"task", "arguments", "inputs", "outcome", "step", "account"} {
		if rows := query(t, dsn, "SELECT * FROM mcptask."+table); len(rows) > 0 {
			t.Errorf("%s has %d rows", table, len(rows))
		}
	}
}

func TestSchemaNames(t *testing.T) {
	dsn := pgtest.Database(t)
	names := []string{"", `odd "name"; DROP TABLE x; --`, "$migrate$ it's \\ 'x' @schema@ %s %", "Grün", strings.Repeat("l", 63)}
	for i, name := range names {
		s := openStore(t, dsn, Options{Schema: name})
		create(t, s, newTask(fmt.Sprint(i), "a"))
		if records, err := s.Scan(t.Context(), taskstore.Filter{}, taskstore.Position{}, 10); err != nil || len(records) != 1 {
			t.Errorf("%q: %d records, %v", name, len(records), err)
		}
		wait := newsOf(t, s)
		r := create(t, openStore(t, dsn, Options{Schema: name}), newTask("there", "a"))
		wait("a notification", is(r.ID, 1))
	}
	for _, name := range []string{strings.Repeat("l", 64), "a\x00b", "\xff"} {
		if _, err := Open(t.Context(), dsn, Options{Schema: name}); err == nil || !strings.Contains(err.Error(), "Options.Schema") {
			t.Errorf("%q: %v", name, err)
		}
	}
}

// TestOpenAtOnce opens an empty database from many sides.
func TestOpenAtOnce(t *testing.T) {
	dsn := pgtest.Database(t)
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			s, err := Open(t.Context(), dsn, Options{MaxConns: 1})
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	migrations, err := durable.ReadMigrations(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	if steps := query(t, dsn, "SELECT version FROM mcptask.schema_version"); len(steps) != len(migrations) {
		t.Errorf("migrated to %v", steps)
	}
}

func TestMigrationByAdministrator(t *testing.T) {
	dsn := pgtest.Database(t)
	if _, err := Open(t.Context(), dsn, Options{NoMigrate: true}); err == nil || !strings.Contains(err.Error(), "MigrationSQL") {
		t.Error(err)
	}
	script, err := MigrationSQL(Options{})
	if err != nil {
		t.Fatal(err)
	}
	run := func(sql string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context()) //nolint:errcheck // the script has told already
		if _, err := conn.PgConn().Exec(t.Context(), sql).ReadAll(); err != nil {
			t.Fatal(err)
		}
	}
	run(script)
	run(script)
	run(`DROP ROLE IF EXISTS worker; CREATE ROLE worker LOGIN; REVOKE ALL ON DATABASE ` + pgx.Identifier{query(t, dsn, "SELECT current_database()::text")[0]}.Sanitize() + ` FROM PUBLIC;
		GRANT USAGE ON SCHEMA mcptask TO worker; GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA mcptask TO worker;
		GRANT USAGE ON ALL SEQUENCES IN SCHEMA mcptask TO worker; GRANT CONNECT ON DATABASE ` + pgx.Identifier{query(t, dsn, "SELECT current_database()::text")[0]}.Sanitize() + ` TO worker`)
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		conn, err := pgx.Connect(ctx, dsn)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(ctx) //nolint:errcheck // the statement has told already
		if _, err := conn.Exec(ctx, "DROP OWNED BY worker; DROP ROLE worker", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Error(err)
		}
	})
	s := openStore(t, dsn+" user=worker", Options{NoMigrate: true})
	r := create(t, s, newTask("t", "a"))
	if err := s.Delete(t.Context(), r); err != nil {
		t.Error(err)
	}
	if _, err := s.Expire(t.Context(), 1); err != nil {
		t.Error(err)
	}
	run("INSERT INTO mcptask.schema_version VALUES (1000)")
	if _, err := Open(t.Context(), dsn, Options{}); err == nil || !strings.Contains(err.Error(), "version 1000") {
		t.Error(err)
	}
	if err := Migrate(t.Context(), dsn, Options{}); err == nil || !strings.Contains(err.Error(), "newer version") {
		t.Error(err)
	}
}

// TestDSN checks that errors name the fault, and never the password.
func TestDSN(t *testing.T) {
	const password = "hunter2"
	for dsn, want := range map[string]string{
		"":                                       "is empty",
		"postgres://u:" + password + "/@host/db": "the DSN is not valid: ",
		"postgres://u:" + password + "%zz@host/db":                           "the DSN is not valid: ",
		"postgres://u:" + password + "@host:x/db":                            "the DSN is not valid: ",
		"password=" + password + " nonsense":                                 "keyword/value",
		"password=" + password + " host=h sslmode=x":                         "sslmode",
		"password=" + password + " host=h port=x":                            "port",
		"password=" + password + " pool_max_conns=many host=h":               "pool_max_conns",
		"password=" + password + " host=/nowhere dbname=d connect_timeout=1": "/nowhere",
		"postgres://u:" + password + "@127.0.0.1:1/db?connect_timeout=1":     "127.0.0.1:1",
	} {
		_, err := Open(t.Context(), dsn, Options{})
		if err == nil || !strings.HasPrefix(err.Error(), "postgres: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), password) {
			t.Errorf("%q: %v", dsn, err)
		}
	}
	if _, err := Open(t.Context(), "host=h", Options{MaxConns: -1}); err == nil || !strings.Contains(err.Error(), "MaxConns") {
		t.Error(err)
	}
}

// TestTakenIDCostsNoConnection creates a task whose ID is taken, by a store that need not read. A
// statement that fails would cost it the connection.
func TestTakenIDCostsNoConnection(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{MaxConns: 1})
	r := create(t, s, newTask("taken", "a"))
	if _, err := s.Update(t.Context(), r, finish(r), taskstore.Quota{}); err != nil {
		t.Fatal(err)
	}
	before := s.pool.Stat().NewConnsCount()
	if _, err := s.Create(t.Context(), newTask("taken", "a"), taskstore.Quota{}); !errors.Is(err, taskstore.ErrExists) {
		t.Error(err)
	}
	create(t, s, newTask("new", "a"))
	if more := s.pool.Stat().NewConnsCount() - before; more != 0 {
		t.Errorf("%d new connections", more)
	}
}

// TestWroteNothing checks which answers to a COMMIT leave no doubt. A server may speak any language.
func TestWroteNothing(t *testing.T) {
	for want, answers := range map[bool][]*pgconn.PgError{
		true: {
			{Severity: "FEHLER", SeverityUnlocalized: "ERROR", Code: "23505"},
			{Severity: "ERROR", Code: "23505"},
			{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "25P03"}, // it did not wait for the COMMIT
		},
		false: {
			{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "57P01"},
		},
	} {
		for _, answer := range answers {
			if got := wroteNothing(fmt.Errorf("commit: %w", answer)); got != want {
				t.Errorf("%v: %+v", got, answer)
			}
		}
	}
}

// TestListReadsNoBodies checks that a page of a list has neither arguments nor results: 50 tasks may have
// hundreds of megabytes of them.
func TestListReadsNoBodies(t *testing.T) {
	s := openStore(t, pgtest.Database(t), Options{})
	r := finish(newTask("t", "a"))
	r.Arguments, r.Inputs = []byte(`{}`), []taskstore.Input{{Request: mcptask.Request{Key: "q"}, State: taskstore.InputAnswered}}
	create(t, s, r)
	page, err := s.List(t.Context(), r.Principal, taskstore.Position{}, 1)
	if err != nil || len(page) != 1 || page[0].Arguments != nil || page[0].Inputs != nil || page[0].Outcome.Result != nil {
		t.Errorf("listed %+v, %v", page, err)
	}
}
