// Package guard keeps a panic within the goroutine that it happens in.
//
// Every goroutine that user data reaches defers [Recover], [Then] or a recover of its own: a panic
// ends one piece of work, never the process. TestGoroutinesRecover of package mcptask holds that.
package guard

import (
	"log/slog"
	"runtime/debug"
)

// Recover stops a panic and logs it with its stack. Defer it directly, first
// thing in a goroutine. What names the work for the operator, such as "expiry".
// A nil logger is slog.Default().
func Recover(logger *slog.Logger, what string) {
	if p := recover(); p != nil {
		Log(logger, what, p)
	}
}

// Then is Recover for work that somebody waits for: after the log record it calls
// failed, which has to tell them. Defer it directly.
func Then(logger *slog.Logger, what string, failed func()) {
	if p := recover(); p != nil {
		Log(logger, what, p)
		failed()
	}
}

// Log records a panic for the operator, as [Recover] does, for work that has a recover of
// its own. Call it in the deferred function that has recovered, so that the stack is the panic's.
func Log(logger *slog.Logger, what string, p any, attrs ...any) {
	if logger == nil {
		logger = slog.Default() //nolint:forbidigo // a client without a logger: a panic is never silent
	}
	logger.Error(what+" panicked", append(attrs, "panic", p, "stack", string(debug.Stack()))...)
}
