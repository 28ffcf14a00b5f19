package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/golden/ptytest"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// pipelineProgram returns the path of the example's server.
var pipelineProgram = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "mcptask")
	if err != nil {
		return "", err
	}
	removePrograms = func() { _ = os.RemoveAll(dir) }
	out, err := exec.CommandContext(context.Background(), "go", "build", "-o", dir, "../../examples/pipeline").CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, out)
	}
	return filepath.Join(dir, "pipeline"), err
})

// pipelineServer is the example's server on SQLite, in a process that tests kill.
type pipelineServer struct {
	t       *testing.T
	url     string
	address string // without a port before the first start
	store   string
	process *exec.Cmd
}

// servePipeline starts the server.
func servePipeline(t *testing.T) *pipelineServer {
	t.Helper()
	s := &pipelineServer{t: t, address: "127.0.0.1:0", store: "sqlite:" + filepath.Join(t.TempDir(), "tasks.db")}
	s.start()
	t.Cleanup(s.kill)
	return s
}

// start starts it, on the same port as before.
func (s *pipelineServer) start() {
	s.t.Helper()
	program, err := pipelineProgram()
	if err != nil {
		s.t.Fatal(err)
	}
	s.process = exec.CommandContext(context.WithoutCancel(s.t.Context()), program, "-http", s.address, "-store", s.store)
	stdout, err := s.process.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	s.process.Stderr = os.Stderr
	if err := s.process.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !ok {
		s.t.Fatalf("the server said %q instead of its URL: %v", line, err)
	}
	s.url = url
	s.address = strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
}

// kill ends it by SIGKILL.
func (s *pipelineServer) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// seat is a person at a terminal on which the command runs.
type seat struct {
	*ptytest.PTY
	t       *testing.T
	process *exec.Cmd
	stdout  bytes.Buffer // not shown to the person
}

