// Package localpg runs a temporary PostgreSQL from the programs that are installed on this machine.
package localpg

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"
)

// ErrMissing means that PostgreSQL is not installed. Its text names the package to install.
var ErrMissing = errors.New("PostgreSQL is not installed: install it (apt-get install postgresql, brew install postgresql)")

// Server is a temporary PostgreSQL. It listens on a socket in its own directory, and on no port.
type Server struct {
	directory string
	input     io.Closer  // its end stops the process
	exited    chan error // gets the end of the process, once
}

// stopWithin is how long the server has to stop.
const stopWithin = 20 * time.Second

// watch runs the server until its standard input ends, and then deletes the directory. The input
// ends at the latest with the process that has started it. $1 is the directory, and the rest is the
// command.
const watch = `directory=$1; shift
"$@" & server=$!
cat >/dev/null
kill -INT $server
wait $server
rm -rf "$directory"`

// Start makes an empty database and starts its server, with settings such as fsync=on. It returns ErrMissing if
// PostgreSQL is not installed. Close the server to stop it and to delete the database.
func Start(ctx context.Context, settings ...string) (*Server, error) {
	if runtime.GOOS == "windows" {
		return nil, errors.New("a temporary PostgreSQL needs Unix: name one that runs")
	}
	initdb, err := findProgram("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := findProgram("postgres")
	if err != nil {
		return nil, err
	}
	directory, err := os.MkdirTemp("", "mcptask-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{directory: directory, exited: make(chan error, 1)}
	if err := s.start(ctx, initdb, postgres, settings); err != nil {
		return nil, errors.Join(fmt.Errorf("start a temporary PostgreSQL: %w", err), s.Close())
	}
	return s, nil
}

// findProgram finds a program of PostgreSQL on the path, or in the directories of Debian's packages.
func findProgram(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err != nil || len(found) == 0 {
		return "", ErrMissing
	}
	return slices.Max(found), nil
}

// start makes the database and waits until its server takes connections.
func (s *Server) start(ctx context.Context, initdb, postgres string, settings []string) error {
	prepare, err := unprivileged(s.directory)
	if err != nil {
		return err
	}
	data := filepath.Join(s.directory, "data")
	create := exec.CommandContext(ctx, initdb, "--pgdata", data, "--username", "mcptask", "--auth", "trust",
		"--encoding", "UTF8", "--locale", "C", "--no-sync", "--no-instructions")
	create.Dir = s.directory
	prepare(create)
	if out, err := create.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", initdb, err, out)
	}
	// It may lose data if the machine crashes, since its directory is thrown away.
	args := []string{"-c", watch, "watch", s.directory, postgres, "-D", data, "-k", s.directory}
	for _, setting := range append([]string{"listen_addresses=", "fsync=off", "max_connections=200"}, settings...) {
		args = append(args, "-c", setting)
	}
	// The server outlives ctx: Close stops it after its last user.
	process := exec.CommandContext(context.WithoutCancel(ctx), "/bin/sh", args...)
	process.Dir = s.directory
	prepare(process)
	log, err := process.StderrPipe()
	if err != nil {
		return err
	}
	input, err := process.StdinPipe()
	if err != nil {
		return err
	}
	if err := process.Start(); err != nil {
		return err
	}
	s.input = input
	ready := make(chan error, 1)
	go func() {
		ready <- awaitReady(log)
		_, _ = io.Copy(io.Discard, log)
		s.exited <- process.Wait()
	}()
	select {
	case err := <-ready:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitReady reads the log until the server takes connections.
func awaitReady(log io.Reader) error {
	var said []string
	for lines := bufio.NewScanner(log); lines.Scan(); {
		if strings.Contains(lines.Text(), "ready to accept connections") {
			return nil
		}
		said = append(said, lines.Text())
	}
	return fmt.Errorf("the server ended:\n%s", strings.Join(said, "\n"))
}

// DSN returns the connection string of the database.
func (s *Server) DSN() string {
	return "host=" + s.directory + " user=mcptask dbname=postgres connect_timeout=60" // of a busy machine
}

// Close stops the server and deletes the database.
func (s *Server) Close() error {
	var fault error
	if s.input != nil {
		_ = s.input.Close() // a process that has ended has closed it
		select {
		case err := <-s.exited:
			fault = err
		case <-time.After(stopWithin):
			fault = fmt.Errorf("PostgreSQL in %s did not stop within %v", s.directory, stopWithin)
		}
		s.input = nil
	}
	return errors.Join(fault, os.RemoveAll(s.directory))
}
