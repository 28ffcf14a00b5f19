//go:build long && unix

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// bound is how long tests wait for programs that hang. The longest work takes three minutes.
const bound = 6 * time.Minute

// modules is where npm ci puts the clients.
const modules = "node_modules"

// TestMain runs all cases at the same time, because most of them only wait.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "1000"); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// starting has a place for each program that starts. If all of them started at once, some would give up on a server that
// they have started before it says a word.
var starting = make(chan struct{}, 4)

// startsWithin is how long a program is taken to start if it does not end.
const startsWithin = 3 * time.Second

// findPackages skips the test if the clients are not installed.
func findPackages(t *testing.T) {
	t.Helper()
	for _, h := range hosts {
		if h.module == "" {
			continue
		}
		if _, err := os.Stat(filepath.Join(modules, h.module)); err != nil {
			peer.Missing(t, "the published clients are missing: run npm ci in examples/hosts")
		}
	}
}

// program is the path of a program that an npm package brings.
func program(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(modules, ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// terminal is where one user runs a client, with a home directory of their own.
type terminal struct {
	dir string
	env []string
}

// newTerminal makes a terminal.
func newTerminal(t *testing.T) terminal {
	t.Helper()
	node, err := filepath.Abs(filepath.Join(modules, "node", "bin"))
	if err != nil {
		t.Fatal(err)
	}
	// The path has to be short: clients have sockets in their home.
	dir, err := os.MkdirTemp("", "host") //nolint:usetesting // t.TempDir is too long
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return terminal{dir, []string{
		"HOME=" + dir, "TMPDIR=" + dir, "XDG_RUNTIME_DIR=" + dir, "PATH=" + node + string(os.PathListSeparator) + os.Getenv("PATH"), "NO_COLOR=1", "CI=1",
		"MCP_INSPECTOR_SECRET_STORE=file", // there may be no keychain
	}}
}

// ports counts the ports that freePort has returned.
var ports atomic.Int32

// freePort returns a port of the loopback interface for a program that has to know it beforehand, or that comes back to
// it. It is below those that the system chooses from when a program asks for any: another one that starts meanwhile, or
// just connects, does not get it.
func freePort(t *testing.T) string {
	t.Helper()
	for range 100 {
		port := strconv.Itoa(10_000 + (os.Getpid()+int(ports.Add(1)))%20_000)
		listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return ""
}

// process is a program that runs, with all processes that it starts.
type process struct {
	cmd   *exec.Cmd
	out   transcript
	ended chan struct{}
}

// start starts a program without input. It is killed at the end of the test.
func (c terminal) start(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{cmd: c.command(t, args...), ended: make(chan struct{})}
	p.cmd.Stdout, p.cmd.Stderr = &p.out, &p.out
	starting <- struct{}{}
	p.cmd.WaitDelay = time.Second // for a process that it leaves behind and that keeps the output open
	if err := p.cmd.Start(); err != nil {
		<-starting
		t.Fatal(err)
	}
	go func() { _ = p.cmd.Wait(); close(p.ended) }()
	go func() {
		select {
		case <-p.ended:
		case <-time.After(startsWithin):
		}
		<-starting
	}()
	t.Cleanup(func() {
		killGroup(p.cmd)
		<-p.ended
	})
	return p
}

// command prepares a program, in a process group of its own.
func (c terminal) command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), args[0], args[1:]...)
	cmd.Dir, cmd.Env = c.dir, c.env
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// killGroup kills a program and its children.
func killGroup(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
}

// run runs a program to its end and returns its output.
func (c terminal) run(t *testing.T, args ...string) reply {
	t.Helper()
	return c.start(t, args...).wait(t)
}

// stillWaits is the last line of the output of a program that does not end.
const stillWaits = "The client still waits."

// wait waits for the end of the program and returns its output. It ends a program that does not end.
func (p *process) wait(t *testing.T) reply {
	t.Helper()
	select {
	case <-p.ended:
		return reply{p.out.String()}
	case <-time.After(bound):
		killGroup(p.cmd)
		<-p.ended
		return reply{p.out.String() + "\n" + stillWaits}
	}
}

// interrupt acts as Ctrl-C.
func (p *process) interrupt(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		t.Error(err)
	}
}

// transcript is text that grows.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
	grew chan struct{}
}

// Write implements io.Writer.
func (s *transcript) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	if s.grew != nil {
		close(s.grew)
		s.grew = nil
	}
	return len(p), nil
}

