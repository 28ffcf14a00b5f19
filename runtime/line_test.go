package mcptask

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/runtime/mcptasktest/bubble"
)

// A task that ends before its turn leaves the line: it counts for no limit any longer, and
// the line would grow for as long as those before it run.
func TestLineHasNoEndedTasks(t *testing.T) {
	const many = 200
	for name, end := range map[string]func(t *testing.T, s *Server){
		"cancelled": func(t *testing.T, s *Server) {
			if _, _, err := s.Cancel(t.Context(), alice, begin(t, s, alice, "hang").ID); err != nil {
				t.Fatal(err)
			}
		},
		"stopped": func(t *testing.T, s *Server) {
			if err := s.Stop(t.Context(), alice, begin(t, s, alice, "hang").ID); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(t *testing.T, s *Server) {
			ttl := time.Millisecond
			if _, err := s.Call(t.Context(), alice, "hang", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeTask, TTL: &ttl}); err != nil {
				t.Fatal(err)
			}
		},
		"abandoned": func(t *testing.T, s *Server) {
			ctx, leave := context.WithTimeout(t.Context(), time.Millisecond)
			defer leave()
			if _, err := s.Call(ctx, alice, "quick", json.RawMessage(`{"n":21}`), CallRequest{Mode: ModeGrace}); err == nil {
				t.Fatal("it has not waited")
			}
		},
	} {
		bubble.Run(t, name, func(t *testing.T) {
			s := newServer(t, Options{Concurrency: 1}, numberTool("hang", Policy{Task: TaskOptional}, hang),
				numberTool("quick", Policy{Task: TaskOptional, Grace: time.Minute}, hang))
			begin(t, s, alice, "hang")
			for range many {
				end(t, s)
			}
			time.Sleep(2 * sweepEvery)
			if free, queued := s.executor.(localExecutor).Load(); free != 0 || queued != 0 {
				t.Errorf("%d slots are free, %d of %d tasks that have ended are in line", free, queued, many)
			}
		})
	}
}
