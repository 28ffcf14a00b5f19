//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach gives a command a process group of its own, so that Ctrl-C reaches only this program, which then ends the
// command in its own way.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
