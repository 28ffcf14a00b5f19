//go:build unix

package postgres

import (
	"syscall"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/runtime/internal/pgtest"
)

// TestStoppedWorker stops a process, as a debugger does. It is not taken for dead.
func TestStoppedWorker(t *testing.T) {
	t.Parallel()
	stopWorker(t, 1)
}

// stopWorker stops a process until others have looked at it a number of times.
func stopWorker(t *testing.T, rounds int) {
	dsn := pgtest.Database(t)
	newsOf(t, openStore(t, dsn, Options{}))
	worker := startWorker(t, dsn, "stopped")
	if err := worker.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for range rounds {
		awaitLooks(t, dsn)
	}
	wantLeases(t, dsn, "stopped")
}
