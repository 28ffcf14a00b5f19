package postgres

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable"
)

//go:embed migrations/*.sql
var migrationFiles embed.FS

// schemaMark stands for the schema's quoted name in SQL.
const schemaMark = "@schema@"

// schema is the user's name of the schema, and the names derived from it.
type schema struct {
	name   string
	quoted string
	// channel is the channel of notifications.
	channel string
	// lock is the key of the advisory lock that everybody who writes holds.
	lock int64
}

// newSchema checks the name of a schema. "" means [DefaultSchema].
func newSchema(name string) (schema, error) {
	const longest = 63 // PostgreSQL cuts longer names
	if name == "" {
		name = DefaultSchema
	}
	if len(name) > longest || !utf8.ValidString(name) || strings.Contains(name, "\x00") {
		return schema{}, fmt.Errorf("postgres: Options.Schema %q must have at most %d bytes of UTF-8 without NUL", name, longest)
	}
	hash := sha256.Sum256([]byte("mcptask " + name))
	return schema{
		name: name, quoted: pgx.Identifier{name}.Sanitize(),
		channel: "mcptask_" + hex.EncodeToString(hash[:8]), lock: int64(binary.BigEndian.Uint64(hash[:])),
	}, nil
}

// sql puts the schema's name into SQL.
func (s schema) sql(text string) string { return strings.ReplaceAll(text, schemaMark, s.quoted) }

