package mcptask

import (
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestCloseEndsTasks checks that Close ends the tasks in the server's own store as cancelled, running
// or in line. No other server could take them over.
func TestCloseEndsTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", Policy{Task: TaskOptional}, hang))
		var ids []string
		for range 3 {
			ids = append(ids, begin(t, s, alice, "t").ID)
		}
		time.Sleep(time.Second)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		for _, id := range ids {
			if r, err := s.Get(t.Context(), alice, id); err != nil || !r.Done() || r.Outcome.Kind != OutcomeCancelled {
				t.Errorf("%s is %s, %v", id, r.Phase, err)
			}
		}
	})
}
