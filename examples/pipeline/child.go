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

// child is the server in a process of its own, which can be killed.
type child struct {
	file   string // the database
	addr   string
	cmd    *exec.Cmd // nil once it has ended
	stdin  io.Closer
	exited chan error
	// said is what the processes wrote to standard error.
	said strings.Builder
}

// start starts the process, and waits until it serves.
func (c *child) start(ctx context.Context) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	addr := c.addr
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, "-http", addr, "-store", "sqlite:"+c.file, "-attached") //nolint:gosec // itself
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
		return errors.Join(fmt.Errorf("the server printed %q instead of its URL: %w", line, err), c.kill(), errors.New(c.said.String()))
	}
	c.addr = strings.TrimSuffix(url, "/mcp")
	return nil
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) url() string { return "http://" + c.addr + "/mcp" }

// output returns what the processes wrote to standard error. It ends the last one.
func (c *child) output() string {
	_ = c.stop() // there is an error already
	return c.said.String()
}

// kill ends the process as a crash does.
func (c *child) kill() error {
	if err := c.cmd.Process.Kill(); err != nil {
		return err
	}
	<-c.exited
	c.cmd = nil
	return nil
}

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
