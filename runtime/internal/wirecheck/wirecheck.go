// Package wirecheck holds what a server sends against the schema of its
// revision. It serves tests only.
//
// With MCPTASK_OFFICIAL set to their folder it reads the official schema files,
// else the definitions under schema/, which cover the task surface.
package wirecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The revisions that a Checker knows.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

// Checker validates messages. It is safe for concurrent use.
type Checker struct {
	official bool
	files    map[string][]string // by revision, the schema that counts first
	compiler *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

// New reads the schema files.
func New() (*Checker, error) {
	c := &Checker{compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{}}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	if dir := os.Getenv("MCPTASK_OFFICIAL"); dir != "" {
		c.official = true
		c.files = map[string][]string{
			Legacy: {filepath.Join(dir, "2025-11-25.schema.json")},
			Modern: {filepath.Join(dir, "ext-tasks.schema.json"), filepath.Join(dir, "2026-07-28.schema.json")},
		}
	} else {
		root, err := moduleRoot()
		if err != nil {
			return nil, err
		}
		c.files = map[string][]string{}
		for _, revision := range []string{Legacy, Modern} {
			c.files[revision] = []string{filepath.Join(root, "schema", revision, "tasks.schema.json")}
		}
	}
	for revision, files := range c.files {
		for i, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				return nil, err
			}
			doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			if root, ok := doc.(map[string]any); ok {
				delete(root, "$id") // the files are told apart by our own names
			}
			name := fmt.Sprintf("schema:%s/%d", revision, i)
			if err := c.compiler.AddResource(name, doc); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
			c.files[revision][i] = name
		}
	}
	return c, nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = parent
	}
}

// Response checks the answer to a request: its envelope, and its result by
// method and revision, or its error by code.
func (c *Checker) Response(revision, method string, response json.RawMessage) error {
	var envelope map[string]json.RawMessage
	if err := json.Unmarshal(response, &envelope); err != nil {
		return fmt.Errorf("%s: the response is no object: %w", method, err)
	}
	members := slices.Sorted(maps.Keys(envelope))
	switch {
	case string(envelope["jsonrpc"]) != `"2.0"`:
		return fmt.Errorf("%s: no jsonrpc 2.0: %s", method, response)
	case slices.Equal(members, []string{"id", "jsonrpc", "result"}):
		return c.Result(revision, method, envelope["result"])
	case slices.Equal(members, []string{"error", "id", "jsonrpc"}):
		return c.failure(revision, method, envelope)
	}
	return fmt.Errorf("%s: a response with the members %v", method, members)
}

// failure checks an error response.
func (c *Checker) failure(revision, method string, envelope map[string]json.RawMessage) error {
	var e struct{ Code int }
	if err := json.Unmarshal(envelope["error"], &e); err != nil {
		return err
	}
	if err := c.check(revision, method+" error", envelope["error"], "Error"); err != nil || revision != Modern {
		return err
	}
	names := map[int]string{
		-32020: "HeaderMismatchError", -32021: "MissingRequiredClientCapabilityError", -32022: "UnsupportedProtocolVersionError",
	}
	name := names[e.Code]
	if name == "" {
		return nil
	}
	data, err := json.Marshal(envelope)
	if err != nil {
		return err
	}
	return c.check(revision, method+" error", data, name)
}

// Result checks a result.
func (c *Checker) Result(revision, method string, result json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(result, &members); err != nil {
		return fmt.Errorf("%s: the result is no object: %w", method, err)
	}
	if revision == Modern {
		return c.modern(method, result, members)
	}
	return c.legacy(method, result, members)
}

func (c *Checker) legacy(method string, result json.RawMessage, members map[string]json.RawMessage) error {
	definition := map[string]string{
		"initialize": "InitializeResult", "tools/list": "ListToolsResult", "ping": "EmptyResult",
		"tasks/get": "GetTaskResult", "tasks/result": "CallToolResult",
		"tasks/list": "ListTasksResult", "tasks/cancel": "CancelTaskResult", "tools/call": "CallToolResult",
	}[method]
	if method == "tools/call" && members["task"] != nil {
		definition = "CreateTaskResult"
	}
	if definition == "" {
		return fmt.Errorf("there is no schema for the result of %s in %s", method, Legacy)
	}
	related := strings.Contains(string(members["_meta"]), "io.modelcontextprotocol/related-task")
	if related != (method == "tasks/result") { // C-41, C-66, T-26
		return fmt.Errorf("%s: related-task in _meta: %v", method, related)
	}
	if members["resultType"] != nil {
		return fmt.Errorf("%s: a resultType in %s", method, Legacy)
	}
	return c.check(Legacy, method, result, definition)
}