// sit runs the command on a terminal of the given width. Its standard output goes elsewhere, as in a pipe.
func sit(t *testing.T, width int, environment []string, args ...string) *seat {
	t.Helper()
	s := &seat{PTY: ptytest.Open(t, width, func(rune) int { return 1 }), t: t}
	s.process = exec.CommandContext(t.Context(), "mcptask", args...)
	s.process.Env = append(os.Environ(), "TERM=xterm", "NO_COLOR=", "CLICOLOR_FORCE=")
	s.process.Env = append(s.process.Env, environment...)
	s.process.Stdout = &s.stdout
	s.Attach(s.process)
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// ends waits until the command ends, and checks its exit code and the beginning of its standard output.
func (s *seat) ends(code int, stdout string) {
	s.t.Helper()
	got, err := exitCode(s.process.Wait())
	if err != nil {
		s.t.Fatal(err)
	}
	s.Waits("the cursor stayed hidden", func() bool { return !s.HidesCursor() })
	if got != code || !strings.Contains(s.stdout.String(), stdout) || stdout == "" && s.stdout.Len() > 0 {
		s.t.Fatalf("exit code %d, want %d, and %q on standard output, want %q:\n%s", got, code, s.stdout.String(), stdout, s.Look())
	}
}

// exitCode returns the exit code of a process that has ended.
func exitCode(err error) (int, error) {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// inRevisions runs a test in each revision, against one server.
func inRevisions(t *testing.T, test func(t *testing.T, server *pipelineServer, revision string)) {
	t.Helper()
	t.Parallel()
	server := servePipeline(t)
	for _, revision := range []string{mcptask.Revision20251125, mcptask.Revision20260728} {
		t.Run(revision, func(t *testing.T) {
			t.Parallel()
			test(t, server, revision)
		})
	}
}

func TestTerminalBar(t *testing.T) {
	inRevisions(t, func(t *testing.T, server *pipelineServer, revision string) {
		s := sit(t, 80, nil, "call", "--revision", revision, server.url, "run_pipeline", "repository=api", "branch=main")
		s.Sees("run_pipeline ━")
		s.Sees("/4")
		s.ends(0, `"name": "package"`)
		s.Misses("━")
		if s.Wraps() > 0 || !s.IsColored() {
			t.Errorf("%d lines wrap, colored: %v", s.Wraps(), s.IsColored())
		}
	})
}

func TestTerminalQuestion(t *testing.T) {
	inRevisions(t, func(t *testing.T, server *pipelineServer, revision string) {
		s := sit(t, 80, nil, "call", "--revision", revision, server.url, "deploy_service", "service=api", "environment=production")
		s.Sees("? Ship api to production?")
		s.Sees("  y/n [n]: ")
		s.Types("perhaps\r")
		s.Sees(`✗ "perhaps" is not y or n`)
		s.Types("y\r")
		s.ends(0, `"version": "1.4.2"`)
	})
}

// resumable finds the ID of the task that the command has left running.
var resumable = regexp.MustCompile(`mcptask watch .*http\S+ (\w+)`)

// TestTerminalCtrlC leaves a task by Ctrl-C, and takes it up again after it was cancelled.
func TestTerminalCtrlC(t *testing.T) {
	inRevisions(t, func(t *testing.T, server *pipelineServer, revision string) {
		s := sit(t, 120, nil, "call", "--revision", revision, server.url, "run_pipeline", "repository=api", "branch=slow")
		s.Sees("2/4  test")
		s.Types("\x03")
		s.Sees("The task goes on. This waits for it:")
		s.ends(130, "")
		task := resumable.FindStringSubmatch(s.Look())
		if task == nil {
			t.Fatalf("no line to take up the task again:\n%s", s.Look())
		}
		s = sit(t, 120, nil, "watch", "--revision", revision, server.url, task[1])
		s.Sees("2/4  test")
		s.Types("\x03")
		s.ends(130, "")
		if err := exec.CommandContext(t.Context(), "mcptask", "cancel", "--revision", revision, server.url, task[1]).Run(); err != nil {
			t.Fatal(err)
		}
		s = sit(t, 120, nil, "watch", "--revision", revision, server.url, task[1])
		s.ends(6, "")
	})
}

// TestTerminalCtrlCConnecting ends commands whose server takes the connection and sends nothing.
func TestTerminalCtrlCConnecting(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"call", "URL", "run_pipeline"}, {"watch", "URL", "TASK"}, {"cancel", "URL", "TASK"}, {"tasks", "URL"}, {"tools", "URL"}} {
		t.Run(args[0], func(t *testing.T) {
			t.Parallel()
			listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			args[slices.Index(args, "URL")] = "http://" + listener.Addr().String()
			s := sit(t, 80, nil, args...)
			conn, err := listener.Accept()
			if err := errors.Join(err, listener.Close()); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }() // the command has ended
			s.Types("\x03")
			s.ends(130, "")
		})
	}
}

func TestTerminalNarrow(t *testing.T) {
	t.Parallel()
	server := servePipeline(t)
	s := sit(t, 20, nil, "call", server.url, "run_pipeline", "repository=api", "branch=main")
	s.Sees("run_p")
	s.Sees("/4")
	s.ends(0, `"name": "package"`)
	if s.Wraps() > 0 {
		t.Errorf("%d lines wrap:\n%s", s.Wraps(), s.Look())
	}
}

func TestTerminalNoColor(t *testing.T) {
	t.Parallel()
	server := servePipeline(t)
	for _, c := range []struct {
		environment, bar string
		colored          bool
	}{{"NO_COLOR=1", "━", false}, {"TERM=dumb", "run_pipeline: ", false}, {"CLICOLOR_FORCE=1", "━", true}} {
		t.Run(c.environment, func(t *testing.T) {
			t.Parallel()
			s := sit(t, 80, []string{c.environment}, "call", server.url, "run_pipeline", "repository=api", "branch=main")
			s.Sees(c.bar)
			s.ends(0, `"name": "package"`)
			if s.IsColored() != c.colored {
				t.Errorf("colored: %v\n%q", s.IsColored(), s.Raw())
			}
			if c.environment == "TERM=dumb" && strings.Contains(s.Raw(), "\x1b") {
				t.Errorf("sequences for a dumb terminal: %q", s.Raw())
			}
		})
	}
}

