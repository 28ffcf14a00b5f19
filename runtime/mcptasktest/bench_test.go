package mcptasktest_test

import (
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest"
	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// BenchmarkSixHours waits for a handler that works for six hours of virtual time. The floor sleeps
// as many times as a client polls that polls each second.
func BenchmarkSixHours(b *testing.B) {
	run := func(b *testing.B, work func(*testing.T)) {
		b.Helper()
		var floor, took time.Duration
		for range b.N {
			floor += timeBubble(b, func(*testing.T) {
				for range 6 * time.Hour / time.Second {
					time.Sleep(time.Second)
				}
			})
			took += timeBubble(b, work)
		}
		b.ReportMetric(floor.Seconds()/took.Seconds(), "of-floor")
		b.ReportMetric(float64(took.Milliseconds())/float64(b.N), "ms/six-hours")
	}
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		b.Run("call/"+revision, func(b *testing.B) {
			run(b, func(t *testing.T) {
				conn := mcptasktest.Connect(t, revision, mcptasktest.Options{}, hourly())
				if err := isDone(mcptask.Run[turnOut](t.Context(), conn, "work", turnIn{})); err != nil {
					t.Error(err)
				}
			})
		})
		b.Run("poll/"+revision, func(b *testing.B) {
			run(b, func(t *testing.T) {
				conn := mcptasktest.Connect(t, revision, mcptasktest.Options{}, hourly())
				s, err := conn.CallTool(t.Context(), mcptask.ToolCall{Tool: "work", Arguments: []byte("{}")})
				for err == nil && !s.Done() {
					time.Sleep(time.Second)
					s, err = conn.Task(t.Context(), s.TaskID)
				}
				if err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// timeBubble runs work in a bubble and returns how long it really took.
func timeBubble(b *testing.B, work func(*testing.T)) (took time.Duration) {
	b.Helper()
	test := testing.InternalTest{Name: b.Name(), F: func(t *testing.T) {
		if took > 0 { // -count repeats it
			return
		}
		begin := time.Now()
		bubble.Test(t, work)
		took = time.Since(begin)
	}}
	// A bubble needs a test.
	if !testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{test}) || took == 0 {
		b.Fatal("the work failed")
	}
	return took
}
