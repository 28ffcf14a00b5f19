// Package interop tests the example server with clients that this project did not write.
package interop

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// limit bounds one client's run: a hang is a failure, not a long test.
const limit = 2 * time.Minute

func TestTypeScriptSDKSpeaks20251125(t *testing.T) {
	need(t, "node", "install Node.js 18 or newer")
	if _, err := os.Stat("node_modules/@modelcontextprotocol/sdk"); err != nil {
		missing(t, "the TypeScript SDK is missing: run npm ci in examples/pipeline/interop")
	}
	out := client(t, "node", "client.mjs", serve(t))
	for _, step := range []string{
		"connect", "list tools", "call a tool as a task", "read a task again", "no list for anonymous callers",
		"cancel a task", "an unknown task is refused", "call a tool that is never a task",
	} {
		if !strings.Contains(out, "pass: "+step+"\n") {
			t.Errorf("the step %q did not pass", step)
		}
	}
}

func TestCurlSpeaks20260728(t *testing.T) {
	need(t, "curl", "install curl")
	need(t, "bash", "install bash")
	out := client(t, "bash", "client.sh", serve(t))
	if !strings.Contains(out, `"structuredContent":`) {
		t.Error("there is no result")
	}
}

// need skips the test where a program is not there.
func need(t *testing.T, program, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		missing(t, program+" is missing: "+remedy)
	}
}

// missing skips the test, or fails it where everything has to run.
func missing(t *testing.T, what string) {
	t.Helper()
	if os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// serve builds and starts the example server, and returns its URL.
func serve(t *testing.T) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "pipeline")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, "..").CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	// Not the test's context: it ends before the cleanup, and would kill the server.
	server := exec.CommandContext(context.WithoutCancel(t.Context()), binary, "-http", "127.0.0.1:0")
	server.Stderr = os.Stderr
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// An interrupt, so that the server's own shutdown is tested too.
		if err := server.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		killer := time.AfterFunc(limit, func() { _ = server.Process.Kill() })
		defer killer.Stop()
		if err := server.Wait(); err != nil {
			t.Errorf("the server did not stop cleanly: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !ok {
		t.Fatalf("the server said %q instead of its URL: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return url
}

// client runs a client program and returns what it printed.
func client(t *testing.T, program string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	t.Logf("%s", out)
	return string(out)
}
