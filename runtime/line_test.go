package mcptask

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// TestLineHasNoEndedTasks checks that a task that ends before its turn leaves the line. It counts for no
// limit any longer, so the line would grow for as long as the tasks before it run.
func TestLineHasNoEndedTasks(t *testing.T) {
	const many = 200
	for name, end := range map[string]func(t *testing.T, s *Server) error{
		"cancelled": func(t *testing.T, s *Server) error {
			_, _, err := s.Cancel(t.Context(), alice, begin(t, s, alice, "hang").ID)
			return err
		},
		"stopped": func(t *testing.T, s *Server) error { return s.Stop(t.Context(), alice, begin(t, s, alice, "hang").ID) },
		"expired": func(t *testing.T, s *Server) error {
			_, err := s.Call(t.Context(), alice, "hang", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, TTL: new(time.Millisecond)})
			return err
		},
		"abandoned": func(t *testing.T, s *Server) error {
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := s.Call(ctx, alice, "quick", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeGrace}); err == nil {
				return errors.New("it has not waited")
			}
			return nil
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newServer(t, Options{Concurrency: 1}, numberTool("hang", Policy{Task: TaskOptional}, hang),
				numberTool("quick", Policy{Task: TaskOptional, Grace: time.Minute}, hang))
			begin(t, s, alice, "hang")
			for range many {
				if err := end(t, s); err != nil {
					t.Fatal(err)
				}
			}
			time.Sleep(2 * sweepEvery)
			if free, queued := s.executor.(localExecutor).Load(); free != 0 || queued != 0 {
				t.Errorf("%d slots are free, %d of %d tasks that have ended are in line", free, queued, many)
			}
		})
	}
}
