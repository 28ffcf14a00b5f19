// Package wirecheck checks messages of servers and clients against the schema of their revision. It
// is for tests only.
//
// It reads the official schema files from the directory that MCPTASK_OFFICIAL names. Without the
// variable, it uses the definitions under schema/, which cover only the task surface.
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

	"github.com/mcptaskgen/mcptaskgen/schema"
)

// Revisions that a Checker knows. Candidate needs its own paths, because its messages do not
// identify it.
const (
	Candidate = "2025-11-25-rc"
	Legacy    = "2025-11-25"
	Modern    = "2026-07-28"
)

// Checker validates messages. It is safe for concurrent use.
type Checker struct {
	official bool
	whole    map[string]bool     // revisions whose files cover all messages, not only those about tasks
	files    map[string][]string // by revision; the first file with a definition counts
	compiler *jsonschema.Compiler

	mu       sync.Mutex
	compiled map[string]*jsonschema.Schema
}

// New reads the schemas and returns a Checker.
func New() (*Checker, error) {
	c := &Checker{
		whole: map[string]bool{}, files: map[string][]string{},
		compiler: jsonschema.NewCompiler(), compiled: map[string]*jsonschema.Schema{},
	}
	c.compiler.DefaultDraft(jsonschema.Draft2020)
	dir := os.Getenv("MCPTASK_OFFICIAL")
	c.official = dir != ""
	for _, revision := range schema.Revisions() {
		surface, err := schema.Load(revision)
		if err != nil {
			return nil, err
		}
		if !c.official || surface.Standing != schema.Released { // other revisions have no official file, or one with known mistakes
			definitions := map[string]json.RawMessage{}
			for _, d := range surface.Definitions {
				definitions[d.Name] = d.Schema
			}
			data, err := json.Marshal(map[string]any{"$defs": definitions})
			if err != nil {
				return nil, err
			}
			if err := c.addDocument(revision, "tasks", data); err != nil {
				return nil, err
			}
		}
		if !c.official || surface.Standing == schema.Proposal { // its messages are mixed with those of other revisions
			continue
		}
		for _, source := range surface.Provenance.Sources {
			data, err := os.ReadFile(filepath.Join(dir, source.File))
			if err != nil {
				return nil, err
			}
			if err := c.addDocument(revision, source.File, data); err != nil {
				return nil, err
			}
			c.whole[revision] = true
		}
	}
	return c, nil
}

