//go:build unix

package chaos

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

// fleet is the workers of a test, each a process that serves on an address of its own. The test keeps the listeners,
// so that a request that comes while a worker starts again is served late, and not refused.
type fleet struct {
	t         *testing.T
	site      *site
	config    workerConfig
	listeners []*os.File
	workers   []*worker
	started   []int // counts the processes on each address
	// binaries are the programs of the addresses. "" means the test itself.
	binaries []string
	skews    []time.Duration
}

// worker is one process.
type worker struct {
	name   string
	cmd    *exec.Cmd
	input  io.Closer
	ready  chan struct{} // is closed when the worker serves
	ended  chan struct{} // is closed when the process has ended
	log    *os.File
	mu     sync.Mutex
	doomed bool // the test ends the process
}

// newFleet starts workers and makes their clients.
func newFleet(t *testing.T, config workerConfig, replicas, people int) *fleet {
	t.Helper()
	f := &fleet{t: t, config: config, workers: make([]*worker, replicas), started: make([]int, replicas),
		binaries: make([]string, replicas), skews: make([]time.Duration, replicas)}
	var urls []string
	for range replicas {
		listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			t.Fatal(err)
		}
		file, err := listener.File()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			_ = listener.Close()
			_ = file.Close()
		})
		urls = append(urls, "http://"+listener.Addr().String())
		f.listeners = append(f.listeners, file)
	}
	f.site = newSite(t, urls, config.SessionKey == "", people)
	return f
}

// startAll starts a worker on each address and waits until they serve.
func (f *fleet) startAll() {
	f.t.Helper()
	for i := range f.workers {
		f.start(i)
	}
	f.awaitAll()
	f.t.Cleanup(func() {
		for _, w := range f.workers {
			f.end(w, syscall.SIGKILL)
		}
	})
}

// awaitAll waits until all workers serve.
func (f *fleet) awaitAll() {
	f.t.Helper()
	for _, w := range f.workers {
		select {
		case <-w.ready:
		case <-w.ended:
			f.t.Fatalf("%s does not start:\n%s", w.name, w.readLog())
		}
	}
}

// start starts a worker on an address.
func (f *fleet) start(i int) {
	f.t.Helper()
	f.started[i]++
	c := f.config
	c.Name = fmt.Sprintf("w%d.%d", i, f.started[i])
	c.Journal = filepath.Join(f.site.journals, c.Name)
	c.Skew = f.skews[i]
	text, err := json.Marshal(c)
	if err != nil {
		f.t.Fatal(err)
	}
	binary := f.binaries[i]
	if binary == "" {
		binary = os.Args[0]
	}
	w := &worker{name: c.Name, cmd: exec.Command(binary), ready: make(chan struct{}), ended: make(chan struct{})} //nolint:gosec // of the test itself
	w.cmd.Env = append(os.Environ(), asWorker+"="+string(text), fmt.Sprintf("%s=%d", skewVariable, c.Skew/time.Second))
	w.cmd.ExtraFiles = []*os.File{f.listeners[i]}
	if w.log, err = os.CreateTemp(f.t.TempDir(), "log"); err != nil {
		f.t.Fatal(err)
	}
	w.cmd.Stderr = w.log
	if w.input, err = w.cmd.StdinPipe(); err != nil {
		f.t.Fatal(err)
	}
	output, err := w.cmd.StdoutPipe()
	if err != nil {
		f.t.Fatal(err)
	}
	f.site.record.disturb(w.name, HarmStarted)
	if err := w.cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	go func() {
		defer close(w.ended)
		var seconds int64
		if _, err := fmt.Fscanln(bufio.NewReader(output), &seconds); err == nil {
			if off := time.Until(time.Unix(seconds, 0)) - c.Skew; off.Abs() > time.Minute {
				f.t.Errorf("the clock of %s is wrong by %v", w.name, off)
			}
			close(w.ready)
		}
		err := w.cmd.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		if !w.doomed {
			f.t.Errorf("%s has ended by itself: %v\n%s", w.name, err, w.readLog())
		}
		_ = w.log.Close()
	}()
	f.workers[i] = w
}

// readLog returns the worker's log.
func (w *worker) readLog() string {
	text, err := os.ReadFile(w.log.Name())
	if err != nil {
		return err.Error()
	}
	const longest = 8000
	return string(text[max(0, len(text)-longest):])
}

// end ends a process with a signal and waits for its end.
func (f *fleet) end(w *worker, signal syscall.Signal) {
	w.mu.Lock()
	w.doomed = true
	f.site.record.disturb(w.name, HarmKilled)
	_ = w.cmd.Process.Signal(signal)
	w.mu.Unlock()
	<-w.ended
	_ = w.input.Close()
}

// restart ends the worker of an address with a signal, and starts another one.
func (f *fleet) restart(i int, signal syscall.Signal) {
	f.t.Helper()
	f.end(f.workers[i], signal)
	f.start(i)
}

// pause stops the worker of an address for a time.
func (f *fleet) pause(i int, d time.Duration) {
	w := f.workers[i]
	f.site.record.disturb(w.name, HarmStopped)
	_ = w.cmd.Process.Signal(syscall.SIGSTOP)
	time.Sleep(d)
	f.site.record.disturb(w.name, HarmContinued)
	_ = w.cmd.Process.Signal(syscall.SIGCONT)
}