// literal quotes a string for SQL.
func literal(s string) string {
	s = strings.ReplaceAll(s, `\`, `\\`)
	return `E'` + strings.ReplaceAll(s, `'`, `''`) + `'`
}

// MigrationSQL returns a script that creates the schema of [Options], or brings it up to date, for
// a database that only its administrator may change. It may run any number of times. Give the
// program's role USAGE on the schema, and SELECT, INSERT, UPDATE, DELETE on its tables and USAGE
// on its sequences. Its user then opens the store with [Options].NoMigrate.
func MigrationSQL(o Options) (string, error) {
	s, err := newSchema(o.Schema)
	if err != nil {
		return "", err
	}
	steps, err := durable.ReadMigrations(migrationFiles, "migrations")
	if err != nil {
		return "", err
	}
	return s.migrationSQL(steps), nil
}

// migrationSQL returns a script that carries out those of the steps that are missing.
func (s schema) migrationSQL(steps []durable.Migration) string {
	quote := "$migrate$"
	for strings.Contains(s.quoted, quote) {
		quote = "$" + strings.Trim(quote, "$") + "_$"
	}
	var b strings.Builder
	b.WriteString(`BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE;
SELECT pg_advisory_xact_lock(@lock@);
DO @quote@
DECLARE
  has int := 0;
BEGIN
  IF NOT EXISTS (SELECT FROM pg_namespace WHERE nspname = @name@) THEN
    CREATE SCHEMA @schema@;
  END IF;
  IF to_regclass(@versions@) IS NULL THEN
    CREATE TABLE @schema@.schema_version (version int PRIMARY KEY, applied timestamptz NOT NULL DEFAULT now());
  END IF;
  SELECT coalesce(max(version), 0) INTO has FROM @schema@.schema_version;
  IF has > @last@ THEN
    RAISE EXCEPTION 'the schema has version %, and this script knows versions up to @last@', has;
  END IF;
`)
	for _, step := range steps {
		fmt.Fprintf(&b, "\n  -- %s\n  IF has < %d THEN\n%s\nINSERT INTO @schema@.schema_version (version) VALUES (%d);\n  END IF;\n",
			step.Name, step.Version, step.SQL, step.Version)
	}
	b.WriteString("END\n@quote@;\nCOMMIT;\n")
	return strings.NewReplacer(
		schemaMark, s.quoted, "@name@", literal(s.name), "@versions@", literal(s.quoted+".schema_version"),
		"@lock@", fmt.Sprint(s.lock), "@last@", fmt.Sprint(len(steps)), "@quote@", quote,
	).Replace(b.String())
}

// Migrate creates the schema of a database, or brings it up to date. It does nothing if the schema is up to date. It
// refuses a schema that a newer version of mcptask has migrated. Any number of processes may call it at once, and
// processes of the former version may go on.
func Migrate(ctx context.Context, dsn string, o Options) error {
	config, s, err := parseOptions(dsn, o)
	if err != nil {
		return err
	}
	_, err = s.connectAndMigrate(ctx, config.ConnConfig, true)
	return err
}

// connectAndMigrate carries out the missing migrations through a connection of its own, and reports
// whether there is a pooler between the program and the server. If the connection is refused or cut,
// it tries again for as long as one attempt to connect may take.
func (s schema) connectAndMigrate(ctx context.Context, config *pgx.ConnConfig, may bool) (pooled bool, err error) {
	end := time.Now().Add(config.ConnectTimeout)
	for failures := 1; ; failures++ {
		pooled, again, err := s.tryMigrate(ctx, config, may)
		if !again || ctx.Err() != nil {
			return pooled, err
		}
		pause := retryPause(failures)
		if time.Until(end) < pause {
			return false, fmt.Errorf("%w (tried %d times within connect_timeout, which is %v)", err, failures, config.ConnectTimeout)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
}

// tryMigrate connects and migrates once. again says that the connection was refused or cut.
func (s schema) tryMigrate(ctx context.Context, config *pgx.ConnConfig, may bool) (pooled, again bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, config)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && strings.HasPrefix(refused.Message, "unsupported startup parameter"):
		return false, false, fmt.Errorf("postgres: %w: a pooler takes no settings from the DSN, use ALTER ROLE or ALTER DATABASE", err)
	case err != nil:
		return false, isPassing(err), fmt.Errorf("postgres: %w", err)
	}
	defer closeConn(conn)
	// A pooler tells its clients a number of its own instead of the process that serves them.
	var serving uint32
	if err := conn.QueryRow(ctx, "SELECT pg_backend_pid()", pgx.QueryExecModeExec).Scan(&serving); err != nil {
		return false, conn.IsClosed(), fmt.Errorf("postgres: %w", err)
	}
	err = s.migrate(ctx, conn, may)
	return serving != conn.PgConn().PID(), conn.IsClosed(), err
}

// closeConn closes a connection that has done its work. It does not wait for a network that is cut.
func closeConn(conn *pgx.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn.Close(ctx) //nolint:errcheck // it is of no more use
}

// migrate carries out the missing migrations. If it may not, it refuses a schema that lacks some.
func (s schema) migrate(ctx context.Context, conn *pgx.Conn, may bool) error {
	steps, err := durable.ReadMigrations(migrationFiles, "migrations")
	if err != nil {
		return err
	}
	version, err := s.readVersion(ctx, conn)
	if err != nil {
		return err
	}
	missing, err := durable.MissingMigrations(steps, version)
	switch {
	case err != nil:
		return fmt.Errorf("postgres: schema %s: %w", s.quoted, err)
	case len(missing) == 0:
		return nil
	case !may:
		return fmt.Errorf("postgres: schema %s has version %d, and this program needs version %d: run the script of postgres.MigrationSQL as the "+
			"database's administrator, or call postgres.Migrate", s.quoted, version, len(steps))
	}
	// Several statements go only through the simple protocol.
	if _, err := conn.PgConn().Exec(ctx, s.migrationSQL(steps)).ReadAll(); err != nil {
		return fmt.Errorf("postgres: migrate schema %s to version %d: %w", s.quoted, len(steps), err)
	}
	return nil
}

// readVersion returns the version of the schema: 0 if there is none.
func (s schema) readVersion(ctx context.Context, conn *pgx.Conn) (version int, err error) {
	err = conn.QueryRow(ctx, s.sql("SELECT coalesce(max(version), 0)::int FROM @schema@.schema_version"), pgx.QueryExecModeExec).Scan(&version)
	var refused *pgconn.PgError
	switch {
	case errors.As(err, &refused) && (refused.Code == undefinedTable || refused.Code == undefinedSchema):
		return 0, nil
	case err != nil:
		return 0, fmt.Errorf("postgres: read the version of schema %s: %w", s.quoted, err)
	}
	return version, nil
}

// Codes of PostgreSQL's errors.
const (
	undefinedTable  = "42P01"
	undefinedSchema = "3F000"
)
