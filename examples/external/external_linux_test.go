package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/mcptaskgen/mcptaskgen/examples/external/reports"
	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// asParent makes the test binary start a child that does not watch its input, print the child's ID, and wait.
const asParent = "EXTERNAL_TEST_PARENT"

func TestMain(m *testing.M) {
	if os.Getenv(asParent) == "" {
		peer.Main(m, main)
		return
	}
	_ = runChild(context.Background(), func(line string) { fmt.Fprintln(os.Stdout, line) }, "sh", "-c", "echo $$; exec sleep 600")
}

// TestWorkIsDoneOnce ends the server while a child and a job work for two tasks, and starts it again. The first server's
// child never ends by itself, and the job ends only later.
func TestWorkIsDoneOnce(t *testing.T) {
	for name, test := range map[string]struct {
		end      os.Signal
		revision string
	}{
		"killed":      {syscall.SIGKILL, "2025-11-25"},
		"handed over": {syscall.SIGTERM, "2026-07-28"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := startTestBatch(t)
			dir := t.TempDir()
			first := startServer(t, dir, b.url, time.Hour)
			client := first.connect(t, test.revision)
			export, err := client.StartExportReport(t.Context(), reports.ExportInput{Name: "sales", Rows: 20})
			if err != nil {
				t.Fatal(err)
			}
			analysis, err := client.StartAnalyzeReport(t.Context(), reports.AnalyzeInput{Parts: 3})
			if err != nil {
				t.Fatal(err)
			}
			b.parts <- struct{}{}
			awaitProgress(t, export)
			awaitProgress(t, analysis)
			child := findChild(t, first)

			first.stop(t, test.end)
			await(t, "the end of the first child", func() bool { return isDead(child) })
			second := startServer(t, dir, b.url, time.Millisecond)
			defer second.stop(t, syscall.SIGTERM)
			client = second.connect(t, test.revision)
			exported := resume(t, export, client.ResumeExportReport)
			if exported.Run != 2 {
				t.Errorf("the export was run %d", exported.Run)
			}
			if text := readFile(t, exported.File); strings.Count(text, "\n") != 20 || !strings.HasSuffix(text, "20,400\n") {
				t.Errorf("the report is %q", text)
			}
			if left, err := filepath.Glob(filepath.Join(dir, "*.csv*")); len(left) != 1 || err != nil {
				t.Errorf("files are left: %v, %v", left, err)
			}
			close(b.parts)
			analyzed := resume(t, analysis, client.ResumeAnalyzeReport)
			if want := (reports.Analysis{Job: analyzed.Job, Parts: 3, Run: 2}); analyzed != want {
				t.Errorf("the analysis is %+v", analyzed)
			}
			if got, want := b.log(), fmt.Sprintf("begin %s\nend %[1]s done\n", analyzed.Job); got != want {
				t.Errorf("the batch system has done\n%s, want\n%s", got, want)
			}
		})
	}
}

// TestCancel cancels both tasks. The child and the job end too.
func TestCancel(t *testing.T) {
	t.Parallel()
	b := startTestBatch(t)
	dir := t.TempDir()
	server := startServer(t, dir, b.url, time.Hour)
	defer server.stop(t, syscall.SIGTERM)
	client := server.connect(t, "2026-07-28")
	export, err := client.StartExportReport(t.Context(), reports.ExportInput{Name: "sales", Rows: 20})
	if err != nil {
		t.Fatal(err)
	}
	analysis, err := client.StartAnalyzeReport(t.Context(), reports.AnalyzeInput{Parts: 2})
	if err != nil {
		t.Fatal(err)
	}
	b.parts <- struct{}{}
	awaitProgress(t, export)
	awaitProgress(t, analysis)
	child := findChild(t, server)
	for _, cancel := range []func(context.Context) error{export.Cancel, analysis.Cancel} {
		if err := cancel(t.Context()); err != nil {
			t.Error(err)
		}
	}
	await(t, "the end of the child", func() bool { return isDead(child) })
	await(t, "the removal of its file", func() bool {
		left, err := filepath.Glob(filepath.Join(dir, "*.csv*"))
		return len(left) == 0 && err == nil
	})
	await(t, "the end of the job", func() bool { return strings.HasSuffix(b.log(), " cancelled\n") })
}

