//go:build long && unix

package chaos

import (
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// TestKillsSQLite kills a server with a file again and again. MCPTASK_KILLS says how often.
func TestKillsSQLite(t *testing.T) { killSQLite(t, 1, countKills(t, 40)) }

// TestKillsSharedSQLite kills servers that share a file.
func TestKillsSharedSQLite(t *testing.T) { killSQLite(t, 2, countKills(t, 10)) }

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
