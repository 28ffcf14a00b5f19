// Package nasty has names, unions and limits without a counterpart in Go.
package nasty

//go:generate go tool mcptaskgen --tools tools.json --client-only