// addDocument adds a document with definitions of a revision.
func (c *Checker) addDocument(revision, name string, data []byte) error {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if root, ok := doc.(map[string]any); ok {
		delete(root, "$id") // our own names tell the files apart
	}
	file := "schema:" + revision + "/" + name
	c.files[revision] = append(c.files[revision], file)
	if err := c.compiler.AddResource(file, doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// Fits checks a message or a part of one against a definition.
func (c *Checker) Fits(revision, definition string, data json.RawMessage) error {
	found, err := c.compile(revision, definition)
	if err == nil && found == nil {
		err = fmt.Errorf("no definition %s in %s", definition, revision)
	}
	if err != nil {
		return err
	}
	return c.validate(revision, "message", data, definition)
}

// readOutcome reads the envelope of a response, which has a result or an error.
func readOutcome(method string, response json.RawMessage) (envelope map[string]json.RawMessage, failed bool, err error) {
	if err := json.Unmarshal(response, &envelope); err != nil {
		return nil, false, fmt.Errorf("%s: the response is not an object: %w", method, err)
	}
	if string(envelope["jsonrpc"]) != `"2.0"` {
		return nil, false, fmt.Errorf("%s: no jsonrpc 2.0: %s", method, response)
	}
	switch members := slices.Sorted(maps.Keys(envelope)); {
	case slices.Equal(members, []string{"id", "jsonrpc", "result"}):
		return envelope, false, nil
	case slices.Equal(members, []string{"error", "id", "jsonrpc"}),
		slices.Equal(members, []string{"error", "jsonrpc"}): // if the ID could not be read
		return envelope, true, nil
	default:
		return nil, false, fmt.Errorf("%s: a response with the members %v", method, members)
	}
}

// Response checks the response to a request: its envelope, and its result by method and revision or
// its error by code.
func (c *Checker) Response(revision, method string, response json.RawMessage) error {
	envelope, failed, err := readOutcome(method, response)
	switch {
	case err != nil:
		return err
	case failed && revision == Candidate && envelope["id"] == nil:
		// The candidate's schema has no response to unreadable input. The release fixed that.
		return c.checkFailure(revision, method, envelope)
	case failed:
		if err := c.validate(envelopeRevision(revision), method, response, "JSONRPCErrorResponse"); err != nil {
			return err
		}
		return c.checkFailure(revision, method, envelope)
	}
	if err := c.validate(envelopeRevision(revision), method, response, "JSONRPCResultResponse"); err != nil {
		return err
	}
	return c.Result(revision, method, envelope["result"])
}

// checkFailure checks an error response.
func (c *Checker) checkFailure(revision, method string, envelope map[string]json.RawMessage) error {
	var e struct{ Code int }
	if err := json.Unmarshal(envelope["error"], &e); err != nil {
		return err
	}
	if err := c.validate(revision, method+" error", envelope["error"], "Error"); err != nil || revision != Modern {
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
	return c.validate(revision, method+" error", data, name)
}

// Result checks a result.
func (c *Checker) Result(revision, method string, result json.RawMessage) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(result, &members); err != nil {
		return fmt.Errorf("%s: the result is not an object: %w", method, err)
	}
	switch {
	case revision == Modern:
		return c.checkModern(method, result, members)
	case revision == Proposal:
		return c.checkProposal(method, result, members)
	case revision == Patterns, isPatternsList(method, members):
		return c.checkPatterns(method, "tools/call", result, members)
	}
	return c.checkLegacy(revision, method, result, members)
}

// checkLegacy checks a result of 2025-11-25 or its candidate.
func (c *Checker) checkLegacy(revision, method string, result json.RawMessage, members map[string]json.RawMessage) error {
	definition := legacyResults[method]
	if method == "tools/call" && members["task"] != nil {
		definition = "CreateTaskResult"
	}
	if definition == "" {
		return fmt.Errorf("no schema for the result of %s in %s", method, revision)
	}
	related := strings.Contains(string(members["_meta"]), "io.modelcontextprotocol/related-task")
	if related != (method == "tasks/result") { // C-41, C-66, T-26
		return fmt.Errorf("%s: related-task in _meta: %v", method, related)
	}
	if members["resultType"] != nil {
		return fmt.Errorf("%s: a resultType in %s", method, revision)
	}
	if err := checkRevisionWords(revision, result); err != nil {
		return fmt.Errorf("%s: %w", method, err)
	}
	if method == "initialize" {
		var err error
		if result, err = c.checkInitialized(method, result, members); err != nil {
			return err
		}
	}
	return c.validate(revision, method, result, definition)
}

func (c *Checker) checkModern(method string, result json.RawMessage, members map[string]json.RawMessage) error {
	definition := modernResults[method]
	kind, want := string(members["resultType"]), `"complete"`
	if method == "tools/call" && kind == `"task"` { // E-11, E-12
		definition, want = "CreateTaskResult", kind
	}
	if method == "tools/call" && kind == `"input_required"` { // EX-13
		definition, want = "InputRequiredResult", kind
		if members["taskId"] != nil {
			return fmt.Errorf("%s: a task ID in a question before the task exists: %s", method, result)
		}
	}
	if definition == "" {
		return fmt.Errorf("no schema for the result of %s in %s", method, Modern)
	}
	if kind != want {
		return fmt.Errorf("%s: resultType is %s, not %s", method, kind, want)
	}
	if strings.Contains(string(result), "io.modelcontextprotocol/related-task") { // EX-08
		return fmt.Errorf("%s: related-task in %s", method, Modern)
	}
	// Check a rule that is not in the schema (T-36): which members go with which status.
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
	return c.validate(Modern, method, result, definition)
}

// Message checks a request or notification from server to client.
func (c *Checker) Message(revision string, message json.RawMessage) error {
	revision = envelopeRevision(revision)
	var m struct {
		Method string
		Params map[string]json.RawMessage
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return err
	}
	related := strings.Contains(string(m.Params["_meta"]), "io.modelcontextprotocol/related-task")
	switch augments := m.Method == "elicitation/create" || m.Method == "sampling/createMessage"; {
	case revision == Modern:
	case m.Params["task"] != nil && !augments: // C-05
		return fmt.Errorf("%s asks for a task: %s", m.Method, message)
	case m.Params["task"] != nil && !related: // C-50: only a question of a task may request one
		return fmt.Errorf("%s asks for a task, without related-task: %s", m.Method, message)
	case strings.HasPrefix(m.Method, "tasks/") && related: // C-64
		return fmt.Errorf("%s has related-task: %s", m.Method, message)
	}
	if definition := patternsDefinition(m.Method, m.Params); definition != "" && revision == Legacy {
		return c.validate(Patterns, m.Method, message, definition)
	}
	if m.Method == proposalCreated && revision != Modern {
		return c.checkCreated(message, m.Params)
	}
	definition := legacyMessages[m.Method]
	if revision == Modern {
		definition = modernMessages[m.Method]
	}
	if definition == "" {
		return fmt.Errorf("an unexpected message in %s: %s", revision, message)
	}
	if revision == Modern && (m.Method == "notifications/tasks" || m.Method == "notifications/subscriptions/acknowledged") {
		if err := c.checkSubscribed(m.Method, m.Params); err != nil {
			return fmt.Errorf("%w: %s", err, message)
		}
	}
	params, _ := member(message, "params")
	if err := checkRevisionWords(revision, params); err != nil {
		return fmt.Errorf("%s: %w", m.Method, err)
	}
	return c.validate(revision, m.Method, message, definition)
}

// checkSubscribed checks messages of a subscription for rules that are not in the schema: each
// names its subscription (E-68), and describes a task as tasks/get would (E-65, T-36).
func (c *Checker) checkSubscribed(method string, params map[string]json.RawMessage) error {
	if _, ok := member(params["_meta"], metaSubscription); !ok {
		return fmt.Errorf("%s names no subscription", method)
	}
	if method != "notifications/tasks" {
		return c.validate(Modern, method, params["notifications"], "TaskSubscriptionAcknowledgedNotifications")
	}
	if params["resultType"] != nil {
		return fmt.Errorf("%s has a resultType", method)
	}
	task := maps.Clone(params)
	delete(task, "_meta")
	task["resultType"] = json.RawMessage(`"complete"`)
	data, err := json.Marshal(task)
	if err != nil {
		return err
	}
	return c.Result(Modern, "tasks/get", data)
}

// validate validates data against the first file with the definition. This project's files cover
// only the task surface, so a definition may be missing there.
func (c *Checker) validate(revision, what string, data json.RawMessage, definition string) error {
	schema, err := c.compile(revision, definition)
	if err != nil {
		return err
	}
	if schema == nil {
		if c.whole[revision] {
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

// compile compiles a definition. It returns nil if no file has it.
func (c *Checker) compile(revision, definition string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := revision + " " + definition
	if schema, ok := c.compiled[key]; ok {
		return schema, nil
	}
	var found *jsonschema.Schema
	name := definition
	if former := candidateNames[definition]; revision == Candidate && former != "" {
		name = former
	}
	for _, file := range c.files[revision] {
		schema, err := c.compiler.Compile(file + "#/$defs/" + name)
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
