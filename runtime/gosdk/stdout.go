package gosdk

import (
	"io"
	"os"
)

// swapStdout is takeStdout for a standard output that is no descriptor of its own. It changes what new writers get.
func swapStdout() (out io.Writer, giveBack func()) {
	taken := os.Stdout
	os.Stdout = os.Stderr
	return taken, func() { os.Stdout = taken }
}

// returningWriter is a writer that gives standard output back when it is closed.
type returningWriter struct {
	io.WriteCloser
	giveBack func()
}

// Close implements io.Closer.
func (w returningWriter) Close() error {
	defer w.giveBack()
	return w.WriteCloser.Close()
}
