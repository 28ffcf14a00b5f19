//go:build !linux && !darwin && !dragonfly && !freebsd && !netbsd && !openbsd && !windows

package terminal

import "os"

// flushInput would discard input that was typed and not read. On this system it does nothing.
func flushInput(*os.File) {}

// enableSequences makes a terminal take escape sequences.
func enableSequences(*os.File) (restore func(), ok bool) { return func() {}, true }
