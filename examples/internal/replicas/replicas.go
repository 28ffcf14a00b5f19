// Package replicas runs several processes of one server behind a proxy that hands each request to
// the next of them.
package replicas

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Set is a set of replicas and their proxy.
type Set struct {
	// URL is the URL of the proxy for clients.
	URL string
	// Proxy is the proxy.
	Proxy *Proxy

	server    *http.Server
	processes []*process
}

// process is one replica.
type process struct {
	cmd    *exec.Cmd
	url    string
	exited chan error // gets the end of the process, once
	killed bool
}

// stopWithin is how long a replica has to stop.
const stopWithin = time.Minute

// Start starts count replicas and their proxy. The function command prepares the command of a
// replica, which has a number from 1. A replica prints "serving URL" as its first line.
func Start(ctx context.Context, count int, command func(ctx context.Context, number int) *exec.Cmd) (*Set, error) {
	s := &Set{}
	var urls []string
	for number := 1; number <= count; number++ {
		p, err := startProcess(command(context.WithoutCancel(ctx), number))
		if err != nil {
			return nil, errors.Join(fmt.Errorf("replica %d: %w", number, err), s.Close())
		}
		s.processes = append(s.processes, p)
		urls = append(urls, p.url)
	}
	var err error
	if s.Proxy, err = NewProxy(urls...); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.URL = "http://" + listener.Addr().String() + s.Proxy.servers[0].Path
	s.server = &http.Server{Handler: s.Proxy, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }() // until Close
	return s, nil
}

// startProcess starts a replica and reads its URL.
func startProcess(cmd *exec.Cmd) (*process, error) {
	p := &process{cmd: cmd, exited: make(chan error, 1)}
	if _, err := cmd.StdinPipe(); err != nil { // its end tells the replica that this process is gone
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if cmd.Stderr == nil {
		cmd.Stderr = os.Stderr
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	lines := bufio.NewReader(stdout)
	line, err := lines.ReadString('\n')
	url, ok := strings.CutPrefix(strings.TrimSpace(line), "serving ")
	go func() {
		_, _ = io.Copy(io.Discard, lines)
		p.exited <- cmd.Wait()
	}()
	if !ok {
		return nil, errors.Join(fmt.Errorf("it printed %q instead of its URL: %w", line, err), cmd.Process.Kill(), <-p.exited)
	}
	p.url = url
	return p, nil
}

// Kill ends a replica as a crash does: with SIGKILL.
func (s *Set) Kill(number int) error {
	p := s.processes[number-1]
	if p.killed {
		return nil
	}
	p.killed = true
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	if err := <-p.exited; err == nil {
		return fmt.Errorf("replica %d had ended before it was killed", number)
	}
	return nil
}

// Close stops the proxy and all replicas. A replica that does not stop cleanly is an error.
func (s *Set) Close() error {
	var faults []error
	for _, p := range s.processes {
		if !p.killed {
			faults = append(faults, p.cmd.Process.Signal(os.Interrupt))
		}
	}
	for i, p := range s.processes {
		if p.killed {
			continue
		}
		p.killed = true
		select {
		case err := <-p.exited:
			if err != nil {
				faults = append(faults, fmt.Errorf("replica %d: %w", i+1, err))
			}
		case <-time.After(stopWithin):
			faults = append(faults, fmt.Errorf("replica %d did not stop within %v", i+1, stopWithin), p.cmd.Process.Kill())
		}
	}
	if s.server != nil {
		faults = append(faults, s.server.Close())
	}
	return errors.Join(faults...)
}
