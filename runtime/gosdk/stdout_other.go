//go:build !unix || aix || solaris

package gosdk

import "io"

// takeStdout returns standard output. Until giveBack is called, os.Stdout is standard error.
func takeStdout() (out io.Writer, giveBack func()) { return swapStdout() }
