package gosdk

import (
	"io"
	"os"
)

// swapStdout does the work of takeStdout if the descriptor cannot be changed. It only moves writers that read os.Stdout
// after the call.
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
