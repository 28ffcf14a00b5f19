package sqlite

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

//go:embed migrations
var migrations embed.FS

// applicationID marks a file as one of mcptask. The first migration sets it.
const applicationID = 1835234419

// Migrate brings the schema of a file up to date, and creates the file if there is none. [Open] does
// the same. Call Migrate to do it at another time, such as before a deployment. Processes of the
// former version go on with the file, because migrations only add.
func Migrate(ctx context.Context, path string) error {
	db, err := openDatabase(path)
	if err != nil {
		return err
	}
	defer func() { _ = db.Close() }() // a committed transaction stays
	s, err := openWriter(ctx, db, Options{})
	if err != nil {
		return explain(path, "open", err)
	}
	defer func() { _ = s.close() }()
	return migrate(ctx, s, path)
}

// MigrationSQL returns the statements that make a new file, for the sqlite3 shell.
func MigrationSQL() string {
	steps, _ := durable.ReadMigrations(migrations, "migrations") // part of the program, and read by each test
	var b strings.Builder
	b.WriteString("PRAGMA journal_mode = WAL;\n")
	for _, step := range steps {
		fmt.Fprintf(&b, "\n-- %s\nBEGIN IMMEDIATE;\n%s%s;\nCOMMIT;\n", step.Name, step.SQL, insertVersion(step))
	}
	return b.String()
}

func insertVersion(step durable.Migration) string {
	return fmt.Sprintf("INSERT INTO schema_version VALUES (%d)", step.Version)
}

// migrate runs the missing migrations in one transaction. Another process that does the same waits,
// and then finds none missing.
func migrate(ctx context.Context, s *session, path string) (err error) {
	steps, err := durable.ReadMigrations(migrations, "migrations")
	if err != nil {
		return err
	}
	var missing []durable.Migration
	err = retryBusy(ctx, func() (err error) {
		missing, err = findMissing(s, steps)
		return err
	})
	if err != nil || len(missing) == 0 {
		return explain(path, "read the schema of", err)
	}
	if err := s.begin(ctx); err != nil {
		return explain(path, "migrate", err)
	}
	defer func() {
		if err != nil {
			s.rollBack()
		}
	}()
	if missing, err = findMissing(s, steps); err != nil {
		return explain(path, "read the schema of", err)
	}
	for _, step := range missing {
		if _, err := s.conn.ExecContext(context.Background(), step.SQL+insertVersion(step)); err != nil {
			return explain(path, "migrate with "+step.Name, err)
		}
	}
	_, err = s.exec("COMMIT")
	return explain(path, "migrate", err)
}

// errForeign refuses a file of another program.
var errForeign = errors.New("the file has tables of another program; name a file of its own for the tasks")

// findMissing returns the migrations that the file lacks.
func findMissing(s *session, steps []durable.Migration) ([]durable.Migration, error) {
	// Another process may create the tables now. It sets the ID with them, so whoever sees them first sees the ID then.
	tables, err := s.queryInt("SELECT count(*) FROM sqlite_schema")
	if err != nil {
		return nil, err
	}
	id, err := s.queryInt("PRAGMA application_id")
	if err == nil && id != applicationID && (tables > 0 || id != 0) {
		err = errForeign
	}
	if err != nil || id != applicationID {
		return steps, err
	}
	version, err := s.queryInt("SELECT max(version) FROM schema_version")
	if err != nil {
		return nil, err
	}
	return durable.MissingMigrations(steps, int(version))
}
