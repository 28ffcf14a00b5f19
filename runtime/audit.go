package mcptask

import (
	"context"
	"log/slog"
	"time"
)

// Audit writes what a caller did with a task to the audit trail (C-101 to C-104).
func (s *Server) Audit(level slog.Level, message, kind string, caller Caller, r Record, attrs ...any) {
	s.logger.Log(context.Background(), level, message, append([]any{"audit", kind, "task", LogID(r.Principal, r.ID), "tool", r.Tool,
		"principal", caller.Principal, "revision", caller.Revision}, attrs...)...)
}

// Notice logs what a caller can cause at any rate, such as a request that is refused: each
// message once a second at most, with how many were left out in the attribute omitted. Long
// values are cut. The message has to be a constant.
func (s *Server) Notice(level slog.Level, message string, attrs ...any) {
	s.notices.Log(func(message string, attrs ...any) { s.logger.Log(context.Background(), level, message, attrs...) }, message, attrs...)
}

// LogID is a task's ID as a log may have it: without a principal it is the key,
// and only its beginning is told.
func LogID(principal, id string) string {
	if principal == "" {
		return id[:min(len(id), 8)] + "..."
	}
	return id
}

// auditEnd tells how a task ended: with a result, a tool_error, an error, or as
// cancelled, expired or abandoned.
func (s *Server) auditEnd(r Record, how string) {
	switch {
	case r.isExpired(time.Now()):
		how = "expired"
	case r.Done() && r.Outcome.IsError:
		how = "tool_error"
	}
	s.Audit(slog.LevelInfo, "task ended", "ended", r.asCaller(), r, "outcome", how, "seconds", time.Since(r.CreatedAt).Seconds())
}

// caller is whose task it is.
func (r *Record) asCaller() Caller { return Caller{Principal: r.Principal, Revision: r.Revision} }
