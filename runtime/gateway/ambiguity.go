package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
	"github.com/mcptaskgen/mcptaskgen/runtime/internal/dialect"
)

// Readers of JSON differ in what they make of a member that stands twice, or
// of "Name" where "name" is meant. The gateway must not see another request
// than the SDK behind it, so it refuses what could be read in two ways.
var (
	messageMembers = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramsMembers  = []string{"_meta", "name", "arguments", "task", "taskId", "cursor", "inputResponses", "protocolVersion", "capabilities"}
	metaMembers    = []string{mcptask.MetaProtocolVersion, mcptask.MetaClientCapabilities, mcptask.MetaIdempotencyKey, "progressToken"}
)

// ambiguous returns what is wrong with the members of a message, or nil.
func ambiguous(body []byte) *mcptask.Error {
	all, fault := members(body, messageMembers)
	if fault != "" {
		return mcptask.Errorf(mcptask.CodeInvalidRequest, "the message is ambiguous: %s", fault)
	}
	var method string
	if json.Unmarshal(all["method"], &method) != nil || !interpreted(method) {
		return nil
	}
	params, fault := members(all["params"], paramsMembers)
	if fault == "" {
		_, fault = members(params["_meta"], metaMembers)
	}
	if fault != "" {
		return mcptask.Errorf(mcptask.CodeInvalidParams, "the params are ambiguous: %s", fault)
	}
	return nil
}

// interpreted says whether the gateway acts on the params of a method.
func interpreted(method string) bool {
	switch method {
	case "initialize", "server/discover", "tools/list", "tools/call", dialect.Listen:
		return true
	}
	return strings.HasPrefix(method, "tasks/")
}

// members reads the members of valid JSON, none where it is no object. fault
// names a member that stands twice, or that differs from a known one only in
// case. It is on the way of every poll: json.Decoder, token by token, takes
// six times as long as the whole rest of reading a message.
func members(data []byte, known []string) (all map[string]json.RawMessage, fault string) {
	i := space(data, 0)
	if i == len(data) || data[i] != '{' {
		return nil, ""
	}
	all = make(map[string]json.RawMessage)
	for i = space(data, i+1); i < len(data) && data[i] == '"'; {
		end := text(data, i)
		name := spelled(data[i:end], known)
		i = space(data, space(data, end)+1) // over the colon
		end = value(data, i)
		if _, twice := all[name]; twice {
			return all, "a member stands twice: " + quoted(name)
		}
		k := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		if k >= 0 && known[k] != name {
			return all, quoted(name) + " is written " + quoted(known[k])
		}
		all[name] = slices.Clip(bytes.TrimRight(data[i:end], " \t\r\n"))
		i = space(data, min(end+1, len(data))) // over the comma
	}
	return all, ""
}

// spelled reads a name, without an allocation where it is a known one.
func spelled(quoted []byte, known []string) string {
	raw := quoted[1 : len(quoted)-1]
	for _, k := range known {
		if string(raw) == k {
			return k
		}
	}
	name := string(raw)
	if strings.ContainsRune(name, '\\') {
		_ = json.Unmarshal(quoted, &name) // it is valid
	}
	return name
}

// space is where the white space from i on ends.
func space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// text is where the string that begins at i ends.
func text(data []byte, i int) int {
	for i++; i < len(data) && data[i] != '"'; i++ {
		if data[i] == '\\' {
			i++
		}
	}
	return min(i+1, len(data))
}

// value is where the value that begins at i ends: at the comma or the brace
// after it.
func value(data []byte, i int) int {
	for depth := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = text(data, i) - 1
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			depth--
		case ',':
			if depth == 0 {
				return i
			}
		}
	}
	return i
}

// brief is a name from outside for a message, cut to what a person can read.
func brief(name string) string {
	const longest = 64
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	return name
}

func quoted(name string) string { return `"` + brief(name) + `"` }
