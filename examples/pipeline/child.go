package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// child is the server in a process of its own, which can be killed.
type child struct {
	directory string // of the database
	addr      string
	cmd       *exec.Cmd // nil once it has ended
	stdin     io.Closer
	exited    chan error
	// said is the standard error of the processes.
	said strings.Builder
}

// startChild starts the first process.
func startChild(ctx context.Context) (*child, error) {
	directory, err := os.MkdirTemp("", "pipeline")
	if err != nil {
		return nil, err
	}
	c := &child{directory: directory}
	if err := c.start(ctx); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

// start starts the process, and waits until it serves.
func (c *child) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	addr := cmp.Or(c.addr, "127.0.0.1:0")
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "-http", addr, "-store", "sqlite:"+filepath.Join(c.directory, "tasks.db"), "-attached") //nolint:gosec // itself
	detach(cmd)
	if c.stdin, err = cmd.StdinPipe(); err != nil { // its end tells the server that this process is gone
		return err
	}
	cmd.Stderr = &c.said
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	c.cmd, c.exited = cmd, make(chan error, 1)
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		c.exited <- cmd.Wait()
	}()
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving http://")
	if !ok {
		return errors.Join(fmt.Errorf("the server printed %q instead of its URL", line), err, c.kill(), errors.New(c.said.String()))
	}
	c.addr = strings.TrimSuffix(url, "/mcp")
	return nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) url() string { return "http://" + c.addr + "/mcp" }

// output returns the standard error of the processes. It ends the last one.
func (c *child) output() string {
	_ = c.stop() // there is an error already
	return c.said.String()
}

// kill ends the process as a crash does.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	c.cmd = nil
	if err := <-c.exited; err == nil {
		return errors.New("the server had ended before it was killed")
	}
	return nil
}

// close ends the process, and removes the database.
func (c *child) close() error { return errors.Join(c.stop(), os.RemoveAll(c.directory)) }

// stop ends the process in its own way.
func (c *child) stop() error {
	if c.cmd == nil {
		return nil
	}
	// Not a signal: Windows has none.
	if err := c.stdin.Close(); err != nil {
		return err
	}
	select {
	case err := <-c.exited:
		c.cmd = nil
		return err
	case <-time.After(time.Minute):
		return errors.Join(errors.New("the server did not stop within a minute"), c.kill())
	}
}
