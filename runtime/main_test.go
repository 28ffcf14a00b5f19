package mcptask

import (
	"flag"
	"log/slog"
	"os"
	"testing"
)

// TestMain leaves the warnings of servers out, which would bury the name of a test that fails. With -v they stand
// beside their test.
func TestMain(m *testing.M) {
	flag.Parse()
	if !testing.Verbose() {
		slog.SetDefault(slog.New(slog.DiscardHandler))
	}
	os.Exit(m.Run())
}
