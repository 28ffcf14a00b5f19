package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ready begins the first line that a role prints. The URL of a server follows.
const ready = "ready"

// process is a role in its own process.
type process struct {
	name, url string // url is "" for a worker
	cmd       *exec.Cmd
	exited    chan error // gets the end of the process, once
	ended     bool
}

// startProcess starts this program in a role, and waits until it is ready. It ends at the latest with this process.
func startProcess(ctx context.Context, name string, args ...string) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), self, append(args, "-name", name, "-attached")...)
	cmd.Stderr = os.Stderr
	if _, err := cmd.StdinPipe(); err != nil { // its end tells the process that this one is gone
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{name: name, cmd: cmd, exited: make(chan error, 1)}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		p.exited <- cmd.Wait()
	}()
	url, ok := strings.CutPrefix(strings.TrimSpace(line), ready)
	if !ok {
		_ = cmd.Process.Kill() // it may have ended
		return nil, fmt.Errorf("%s did not start: it printed %q: %w", name, line, errors.Join(err, <-p.exited))
	}
	p.url = strings.TrimSpace(url)
	return p, nil
}

// kill ends the process as a crash does.
func (p *process) kill() error {
	p.ended = true
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := <-p.exited; err == nil {
		return fmt.Errorf("%s had ended before it was killed", p.name)
	}
	return nil
}

// stop asks the process to end, and waits for it.
func (p *process) stop() error {
	if p.ended {
		return nil
	}
	p.ended = true
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(2 * stopWithin)
	defer timer.Stop()
	select {
	case err := <-p.exited:
		if err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s did not stop within %v", p.name, 2*stopWithin), p.cmd.Process.Kill())
	}
}
