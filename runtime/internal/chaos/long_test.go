//go:build long && unix

package chaos

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// TestKillsSQLite kills a server with a file again and again. MCPTASK_KILLS says how often.
func TestKillsSQLite(t *testing.T) { killSQLite(t, 1, countKills(t, 40)) }

// TestKillsSharedSQLite kills servers that share a file.
func TestKillsSharedSQLite(t *testing.T) { killSQLite(t, 2, countKills(t, 10)) }

// TestKillsInSteps kills servers that work in steps. The only server and one of several get half of the kills each.
func TestKillsInSteps(t *testing.T) {
	for _, replicas := range []int{1, 3} {
		t.Run(fmt.Sprint("SQLite/", replicas), func(t *testing.T) {
			t.Parallel()
			killInSteps(t, "sqlite:"+filepath.Join(t.TempDir(), "tasks.db"), replicas, countKills(t, 100))
		})
		t.Run(fmt.Sprint("PostgreSQL/", replicas), func(t *testing.T) {
			t.Parallel()
			killInSteps(t, "postgres:"+pgtest.Database(t), replicas, countKills(t, 100))
		})
	}
}

// TestCheckFindsOneInTenThousand checks that the checker finds a fault if a store loses one write in ten thousand.
func TestCheckFindsOneInTenThousand(t *testing.T) {
	t.Parallel()
	findLostWrites(t, 10_000)
}

// TestHarmsPostgres does harm to three replicas on PostgreSQL, and to their connections.
func TestHarmsPostgres(t *testing.T) {
	t.Parallel() // most of it is the build of a binary with a skewed clock
	harmPostgres(t, func(dsn string) string { return dsn }, countKills(t, 15), 0, 5*time.Minute, -5*time.Minute)
}

// TestHarmsPooled does harm to three replicas behind PgBouncer.
func TestHarmsPooled(t *testing.T) {
	for _, mode := range []pgtest.Mode{pgtest.TransactionMode, pgtest.SessionMode} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			harmPostgres(t, func(dsn string) string { return pgtest.StartPooler(t, dsn, mode) }, countKills(t, 8), 0, 0, 0)
		})
	}
}
