package mcptask

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestCloseEndsTasks: in a store that goes with the server, nobody will take its
// tasks over: those that run and those in line end as cancelled.
func TestCloseEndsTasks(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		s := newServer(t, Options{Concurrency: 1}, numberTool("t", Policy{Task: TaskOptional}, func(ctx context.Context, _ *Task, in number) (number, error) {
			<-ctx.Done()
			return in, ctx.Err()
		}))
		var ids []string
		for range 3 {
			reply, err := s.Call(t.Context(), alice, "t", json.RawMessage(`{"n":1}`), CallRequest{Mode: ModeTask})
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, reply.Task.ID)
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
