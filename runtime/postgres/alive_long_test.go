//go:build long && unix

package postgres

import "testing"

// TestLivingKeepTasksLong does harm to ten living workers again and again.
func TestLivingKeepTasksLong(t *testing.T) {
	t.Parallel()
	harmLiving(t, 10, 10)
}

// TestStoppedWorkerLong stops a process for twenty seconds at least: each round has two pauses between looks.
func TestStoppedWorkerLong(t *testing.T) {
	t.Parallel()
	stopWorker(t, 40)
}
