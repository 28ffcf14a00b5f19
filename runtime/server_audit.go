package mcptask

import (
	"context"
	"log/slog"
)

// Audit writes to the audit trail what a caller did with a task (C-101 to C-104).
func (s *Server) Audit(ctx context.Context, level slog.Level, message, kind string, caller Caller, r Record, attrs ...any) {
	if !s.logger.Enabled(ctx, level) {
		return // the default logger takes only warnings, and the attributes take time
	}
	s.logger.Log(ctx, level, message, append([]any{"audit", kind, "task", LogID(r.Principal, r.ID), "tool", r.Tool,
		"principal", caller.Principal, "revision", caller.Revision}, attrs...)...)
}

// Notice logs an event that callers can cause at any rate, such as a refused
// request. It logs each message at most once a second, with the number of those
// left out in the attribute omitted, and cuts long values. The message must be a
// constant.
func (s *Server) Notice(level slog.Level, message string, attrs ...any) {
	s.notices.Log(func(message string, attrs ...any) { s.logger.Log(context.Background(), level, message, attrs...) }, message, attrs...)
}

// LogID returns a task's ID for the log. Without a principal the ID is the key to
// the task, so LogID returns only its beginning.
func LogID(principal, id string) string {
	if principal == "" {
		return id[:min(len(id), 8)] + "..."
	}
	return id
}

// auditEnd writes, and tells hooks, how a task ended: with a result, a tool_error or an error, or as
// cancelled, expired or abandoned.
func (s *Server) auditEnd(ctx context.Context, r Record, how string) {
	if r.isExpired(s.SureNow()) {
		how = "expired"
	}
	s.Audit(ctx, slog.LevelInfo, "task ended", "ended", r.asCaller(), r, "outcome", how, "seconds", s.Now().Sub(r.CreatedAt).Seconds())
	s.tellHooks(ctx, TaskEvent{Kind: EventEnded, Task: r, Outcome: how})
}

// AuditSession writes to the audit trail that a session of the caller, which another process has
// opened, is open in this process too. It writes that at most once a second for each principal.
func (s *Server) AuditSession(caller Caller) {
	if s.auditRates.Allow([2]string{"principal " + caller.Principal, "session"}) {
		s.logger.Info("session rebuilt", "audit", "session", "principal", caller.Principal, "revision", caller.Revision)
	}
}
