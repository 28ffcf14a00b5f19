// Package peer lets tests run the examples against programs of other projects. It skips tests in a
// uniform way if such a program is missing.
package peer

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/localpg"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/replicas"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

// limit bounds a client's run, so that a hang fails the test.
const limit = 2 * time.Minute

// Need skips the test if a program is missing.
func Need(t testing.TB, program, remedy string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		Missing(t, program+" is missing: "+remedy)
	}
}

// Node finds a Node.js that current packages support: the machine's, or the one that the official
// suite brings in the directory conformance. It skips the test if there is none.
func Node(t testing.TB, conformance string) string {
	t.Helper()
	const oldest = 20 // that the published packages run on
	found := "there is none"
	for _, program := range []string{"node", filepath.Join(conformance, "node_modules", "node", "bin", "node")} {
		output, err := exec.CommandContext(t.Context(), program, "--version").Output()
		if err != nil {
			continue
		}
		version := strings.TrimSpace(string(output))
		var major int
		if _, err := fmt.Sscanf(version, "v%d.", &major); err == nil && major >= oldest {
			return program
		}
		found = fmt.Sprintf("%s is %s, which is too old", program, version)
	}
	Missing(t, fmt.Sprintf("Node.js %d or newer is missing (%s): install it, or run npm ci in examples/conformance", oldest, found))
	return ""
}

// Missing skips the test, or fails it if all tests must run.
func Missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Fatal(what)
	}
	t.Skip(what)
}

// Build builds the example in a directory and returns the path of the program.
func Build(t testing.TB, dir string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "example")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, dir).CombinedOutput(); err != nil {
		t.Fatalf("build the example: %v\n%s", err, out)
	}
	return binary
}

// asProgram is the environment variable that makes a test binary run the example instead of the tests.
const asProgram = "MCPTASK_TEST_AS_PROGRAM"

// Main runs the tests of an example, or the example itself in a process that ServeSelf started. Call it from TestMain.
func Main(m *testing.M, program func()) {
	if os.Getenv(asProgram) != "" {
		program()
		return
	}
	os.Exit(m.Run())
}

// AsProgram makes the processes that the test starts from its own binary run the example.
func AsProgram(t *testing.T) {
	t.Helper()
	t.Setenv(asProgram, "1")
}

// Database starts a PostgreSQL for the test and returns its connection string. It skips the test if
// PostgreSQL is missing.
func Database(t testing.TB) string {
	t.Helper()
	database, err := localpg.Start(t.Context())
	if errors.Is(err, localpg.ErrMissing) {
		Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	return database.DSN()
}

// ServeReplicas starts three replicas of the example that the test belongs to, behind a proxy that
// hands each request to the next of them.
func ServeReplicas(t testing.TB, args ...string) *replicas.Set {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startReplicas(t, binary, args)
}

// BuildReplicas builds the example in a directory and starts three replicas of it, behind a proxy
// that hands each request to the next of them.
func BuildReplicas(t testing.TB, dir string, args ...string) *replicas.Set {
	t.Helper()
	return startReplicas(t, Build(t, dir), args)
}

// startReplicas starts three replicas of a program and their proxy.
func startReplicas(t testing.TB, binary string, args []string) *replicas.Set {
	t.Helper()
	set, err := replicas.Start(t.Context(), 3, func(ctx context.Context, _ int) *exec.Cmd {
		return prepareServer(ctx, binary, args)
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := set.Close(); err != nil {
			t.Error(err)
		}
	})
	return set
}

// prepareServer returns the command of a server on a free port.
func prepareServer(ctx context.Context, binary string, args []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, binary, slices.Concat(args, []string{"-http", "127.0.0.1:0"})...)
	cmd.Env = append(os.Environ(), asProgram+"=1")
	cmd.Stderr = os.Stderr
	return cmd
}

// ServeSelf starts the example that the test belongs to and returns its URL. It runs the test binary as the example, so
// that nothing needs to be built.
func ServeSelf(t testing.TB, args ...string) string {
	t.Helper()
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startServer(t, binary, args)
}

// Serve builds and starts the example in a directory and returns its URL.
func Serve(t testing.TB, dir string, args ...string) string {
	t.Helper()
	return startServer(t, Build(t, dir), args)
}

// startServer starts a program and returns its URL.
func startServer(t testing.TB, binary string, args []string) string {
	t.Helper()
	// Do not use the test's context: it ends before the cleanup and would kill the server.
	server := prepareServer(context.WithoutCancel(t.Context()), binary, args)
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// Send an interrupt, so that the server's own shutdown is tested too.
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

// Tap starts a proxy in front of a server that checks the server's messages against the schemas. It
// returns the URL for clients.
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
		FlushInterval: -1,                                                                              // pass streams through without buffering
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // like a broken server connection
	}
	whole := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// Read the whole body first. It is closed when the reply begins. A proxy that still reads
		// it would then drop the connection and the reply.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})
	paths := http.NewServeMux()
	paths.Handle("/", whole) // clients look for other things there, such as metadata of OAuth
	paths.Handle(target.Path, wirecheck.Handler(t, whole))
	paths.Handle(target.Path+"/"+wirecheck.Candidate, wirecheck.RevisionHandler(t, wirecheck.Candidate, whole))
	proxy := httptest.NewServer(paths)
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy.URL + target.Path
}

// Client runs a client program, which must succeed, and returns its output.
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
