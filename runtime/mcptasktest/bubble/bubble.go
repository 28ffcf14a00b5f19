// Package bubble runs tests in a bubble of testing/synctest, where hours take no
// time.
package bubble

import (
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
)

// raceds are the bubbles that run under the race detector, and how many processors
// there were before them.
var raceds struct {
	sync.Mutex
	n, before int
}

// Test is synctest.Test. Under the race detector the program has one processor
// while bubbles run: on several, the detector crashes it now and then where
// goroutines of a bubble receive from timers that are due (golang/go#78156). It may
// be called by parallel tests.
func Test(t *testing.T, f func(*testing.T)) {
	t.Helper()
	if raced {
		begin()
		defer end()
	}
	synctest.Test(t, f)
}

func begin() {
	raceds.Lock()
	defer raceds.Unlock()
	if raceds.n++; raceds.n == 1 {
		raceds.before = runtime.GOMAXPROCS(1)
	}
}

func end() {
	raceds.Lock()
	defer raceds.Unlock()
	if raceds.n--; raceds.n == 0 {
		runtime.GOMAXPROCS(raceds.before)
	}
}
