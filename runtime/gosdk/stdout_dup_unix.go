//go:build unix && !aix && !solaris && !linux

package gosdk

import "syscall"

// duplicate makes the descriptor to a copy of the descriptor from.
func duplicate(from, to int) error { return syscall.Dup2(from, to) }
