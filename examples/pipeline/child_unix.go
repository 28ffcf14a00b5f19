//go:build unix

package main

import (
	"os/exec"
	"syscall"
)

// detach gives a command a process group of its own, so that Ctrl-C at the terminal does not reach it.
func detach(command *exec.Cmd) { command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
