package terminal

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// TestNoTerminal writes to a file: a line for each change, and nobody is asked.
func TestNoTerminal(t *testing.T) {
	out, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = out.Close() }()
	terminal := New(out, out, nil)
	working := mcptask.Snapshot{Status: mcptask.StatusWorking, Message: "frame 3\x1b[2J"}
	terminal.Show("render", working)
	terminal.Show("render", working)
	working.Progress = mcptask.ProgressReport{Done: 1, Total: 4}
	terminal.Show("render", working)
	terminal.Show("other", mcptask.Snapshot{Status: mcptask.StatusFailed, Error: &mcptask.Error{Message: "no disk"}})
	terminal.Printf("a line of %s\n", "the program\x1b[1m")
	working.Status, working.CreatedAt = mcptask.StatusCompleted, time.Now().Add(-90*time.Second)
	terminal.Show("render", working)
	if terminal.CanAsk() {
		t.Error("a file can be asked")
	}
	if _, err := terminal.Ask(t.Context(), mcptask.Question{}); !errors.Is(err, mcptask.ErrCannotAsk) {
		t.Errorf("Ask: %v", err)
	}
	if err := terminal.OpenURL(t.Context(), mcptask.Question{}); !errors.Is(err, mcptask.ErrCannotAsk) {
		t.Errorf("OpenURL: %v", err)
	}
	terminal.Close()
	terminal.Show("late", working)
	got, err := os.ReadFile(out.Name())
	if err != nil {
		t.Fatal(err)
	}
	want := "render: frame 3\nrender: 1/4 frame 3\nother: failed: no disk\na line of the program\nrender: done (1m30s)\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestNoFiles has no files at all.
func TestNoFiles(t *testing.T) {
	terminal := New(nil, nil, nil)
	terminal.Show("render", mcptask.Snapshot{Status: mcptask.StatusWorking})
	terminal.Printf("a line")
	if terminal.CanAsk() {
		t.Error("nobody can be asked")
	}
	terminal.Close()
}
