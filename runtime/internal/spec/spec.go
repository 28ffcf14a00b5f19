// Package spec has the names of the protocol that the packages of the runtime share: methods, error codes, and keys of
// capabilities and of _meta. Users of the runtime do not need them.
package spec

import "strings"

// The requests that a task may send, the call of a tool, and the request that asks a server of 2026-07-28 for its versions
// and capabilities.
const (
	Elicit   = "elicitation/create"
	Sample   = "sampling/createMessage"
	Roots    = "roots/list"
	CallTool = "tools/call"
	Discover = "server/discover"
)

// HasSingleBlocks reports whether a message to or from a model has one block of content in a revision, and no list of
// blocks. Lists came with 2025-11-25, after the proposal SEP-1686. "" stands for a revision that is not known.
func HasSingleBlocks(revision string) bool {
	return revision == "sep-1686" || revision != "" && revision < "2025-11-25"
}

// MetaInput is the _meta key that names a question's generated type. It tells a
// generated client which answerer fits.
const MetaInput = "io.github.mcptaskgen/input"

// MetaServerInfo is the _meta key of the server's name and version in results of 2026-07-28.
const MetaServerInfo = "io.modelcontextprotocol/serverInfo"

// MetaIdempotencyKey is the _meta key of a call's idempotency key.
const MetaIdempotencyKey = "io.github.mcptaskgen/idempotency-key"

// MetaError is the _meta key of a tool error's code and data, which programs read.
const MetaError = "io.github.mcptaskgen/error"

// FormMark stands between the key of a question and the number of its form, if the question was asked anew in another form.
// Package mcptask keeps it out of the names of steps.
const FormMark = "~form"

// IsAskedAnew reports whether a key is that of a question that was asked anew.
func IsAskedAnew(key string) bool { return strings.Contains(key, FormMark) }

// MetaUnattended is the _meta key by which a call says that nobody answers its questions by the
// fallback tools. The value is true. A question that the client has not declared then returns
// ErrCannotAsk to the handler. The generated client sends it with every call.
const MetaUnattended = "io.github.mcptaskgen/unattended"
