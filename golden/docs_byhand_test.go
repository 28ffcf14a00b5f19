//go:build long

package golden_test

import (
	"bufio"
	"context"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocsByHand runs the server and the client of docs/by-hand.md, and the server's tests.
func TestDocsByHand(t *testing.T) {
	t.Parallel()
	m := makeDocsModule(t)
	bin := t.TempDir() + string(filepath.Separator)
	m.run("go", "build", "-o", bin, "./server", "./client")
	m.run("go", "test", "./server")
	m.serve(bin + "server")
	got := m.run(bin + "client")
	// A slow machine may miss a stage between two polls.
	stages := regexp.MustCompile(`(?m)^working .*\n`)
	if stages.ReplaceAllString(got, "") != stages.ReplaceAllString(m.printed, "") {
		t.Errorf("the client printed\n%s\nthe page says\n%s", got, m.printed)
	}
}

// serve starts a server and returns when it announces that it serves. It listens by then.
func (m docsModule) serve(program string) {
	m.t.Helper()
	cmd := m.prepare(context.WithoutCancel(m.t.Context()), program)
	log, err := cmd.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	line, err := bufio.NewReader(log).ReadString('\n')
	if err != nil || !strings.HasSuffix(line, "serving http://"+m.address+"/mcp\n") {
		m.t.Fatalf("the server said %q, %v", line, err)
	}
}
