//go:build !unix && !windows

package calls

import (
	"os"
	"os/exec"
)

// detach does nothing here.
func detach(*exec.Cmd) {}

// endings are signals that end a command besides Ctrl-C, with its exit codes.
var endings map[os.Signal]int
