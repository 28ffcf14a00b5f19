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

// process holds the measurements of one run.
type process struct {
	wall   time.Duration
	tree   float64 // the peak memory of the largest process, in bytes; includes the go command
	stderr string
}

// runOnce runs a command and waits for it. It calls watch with the process ID while the command
// runs.
func (s subject) runOnce(ctx context.Context, command []string, watch func(pid int)) (process, error) {
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

// measureOwnPeak returns the peak memory of the tool's own process in bytes. wait4 would include
// its children, so measureOwnPeak polls the kernel twice a millisecond during a separate run.
func (s subject) measureOwnPeak(ctx context.Context, command []string) (float64, error) {
	peak := 0.0
	_, err := s.runOnce(ctx, command, func(pid int) {
		for ; ; time.Sleep(500 * time.Microsecond) { //nolint:forbidigo // a sampler in a program that is run by hand
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			value, ok := numberAfter(string(text), "VmHWM:")
			if err != nil || !ok {
				return // the process has ended
			}
			peak = value * 1024
		}
	})
	if err == nil && peak == 0 {
		err = fmt.Errorf("%s ended before its memory could be read", command[0])
	}
	return peak, err
}

// numberAfter returns the first number after a word, as in "VmHWM:     30840 kB".
func numberAfter(text, word string) (float64, bool) {
	_, text, found := strings.Cut(text, word)
	fields := strings.Fields(text)
	if !found || len(fields) == 0 {
		return 0, false
	}
	n, err := strconv.ParseFloat(fields[0], 64)
	return n, err == nil
}

// sumAfterLoading adds up the durations that mcptaskgen --verbose prints, except for finding and
// loading packages.
func sumAfterLoading(stderr string) (time.Duration, error) {
	var sum time.Duration
	steps := map[string]bool{}
	for line := range strings.Lines(stderr) {
		fields := strings.Fields(line)
		if len(fields) != 3 || fields[0] != "mcptaskgen:" {
			continue
		}
		took, err := time.ParseDuration(fields[2])
		if err != nil {
			continue // the line names a file
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
