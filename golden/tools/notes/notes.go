// Package notes calls a memory of notes: a list as a Python server sends it, in two pages.
package notes

//go:generate go tool mcptaskgen --tools notes.json
