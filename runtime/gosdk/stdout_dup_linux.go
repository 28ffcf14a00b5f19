package gosdk

import "syscall"

// duplicate makes the descriptor to a copy of the descriptor from.
func duplicate(from, to int) error { return syscall.Dup3(from, to, 0) }
