// Package bubble runs tests in bubbles of testing/synctest, in which hours take no time.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// running counts the bubbles that run under the race detector. before is the number of processors
// before the first one.
var running struct {
	sync.Mutex
	n, before int
}

// Test is like synctest.Test. Under the race detector, the program uses one processor while bubbles
// run. With more, the detector sometimes crashes the program when goroutines of a bubble receive
// from expired timers (golang/go#78156). Parallel tests may call Test.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raceDetector {
		enterSingleProcessor()
		defer leaveSingleProcessor()
	}
	synctest.Test(t, f)
}

// Run runs f as a subtest in a bubble of its own, like t.Run with Test.
func Run(t *testing.T, name string, f func(*testing.T)) bool {
	t.Helper()
	return t.Run(name, func(t *testing.T) {
		t.Helper()
		Test(t, f)
	})
}

func enterSingleProcessor() {
	running.Lock()
	defer running.Unlock()
	if running.n++; running.n == 1 {
		running.before = runtime.GOMAXPROCS(1)
	}
}

func leaveSingleProcessor() {
	running.Lock()
	defer running.Unlock()
	if running.n--; running.n == 0 {
		runtime.GOMAXPROCS(running.before)
	}
}
