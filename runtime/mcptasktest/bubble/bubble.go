// Package bubble runs tests in a bubble of testing/synctest, where hours take no
// time.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// turn is held by the bubble that runs, since the number of processors is the
// process's.
var turn sync.Mutex

// Test is synctest.Test. Under the race detector one bubble runs at a time, on one
// processor: on several, the detector crashes the program now and then where
// goroutines of a bubble receive from timers that are due (golang/go#78156).
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raced {
		turn.Lock()
		defer turn.Unlock()
		defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	}
	synctest.Test(t, f)
}