func (c *Checker) modern(method string, result json.RawMessage, members map[string]json.RawMessage) error {
	definition := map[string]string{
		"server/discover": "DiscoverResult", "tools/list": "ListToolsResult", "tools/call": "CallToolResult",
		"tasks/get": "GetTaskResult", "tasks/update": "UpdateTaskResult", "tasks/cancel": "CancelTaskResult",
	}[method]
	kind, want := string(members["resultType"]), `"complete"`
	if method == "tools/call" && kind == `"task"` { // E-11, E-12
		definition, want = "CreateTaskResult", kind
	}
	if method == "tools/call" && kind == `"input_required"` { // EX-13
		definition, want = "InputRequiredResult", kind
		if members["taskId"] != nil {
			return fmt.Errorf("%s: a task that asks before it is there: %s", method, result)
		}
	}
	if definition == "" {
		return fmt.Errorf("there is no schema for the result of %s in %s", method, Modern)
	}
	if kind != want {
		return fmt.Errorf("%s: resultType is %s, not %s", method, kind, want)
	}
	if strings.Contains(string(result), "io.modelcontextprotocol/related-task") { // EX-08
		return fmt.Errorf("%s: related-task in %s", method, Modern)
	}
	// What the schema leaves open (T-36): which members go with which status.
	allowed := map[string][]string{
		"working": {}, "cancelled": {}, "input_required": {"inputRequests"}, "completed": {"result"}, "failed": {"error"},
	}
	var has []string
	for _, name := range []string{"inputRequests", "result", "error"} {
		if members[name] != nil {
			has = append(has, name)
		}
	}
	switch definition {
	case "UpdateTaskResult", "CancelTaskResult": // EX-05
		for name := range members {
			if name != "resultType" && name != "_meta" {
				return fmt.Errorf("%s: the acknowledgement has %s", method, name)
			}
		}
	case "CreateTaskResult":
		if len(has) > 0 || members["task"] != nil || members["requestState"] != nil { // EX-01
			return fmt.Errorf("%s: not a flat task: %s", method, result)
		}
	case "GetTaskResult":
		var status string
		if err := json.Unmarshal(members["status"], &status); err != nil {
			return fmt.Errorf("%s: status: %w", method, err)
		}
		if want := allowed[status]; !slices.Equal(has, want) {
			return fmt.Errorf("%s: a task that is %s has %v, not %v", method, status, has, want)
		}
		if members["ttl"] != nil || members["pollInterval"] != nil { // EX-06
			return fmt.Errorf("%s: members of 2025-11-25: %s", method, result)
		}
		if inner := members["result"]; inner != nil { // T-37
			if err := c.Result(Modern, "tools/call", inner); err != nil {
				return fmt.Errorf("%s: inner result: %w", method, err)
			}
		}
	}
	return c.check(Modern, method, result, definition)
}

// Notification checks a message from server to client on a stream of 2025-11-25.
func (c *Checker) Notification(message json.RawMessage) error {
	var m struct{ Method string }
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	definition := map[string]string{
		"notifications/progress": "ProgressNotification", "notifications/tasks/status": "TaskStatusNotification",
		"notifications/message": "LoggingMessageNotification", "notifications/tools/list_changed": "ToolListChangedNotification",
		"elicitation/create": "ElicitRequest", "notifications/cancelled": "CancelledNotification",
		"sampling/createMessage": "CreateMessageRequest", "roots/list": "ListRootsRequest",
	}[m.Method]
	if definition == "" {
		return fmt.Errorf("an unexpected message: %s", message)
	}
	return c.check(Legacy, m.Method, message, definition)
}

// check validates against the first file that has the definition. The files
// of this project have the task surface only: there a definition may be missing.
func (c *Checker) check(revision, what string, data json.RawMessage, definition string) error {
	schema, err := c.schema(revision, definition)
	if err != nil {
		return err
	}
	if schema == nil {
		if c.official {
			return fmt.Errorf("%s: no official definition %s in %s", what, definition, revision)
		}
		return nil
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if err := schema.Validate(value); err != nil {
		return fmt.Errorf("%s of %s does not fit %s: %w\n%s", what, revision, definition, err, data)
	}
	return nil
}

// schema compiles a definition; nil where no file has it.
func (c *Checker) schema(revision, definition string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := revision + " " + definition
	if schema, ok := c.compiled[key]; ok {
		return schema, nil
	}
	var found *jsonschema.Schema
	for _, file := range c.files[revision] {
		schema, err := c.compiler.Compile(file + "#/$defs/" + definition)
		var missing *jsonschema.JSONPointerNotFoundError
		if errors.As(err, &missing) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("compile %s of %s: %w", definition, revision, err)
		}
		found = schema
		break
	}
	c.compiled[key] = found
	return found, nil
}
