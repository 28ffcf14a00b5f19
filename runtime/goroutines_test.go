package mcptask

import (
	"runtime"
	"testing"
	"time"
)

// noGoroutineLeft waits until there are as few goroutines as before.
func noGoroutineLeft(t testing.TB, before int) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if runtime.NumGoroutine() <= before {
			return
		}
	}
	stacks := make([]byte, 1<<16)
	t.Errorf("%d goroutines, %d before:\n%s", runtime.NumGoroutine(), before, stacks[:runtime.Stack(stacks, true)])
}
