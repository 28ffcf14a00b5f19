//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// bindChild gives a command a process group of its own, which also has the processes that the command starts. The end of
// the command's context ends the group. Call release when the command has ended.
func bindChild(cmd *exec.Cmd) (release func()) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return signalGroup(cmd, syscall.SIGTERM) }
	return dieWithParent(cmd.SysProcAttr)
}

// endGroup kills what is left of the group of a command that has ended.
func endGroup(cmd *exec.Cmd) { _ = signalGroup(cmd, syscall.SIGKILL) } // nothing, as a rule

func signalGroup(cmd *exec.Cmd, signal syscall.Signal) error {
	err := syscall.Kill(-cmd.Process.Pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
