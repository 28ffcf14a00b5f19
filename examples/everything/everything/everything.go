// Package everything calls the tools of @modelcontextprotocol/server-everything, which is written
// in TypeScript. tools.json is the list of tools that the running server returned.
package everything

//go:generate go tool mcptaskgen --tools tools.json --client-only
