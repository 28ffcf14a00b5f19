//go:build unix

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// sessionKey signs the sessions of replicas.
const sessionKey = "0123456789abcdef0123456789abcdef"

// settleWithin bounds how long the tasks of a test may take to end after the last harm. It only has to exceed the time
// that a busy machine needs to read all of them.
func (f *fleet) settleWithin() time.Duration {
	return time.Minute + 50*time.Millisecond*time.Duration(f.site.crowd.tasks.Load())
}

// TestKills kills a server with a file a few times.
func TestKills(t *testing.T) {
	t.Parallel()
	killSQLite(t, 1, 5)
}

// countKills returns how often a test kills: as the variable MCPTASK_KILLS says, or else a number for every day, of
// which a short run has a fifth.
func countKills(t *testing.T, usual int) int {
	t.Helper()
	text := os.Getenv("MCPTASK_KILLS")
	switch {
	case text == "" && testing.Short():
		return max(usual/5, 2)
	case text == "":
		return usual
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("MCPTASK_KILLS is %q, and not a number of kills", text)
	}
	return n
}

// killSQLite kills servers that share a file, at random moments, under clients of both revisions.
func killSQLite(t *testing.T, replicas, kills int) {
	t.Helper()
	config := workerConfig{Store: "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")}
	if replicas > 1 {
		config.SessionKey = sessionKey
	}
	f := newFleet(t, config, replicas, 24)
	f.startAll()
	f.underLoad(func() {
		random := f.site.random()
		for range kills {
			// Most moments are those of a server at work, and some those of a server that starts.
			longest := 700
			if random.IntN(10) == 0 {
				longest = 80
			}
			time.Sleep(time.Duration(random.IntN(longest)) * time.Millisecond)
			signal := syscall.SIGKILL
			if random.IntN(20) == 0 {
				signal = syscall.SIGTERM
			}
			f.restart(random.IntN(replicas), signal)
		}
	})
	f.site.check(t, f.settleWithin())
}

// underLoad does harm while the clients work, and lets them work a little longer.
func (f *fleet) underLoad(harm func()) {
	f.t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithCancel(f.t.Context())
	var clients sync.WaitGroup
	clients.Go(func() { f.site.crowd.run(ctx) })
	harm()
	f.awaitAll()
	cancel()
	clients.Wait()
	f.t.Logf("%d tasks in %v", f.site.crowd.tasks.Load(), time.Since(begun).Round(time.Second))
}

// harmPostgres does harm to replicas on one PostgreSQL, whose clocks may differ by minutes, and to their connections.
// The replicas get the DSN that connect returns for the database's.
func harmPostgres(t *testing.T, connect func(dsn string) string, harms int, skews ...time.Duration) {
	t.Helper()
	dsn := pgtest.Database(t)
	db, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // the test has done its work
	// A process that is stopped in a transaction must not hold up the others for longer than a lease.
	if _, err := db.Exec(t.Context(), fmt.Sprintf("ALTER DATABASE %s SET idle_in_transaction_session_timeout = 1000", db.Config().Database)); err != nil {
		t.Fatal(err)
	}
	f := newFleet(t, workerConfig{Store: "postgres:" + connect(dsn), SessionKey: sessionKey}, len(skews), 24)
	if slices.Max(skews) > 0 {
		skewed := buildSkewed(t)
		for i, skew := range skews {
			if skew != 0 {
				f.binaries[i], f.skews[i] = skewed, skew
			}
		}
	}
	f.startAll()
	cut := func(which string) {
		f.site.record.disturb("", HarmCut)
		const terminate = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
			WHERE datname = current_database() AND pid <> pg_backend_pid() AND application_name = 'mcptask' AND `
		if _, err := db.Exec(t.Context(), terminate+which); err != nil {
			t.Fatal(err)
		}
	}
	const oneOf = "pid = (SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'mcptask' AND %s ORDER BY random() LIMIT 1)"
	f.underLoad(func() {
		random := f.site.random()
		for range harms {
			time.Sleep(time.Duration(random.IntN(800)) * time.Millisecond)
			switch i := random.IntN(len(skews)); random.IntN(20) {
			case 0, 1, 2, 3, 4, 5, 6, 7:
				f.restart(i, syscall.SIGKILL)
			case 8:
				f.restart(i, syscall.SIGTERM)
			case 9, 10, 11, 12:
				cut(fmt.Sprintf(oneOf, "true"))
			case 13, 14:
				cut("true")
			case 15, 16:
				cut("query ILIKE 'listen%'")
			case 17:
				cut(fmt.Sprintf(oneOf, "query ILIKE 'listen%'"))
			default:
				f.pause(i, lease+time.Duration(random.Int64N(int64(lease))))
			}
		}
	})
	f.site.check(t, f.settleWithin())
}
