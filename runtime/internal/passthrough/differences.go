package passthrough

import (
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// The SDKs of the corpus.
const (
	Official = "official SDK"
	MCPGo    = "mcp-go"
)

// difference is a row of the table in docs/reference/other-tools.md: requests that the gateway answers in another way than
// an SDK.
type difference struct {
	// title describes the requests, change the difference, and reason why it is there. option turns it off.
	title, change, reason, option string
	// requests are the names in the corpus. They end in "*" if they are the beginnings of names.
	requests []string
	// sdks and revisions are those that it concerns. nil means all.
	sdks, revisions []string
	// onlyText says that the status is the same, and only the text of the refusal is another.
	onlyText bool
	// adds are texts that the gateway adds to the answer, and changes are pairs of an old and a new text. Without them the
	// answers are the same.
	adds    []string
	changes []string
}

const (
	declaresSession = `,"tasks":{"cancel":{},"requests":{"tools":{"call":{}}}}`
	declaresRequest = `,"extensions":{"io.modelcontextprotocol/tasks":{}}`
)

// differences are all that the corpus finds.
var differences = []difference{
	{
		title: "`initialize`", change: "`capabilities.tasks` is added if 2025-11-25 is negotiated",
		reason: "MUST: a server declares its tasks", option: "`Options.Revisions` without 2025-11-25",
		requests: []string{"initialize", "initialize with the header", "initialize of an unknown revision", "initialize with an old session"},
		adds:     []string{declaresSession},
	},
	{
		title: "`server/discover`", change: "`extensions` names the tasks extension",
		reason: "tasks: clients learn from it that the server has tasks", option: "`Options.Revisions` without 2026-07-28",
		requests: []string{"server/discover"}, revisions: []string{mcptask.Revision20260728}, adds: []string{declaresRequest},
	},
	{
		title: "`tools/list` in 2026-07-28", change: "`cacheScope` is `private`",
		reason: "tasks: the list depends on the capabilities of the caller", option: "`fallback=none` in the declaration of the service",
		requests: []string{"tools/list", "tools/list with*", "the server's own Origin", "Accept of anything", "Content-Type with a charset", "a text id", "two values of Mcp-Corpus", "an unknown path"},
		sdks:     []string{Official}, revisions: []string{mcptask.Revision20260728}, changes: []string{`cacheScope:"public"`, `cacheScope:"private"`},
	},
	{
		title: "a tool that is no task, called with `task`, in 2025-11-25", change: "error -32601 instead of a result",
		reason: "SHOULD: such a tool refuses a task", requests: []string{"a call that declares a task"}, revisions: []string{mcptask.Revision20251125},
	},
	{
		title: "an `initialize` that names an old session", change: "a new session instead of 404",
		reason: "some clients send the ID of their former session when they reconnect", requests: []string{"initialize with an old session"}, sdks: []string{Official},
	},
	{
		title: "a foreign `Origin` or `Sec-Fetch-Site`", change: "403 instead of an answer",
		reason: "MUST: a server checks the origin", option: "`taskserver.Options.AllowedOrigins`",
		requests: []string{"a foreign Origin", "a foreign Sec-Fetch-Site"},
	},
	{
		title: "a foreign `Host` at a loopback address", change: "403 as before, with a text that names the option",
		reason: "the text is what an operator needs", option: "`taskserver.Options.AllowedHosts`, or the option of the SDK",
		requests: []string{"a foreign Host"}, onlyText: true,
	},
	{
		title: "a body of more than `MaxBody`", change: "413 instead of an answer",
		reason: "tasks: the memory of the server is bounded", option: "`taskserver.Options.MaxBody`",
		requests: []string{"a call of more than 4 MiB"}, sdks: []string{MCPGo},
	},
	{
		title: "a body of more than 4 MiB", change: "413 as before, with a JSON-RPC error",
		reason: "a client reads one form of error", option: "`StreamableHTTPOptions.MaxRequestBodyBytes`",
		requests: []string{"a call of more than 4 MiB"}, sdks: []string{Official}, onlyText: true,
	},
	{
		title: "a body that is not JSON, or is an array", change: "400 as before, with another text of the error",
		reason:   "tasks: the gateway has to read a message before the SDK",
		requests: []string{"an empty body", "malformed JSON", "a JSON text", "an empty batch", "a batch of one", "a batch"}, onlyText: true,
	},
	{
		title: "JSON that is no message of JSON-RPC 2.0", change: "400; mcp-go answers with 200 and an error",
		reason: "MUST: messages follow JSON-RPC 2.0", requests: []string{"JSON that is no message", "another JSON-RPC version"},
	},
	{
		title: "a request whose `id` is null or no integer", change: "400 instead of an answer",
		reason: "MUST: an id is a string or an integer", requests: []string{"a null id", "a fractional id"},
	},
	{
		title: "a body that is not UTF-8", change: "400 instead of an answer",
		reason: "MUST: messages are UTF-8", requests: []string{"not UTF-8"},
	},
	{
		title: "a member that stands twice, or in capitals", change: "400 instead of an answer",
		reason: "tasks: the gateway and the SDK have to read the same message", requests: []string{"a member twice", "a member in capitals"},
	},
	{
		title: "a header of the protocol that stands twice, with different values", change: "400 instead of an answer",
		reason: "tasks: a proxy and the server have to read the same request", requests: []string{"two values of Mcp-Session-Id"},
	},
	{
		title: "a `DELETE` whose `MCP-Protocol-Version` is not that of the session", change: "400, and the session stays",
		reason: "tasks: a request by mistake must not end the waits and streams of a session", requests: []string{"DELETE in another revision"},
	},
	{
		title: "a byte order mark", change: "an answer instead of 400",
		reason: "RFC 8259 allows a reader to ignore it", requests: []string{"a byte order mark"},
	},
	{
		title: "a `Content-Encoding`", change: "415; the SDK reads the body as if it were plain",
		reason: "the header says that the body is not plain JSON", requests: []string{"a Content-Encoding"},
	},
}

// explains reports whether the difference is that of two answers to a request.
func (d *difference) explains(sdk, revision, name string, want, got answer) bool {
	isNamed := func(pattern string) bool {
		begin, isPrefix := strings.CutSuffix(pattern, "*")
		return pattern == name || isPrefix && strings.HasPrefix(name, begin)
	}
	if !slices.ContainsFunc(d.requests, isNamed) || d.sdks != nil && !slices.Contains(d.sdks, sdk) || d.revisions != nil && !slices.Contains(d.revisions, revision) {
		return false
	}
	if d.adds == nil && d.changes == nil {
		return !d.onlyText || want.status == got.status
	}
	for _, text := range d.adds {
		got.body = strings.Replace(got.body, text, "", 1)
	}
	want.body = strings.NewReplacer(d.changes...).Replace(want.body)
	return want.String() == got.String()
}

// table returns the table of the documents.
func table() string {
	var table strings.Builder
	table.WriteString("| request | SDK | what changes | why | option |\n|---|---|---|---|---|\n")
	for _, d := range differences {
		sdk := "both"
		if d.sdks != nil {
			sdk = d.sdks[0]
		}
		option := d.option
		if option == "" {
			option = "none"
		}
		table.WriteString("| " + strings.Join([]string{d.title, sdk, d.change, d.reason, option}, " | ") + " |\n")
	}
	return table.String()
}
