//go:build unix

package pgtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// dropPrivileges returns a function that lets a command run without privileges, since PostgreSQL
// refuses root, and makes the user of such commands the owner of the directory.
func dropPrivileges(directory string) (func(*exec.Cmd), error) {
	// A process group of its own keeps signals of the terminal away, so that the server is stopped in
	// the one way that cleans up.
	attributes := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		account, err := user.Lookup("nobody")
		if err != nil {
			return nil, fmt.Errorf("PostgreSQL does not run as root: %w", err)
		}
		uid, err := strconv.ParseUint(account.Uid, 10, 32)
		if err != nil {
			return nil, err
		}
		gid, err := strconv.ParseUint(account.Gid, 10, 32)
		if err != nil {
			return nil, err
		}
		if err := os.Chown(directory, int(uid), int(gid)); err != nil {
			return nil, err
		}
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	}
	return func(cmd *exec.Cmd) { cmd.SysProcAttr = attributes }, nil
}
