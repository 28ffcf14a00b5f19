// Package temporalserver gives the example and the tests a Temporal server: one that runs already, or one in
// memory that it starts from the module testserver.
package temporalserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// Variable is the environment variable with the host:port of a server that runs already.
const Variable = "MCPTASK_TEMPORAL"

// ErrMissing means that there is no server. Its text tells how to get one.
var ErrMissing = errors.New("the Temporal test server is not built: run make temporal-server, or set " + Variable)

const (
	// startWithin is how long the server has to print its address. It takes a few seconds on an idle machine.
	startWithin = time.Minute
	// stopWithin is how long the server has to end after its input.
	stopWithin = 20 * time.Second
)

// Server is a Temporal server with the namespace "default". Its methods are for one goroutine at a time.
type Server struct {
	address string

	input  io.Closer  // its end stops the process; nil if nothing was started
	exited chan error // gets the end of the process, once
	kill   func() error
}

// Start returns the server that [Variable] names. Without the variable it starts the test server and waits
// until it serves. It returns [ErrMissing] if the test server is not built. The test server ends when Close is
// called, at the latest with this process. It has ctx only while it starts.
func Start(ctx context.Context) (*Server, error) {
	if address := os.Getenv(Variable); address != "" {
		return &Server{address: address}, nil
	}
	program, err := findProgram()
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(program); err != nil {
		return nil, ErrMissing
	}
	s, err := startProgram(ctx, program)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", program, err)
	}
	return s, nil
}

// ForTest returns a server that runs until the test ends. It skips the test if there is none, or fails it if all
// tests must run.
func ForTest(t testing.TB) *Server {
	t.Helper()
	s, err := Start(t.Context())
	if errors.Is(err, ErrMissing) {
		peer.Missing(t, err.Error())
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// Build builds the test server, which takes minutes the first time. It announces that on out. It does nothing if the
// server is built, or if [Variable] names one.
func Build(ctx context.Context, out io.Writer) error {
	if os.Getenv(Variable) != "" {
		return nil
	}
	program, err := findProgram()
	if err != nil {
		return err
	}
	if _, err := os.Stat(program); err == nil {
		return nil
	}
	fmt.Fprintln(out, "building the Temporal test server: this takes minutes the first time")
	build := exec.CommandContext(ctx, "go", "build", "-o", "bin/", ".")
	build.Dir = filepath.Dir(filepath.Dir(program))
	if said, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the Temporal test server in %s: %w\n%s", build.Dir, err, said)
	}
	return nil
}

// findProgram returns the path of the test server's program, in bin of its module. It looks for that module in the
// working directory and above. The program exists once it is built.
func findProgram() (string, error) {
	directory, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := directory; ; at = filepath.Dir(at) {
		module := filepath.Join(at, "testserver")
		if _, err := os.Stat(filepath.Join(module, "go.mod")); err == nil {
			program := filepath.Join(module, "bin", "testserver")
			if runtime.GOOS == "windows" {
				program += ".exe"
			}
			return program, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no testserver/go.mod in %s or above: run this in examples/temporal, or set %s", directory, Variable)
		}
	}
}

// startProgram starts the test server and reads its address.
func startProgram(ctx context.Context, program string) (*Server, error) {
	// The server outlives ctx: its input stops it.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program)
	var said bytes.Buffer // read after the end of the process
	cmd.Stderr = &said
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s := &Server{input: input, exited: make(chan error, 1), kill: cmd.Process.Kill}
	first := make(chan string, 1)
	go func() {
		lines := bufio.NewReader(output)
		line, _ := lines.ReadString('\n') // without an address the process has ended
		first <- line
		_, _ = io.Copy(io.Discard, lines)
		s.exited <- cmd.Wait()
	}()
	timer := time.NewTimer(startWithin)
	defer timer.Stop()
	select {
	case line := <-first:
		if address := strings.TrimSpace(line); strings.Contains(address, ":") {
			s.address = address
			return s, nil
		}
		err = fmt.Errorf("it printed %q instead of its address: build it again with make temporal-server", strings.TrimSpace(line))
	case <-timer.C:
		err = fmt.Errorf("it printed no address within %v", startWithin)
	case <-ctx.Done():
		err = ctx.Err()
	}
	_ = s.kill() // it may have ended
	end := <-s.exited
	return nil, fmt.Errorf("%w (%v)\n%s", err, end, &said)
}

// Address returns the host:port of the server's frontend.
func (s *Server) Address() string { return s.address }

// Close stops the server if Start has started it, and waits for its end. A second call does nothing.
func (s *Server) Close() error {
	if s.input == nil {
		return nil
	}
	_ = s.input.Close() // a process that has ended has closed it
	s.input = nil
	timer := time.NewTimer(stopWithin)
	defer timer.Stop()
	select {
	case err := <-s.exited:
		return err
	case <-timer.C:
		_ = s.kill() // it may have ended
		return fmt.Errorf("the Temporal test server did not end within %v of its input: %w", stopWithin, <-s.exited)
	}
}
