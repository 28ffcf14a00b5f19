package sqlite

import (
	"path/filepath"
	"testing"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/durable/durabletest"
)

// TestDamagedTask checks that a task with damaged bytes is an error at each try, not only at the
// first one.
func TestDamagedTask(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	r := durabletest.NewTask(10)
	r.Inputs = []mcptask.Input{{Key: "q", State: mcptask.InputOutstanding}}
	if _, err := openStore(t, path).Create(t.Context(), r, mcptask.Quota{}); err != nil {
		t.Fatal(err)
	}
	execute(t, openFile(t, path), "UPDATE inputs SET body = x'00'")
	s := openStore(t, path) // with an empty cache
	for range 2 {
		if got, err := s.Get(t.Context(), r.ID); err == nil {
			t.Errorf("got a damaged task: %+v", got)
		}
		if got, err := s.List(t.Context(), r.Principal, mcptask.Position{}, 1); err == nil {
			t.Errorf("listed a damaged task: %+v", got)
		}
	}
}
