//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is what one run took.
type process struct {
	wall   time.Duration
	tree   float64 // bytes: the peak of the largest process, of the tool or of the go command that it runs
	stderr string
}

// once runs a command in the folder and waits for it. While it runs, watch is called with its ID.
func (s subject) once(ctx context.Context, command []string, watch func(pid int)) (process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = s.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return process{}, err
	}
	watch(cmd.Process.Pid)
	err := cmd.Wait()
	p := process{wall: time.Since(begin), stderr: stderr.String()}
	if err != nil {
		return p, fmt.Errorf("%s: %w\n%s", command[0], err, p.stderr)
	}
	p.tree = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024
	return p, nil
}

// ownPeak is the peak of the tool's own process in bytes, in a run of its own: what wait4 reports has
// that of its children in it, so the kernel is asked for it while the tool runs, twice a millisecond.
func (s subject) ownPeak(ctx context.Context, command []string) (float64, error) {
	peak := 0.0
	_, err := s.once(ctx, command, func(pid int) {
		for ; ; time.Sleep(500 * time.Microsecond) { //nolint:forbidigo // a sampler in a program that is run by hand
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			value, ok := field(string(text), "VmHWM:")
			if err != nil || !ok {
				return // it has ended
			}
			peak = value * 1024
		}
	})
	if err == nil && peak == 0 {
		err = fmt.Errorf("%s was too fast to be seen", command[0])
	}
	return peak, err
}

// field reads the first number behind a word, as in "VmHWM:     30840 kB".
func field(text, word string) (float64, bool) {
	_, text, found := strings.Cut(text, word)
	fields := strings.Fields(text)
	if !found || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(fields[0], 64)
	return n, err == nil
}

// afterLoading adds up what mcptaskgen --verbose says of its steps behind the first two, which find
// packages and load them.
func afterLoading(stderr string) (time.Duration, error) {
	var sum time.Duration
	steps := map[string]bool{}
	for line := range strings.Lines(stderr) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "mcptaskgen:" {
			continue
		}
		took, err := time.ParseDuration(fields[2])
		if err != nil {
			continue // what it wrote
		}
		steps[fields[1]] = true
		if fields[1] != "find" && fields[1] != "load" {
			sum += took
		}
	}
	for _, name := range []string{"load", "read", "render", "write"} {
		if !steps[name] {
			return 0, fmt.Errorf("mcptaskgen --verbose does not say how long %s took:\n%s", name, stderr)
		}
	}
	return sum, nil
}
