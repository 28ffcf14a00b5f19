package wirecheck

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Patterns is the revision of the Task Patterns guide. It uses the protocol version of another
// revision, so only its requests identify it.
const Patterns = "task-patterns"

// isPatternsRequest reports whether a request uses the guide's tasks.
func isPatternsRequest(method string, params json.RawMessage) bool {
	meta, _ := member(params, "_meta")
	switch method {
	case "tools/call":
		_, asks := member(meta, "taskId")
		_, augmented := member(params, "task")
		return asks && !augmented
	case "tasks/get", "tasks/result", "tasks/cancel":
		_, id := member(params, "id")
		_, taskID := member(params, "taskId")
		return id && !taskID
	}
	return false
}

// envelopeRevision returns the revision whose envelopes a revision uses.
func envelopeRevision(revision string) string {
	if revision == Patterns {
		return Legacy
	}
	return revision
}

// isPatternsList reports whether a result of tasks/list is the guide's. Its request does not show
// that.
func isPatternsList(method string, members map[string]json.RawMessage) bool {
	return method == "tasks/list" && strings.Contains(string(members["tasks"]), `{"id":`)
}

// isPatternsReply reports whether a client's result is the guide's: a new task, or a message about
// one.
func isPatternsReply(method string, result map[string]json.RawMessage) bool {
	_, made := member(result["_meta"], "task")
	return made || strings.HasPrefix(method, "tasks/")
}

// checkPatterns checks a result of the guide's tasks. of is the request behind the task. A server
// without the guide's tasks answers a call normally.
func (c *Checker) checkPatterns(method, of string, result json.RawMessage, members map[string]json.RawMessage) error {
	task, made := member(members["_meta"], "task")
	if method == "tools/call" && !made {
		return c.checkLegacy(Legacy, method, result, members)
	}
	if strings.Contains(string(members["_meta"]), "related-task") || members["taskId"] != nil || members["task"] != nil {
		return fmt.Errorf("%s: members of other revisions: %s", method, result)
	}
	definition := map[string]string{
		"tasks/get": "GetTaskResult", "tasks/result": "GetTaskPayloadResult",
		"tasks/list": "ListTasksResult", "tasks/cancel": "CancelTaskResult",
	}[method]
	if made {
		definition = "CreateTaskResult"
	}
	if definition == "" {
		return fmt.Errorf("no schema for the result of %s in %s", method, Patterns)
	}
	if err := c.validate(Patterns, method, result, definition); err != nil {
		return err
	}
	if made { // T-04
		if len(members) > 1 {
			return fmt.Errorf("%s: more than the task: %s", method, result)
		}
		if _, ok := member(task, "pollInterval"); !ok { // D-07
			return fmt.Errorf("%s: no pollInterval: %s", method, result)
		}
		return nil
	}
	switch method {
	case "tasks/list":
		for _, one := range splitArray(members["tasks"]) {
			if err := checkPatternsState(one); err != nil {
				return err
			}
		}
		return nil
	case "tasks/result":
		if status := string(members["status"]); status != `"completed"` && status != `"failed"` { // D-12
			return fmt.Errorf("%s: of a task that is %s: %s", method, status, result)
		}
		if (members["result"] == nil) == (members["error"] == nil) {
			return fmt.Errorf("%s: neither or both of result and error: %s", method, result)
		}
	}
	if err := checkPatternsState(result); err != nil {
		return err
	}
	within := map[string]string{
		"tools/call": "CallToolResult", "sampling/createMessage": "CreateMessageResult", "elicitation/create": "ElicitResult",
	}[of]
	if inner := members["result"]; inner != nil && within != "" && !strings.Contains(string(inner), string(unknownContent)) {
		return c.validate(Legacy, method+" within", inner, within)
	}
	return nil
}

// checkPatternsState checks rules that are not in the schema: a task has no ttl (D-11), and its
// members match its status (D-13).
func checkPatternsState(task json.RawMessage) error {
	status, _ := member(task, "status")
	allowed := map[string][]string{`"completed"`: {"result"}, `"failed"`: {"error"}}[string(status)]
	for _, name := range []string{"ttl", "result", "error"} {
		if _, ok := member(task, name); ok && !slices.Contains(allowed, name) {
			return fmt.Errorf("a task that is %s has %s: %s", status, name, task)
		}
	}
	return nil
}

// patternsDefinition returns the definition of a server's message in the guide, or "". These
// messages are requests for a client's task, named by params.id.
func patternsDefinition(method string, params map[string]json.RawMessage) string {
	if params["id"] == nil {
		return ""
	}
	return map[string]string{"tasks/get": "GetTaskRequest", "tasks/result": "GetTaskPayloadRequest", "tasks/cancel": "CancelTaskRequest"}[method]
}
