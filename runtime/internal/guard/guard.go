// Package guard keeps a panic within the goroutine in which it happens.
//
// Every goroutine that user data reaches is a [Go] or a [Func], or begins with a deferred [Recover] or [Then], or with
// a recover of its own. So a panic ends one piece of work, and never the process. TestGoroutinesRecover of package
// mcptask checks it.
package guard

import (
	"log/slog"
	"runtime/debug"
)

// Recover stops a panic and logs it with its stack. Defer it directly, as the first statement of a
// goroutine. what names the work for the operator, such as "expiry". A nil logger means
// slog.Default().
func Recover(logger *slog.Logger, what string) {
	if p := recover(); p != nil {
		Log(logger, what, p)
	}
}

// Go runs f in a goroutine of its own, with a deferred [Recover].
func Go(logger *slog.Logger, what string, f func()) { go Func(logger, what, f)() }

// Func returns f with a deferred [Recover], for a function that runs it in another goroutine, such as time.AfterFunc.
func Func(logger *slog.Logger, what string, f func()) func() {
	return func() {
		defer Recover(logger, what)
		f()
	}
}

// Then is Recover for work that a caller waits for. After the log record, which has the attrs, it
// calls failed, which sets the error or tells the caller. Defer it directly.
func Then(logger *slog.Logger, what string, failed func(), attrs ...any) {
	if p := recover(); p != nil {
		Log(logger, what, p, attrs...)
		failed()
	}
}

// Log logs a panic, as [Recover] does, for work that has a recover of its own. Call it in the
// deferred function that has recovered, so that the stack is the panic's.
func Log(logger *slog.Logger, what string, p any, attrs ...any) {
	if logger == nil {
		logger = slog.Default() //nolint:forbidigo // a client without a logger: a panic is never silent
	}
	logger.Error(what+" panicked", append(attrs, "panic", p, "stack", string(debug.Stack()))...)
}

// Apart calls f in a goroutine of its own, waits for it, and reports whether f returned. It is for code that may end
// its goroutine, as testing.T.FailNow does, while a caller waits for an answer. Apart logs a panic, and the end of the
// goroutine.
func Apart(logger *slog.Logger, what string, f func()) (returned bool) {
	done := make(chan struct{})
	go func() {
		defer func() {
			defer close(done)
			if p := recover(); p != nil {
				Log(logger, what, p)
			} else if !returned {
				LogExit(logger, what)
			}
		}()
		f()
		returned = true
	}()
	<-done
	return returned
}

// LogExit logs that code has ended its goroutine.
func LogExit(logger *slog.Logger, what string, attrs ...any) {
	if logger == nil {
		logger = slog.Default() //nolint:forbidigo // as in Log
	}
	logger.Error(what+" ended its goroutine (runtime.Goexit)", append(attrs, "stack", string(debug.Stack()))...)
}
