package hostiletest

import (
	"log/slog"
)

// discardLogger is for what is logged by design.
func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }
