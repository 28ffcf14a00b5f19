//go:build unix

package localpg

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// unprivileged returns a function that prepares a command to run in the directory without the rights of root, because
// PostgreSQL refuses to run as root. The command gets a process group of its own, so that an interrupt at the terminal
// leaves it to Close.
func unprivileged(directory string) (func(*exec.Cmd), error) {
	attributes := syscall.SysProcAttr{Setpgid: true}
	if os.Geteuid() == 0 {
		nobody, err := user.Lookup("nobody")
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL refuses to run as root, and there is no user nobody: %w", err)
		}
		uid, err := strconv.ParseUint(nobody.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(nobody.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(directory, int(uid), int(gid)); err != nil {
			return nil, err
		}
	}
	return func(cmd *exec.Cmd) { cmd.SysProcAttr = &attributes }, nil
}
