package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestDueTimers checks that due timers do not crash the program, as they do with synctest.Test
// under the race detector.
func TestDueTimers(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	bubble.Test(t, func(*testing.T) {
		var wg sync.WaitGroup
		for range 200 {
			wg.Go(func() {
				for range 2000 {
					<-time.After(0)
				}
			})
		}
		wg.Wait()
	})
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("%d processors before, %d after", before, after)
	}
}

// TestParallel checks that bubbles of parallel tests restore the number of processors, and that a
// bubble within a bubble is refused.
func TestParallel(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	t.Run("bubbles", func(t *testing.T) {
		for range 8 {
			t.Run("", func(t *testing.T) {
				t.Parallel()
				bubble.Test(t, func(t *testing.T) {
					time.Sleep(time.Hour)
					defer func() {
						if recover() == nil {
							t.Error("a bubble within a bubble")
						}
					}()
					bubble.Test(t, func(*testing.T) {})
				})
			})
		}
	})
	if after := runtime.GOMAXPROCS(0); after != before {
		t.Errorf("%d processors before, %d after", before, after)
	}
}
