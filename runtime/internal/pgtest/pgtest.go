// Package pgtest runs real PostgreSQL servers and poolers for tests, without privileges and without a
// service of the system. It is for tests only.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Options say how a server runs. The zero value is right for most tests.
type Options struct {
	// Durable makes the server write its log through to the disk, so that a commit survives a
	// power cut. It is for measurements.
	Durable bool
	// TCP makes the server listen on a port of the loopback interface too.
	TCP bool
}

// Server is a running PostgreSQL.
type Server struct {
	// Address is the host and port of the server, or "" if it has only its Unix socket.
	Address string

	directory string
	port      string // it names the Unix socket too
	stop      func()
	start     func(context.Context) error
}

// Programs is the environment variable that names the directory of PostgreSQL's programs, such as
// /usr/lib/postgresql/15/bin. Without it, servers have the newest version that is installed.
const Programs = "MCPTASK_POSTGRES_PROGRAMS"

// superuser owns the server. Everybody on the machine who can reach the server may be it.
const superuser = "mcptask"

// shared is the server of Database.
var shared struct {
	sync.Mutex
	server *Server
	err    error
}

// Database makes an empty database for a test and returns its DSN. The databases are on one server,
// which starts with the first of them and stops when the test binary ends, however it ends. The test
// is skipped if PostgreSQL is missing.
func Database(t testing.TB) string {
	t.Helper()
	findPrograms(t)
	shared.Lock()
	defer shared.Unlock()
	if shared.server == nil && shared.err == nil {
		shared.server, shared.err = start(Options{})
	}
	if shared.err != nil {
		t.Fatal(shared.err)
	}
	return shared.server.Database(t)
}

// Start starts a server for one test, which stops at the end of the test or of the test binary. The
// test is skipped if PostgreSQL is missing.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	findPrograms(t)
	s, err := start(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.stop() }) // that of the last start
	return s
}

// databases counts the databases, for their names.
var databases atomic.Int64

// Database makes an empty database, which is dropped at the end of the test, and returns its DSN.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("test_%d", databases.Add(1))
	s.exec(t, "CREATE DATABASE "+name)
	t.Cleanup(func() { s.exec(t, "DROP DATABASE "+name+" WITH (FORCE)") })
	return s.dsn(name)
}

// dsn returns the DSN of a database through the Unix socket.
func (s *Server) dsn(database string) string {
	return fmt.Sprintf("host=%s port=%s user=%s dbname=%s sslmode=disable", s.directory, s.port, superuser, database)
}

// exec runs a statement outside of the databases of tests. It works in a cleanup too, when the
// context of the test has ended.
func (s *Server) exec(t testing.TB, sql string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	if _, err := query(ctx, s.dsn("postgres"), sql); err != nil {
		t.Fatal(err)
	}
}

// query runs a statement in the database of a DSN and returns its rows as text. It does so by psql, so that the kit
// needs no driver.
func query(ctx context.Context, dsn, sql string) (string, error) {
	psql, err := findProgram("psql")
	if err != nil {
		return "", err
	}
	out, err := exec.CommandContext(ctx, psql, "--no-psqlrc", "--quiet", "--tuples-only", "--no-align", "--dbname", dsn, "--command", sql).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// patience is how long a server may take to start, or a statement to run.
const patience = time.Minute

// findPrograms skips the test if PostgreSQL is missing.
func findPrograms(t testing.TB) {
	t.Helper()
	for _, name := range []string{"initdb", "postgres", "psql"} {
		if _, err := findProgram(name); err != nil {
			skip(t, err)
		}
	}
}

// skip skips a test that misses a program, or fails it if it must not be skipped.
func skip(t testing.TB, missing error) {
	t.Helper()
	if os.Getenv("MCPTASK_REQUIRE") == "all" {
		t.Fatal(missing)
	}
	t.Skip(missing)
}

// findProgram returns the path of a program of PostgreSQL: that in the directory that the variable
// Programs names, or else the newest of Debian's, or that on PATH. The directory need not have psql, which works with
// servers of any version.
func findProgram(name string) (string, error) {
	if runtime.GOOS == "windows" {
		return "", errors.New("tests start PostgreSQL only on Unix: run this test there")
	}
	if directory := os.Getenv(Programs); directory != "" {
		path, err := exec.LookPath(filepath.Join(directory, name))
		if err == nil {
			return path, nil
		}
		if name != "psql" {
			return "", fmt.Errorf("%s must name the directory of PostgreSQL's programs: %w", Programs, err)
		}
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if err == nil && len(found) > 0 {
		return slices.MaxFunc(found, func(a, b string) int { return majorVersion(a) - majorVersion(b) }), nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s of PostgreSQL is missing: install PostgreSQL (Debian: apt-get install postgresql)", name)
	}
	return path, nil
}

// majorVersion returns the version in the path of a program of Debian's PostgreSQL.
func majorVersion(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path)))) // 0 is the oldest
	return n
}

