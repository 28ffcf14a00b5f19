package localpg

import (
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestStart uses a database and checks that nothing of it is left.
func TestStart(t *testing.T) {
	s, err := Start(t.Context())
	if errors.Is(err, ErrMissing) && os.Getenv("MCPTASK_REQUIRE") != "all" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	var version string
	if err := conn.QueryRow(t.Context(), "SELECT version()").Scan(&version); err != nil || !strings.HasPrefix(version, "PostgreSQL") {
		t.Errorf("%q, %v", version, err)
	}
	if err := conn.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(s.directory); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", s.directory, err)
	}
}
