//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// process holds the measurements of one run.
type process struct {
	wall   time.Duration
	peak   float64 // the peak memory in bytes of the process or of the go command that it runs, whichever is larger
	stderr string
}

// runOnce runs a command and waits for it.
func (s subject) runOnce(ctx context.Context, command []string) (process, error) {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Dir = s.dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	begin := time.Now()
	err := cmd.Run()
	p := process{wall: time.Since(begin), stderr: stderr.String()}
	if err != nil {
		return p, fmt.Errorf("%s: %w\n%s", command[0], err, p.stderr)
	}
	p.peak = float64(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss) * 1024
	return p, nil
}

// sumAfterLoading adds up the durations that mcptaskgen --verbose prints, except for loading
// packages.
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
		if fields[1] != "load" {
			sum += took
		}
	}
	for _, name := range []string{"load", "generate", "write"} {
		if !steps[name] {
			return 0, fmt.Errorf("mcptaskgen --verbose does not say how long %s took:\n%s", name, stderr)
		}
	}
	return sum, nil
}