// watch runs a server until its standard input ends, which is when the test binary ends, and then
// removes the directory. $1 is the directory, $2 the signal that ends the server, and the rest is the command.
const watch = `directory=$1 signal=$2; shift 2
"$@" & server=$!
cat >/dev/null
kill -$signal $server
wait $server
rm -rf "$directory"`

// start starts a server.
func start(options Options) (_ *Server, err error) {
	// The path of a Unix socket is short, and another user must be able to reach it: os.TempDir may
	// be neither.
	directory, err := os.MkdirTemp("/tmp", "pgtest")
	if err != nil {
		return nil, err
	}
	s := &Server{directory: directory, port: "5432", stop: func() { os.RemoveAll(directory) }} //nolint:errcheck // nothing uses it any more
	defer func() {
		if err != nil {
			s.stop()
		}
	}()
	unprivileged, err := dropPrivileges(directory)
	if err != nil {
		return nil, err
	}
	initdb, err := findProgram("initdb")
	if err != nil {
		return nil, err
	}
	postgres, err := findProgram("postgres")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	data := filepath.Join(directory, "data")
	cmd := exec.CommandContext(ctx, initdb, "-D", data, "-U", superuser, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	cmd.Dir = directory
	unprivileged(cmd)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	settings := []string{"unix_socket_directories=" + directory, "max_connections=400"}
	if !options.Durable {
		settings = append(settings, "fsync=off", "full_page_writes=off")
	}
	listen := ""
	if options.TCP {
		listen = "127.0.0.1"
		if s.port, err = findFreePort(ctx); err != nil {
			return nil, err
		}
		s.Address = net.JoinHostPort(listen, s.port)
	}
	settings = append(settings, "listen_addresses="+listen, "port="+s.port)
	s.start = func(ctx context.Context) error { return s.run(ctx, unprivileged, postgres, data, settings) }
	return s, s.start(ctx)
}

// Restart ends the server by a signal, such as SIGINT for a fast and SIGQUIT for an immediate end, and starts it again
// with the same databases.
func (s *Server) Restart(t testing.TB, signal os.Signal) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	file := filepath.Join(s.directory, "data", "postmaster.pid")
	if err := signalServer(file, signal); err != nil {
		t.Fatal(err)
	}
	for _, err := os.Stat(file); err == nil; _, err = os.Stat(file) {
		select {
		case <-ctx.Done():
			t.Fatalf("the server does not end: %v", ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
	if err := s.start(ctx); err != nil {
		t.Fatal(err)
	}
}

// signalServer sends a signal to the server that has written a file.
func signalServer(file string, signal os.Signal) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	number, _, _ := strings.Cut(string(text), "\n")
	id, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	server, err := os.FindProcess(id)
	if err != nil {
		return err
	}
	return server.Signal(signal)
}

// run starts the server's process, and waits until it answers.
func (s *Server) run(ctx context.Context, unprivileged func(*exec.Cmd), postgres, data string, settings []string) error {
	args := []string{"-D", data}
	for _, setting := range settings {
		args = append(args, "-c", setting)
	}
	stop, err := startWatched(s.directory, "QUIT", unprivileged, postgres, args...)
	if err != nil {
		return err
	}
	before := s.stop
	s.stop = func() { stop(); before() }
	return awaitAnswer(ctx, s.directory, s.dsn("postgres"))
}

// startWatched starts a server's program, whose log is the file log in its directory. It returns a function that
// stops it and removes the directory.
func startWatched(directory, signal string, unprivileged func(*exec.Cmd), program string, args ...string) (stop func(), err error) {
	cmd := exec.CommandContext(context.Background(), "/bin/sh", append([]string{"-c", watch, "watch", directory, signal, program}, args...)...)
	cmd.Dir = directory
	unprivileged(cmd)
	log, err := os.Create(filepath.Join(directory, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close() //nolint:errcheck // the process has its own
	cmd.Stdout, cmd.Stderr = log, log
	alive, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() {
		alive.Close() // it tells the process to end
		cmd.Wait()    //nolint:errcheck // the server ends with an error, as it was told to be quick
	}), nil
}

// awaitAnswer waits until the server in a directory answers.
func awaitAnswer(ctx context.Context, directory, dsn string) error {
	for {
		_, err := query(ctx, dsn, "SELECT 1")
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			text, _ := os.ReadFile(filepath.Join(directory, "log"))
			return fmt.Errorf("the server does not answer: %w\n%s", err, strings.TrimSpace(string(text)))
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// findFreePort returns a port of the loopback interface that is free.
func findFreePort(ctx context.Context) (string, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close() //nolint:errcheck // nothing came in
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}
