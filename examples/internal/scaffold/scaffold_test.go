//go:build long

package scaffold

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// published is the result of write_report if the person agrees, as mcptask call prints it.
const published = "{\n  \"text\": \"All is well in the north.\",\n  \"published\": true\n}\n"

// publish are the arguments of write_report for a report that is published, and the person's answer.
var publish = []string{"write_report", "region=north", "publish=true", "--answer", `publish={"approve":true}`}

// TestHTTP kills the server in the middle of a task. The call goes on at the next server with the same file.
func TestHTTP(t *testing.T) {
	t.Parallel()
	p := writeProgram(t, "http")
	s := p.serve("127.0.0.1:0")
	call := p.command("go", append([]string{"tool", "mcptask", "call", s.url}, publish...)...)
	progress, err := call.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	var result bytes.Buffer
	call.Stdout = &result
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	said := awaitLine(t, progress, "draw the charts")
	s.kill()
	s = p.serve(s.address())
	after, err := io.ReadAll(progress)
	if err != nil {
		t.Error(err)
	}
	if err := call.Wait(); err != nil || result.String() != published {
		t.Errorf("%v\n%s%s%s", err, said, after, result.String())
	}
	if bytes.Contains(after, []byte("gather the figures")) || !bytes.Contains(after, []byte("write the text")) {
		t.Errorf("the task did not go on at its second step:\n%s%s", said, after)
	}
	s.stop()
}