// TestNoTerminal runs the command as a script does, with no terminal at all.
func TestNoTerminal(t *testing.T) {
	inRevisions(t, func(t *testing.T, server *pipelineServer, revision string) {
		run := func(args ...string) (stdout, stderr string, code int) {
			cmd := exec.CommandContext(t.Context(), "mcptask", append([]string{"call", "--revision", revision, server.url}, args...)...)
			var out, errs bytes.Buffer
			cmd.Stdout, cmd.Stderr = &out, &errs
			code, err := exitCode(cmd.Run())
			if err != nil {
				t.Fatal(err)
			}
			return out.String(), errs.String(), code
		}
		stdout, stderr, code := run("run_pipeline", "repository=api", "branch=main")
		if code != 0 || !strings.HasPrefix(stdout, "{") || !strings.Contains(stderr, "run_pipeline: ") || strings.Contains(stderr, "\x1b") {
			t.Errorf("exit code %d, standard output %q, standard error %q", code, stdout, stderr)
		}
		stdout, stderr, code = run("deploy_service", "service=api", "environment=production")
		if code != 8 || stdout != "" || !strings.Contains(stderr, "an answer is needed: Ship api to production?") || !strings.Contains(stderr, "mcptask answer --revision "+revision+" http") {
			t.Errorf("exit code %d, standard output %q, standard error %q", code, stdout, stderr)
		}
	})
}

// TestTerminalKilled ends the command by SIGTERM while it asks. The terminal is as it was before.
func TestTerminalKilled(t *testing.T) {
	t.Parallel()
	server := servePipeline(t)
	s := sit(t, 120, nil, "call", server.url, "deploy_service", "service=api", "environment=production")
	s.Sees("  y/n [n]: ")
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.ends(143, "")
	s.Sees("mcptask watch http")
	if !strings.Contains(s.Raw(), "\x1b[?2004l") {
		t.Errorf("the terminal stayed as the question had it: %q", s.Raw())
	}
}

// TestTerminalLostServer kills the server while the command waits.
func TestTerminalLostServer(t *testing.T) {
	inRevisions(t, func(t *testing.T, _ *pipelineServer, revision string) {
		server := servePipeline(t)
		s := sit(t, 120, nil, "call", "--revision", revision, server.url, "run_pipeline", "repository=api", "branch=slow")
		s.Sees("2/4  test")
		server.kill()
		s.Sees("The server cannot be reached. Trying again.")
		s.Types("\x03")
		s.ends(130, "")
	})
}

// TestTerminalHangUp takes the terminal away from a command that goes on without it. The question stays open.
func TestTerminalHangUp(t *testing.T) {
	inRevisions(t, func(t *testing.T, server *pipelineServer, revision string) {
		s := &seat{PTY: ptytest.Open(t, 80, func(rune) int { return 1 })}
		s.process = exec.CommandContext(t.Context(), "sh", "-c", `trap "" HUP; exec "$@"`, "sh",
			"mcptask", "call", "--revision", revision, server.url, "deploy_service", "service=api", "environment=production")
		s.process.Env = append(os.Environ(), "TERM=xterm")
		s.process.Stdout = &s.stdout
		s.Attach(s.process)
		if err := s.process.Start(); err != nil {
			t.Fatal(err)
		}
		s.Sees("  y/n [n]: ")
		s.HangUp()
		if code, err := exitCode(s.process.Wait()); code != 8 || err != nil {
			t.Errorf("exit code %d: %v", code, err)
		}
	})
}

// TestTerminalTasks lists tasks in a window that has no room for their messages beside the rest, and in a wide one.
func TestTerminalTasks(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(serveHostile))
	defer server.Close()
	for width, lines := range map[int][]string{
		30: {"TASK  STATUS   AGE   TOOL\n  MESSAGE\nlate  working  ", "d  -\n  no tool"},
		80: {"TASK  STATUS   AGE   TOOL  MESSAGE\nlate  working  ", "d  -     no tool"},
	} {
		s := &seat{PTY: ptytest.Open(t, width, func(rune) int { return 1 }), t: t}
		s.process = exec.CommandContext(t.Context(), "mcptask", "tasks", "--stale", server.URL+"/mcp")
		s.process.Env = append(os.Environ(), "TERM=xterm")
		s.Attach(s.process)
		if err := s.process.Start(); err != nil {
			t.Fatal(err)
		}
		s.ends(0, "")
		for _, line := range lines {
			s.Sees(line)
		}
		if s.Wraps() > 0 {
			t.Errorf("%d columns: %d lines wrap:\n%s", width, s.Wraps(), s.Look())
		}
	}
}
