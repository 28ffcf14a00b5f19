package gateway

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestProgress checks that the values of a call's progress increase, that silence is filled, and that
// nothing follows the answer.
func TestProgress(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		began := time.Now()
		var sent []string
		p := newProgress(func(taskID string, done, total float64, message string) {
			sent = append(sent, fmt.Sprintf("%s%.4g/%.4g %s", taskID, done, total, message))
		}, func() time.Duration { return time.Hour + time.Since(began) })
		time.Sleep(40 * time.Second)
		p.report("", 0, 4, "build")
		time.Sleep(16 * time.Second)
		p.report("", 2, 4, "test")
		p.report("", 2, 4, "test")
		p.report("", 0, 0, "packing") // a message alone
		p.report("", 4, 4, "done")
		time.Sleep(40 * time.Second)
		p.stop()
		time.Sleep(time.Hour)
		p.report("task:", 1, 4, "a task goes on")
		want := []string{
			"0/0 running for 1h0m15s", "0.001/0 running for 1h0m30s",
			"0.002/4 build", "0.003/4 build (running for 1h0m55s)",
			"2/4 test", "2.001/4 test", "2.002/4 packing", "4/4 done",
			"4.001/4.001 done (running for 1h1m11s)", "4.002/4.002 done (running for 1h1m26s)",
			"task:4.003/4.003 a task goes on",
		}
		if !slices.Equal(sent, want) {
			t.Errorf("sent %q, want %q", sent, want)
		}
	})
}

// TestProgressOfBigNumbers checks that values increase where a small step is lost.
func TestProgressOfBigNumbers(t *testing.T) {
	var last float64
	p := newProgress(func(_ string, done, _ float64, _ string) {
		if done <= last || math.IsInf(done, 1) {
			t.Errorf("%v after %v", done, last)
		}
		last = done
	}, func() time.Duration { return 0 })
	defer p.stop()
	for _, done := range []float64{1e18, 1e18, math.Inf(1), math.NaN(), 1e18, math.MaxFloat64, math.MaxFloat64, 5} {
		p.report("", done, 0, "")
	}
}

// TestProgressOfSlowStore checks that no report, and not the answer, waits while the age of the work is read.
func TestProgressOfSlowStore(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		sent := 0
		p := newProgress(func(string, float64, float64, string) { sent++ }, func() time.Duration {
			time.Sleep(10 * time.Second)
			return time.Minute
		})
		time.Sleep(keepAlive + time.Second)
		began := time.Now()
		p.report("", 1, 2, "build")
		p.stop()
		if took := time.Since(began); took != 0 {
			t.Errorf("they took %v", took)
		}
		time.Sleep(time.Minute)
		if sent != 1 {
			t.Errorf("%d reports were sent, want the handler's alone", sent)
		}
	})
}
