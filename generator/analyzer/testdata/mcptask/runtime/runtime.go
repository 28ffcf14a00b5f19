// Package mcptask has the names of the runtime that the packages use.
package mcptask

type Task struct{}

const (
	CodeMethodNotFound = -32601
	CodeInvalidParams  = -32602
)

type Error struct {
	Code    int
	Message string
}

func Errorf(code int, format string, args ...any) *Error { return nil }

type Tools struct{ Impl any }
