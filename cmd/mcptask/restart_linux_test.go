//go:build long

package main

import "testing"

// TestTerminalRestart kills the server while the command waits, and starts it again on the same port. Its store keeps the
// task. The new process takes it over when the lease of the first is over, within 40 seconds.
func TestTerminalRestart(t *testing.T) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision+"/a task that works", func(t *testing.T) {
			t.Parallel()
			server := servePipeline(t)
			s := sit(t, 80, nil, "call", "--revision", revision, server.url, "run_pipeline", "repository=api", "branch=main")
			s.Sees("/4  ") // which step it is, the time decides
			server.kill()
			server.start()
			s.ends(0, `"name": "package"`)
		})
		t.Run(revision+"/a question", func(t *testing.T) {
			t.Parallel()
			server := servePipeline(t)
			s := sit(t, 80, nil, "call", "--revision", revision, server.url, "deploy_service", "service=api", "environment=production")
			s.Sees("  y/n [n]: ")
			server.kill()
			server.start()
			s.Types("y\r")
			// deploy_service is not declared to run again.
			s.ends(7, "")
			s.Sees("the worker of the task was lost")
		})
	}
}
