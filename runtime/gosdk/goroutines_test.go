package gosdk_test

import (
	"bytes"
	"net/http"
	"runtime"
	"runtime/pprof"
	"testing"
	"time"
)

// goroutines counts them once those of closed connections are gone; check
// waits until there are no more than before. It must not run beside other tests.
func goroutines(t *testing.T) (check func()) {
	t.Helper()
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	for range 5 {
		time.Sleep(20 * time.Millisecond)
		before = min(before, runtime.NumGoroutine())
	}
	return func() {
		t.Helper()
		noneLeft(t, before)
	}
}

// noneLeft waits until there are no more goroutines than before.
func noneLeft(t testing.TB, before int) {
	t.Helper()
	for end := time.Now().Add(patience); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			var dump bytes.Buffer
			if err := pprof.Lookup("goroutine").WriteTo(&dump, 1); err != nil {
				t.Error(err)
			}
			t.Fatalf("%d goroutines, %d before\n%.6000s", runtime.NumGoroutine(), before, dump.String())
		}
	}
}
