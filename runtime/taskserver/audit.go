package taskserver

import (
	"context"
	"log/slog"

	"github.com/mcptaskgen/mcptaskgen/runtime/taskstore"
)

// Audit writes an action of a caller on a task to the audit trail.
func (b *Backend) Audit(ctx context.Context, level slog.Level, message, kind string, caller Caller, r taskstore.Record, attrs ...any) {
	if !b.logger.Enabled(ctx, level) {
		return // the default logger takes only warnings, and the attributes take time
	}
	// The trail shows an operator the use of tasks, and requests that look like an attack (C-101 to C-104).
	b.logger.Log(ctx, level, message, append([]any{"audit", kind, "task", taskstore.LogID(r.Principal, r.ID), "tool", r.Tool,
		"principal", caller.Principal, "revision", caller.Revision}, attrs...)...)
}

// Notice logs an event that callers can cause at any rate, such as a refused
// request. It logs each message at most once a second, with the number of those
// left out in the attribute omitted, and cuts long values. The message must be a
// constant.
func (b *Backend) Notice(level slog.Level, message string, attrs ...any) {
	b.notices.Log(func(message string, attrs ...any) { b.logger.Log(context.Background(), level, message, attrs...) }, message, attrs...)
}

// auditEnd writes, and tells hooks, how a task ended: with a result, a tool_error or an error, or as
// cancelled, expired or abandoned.
func (b *Backend) auditEnd(ctx context.Context, r taskstore.Record, how string) {
	if isExpired(&r, b.SureNow()) {
		how = "expired"
	}
	b.Audit(ctx, slog.LevelInfo, "task ended", "ended", callerOf(&r), r, "outcome", how, "seconds", b.Now().Sub(r.CreatedAt).Seconds())
	b.tellHooks(ctx, TaskEvent{Kind: taskstore.EventEnded, Task: r, Outcome: how})
}

// AuditRefusal writes to the audit trail that the caller may not call a tool, and why. It writes that at most once a second
// for each principal.
func (b *Backend) AuditRefusal(ctx context.Context, caller Caller, tool, reason string) {
	if b.auditRates.Allow([2]string{"principal " + caller.Principal, "refused"}) {
		b.logger.InfoContext(ctx, "call refused", "audit", "refused", "tool", tool, "reason", reason, "principal", caller.Principal)
	}
}

// AuditSession writes to the audit trail that a session of the caller, which another process has
// opened, is open in this process too. It writes that at most once a second for each principal.
func (b *Backend) AuditSession(caller Caller) {
	if b.auditRates.Allow([2]string{"principal " + caller.Principal, "session"}) {
		b.logger.Info("session rebuilt", "audit", "session", "principal", caller.Principal, "revision", caller.Revision)
	}
}
