package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/cmd/internal/scripts"
	"github.com/mcptaskgen/mcptaskgen/golden/ptytest"
)

// TestTerminalGoTool presses Ctrl-C under go tool. The terminal sends the signal to the go command and to mcptask, and
// the go command passes its own on, so mcptask gets two for one press. The task goes on.
func TestTerminalGoTool(t *testing.T) {
	t.Parallel()
	server := servePipeline(t)
	dir := t.TempDir()
	mod, sum := scripts.RequireCheckout(t)
	for name, content := range map[string]string{"go.mod": mod, "go.sum": sum} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	command := func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "mcptask"}, args...)...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=", "CLICOLOR_FORCE=", "GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "GOPROXY=off")
		return cmd
	}
	if out, err := command("version").CombinedOutput(); err != nil { // builds it
		t.Fatalf("%v\n%s", err, out)
	}
	sit := func(args ...string) *seat {
		s := &seat{PTY: ptytest.Open(t, 120, func(rune) int { return 1 }), t: t, process: command(args...)}
		s.process.Stdout = &s.stdout
		s.Attach(s.process)
		if err := s.process.Start(); err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := sit("call", server.url, "run_pipeline", "repository=api", "branch=slow")
	for range 3 { // which of the two signals comes first is chance
		s.Sees("2/4  test")
		s.Types("\x03")
		s.Sees("The task goes on. This waits for it:\n  go tool mcptask watch http")
		s.ends(130, "")
		task := resumable.FindStringSubmatch(s.Look())
		if task == nil {
			t.Fatalf("no line to take up the task again:\n%s", s.Look())
		}
		s = sit("watch", server.url, task[1])
	}
	s.Sees("2/4  test")
}
