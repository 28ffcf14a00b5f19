package wirecheck

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Reply checks a client's response to a server's request in 2025-11-25, its candidate or the guide.
// For tasks/result, of is the method of the request behind the task. Otherwise it is "".
func (c *Checker) Reply(revision, method, of string, response json.RawMessage) error {
	envelope, failed, err := readOutcome(method, response)
	switch {
	case err != nil:
		return err
	case failed && envelope["id"] == nil: // a server's request always has an ID
		return fmt.Errorf("%s: an error without an id: %s", method, response)
	case failed:
		return c.checkFailure(revision, method, envelope)
	}
	var result map[string]json.RawMessage
	if err := json.Unmarshal(envelope["result"], &result); err != nil {
		return fmt.Errorf("%s: the result is not an object: %w", method, err)
	}
	if revision == Patterns && isPatternsReply(method, result) {
		return c.checkPatterns(method, of, envelope["result"], result)
	}
	revision = envelopeRevision(revision)
	related := strings.Contains(string(result["_meta"]), "io.modelcontextprotocol/related-task")
	if tasks := strings.HasPrefix(method, "tasks/"); tasks && related != (method == "tasks/result") { // C-41, C-66
		return fmt.Errorf("%s: related-task in _meta: %v", method, related)
	}
	results := map[string]string{
		"sampling/createMessage": "CreateMessageResult", "elicitation/create": "ElicitResult", "roots/list": "ListRootsResult",
		"ping": "EmptyResult", "tasks/get": "GetTaskResult", "tasks/list": "ListTasksResult", "tasks/cancel": "CancelTaskResult",
	}
	definition := results[method]
	switch {
	case method == "tasks/result":
		definition = results[of]
	case result["task"] != nil && (method == "sampling/createMessage" || method == "elicitation/create"):
		definition = "CreateTaskResult"
	}
	if definition == "" {
		return fmt.Errorf("no schema for a client's result of %s in %s", method, revision)
	}
	if err := checkRevisionWords(revision, envelope["result"]); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	return c.validate(revision, method, envelope["result"], definition)
}

// Sent checks a request or notification that a client of 2025-11-25 or its candidate sends.
func (c *Checker) Sent(revision string, message json.RawMessage) error {
	var m struct{ Method string }
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	definition := map[string]string{
		"initialize": "InitializeRequest", "ping": "PingRequest", "tools/list": "ListToolsRequest", "tools/call": "CallToolRequest",
		"tasks/get": "GetTaskRequest", "tasks/result": "GetTaskPayloadRequest", "tasks/list": "ListTasksRequest",
		"tasks/cancel": "CancelTaskRequest", "notifications/initialized": "InitializedNotification",
		"notifications/cancelled": "CancelledNotification", "notifications/roots/list_changed": "RootsListChangedNotification",
	}[m.Method]
	if definition == "" {
		return fmt.Errorf("an unexpected message: %s", message)
	}
	of := envelopeRevision(revision)
	if strings.HasPrefix(m.Method, "tasks/") {
		of = revision
	}
	if err := c.validate(of, m.Method, message, definition); err != nil || m.Method != "initialize" {
		return err
	}
	var params struct {
		Params struct{ Capabilities json.RawMessage }
	}
	if err := json.Unmarshal(message, &params); err != nil {
		return err
	}
	return c.validate(revision, "capabilities", params.Params.Capabilities, "ClientCapabilities")
}
