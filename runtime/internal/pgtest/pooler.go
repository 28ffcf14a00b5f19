package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Mode is the pool_mode of PgBouncer.
type Mode string

// The modes that a store works with.
const (
	// TransactionMode gives each transaction of a client any connection to the server.
	TransactionMode Mode = "transaction"
	// SessionMode gives each client a connection to the server.
	SessionMode Mode = "session"
)

// StartPooler starts a PgBouncer for one test in front of the server of a DSN that Database returned, and returns the
// DSN of the same database behind it. The pooler has the settings that it has by itself, but takes more connections. It
// stops as a server does. The test is skipped if PgBouncer is missing.
func StartPooler(t testing.TB, dsn string, mode Mode) string {
	t.Helper()
	program, err := findPooler()
	if err != nil {
		skip(t, err)
	}
	target := map[string]string{}
	for field := range strings.FieldsSeq(dsn) {
		name, value, _ := strings.Cut(field, "=")
		target[name] = value
	}
	directory, err := os.MkdirTemp("/tmp", "pgtest") //nolint:usetesting // see start
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(directory) }) //nolint:errcheck // nothing uses it any more
	unprivileged, err := dropPrivileges(directory)
	if err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(directory, "pgbouncer.ini")
	text := fmt.Sprintf(`[databases]
* = host=%s port=%s user=%s
[pgbouncer]
unix_socket_dir = %s
listen_port = 6432
auth_type = any
pool_mode = %s
max_client_conn = 1000
default_pool_size = 300
`, target["host"], target["port"], target["user"], directory, mode)
	if err := os.WriteFile(settings, []byte(text), 0o644); err != nil { //nolint:gosec // another user reads it
		t.Fatal(err)
	}
	stop, err := startWatched(directory, "KILL", unprivileged, program, settings)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		const longest = 4000
		if log, err := os.ReadFile(filepath.Join(directory, "log")); err == nil && t.Failed() {
			t.Logf("the pooler's log:\n%s", log[max(0, len(log)-longest):])
		}
		stop()
	})
	pooled := fmt.Sprintf("host=%s port=6432 user=%s dbname=%s sslmode=disable", directory, target["user"], target["dbname"])
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := awaitAnswer(ctx, directory, pooled); err != nil {
		t.Fatal(err)
	}
	return pooled
}

// findPooler returns the path of PgBouncer: that on PATH, or Debian's.
func findPooler() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("pgbouncer is missing: install PgBouncer (Debian: apt-get install pgbouncer)")
}
