// Package everything calls the tools of @modelcontextprotocol/server-everything, which is written in
// TypeScript. Its list of tools, tools.json, is what the running server answered.
package everything

//go:generate go tool mcptaskgen --tools tools.json
