//go:build long

package siege_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is how long tests wait for an event. It is no promise.
const patience = time.Minute

// process is a process under attack, seen from outside.
type process struct {
	t     *testing.T
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines *bufio.Reader
	proc  string // its directory below /proc

	mu     sync.Mutex
	killed string // the reason, or "" if it was not killed
}

// begin starts the test binary as a process under attack. It skips the test if there is no /proc.
func begin(t *testing.T, variable string, configuration any) *process {
	t.Helper()
	if runtime.GOOS != "linux" {
		const what = "what a process takes is read from /proc: run this on Linux"
		if os.Getenv("MCPTASK_REQUIRE") == "all" {
			t.Fatal(what)
		}
		t.Skip(what)
	}
	text, err := json.Marshal(configuration)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{t: t, cmd: exec.CommandContext(t.Context(), os.Args[0])}
	p.cmd.Env = append(os.Environ(), variable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.lines = bufio.NewReaderSize(out, 1<<16)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.proc = filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	t.Cleanup(func() {
		_ = p.in.Close()
		err := p.cmd.Wait()
		if why := p.why(); why != "" {
			t.Error(why)
		} else if err != nil && t.Context().Err() == nil {
			t.Errorf("the process under attack has ended: %v", err)
		}
	})
	return p
}

// line reads a line that the process writes.
func (p *process) line() string {
	p.t.Helper()
	text, err := p.lines.ReadString('\n')
	if err != nil {
		if why := p.why(); why != "" {
			p.t.Fatal(why)
		}
		p.t.Fatalf("the process under attack has ended: %v", err)
	}
	return strings.TrimSpace(text)
}

// look asks the process for its state, after a collection of garbage.
func (p *process) look() (s state) {
	p.t.Helper()
	if _, err := io.WriteString(p.in, "look\n"); err != nil {
		p.t.Fatalf("the process under attack has ended: %v", err)
	}
	if err := json.Unmarshal([]byte(p.line()), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// cpu returns the processor time that the process has used, in user and kernel mode, in steps of 10 ms. It is 0 after
// the process has ended.
func (p *process) cpu() time.Duration {
	stat, err := os.ReadFile(filepath.Join(p.proc, "stat"))
	if err != nil {
		return 0
	}
	_, rest, _ := bytes.Cut(stat, []byte(") ")) // the name may contain spaces
	fields := bytes.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(string(fields[11]))
	kernel, _ := strconv.Atoi(string(fields[12]))
	const perSecond = 100 // USER_HZ, which is the same on every architecture of Go
	return time.Duration(user+kernel) * time.Second / perSecond
}

// resident returns the resident memory of the process, now and at most since quiet, in bytes.
func (p *process) resident(field string) int64 {
	status, err := os.ReadFile(filepath.Join(p.proc, "status"))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), "\n"+field+":")
	var kib int64
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// quiet resets the peak of resident memory.
func (p *process) quiet() {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.proc, "clear_refs"), []byte("5"), 0); err != nil {
		p.t.Fatal(err)
	}
}

// descriptors counts the open descriptors.
func (p *process) descriptors() int {
	entries, err := os.ReadDir(filepath.Join(p.proc, "fd"))
	if err != nil {
		return 0
	}
	return len(entries)
}

// kill ends the process, so that the test fails with the reason.
func (p *process) kill(why string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.killed == "" {
		p.killed = why
		_ = p.cmd.Process.Kill()
	}
}

// why returns the reason why the process was killed, or "" if it was not.
func (p *process) why() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// guard kills the process if it takes more than it may. So an attack that takes hours of processor time or all memory
// fails the test and does not hang it. done ends the guard.
func (p *process) guard(cpu time.Duration, peak int64) (done func()) {
	until, end := p.cpu()+cpu, make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for ticks := time.NewTicker(20 * time.Millisecond); ; {
			select {
			case <-end:
				ticks.Stop()
				return
			case <-ticks.C:
			}
			if used := p.cpu(); used > until {
				p.kill(fmt.Sprintf("it has used more than the %v of processor time that it may: it was killed", cpu))
			}
			if has := p.resident("VmRSS"); has > peak {
				p.kill(fmt.Sprintf("it has %d MiB of memory and may have %d: it was killed", has>>20, peak>>20))
			}
		}
	})
	return func() {
		close(end)
		watch.Wait()
	}
}

// settle waits until the state of the process meets a condition, and returns the last state.
func (p *process) settle(what string, holds func(state) bool) state {
	p.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		s := p.look()
		if holds(s) {
			return s
		}
		if time.Now().After(end) {
			p.t.Fatalf("%s: %+v, with %d descriptors", what, s, p.descriptors())
		}
	}
}