// TestErrors reports what a child and the batch system complain about.
func TestErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := startServer(t, dir, startTestBatch(t).url+"/elsewhere", time.Millisecond)
	defer server.stop(t, syscall.SIGTERM)
	client := server.connect(t, "2026-07-28")
	if err := os.Mkdir(filepath.Join(dir, "sales.csv"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := client.ExportReport(t.Context(), reports.ExportInput{Name: "sales", Rows: 1}); err == nil || !strings.Contains(err.Error(), "sales was not exported: ") {
		t.Errorf("export: %v", err)
	}
	if _, err := client.AnalyzeReport(t.Context(), reports.AnalyzeInput{Parts: 1}); err == nil || !strings.Contains(err.Error(), "answers 404 Not Found: ") {
		t.Errorf("analysis: %v", err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	err = runChild(t.Context(), func(string) {}, "env", asProgram, program, "-export", dir, "-rows", "1")
	if err == nil || !strings.Contains(err.Error(), "exit status 1: external: open "+dir) {
		t.Errorf("child: %v", err)
	}
}

// asProgram is what package peer sets.
const asProgram = "MCPTASK_TEST_AS_PROGRAM=1"

// TestChildDiesWithParent kills a process whose child does not watch its input.
func TestChildDiesWithParent(t *testing.T) {
	t.Parallel()
	parent := exec.CommandContext(t.Context(), os.Args[0])
	parent.Env = append(os.Environ(), asParent+"=1")
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	var child int
	_, err = fmt.Fscan(out, &child)
	if killed := parent.Process.Kill(); err != nil || killed != nil {
		t.Fatal(err, killed)
	}
	_ = parent.Wait() // it was killed
	await(t, "the end of the child", func() bool { return isDead(child) })
}

// TestChildLeavesNothing cancels a child that ignores the signal and has started a process that would hold its output.
func TestChildLeavesNothing(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var started []int
	report := func(line string) {
		var pid int
		if _, err := fmt.Sscan(line, &pid); err != nil {
			t.Error(err)
		}
		if started = append(started, pid); len(started) == 2 {
			cancel()
		}
	}
	if err := runChild(ctx, report, "sh", "-c", "trap '' TERM; sleep 600 & echo $!; echo $$; wait"); err == nil {
		t.Error("no error")
	}
	for _, pid := range started {
		await(t, "the end of the child", func() bool { return isDead(pid) })
	}
}

// testBatch is a batch system whose jobs do a part for each element of parts.
type testBatch struct {
	url   string
	parts chan struct{}
	mu    sync.Mutex
	text  strings.Builder
}

func startTestBatch(t *testing.T) *testBatch {
	t.Helper()
	tb := &testBatch{parts: make(chan struct{})}
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	b := newBatch(ctx, tb, func(ctx context.Context) error {
		select {
		case <-tb.parts:
			return nil
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	ready, ended := make(chan string, 1), make(chan error, 1)
	go func() { ended <- serveBatch(ctx, "127.0.0.1:0", b, func(url string) { ready <- url }) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	select {
	case tb.url = <-ready:
	case err := <-ended:
		t.Fatal(err)
	}
	return tb
}

// Write implements io.Writer.
func (b *testBatch) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *testBatch) log() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

// testServer is the server in a process of its own.
type testServer struct {
	cmd *exec.Cmd
	url string
}

func startServer(t *testing.T, dir, batch string, pace time.Duration) testServer {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-http", "127.0.0.1:0", "-dir", dir, "-batch-url", batch, "-pace", pace.String())
	cmd.Env = append(os.Environ(), asProgram)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // if the test has failed
	line, err := bufio.NewReader(out).ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	if !ok {
		t.Fatalf("the server said %q instead of its URL: %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return testServer{cmd: cmd, url: peer.Tap(t, url)}
}

// stop sends a signal and waits for the end of the server.
func (s testServer) stop(t *testing.T, signal os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); (err != nil) != (signal == syscall.SIGKILL) {
		t.Errorf("the server's end after %v: %v", signal, err)
	}
}

func (s testServer) connect(t *testing.T, revision string) *reports.ReportsClient {
	t.Helper()
	conn, err := gosdk.Connect(t.Context(), s.url, gosdk.ClientOptions{Revision: revision})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() }) // its server may have gone
	return reports.NewReportsClient(conn)
}

// resume continues a call at another server, and returns its result.
func resume[Out any](t *testing.T, call *mcptask.Call[Out], resume func(mcptask.Token, ...mcptask.CallOption) (*mcptask.Call[Out], error)) Out {
	t.Helper()
	token, _ := call.Token()
	resumed, err := resume(token)
	if err != nil {
		t.Fatal(err)
	}
	out, err := resumed.Wait(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// awaitProgress waits until a part of the work is done.
func awaitProgress[Out any](t *testing.T, call *mcptask.Call[Out]) {
	t.Helper()
	for snapshot, err := range call.Updates(t.Context()) {
		switch {
		case err != nil:
			t.Fatal(err)
		case snapshot.Done():
			t.Fatalf("the task has ended: %+v", snapshot)
		case snapshot.Progress.Done > 0:
			return
		}
	}
}

// findChild returns the ID of the server's only child.
func findChild(t *testing.T, s testServer) int {
	t.Helper()
	var children []int
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", s.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		for pid := range strings.FieldsSeq(readFile(t, thread)) {
			var child int
			if _, err := fmt.Sscan(pid, &child); err != nil {
				t.Fatal(err)
			}
			children = append(children, child)
		}
	}
	if len(children) != 1 {
		t.Fatalf("the server has the children %v", children)
	}
	return children[0]
}

// isDead reports whether a process has ended, even if nobody has waited for it.
func isDead(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, _ := strings.Cut(string(stat), ") ")
	return err != nil || strings.HasPrefix(state, "Z") || strings.HasPrefix(state, "X")
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// await polls until a state is reached.
func await(t *testing.T, what string, isReached func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // so that a failed test ends its servers
	defer cancel()
	for !isReached() {
		if err := pause(ctx, 5*time.Millisecond); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}
