//go:build darwin || dragonfly || freebsd || netbsd || openbsd

package terminal

import (
	"os"

	"golang.org/x/sys/unix"
)

// flushInput discards input that was typed and not read.
func flushInput(in *os.File) {
	_ = unix.IoctlSetPointerInt(int(in.Fd()), unix.TIOCFLUSH, unix.TCIFLUSH) // then it counts as typed
}

// enableSequences makes a terminal take escape sequences.
func enableSequences(*os.File) (restore func(), ok bool) { return func() {}, true }
