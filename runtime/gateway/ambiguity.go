package gateway

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
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
	case "initialize", "server/discover", "tools/list", "tools/call":
		return true
	}
	return strings.HasPrefix(method, "tasks/")
}

// members reads the members of valid JSON, none where it is no object. fault
// names a member that stands twice, or that differs from a known one only in
// case.
func members(data []byte, known []string) (all map[string]json.RawMessage, fault string) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil, ""
	}
	all = map[string]json.RawMessage{}
	for decoder.More() {
		token, err := decoder.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || decoder.Decode(&value) != nil {
			return all, "" // not valid JSON: the caller has checked that
		}
		if _, twice := all[name]; twice {
			return all, "a member stands twice: " + quoted(name)
		}
		i := slices.IndexFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
		if i >= 0 && known[i] != name {
			return all, quoted(name) + " is written " + quoted(known[i])
		}
		all[name] = value
	}
	return all, ""
}

// quoted is a name for a message, cut to what a person can read.
func quoted(name string) string {
	const longest = 64
	if len(name) > longest {
		name = strings.ToValidUTF8(name[:longest], "") + "…"
	}
	return `"` + name + `"`
}
