//go:build unix && !linux && !freebsd

package main

import "syscall"

// dieWithParent does nothing: here only the end of its standard input tells a child that its parent has gone.
func dieWithParent(*syscall.SysProcAttr) (release func()) { return func() {} }
