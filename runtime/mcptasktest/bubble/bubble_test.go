package bubble_test

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestDueTimers: under the race detector synctest.Test ends this program.
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

// TestParallel: bubbles of parallel tests leave the processors as they were, and one
// within another is refused as synctest.Test refuses it.
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
