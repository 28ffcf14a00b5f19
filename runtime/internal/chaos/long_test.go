//go:build long && unix

package chaos

import (
	"testing"
	"time"
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
	harmPostgres(t, countKills(t, 15), 0, 5*time.Minute, -5*time.Minute)
}
