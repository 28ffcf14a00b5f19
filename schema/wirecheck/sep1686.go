package wirecheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
)

// Proposal is SEP-1686. Its messages use the sessions of any protocol version, so only their form
// identifies them.
const Proposal = "sep-1686"

const (
	proposalTask    = "modelcontextprotocol.io/task"
	proposalRelated = "modelcontextprotocol.io/related-task"
	proposalCreated = "notifications/tasks/created"
)

// isProposalRequest reports whether a request identifies itself as the proposal's.
func isProposalRequest(method string, meta map[string]json.RawMessage) bool {
	switch method {
	case "tasks/delete":
		return true
	case "tools/call":
		return meta[proposalTask] != nil
	case "tasks/get", "tasks/result":
		return meta[proposalRelated] != nil
	}
	return false
}

// isProposalResponse reports whether a response is the proposal's although its request shows no
// revision. The server recognizes it by an ID or by earlier requests.
func (a *pendingRequest) isProposalResponse(response json.RawMessage) bool {
	if a.revision != Legacy || !strings.HasPrefix(a.method, "tasks/") {
		return false
	}
	result, _ := member(response, "result")
	meta, _ := member(result, "_meta")
	if _, ok := member(meta, proposalRelated); ok {
		return true
	}
	var list struct{ Tasks []map[string]json.RawMessage }
	return a.method == "tasks/list" && json.Unmarshal(result, &list) == nil && len(list.Tasks) > 0 && list.Tasks[0]["keepAlive"] != nil
}

// proposalResults maps methods to the definitions of their results in the proposal.
var proposalResults = map[string]string{
	"tools/call": "CallToolResult", "tasks/get": "GetTaskResult", "tasks/result": "CallToolResult", "tasks/list": "ListTasksResult", "tasks/delete": "DeleteTaskResult",
}

// checkProposal checks a result, also for rules that are not in the schema: every result about a
// task names it, and a failed task has a reason.
func (c *Checker) checkProposal(method string, result json.RawMessage, members map[string]json.RawMessage) error {
	definition := proposalResults[method]
	if definition == "" {
		return fmt.Errorf("no schema for the result of %s in %s", method, Proposal)
	}
	related, ok := member(members["_meta"], proposalRelated)
	if ok {
		if err := c.validate(Proposal, method, related, "RelatedTaskMetadata"); err != nil {
			return err
		}
	}
	if ok == (method == "tasks/list") && method != "tools/call" { // a tool that cannot be a task is called plainly
		return fmt.Errorf("%s: related-task in _meta: %v", method, ok)
	}
	tasks := []map[string]json.RawMessage{members}
	switch method {
	case "tools/call", "tasks/result":
		if members["task"] != nil {
			return fmt.Errorf("%s: a task in the place of the result: %s", method, result)
		}
		return c.validate(Legacy, method, result, definition)
	case "tasks/delete":
		return c.validate(Proposal, method, result, definition)
	case "tasks/list":
		if err := json.Unmarshal(members["tasks"], &tasks); err != nil {
			return fmt.Errorf("%s: %w", method, err)
		}
	}
	for _, task := range tasks {
		if failed := string(task["status"]) == `"failed"`; failed != (task["error"] != nil) {
			return fmt.Errorf("%s: a task that is %s has the error %s", method, task["status"], task["error"])
		}
		for _, other := range []string{"ttl", "pollInterval", "createdAt", "lastUpdatedAt", "statusMessage"} {
			if task[other] != nil {
				return fmt.Errorf("%s: %s, of another revision: %s", method, other, result)
			}
		}
	}
	return c.validate(Proposal, method, result, definition)
}

// checkCreated checks the notification of a new task, which contains only the task's ID.
func (c *Checker) checkCreated(message json.RawMessage, params map[string]json.RawMessage) error {
	var meta map[string]json.RawMessage
	if err := json.Unmarshal(params["_meta"], &meta); err != nil || len(params) != 1 || len(meta) != 1 || meta[proposalRelated] == nil {
		return fmt.Errorf("%s has more or less than the task's ID: %s", proposalCreated, message)
	}
	return c.validate(Proposal, proposalCreated, message, "TaskCreatedNotification")
}

// checkInitialized checks the proposal's capability, which only sessions of older protocol versions
// have. It returns the result of initialize without the capability.
func (c *Checker) checkInitialized(method string, result json.RawMessage, members map[string]json.RawMessage) (json.RawMessage, error) {
	var version string
	_ = json.Unmarshal(members["protocolVersion"], &version) // the schema checks its value
	tasks, ok := member(members["capabilities"], "tasks")
	if !ok || version >= Legacy {
		return result, nil
	}
	declared, err := json.Marshal(map[string]json.RawMessage{"tasks": tasks})
	if err != nil {
		return nil, err
	}
	if err := c.validate(Proposal, method, declared, "ServerCapabilities"); err != nil {
		return nil, err
	}
	var capabilities map[string]json.RawMessage
	if err := json.Unmarshal(members["capabilities"], &capabilities); err != nil {
		return nil, err
	}
	delete(capabilities, "tasks")
	rest := maps.Clone(members)
	if rest["capabilities"], err = json.Marshal(capabilities); err != nil {
		return nil, err
	}
	return json.Marshal(rest)
}
