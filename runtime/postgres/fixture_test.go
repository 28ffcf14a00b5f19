package postgres

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// writeFixture makes TestMigrateFixtures write the fixture of the newest version, once, before that is
// released: go test ./runtime/postgres -run TestMigrateFixtures -write-fixture
var writeFixture = flag.Bool("write-fixture", false, "write testdata of the newest schema version")

// fixtureTables are the tables of a fixture: the database's content in the format of COPY. A later
// version that adds a table adds it here.
var fixtureTables = map[int][]string{
	1: {"task", "arguments", "inputs", "outcome", "account", "worker", "tombstone", "change"},
	2: {"task", "arguments", "inputs", "outcome", "account", "worker", "tombstone", "change"},
	3: {"task", "arguments", "inputs", "outcome", "account", "worker", "tombstone", "change"},
	4: {"task", "arguments", "inputs", "outcome", "account", "worker", "tombstone", "change"},
	5: {"task", "arguments", "inputs", "outcome", "step", "account", "worker", "tombstone", "change"},
	6: {"task", "arguments", "inputs", "outcome", "step", "account", "worker", "tombstone", "change"},
	7: {"task", "arguments", "inputs", "outcome", "step", "account", "worker", "tombstone", "change"},
	8: {"task", "arguments", "inputs", "outcome", "step", "account", "worker", "tombstone", "change"},
}

// TestMigrateFixtures migrates a populated database of each version of the schema to the newest one, and reads the
// stored records.
func TestMigrateFixtures(t *testing.T) {
	steps, err := durable.ReadMigrations(migrationFiles, "migrations")
	if err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= len(steps); version++ {
		t.Run(strconv.Itoa(version), func(t *testing.T) {
			directory := filepath.Join("testdata", "v"+strconv.Itoa(version))
			if *writeFixture && version == len(steps) {
				populate(t, directory, fixtureTables[version])
			}
			dsn := pgtest.Database(t)
			conn, err := pgx.Connect(t.Context(), dsn)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close(t.Context()) //nolint:errcheck // the store looks at what it has done
			schema, err := newSchema("")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := conn.PgConn().Exec(t.Context(), schema.migrationSQL(steps[:version])).ReadAll(); err != nil {
				t.Fatal(err)
			}
			for _, table := range fixtureTables[version] {
				text, err := os.ReadFile(filepath.Join(directory, table+".txt"))
				if err != nil {
					t.Fatal(err)
				}
				if _, err := conn.PgConn().CopyFrom(t.Context(), bytes.NewReader(text), "COPY mcptask."+table+" FROM STDIN"); err != nil {
					t.Fatalf("%s: %v", table, err)
				}
			}
			for _, sequence := range []string{"SELECT setval('mcptask.task_seq', 1001)", "SELECT setval('mcptask.change_seq_seq', 1000)"} {
				if _, err := conn.Exec(t.Context(), sequence); err != nil {
					t.Fatal(err)
				}
			}
			want := fixtureRecords()
			s := openStore(t, dsn, Options{})
			for i := range want {
				want[i].Version = 1
			}
			if slices.Contains(fixtureTables[version], "step") {
				stepped, wantSteps := fixtureSteps()
				want = append(want, stepped)
				steps, err := s.Steps(t.Context(), stepped.ID)
				if err != nil || !cmp.Equal(steps, wantSteps) {
					t.Errorf("%v: %s", err, cmp.Diff(wantSteps, steps))
				}
			}
			for i := range want {
				got, err := s.Get(t.Context(), want[i].ID)
				if err != nil || !cmp.Equal(got, want[i]) {
					t.Errorf("%v: %s", err, cmp.Diff(want[i], got))
				}
				if got, err = s.Update(t.Context(), got, got, taskstore.Quota{}); err != nil {
					t.Fatal(err)
				}
				if err := s.Delete(t.Context(), got); err != nil {
					t.Error(err)
				}
			}
			create(t, s, newTask("new", "a"))
			checkAccounts(t, dsn)
			if left := query(t, dsn, "SELECT * FROM mcptask.step"); len(left) > 0 {
				t.Errorf("steps of deleted tasks: %v", left)
			}
		})
	}
}

