package protocol

import (
	"errors"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// Gone says whether an error of the server's is that there is no such task, or no longer.
// Any other error says nothing of the task: the store may have failed.
func Gone(err error) bool {
	var wire *mcptask.Error
	return errors.As(err, &wire) && wire.Code == mcptask.CodeInvalidParams
}
