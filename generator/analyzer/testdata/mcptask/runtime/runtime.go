// Package mcptask has the names of the runtime that the packages use.
package mcptask

type Task struct{}

type Tools struct{ Impl any }