// fixtureRecords returns the records of a fixture.
func fixtureRecords() []taskstore.Record {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	plain := taskstore.Record{
		ID: "plain", Principal: "p", Account: "a", Tool: "tool", Arguments: []byte(`{"a":1}`), Revision: mcptask.Revision20260728, IdempotencyKey: "k",
		ExternalID: "name", CanAsk: []string{"elicitation/create"}, CreatedAt: at, Poll: time.Second, Trace: "00-1-2-01\na=b",
		Phase: taskstore.PhaseRunning, StatusMessage: "half \x00 way", Progress: taskstore.Progress{Done: 1, Total: 2}, UpdatedAt: at,
		ExpiresAt: at.AddDate(1000, 0, 0), Attempt: 2, Tries: 1, Claim: taskstore.Claim{Worker: "w"},
	}
	asked := plain
	asked.ID, asked.IdempotencyKey, asked.Phase, asked.CancelRequested = "asked", "", taskstore.PhaseInputRequired, true
	asked.Inputs = []taskstore.Input{
		{Request: mcptask.Request{Key: "q", Method: "elicitation/create", Params: []byte(`{}`), Schema: []byte(`{}`)}, State: taskstore.InputAnswered, Response: []byte(`{"x":1}`)},
		{Request: mcptask.Request{Key: "r", Method: "roots/list"}, State: taskstore.InputAnswered, Error: &mcptask.Error{Code: -1, Message: "no", Data: []byte(`1`)}},
	}
	done := plain
	done.ID, done.Principal, done.IdempotencyKey = "done", "", ""
	done = finish(done)
	failed := done
	long := []byte(`"` + strings.Repeat("long", 300) + `"`)
	done.Arguments, done.Outcome = long, &taskstore.Outcome{Kind: taskstore.OutcomeResult, Result: long}
	failed.ID, failed.Outcome = "failed", &taskstore.Outcome{Kind: taskstore.OutcomeError, Error: &mcptask.Error{Code: -32603, Message: "m", Data: []byte(`{}`)}}
	return []taskstore.Record{plain, asked, done, failed}
}

// fixtureSteps returns the steps of a further task of the fixtures that have steps, and the task.
func fixtureSteps() (r taskstore.Record, steps []taskstore.Step) {
	at := time.Date(2026, 11, 28, 3, 4, 5, 6000, time.UTC)
	steps = []taskstore.Step{
		{Name: "up\x00load\xff", Kind: taskstore.StepDone, Value: []byte(` {"n": 1.0}`), At: at, Attempt: 1},
		{Name: "row", Kind: taskstore.StepPosition, Value: []byte("7"), At: at.Add(time.Microsecond), Attempt: 2},
	}
	return taskstore.Record{
		ID: "stepped", Version: 2, Principal: "p", Account: "a", Tool: "tool", CreatedAt: at, UpdatedAt: at, ExpiresAt: at.AddDate(1000, 0, 0),
		Phase: taskstore.PhaseRunning, StepBytes: steps[0].Size() + steps[1].Size(), Worked: time.Minute + time.Nanosecond,
	}, steps
}

// populate writes a fixture.
func populate(t *testing.T, directory string, tables []string) {
	t.Helper()
	dsn := pgtest.Database(t)
	s := openStore(t, dsn, Options{})
	expired := newTask("expired", "a")
	expired.ExpiresAt = expired.CreatedAt
	create(t, s, expired)
	if _, err := s.Expire(t.Context(), 10); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Beat(t.Context(), "w", time.Minute, nil); err != nil {
		t.Fatal(err)
	}
	for _, r := range fixtureRecords() {
		create(t, s, r)
	}
	stepped, steps := fixtureSteps()
	if _, err := s.Update(t.Context(), create(t, s, stepped), stepped, taskstore.Quota{}, steps...); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{}
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context()) //nolint:errcheck // everything has been read
	for _, table := range tables {
		var content bytes.Buffer
		if _, err := conn.PgConn().CopyTo(t.Context(), &content, "COPY mcptask."+table+" TO STDOUT"); err != nil {
			t.Fatal(err)
		}
		files[table+".txt"] = content.Bytes()
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(directory, name), content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
