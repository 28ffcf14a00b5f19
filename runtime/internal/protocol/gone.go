package protocol

import (
	"errors"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// IsGone reports whether an error of the server's says that there is no such task, or no longer.
// Any other error says nothing of the task. The store may have failed.
func IsGone(err error) bool {
	var wire *mcptask.Error
	return errors.As(err, &wire) && wire.Code == mcptask.CodeInvalidParams
}
