//go:build !unix

package pgtest

import (
	"errors"
	"os/exec"
)

// dropPrivileges is for Unix only.
func dropPrivileges(string) (func(*exec.Cmd), error) { return nil, errors.ErrUnsupported }
