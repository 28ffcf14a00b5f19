package calls

import (
	"os"
	"os/exec"
	"syscall"
)

// detach gives a command a process group of its own, so that Ctrl-C reaches only this program, which then ends the
// command in its own way.
func detach(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}

// endings are signals that end a command besides Ctrl-C, with its exit codes.
var endings = map[os.Signal]int{syscall.SIGTERM: 143}
