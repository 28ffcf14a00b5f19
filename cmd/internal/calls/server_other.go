//go:build !unix && !windows

package calls

import "os/exec"

// detach does nothing here.
func detach(*exec.Cmd) {}