// TestBearer calls without the token, with a wrong one and with the token.
func TestBearer(t *testing.T) {
	t.Parallel()
	p := writeProgram(t, "bearer")
	if code, said := p.exitCode(p.binary, "-http", "127.0.0.1:0"); code != 1 || !strings.Contains(said, "TASKS_TOKEN is empty") {
		t.Errorf("a server without a token ends with %d: %s", code, said)
	}
	p.environment = append(p.environment, "TASKS_TOKEN=sesame", "ANOTHER_TOKEN=barley")
	s := p.serve("127.0.0.1:0")
	response, err := http.Post(s.url, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close()
	if got := response.Header.Get("WWW-Authenticate"); response.StatusCode != http.StatusUnauthorized || got != "Bearer" {
		t.Errorf("without a token: HTTP %d, WWW-Authenticate: %q", response.StatusCode, got)
	}
	for _, flags := range [][]string{nil, {"--token-env", "ANOTHER_TOKEN"}} {
		if code, said := p.exitCode("go", append([]string{"tool", "mcptask", "call", s.url, "list_regions"}, flags...)...); code != 3 {
			t.Errorf("with the flags %q, call ends with %d: %s", flags, code, said)
		}
	}
	token := []string{"--token-env", "TASKS_TOKEN"}
	if got := p.mcptask(append(append([]string{"call", s.url}, publish...), token...)...); got != published {
		t.Error(got)
	}
	// Only callers who are known may list their tasks.
	if got := p.mcptask(append([]string{"tasks", "--revision", "2025-11-25", s.url}, token...)...); !strings.Contains(got, "  completed  ") {
		t.Error(got)
	}
	s.stop()
}

// TestStdio calls the program. A task goes on in the next process with the same file.
func TestStdio(t *testing.T) {
	t.Parallel()
	p := writeProgram(t, "stdio")
	if got := p.mcptask("call", "--answer", "publish=decline", "--", p.binary, "--", "write_report", "region=north", "publish=true"); !strings.Contains(got, `"published": false`) {
		t.Errorf("a report that the person declines to publish: %s", got)
	}
	id := strings.TrimSpace(p.mcptask("call", "--detach", "--quiet", "--", p.binary, "-db", "other.db", "--", "write_report", "region=north"))
	if got := p.mcptask("watch", "--", p.binary, "-db", "other.db", "--", id); !strings.Contains(got, "All is well in the north.") {
		t.Error(got)
	}
}

// TestPostgres calls a server that keeps its tasks in PostgreSQL.
func TestPostgres(t *testing.T) {
	t.Parallel()
	p := writeProgram(t, "postgres")
	if code, said := p.exitCode(p.binary, "-http", "127.0.0.1:0"); code != 1 || !strings.Contains(said, "TASKS_DSN is empty") {
		t.Errorf("a server without a database ends with %d: %s", code, said)
	}
	p.environment = append(p.environment, "TASKS_DSN="+peer.Database(t))
	s := p.serve("127.0.0.1:0")
	if got := p.mcptask(append([]string{"call", s.url}, publish...)...); got != published {
		t.Error(got)
	}
	id := strings.TrimSpace(p.mcptask("call", "--detach", "--quiet", s.url, "write_report", "region=north"))
	s.stop()
	s = p.serve(s.address())
	if got := p.mcptask("watch", s.url, id); !strings.Contains(got, "All is well in the north.") {
		t.Error(got)
	}
	s.stop()
}

// program is a module that init has written into.
type program struct {
	t           testing.TB
	dir         string
	binary      string // the server
	environment []string
}

// writeProgram lets init write a template into a new module, and treats it as a user does: it is formatted, vetted, up
// to date and built, and its test passes.
func writeProgram(t *testing.T, template string) *program {
	t.Helper()
	p := initProgram(t, template)
	if unformatted := p.run("gofmt", "-l", "."); unformatted != "" {
		t.Errorf("not formatted: %s", unformatted)
	}
	p.run("go", "vet", "./...")
	p.run("go", "test", "./...")
	p.mcptaskgen("--check", "./...")
	p.run("go", "build", "-o", p.binary, ".")
	return p
}

// initProgram lets init write a template into a new module.
func initProgram(t testing.TB, template string) *program {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	const path = "github.com/mcptaskgen/mcptaskgen"
	p := &program{t: t, dir: t.TempDir()}
	p.environment = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off",
		"TASKS_TOKEN=", "TASKS_DSN=", "TASKS_PAGE_PASSWORD=", "OTEL_EXPORTER_OTLP_ENDPOINT=", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=")
	p.binary = filepath.Join(p.dir, "bin", "hello.exe") // the end is for Windows
	p.run("go", "mod", "init", "example.com/hello")
	p.run("go", "mod", "edit", "-replace", path+"="+root, "-require", path+"@v0.0.0", "-tool", path+"/cmd/mcptaskgen", "-tool", path+"/cmd/mcptask")
	for _, module := range []string{"sqlite", "postgres", "oteltask"} {
		p.run("go", "mod", "edit", "-replace", path+"/runtime/"+module+"="+filepath.Join(root, "runtime", module))
	}
	if code, said := p.exitCode("go", "mod", "tidy"); code != 0 {
		peer.Missing(t, "go mod tidy finds no modules: it needs a module proxy or a full module cache: "+said)
	}
	p.mcptaskgen("init", "--template", template)
	return p
}

func (p *program) command(name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(context.WithoutCancel(p.t.Context()), name, args...)
	cmd.Dir, cmd.Env = p.dir, p.environment
	return cmd
}

// run runs a command in the module and returns its standard output.
func (p *program) run(name string, args ...string) string {
	p.t.Helper()
	cmd := p.command(name, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s%s", cmd, err, out, stderr.Bytes())
	}
	return string(out)
}

// mcptaskgen runs the command in the module and returns its standard output.
func (p *program) mcptaskgen(args ...string) string {
	p.t.Helper()
	return p.run("go", append([]string{"tool", "mcptaskgen"}, args...)...)
}

// mcptask runs the command for a person in the module and returns its standard output.
func (p *program) mcptask(args ...string) string {
	p.t.Helper()
	return p.run("go", append([]string{"tool", "mcptask"}, args...)...)
}

// exitCode runs a command in the module and returns its exit code and its output.
func (p *program) exitCode(name string, args ...string) (int, string) {
	p.t.Helper()
	cmd := p.command(name, args...)
	out, err := cmd.CombinedOutput()
	if failed := (*exec.ExitError)(nil); err != nil && !errors.As(err, &failed) {
		p.t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// server is a running server.
type server struct {
	t    testing.TB
	cmd  *exec.Cmd
	log  *bufio.Reader // its output after the URL of the tools
	url  string
	page string // of the operator
}

// served matches the URL in a line that says that the server serves the operator's page, or then the tools.
var served = regexp.MustCompile(`\bserving .*?(http://\S+/(?:mcp|console/))`)

// serve starts the server with flags and returns when it serves.
func (p *program) serve(address string, flags ...string) *server {
	p.t.Helper()
	s := &server{t: p.t, cmd: p.command(p.binary, append([]string{"-http", address}, flags...)...)}
	log, err := s.cmd.StderrPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = s.cmd.Process.Kill() // it may have ended
		_ = s.cmd.Wait()         // killed
	})
	s.log = bufio.NewReader(log)
	for {
		line, err := s.log.ReadString('\n')
		if found := served.FindStringSubmatch(line); found != nil {
			if s.url = found[1]; strings.HasSuffix(s.url, "/mcp") {
				return s
			}
			s.page = s.url
			continue
		}
		if err != nil || !strings.Contains(line, " level=WARN ") {
			p.t.Fatalf("the server said %q, %v", line, err)
		}
	}
}

// address is where the server listens.
func (s *server) address() string {
	return strings.TrimSuffix(strings.TrimPrefix(s.url, "http://"), "/mcp")
}

// kill ends the server at once.
func (s *server) kill() {
	s.t.Helper()
	if err := s.cmd.Process.Kill(); err != nil {
		s.t.Fatal(err)
	}
	_ = s.cmd.Wait() // killed
}

// expected matches what a server says of its tasks, of operators without a password, and of its end.
var expected = regexp.MustCompile(`(?m)^time=\S+ level=(INFO .* audit=|WARN msg="console refused a request"|INFO msg=stopping$).*\n`)

// stop ends the server as SIGTERM does, and expects that it has nothing to complain about.
func (s *server) stop() {
	s.t.Helper()
	if runtime.GOOS == "windows" { // it has no signals
		s.kill()
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		s.t.Fatal(err)
	}
	said, err := io.ReadAll(s.log)
	said = expected.ReplaceAll(said, nil)
	if err := errors.Join(err, s.cmd.Wait()); err != nil || len(said) > 0 {
		s.t.Errorf("the server ended with %v and said:\n%s", err, said)
	}
}

// awaitLine reads lines until one has a text, and returns them.
func awaitLine(t *testing.T, from io.Reader, text string) string {
	t.Helper()
	var said strings.Builder
	for char := make([]byte, 1); ; { // no more than the line: the rest is read later
		if _, err := io.ReadFull(from, char); err != nil {
			t.Fatalf("%v, and no line has %q:\n%s", err, text, said.String())
		}
		said.Write(char)
		if char[0] == '\n' && strings.Contains(said.String(), text) {
			return said.String()
		}
	}
}