// String is the text so far.
func (s *transcript) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// wait waits for a pattern, in which ^ and $ are a line's, and returns the match.
func (s *transcript) wait(t *testing.T, pattern string) string {
	t.Helper()
	expression := regexp.MustCompile("(?m)" + pattern)
	timeout := time.After(bound)
	for {
		s.mu.Lock()
		match := expression.Find(s.text.Bytes())
		if s.grew == nil {
			s.grew = make(chan struct{})
		}
		grew := s.grew
		found := string(match)
		s.mu.Unlock()
		if match != nil {
			return found
		}
		select {
		case <-grew:
		case <-timeout:
			t.Fatalf("%q is missing in:\n%s", pattern, s.String())
		}
	}
}

// server is our server: a process with a URL, or the command that a client starts.
type server struct {
	// url is the server's URL. It is empty over stdio.
	url string
	// command starts the server over stdio. It is nil over HTTP.
	command []string
	// log is the log of all processes of the server: when baking begins and ends.
	log *transcript

	process *exec.Cmd
	address string
	args    []string
}

// newServer starts a server, or prepares its command. It keeps its tasks in a file.
func newServer(t *testing.T, binary string, stdio bool) *server {
	t.Helper()
	dir := t.TempDir()
	s := &server{log: readLog(t, filepath.Join(dir, "log"))}
	s.args = []string{binary, "-store", "sqlite:" + filepath.Join(dir, "tasks.db"), "-log", filepath.Join(dir, "log")}
	if stdio {
		s.command = append(s.args, "-stdio")
		return s
	}
	s.address = net.JoinHostPort("127.0.0.1", freePort(t))
	s.start(t)
	t.Cleanup(func() { s.stop(t) })
	s.url = peer.Tap(t, "http://"+s.address+"/mcp")
	return s
}

// readLog makes a named pipe, and reads from it.
func readLog(t *testing.T, path string) *transcript {
	t.Helper()
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	// With a writer of its own the pipe does not end when the last server does.
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	log := &transcript{}
	read := make(chan struct{})
	go func() { _, _ = io.Copy(log, pipe); close(read) }()
	t.Cleanup(func() {
		_ = pipe.Close()
		<-read
		if t.Failed() {
			t.Logf("the server logged:\n%s", log)
		}
	})
	return log
}

// start starts the process at its address.
func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = exec.CommandContext(context.WithoutCancel(t.Context()), s.args[0], append(s.args[1:], "-http", s.address)...)
	s.process.Stderr = os.Stderr
	stdout, err := s.process.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.process.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); line != "serving http://"+s.address+"/mcp\n" {
		t.Fatalf("the server said %q instead of its URL: %v", line, err)
	}
}

// stop stops the process.
func (s *server) stop(t *testing.T) {
	t.Helper()
	if err := s.process.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	killer := time.AfterFunc(bound, func() { _ = s.process.Process.Kill() })
	defer killer.Stop()
	if err := s.process.Wait(); err != nil {
		t.Errorf("the server did not stop cleanly: %v", err)
	}
}

// away is how long a server that restarts is away.
const away = 3 * time.Second

// servesPipe matches the first line of the log of a server on stdio.
var servesPipe = regexp.MustCompile(`msg=serving pid=(\d+)`)

// restart stops the server and starts it again. Over stdio the client starts it, so that all that run are interrupted. Over
// HTTP it is away until a poll of the client has failed if the client polls by itself, or else for a while.
func (s *server) restart(t *testing.T, client poller) {
	t.Helper()
	if s.command == nil {
		s.stop(t)
		if client == nil {
			time.Sleep(away)
		} else {
			s.failPoll(t, client)
		}
		s.start(t)
		return
	}
	for _, match := range servesPipe.FindAllStringSubmatch(s.log.String(), -1) {
		pid, err := strconv.Atoi(match[1])
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
			t.Error(err)
		}
		s.log.wait(t, "msg=stopped pid="+match[1])
	}
}

// failPoll takes the place of a server that is away: it closes each connection. It returns when the client has polled, or
// has given up before.
func (s *server) failPoll(t *testing.T, client poller) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	var polled atomic.Bool
	absent := &http.Server{ReadHeaderTimeout: bound, Handler: http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if bytes.Contains(body, []byte(`"tasks/`)) {
			polled.Store(true)
		}
		panic(http.ErrAbortHandler)
	})}
	go func() { _ = absent.Serve(listener) }()
	for timeout := time.After(bound); !polled.Load() && !client.hasEnded(t); {
		select {
		case <-timeout:
			t.Fatal("the client neither polls nor ends while the server is away")
		case <-time.After(100 * time.Millisecond):
		}
	}
	if err := absent.Close(); err != nil {
		t.Error(err)
	}
}
