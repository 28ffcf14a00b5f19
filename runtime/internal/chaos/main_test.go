package chaos

import (
	"log"
	"os"
	"strconv"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/tuning"
)

// asWorker is the variable that makes the test binary a worker. Its value is the worker's configuration.
const asWorker = "MCPTASK_CHAOS_WORKER"

// TestMain runs as a worker if a test has started this binary for it.
func TestMain(m *testing.M) {
	tuning.Lease = lease
	if text := os.Getenv(asWorker); text != "" {
		if err := work(text); err != nil {
			log.Fatal(err)
		}
		return
	}
	os.Exit(m.Run())
}

// seedGiven returns the seed that the variable MCPTASK_SEED has, or 0.
func seedGiven(t *testing.T) uint64 {
	t.Helper()
	text := os.Getenv("MCPTASK_SEED")
	if text == "" {
		return 0
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("MCPTASK_SEED: %v", err)
	}
	return seed
}
