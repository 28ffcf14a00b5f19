// Package issues calls an issue tracker: a list as a TypeScript server sends it, whole response and all.
package issues

//go:generate go tool mcptaskgen --tools tools.json
