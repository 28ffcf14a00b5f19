//go:build !unix || aix || solaris

package gosdk

import "io"

// takeStdout returns standard output, and lets what is written to os.Stdout go to standard error until giveBack is called.
func takeStdout() (out io.Writer, giveBack func()) { return swapStdout() }
