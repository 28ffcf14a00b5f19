//go:build unix

package sqlite

import (
	"path/filepath"
	"syscall"
	"testing"
)

// TestStoppedWorker stops a process. It does not count as dead.
func TestStoppedWorker(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path)
	other := startHolder(t, path)
	if err := other.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(other.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); err != nil || !status.Stopped() {
		t.Fatalf("%v, %v", status, err)
	}
	search(t, s)
	wantTaken(t, s)
	if err := other.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = other.cmd.Wait()
	search(t, s)
	wantTaken(t, s, oddWorker, finder, sharedWorker)
}
