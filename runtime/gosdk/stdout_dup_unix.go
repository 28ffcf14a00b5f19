//go:build unix && !aix && !solaris && !linux

package gosdk

import "syscall"

// duplicate makes to another descriptor of what from is one of.
func duplicate(from, to int) error { return syscall.Dup2(from, to) }
