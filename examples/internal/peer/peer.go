// Package peer lets tests run examples against programs that others have
// written, and skip in one way where such a program is missing.
package peer

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// limit bounds one client's run: a hang is a failure, not a long test.
const limit = 2 * time.Minute

// Need skips the test where a program is not there.
func Need(t testing.TB, program, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		Missing(t, program+" is missing: "+remedy)
	}
}

// Node finds a Node.js that today's packages run on: that of the machine, or the one that the official
// suite brings, whose folder is given. It skips the test where there is neither.
func Node(t testing.TB, conformance string) string {
	t.Helper()
	for _, program := range []string{"node", filepath.Join(conformance, "node_modules", "node", "bin", "node")} {
		version, err := exec.CommandContext(t.Context(), program, "--version").Output()
		var major int
		if err != nil {
			continue
		}
		if _, err := fmt.Sscanf(string(version), "v%d.", &major); err == nil && major >= 20 {
			return program
		}
	}
	Missing(t, "node is missing: install Node.js 20 or newer, or run npm ci in examples/conformance")
	return ""
}

// Missing skips the test, or fails it where everything has to run.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Build builds the example in a folder, and returns the program's path.
func Build(t testing.TB, folder string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "example")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, folder).CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	return binary
}

// asProgram is set in a process of a test binary that is to be the program.
const asProgram = "MCPTASK_TEST_AS_PROGRAM"

// Main runs the tests of an example, or its program in a process that ServeSelf has started. It is for TestMain.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// ServeSelf starts the example that the test belongs to, and returns its URL. The test binary itself is the program, so
// that nothing has to be built.
func ServeSelf(t testing.TB, args ...string) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, binary, args)
}

// Serve builds and starts the example in a folder, and returns its URL.
func Serve(t testing.TB, folder string, args ...string) string {
	t.Helper()
	return start(t, Build(t, folder), args)
}

// start starts a program and returns its URL.
func start(t testing.TB, binary string, args []string) string {
	t.Helper()
	// Not the test's context: it ends before the cleanup, and would kill the server.
	server := exec.CommandContext(context.WithoutCancel(t.Context()), binary, append(args, "-http", "127.0.0.1:0")...)
	server.Env = append(os.Environ(), asProgram+"=1")
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
	address, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !ok {
		t.Fatalf("the server said %q instead of its URL: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return Tap(t, address)
}

// Tap stands between a server and its clients, and holds what the server sends
// against the schemas. It returns the URL for the clients.
func Tap(t testing.TB, server string) string {
	t.Helper()
	target, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = target.Scheme, target.Host
			r.Out.Host = r.In.Host
		},
		FlushInterval: -1,                                                                              // a stream passes as it comes
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // as the server would
	}
	whole := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// The whole body first: it is closed when the reply begins, and a proxy that
		// still reads it then drops the connection, reply and all.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})
	paths := http.NewServeMux()
	paths.Handle("/", wirecheck.Handler(t, whole))
	paths.Handle(target.Path+"/"+wirecheck.Candidate, wirecheck.RevisionHandler(t, wirecheck.Candidate, whole))
	proxy := httptest.NewServer(paths)
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy.URL + target.Path
}

// Client runs a client program, which has to succeed, and returns what it
// printed.
func Client(t testing.TB, program string, args ...string) string {
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
