//go:build linux || freebsd

package main

import (
	"runtime"
	"syscall"
)

// dieWithParent makes the kernel kill a command when this process ends, however it ends. The kernel in fact watches the
// thread that starts the command, so dieWithParent keeps that thread until release.
func dieWithParent(attributes *syscall.SysProcAttr) (release func()) {
	runtime.LockOSThread()
	attributes.Pdeathsig = syscall.SIGKILL
	return runtime.UnlockOSThread
}
