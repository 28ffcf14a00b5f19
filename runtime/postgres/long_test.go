//go:build long

package postgres

import (
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// TestStoreBehindPooler runs the kit behind a pooler that gives each transaction any connection to the server.
func TestStoreBehindPooler(t *testing.T) {
	t.Parallel()
	testStore(t, pgtest.StartPooler(t, pgtest.Database(t), pgtest.TransactionMode), Options{MaxConns: 4})
}
