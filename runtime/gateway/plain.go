package gateway

import (
	"bytes"
	"encoding/json"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// plain reads a request or notification that can be read in one way only, once
// through: nearly every one. Each member stands there once and as it is spelled,
// and the strings that the gateway reads have no escapes. nil is any other
// message: encoding/json tells what it is, or what is wrong with it. What is
// read shares the body's memory.
func plain(body []byte) *message {
	if !json.Valid(body) {
		return nil
	}
	all, fault := members(body, messageMembers)
	method, ok := unescaped(all["method"])
	if fault != "" || !ok || method == "" || string(all["jsonrpc"]) != `"2.0"` || all["result"] != nil || all["error"] != nil {
		return nil
	}
	m := &message{JSONRPC: "2.0", ID: all["id"], Method: method, Params: all["params"]}
	if m.ID != nil && !validID(m.ID) {
		return nil
	}
	if !interpreted(method) {
		return m
	}
	params, fault := members(m.Params, paramsMembers)
	if fault != "" {
		return nil
	}
	if params["_meta"] == nil { // as in sessions
		m.said = &meta{taskID: params["taskId"]}
		return m
	}
	said, fault := members(params["_meta"], metaMembers)
	if fault != "" {
		return nil
	}
	if said == nil { // not an object
		return m
	}
	read := meta{Capabilities: said[mcptask.MetaClientCapabilities], taskID: params["taskId"]}
	if raw := said[mcptask.MetaProtocolVersion]; raw != nil {
		version, ok := unescaped(raw)
		if !ok {
			return m
		}
		read.Version = &version
	}
	m.said = &read
	return m
}

// unescaped reads a JSON string that has no escapes.
func unescaped(raw json.RawMessage) (string, bool) {
	if len(raw) < 2 || raw[0] != '"' || bytes.IndexByte(raw, '\\') >= 0 {
		return "", false
	}
	return string(raw[1 : len(raw)-1]), true
}
