//go:build unix && !aix && !solaris

package gosdk

import (
	"io"
	"os"
	"syscall"
)

// takeStdout returns standard output. Until giveBack is called, everything else that this process and its children write
// to standard output goes to standard error. takeStdout changes the descriptor, because loggers may have been made before.
func takeStdout() (out io.Writer, giveBack func()) {
	if os.Stdout.Fd() != uintptr(syscall.Stdout) {
		return swapStdout()
	}
	syscall.ForkLock.RLock() // no child may inherit the copy
	copied, err := syscall.Dup(syscall.Stdout)
	if err == nil {
		syscall.CloseOnExec(copied)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return swapStdout()
	}
	taken := os.NewFile(uintptr(copied), os.Stdout.Name())
	if err := duplicate(syscall.Stderr, syscall.Stdout); err != nil { // there is no standard error
		_ = taken.Close() // nothing was written
		return swapStdout()
	}
	return taken, func() {
		_ = duplicate(copied, syscall.Stdout) // both are open
		_ = taken.Close()                     // all is written
	}
}
