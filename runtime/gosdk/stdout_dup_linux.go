package gosdk

import "syscall"

// duplicate makes to another descriptor of what from is one of.
func duplicate(from, to int) error { return syscall.Dup3(from, to, 0) }
