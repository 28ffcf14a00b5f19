// Package nasty has names, unions and limits that Go has no like of.
package nasty

//go:generate go tool mcptaskgen --tools tools.json --client-only
