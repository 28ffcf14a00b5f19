package wirecheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
)

// sharedChecker returns the checker of all taps, which reads and compiles the schemas once.
var sharedChecker = sync.OnceValues(New)

const (
	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaServer       = "io.modelcontextprotocol/serverInfo"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"
	tasksExtension   = "io.modelcontextprotocol/tasks"
)

// pendingRequest is a request that the tap saw. The tap reads it leniently, because only the server
// reports mistakes in it.
type pendingRequest struct {
	id       string // as sameID returns it
	method   string
	revision string
	// augmented means that it requests a task (2025-11-25). declares means that it accepts one
	// (2026-07-28).
	augmented, declares bool
	acknowledged        bool // the acknowledgement of this subscription was sent
}

// readRequests finds the requests in a message or batch. version is the revision in a header.
// legacy is the revision of sessions.
func readRequests(data []byte, version, legacy string) []*pendingRequest {
	data = bytes.TrimSpace(bytes.TrimPrefix(data, []byte("\ufeff")))
	var list []json.RawMessage
	if len(data) == 0 || data[0] != '[' || json.Unmarshal(data, &list) != nil {
		list = []json.RawMessage{data}
	}
	var requests []*pendingRequest
	for _, one := range list {
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
			Result json.RawMessage `json:"result"`
			Error  json.RawMessage `json:"error"`
		}
		err := json.Unmarshal(one, &m)
		if err != nil && !errors.As(err, new(*json.UnmarshalTypeError)) || m.ID == nil || m.Method == "" && (m.Result != nil || m.Error != nil) {
			continue // a message without method and outcome may be a request to the server
		}
		a := &pendingRequest{id: sameID(m.ID), method: m.Method, revision: legacy}
		var params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
			Task json.RawMessage            `json:"task"`
		}
		_ = json.Unmarshal(m.Params, &params) // params may have any form
		var capabilities struct {
			Extensions map[string]json.RawMessage `json:"extensions"`
		}
		_ = json.Unmarshal(params.Meta[metaCapabilities], &capabilities)
		var spoken string
		_, a.augmented = member(m.Params, "task")
		switch {
		case version >= Modern || json.Unmarshal(params.Meta[metaVersion], &spoken) == nil:
			a.revision = Modern
		case a.method == "tools/call" && a.augmented: // a requested task identifies the revision
		case isProposalRequest(a.method, params.Meta):
			a.revision = Proposal
		case isPatternsRequest(m.Method, m.Params):
			a.revision = Patterns
		}
		a.declares = capabilities.Extensions[tasksExtension] != nil
		requests = append(requests, a)
	}
	return requests
}

// sameID returns an ID independent of how its text is escaped.
func sameID(id json.RawMessage) string {
	var text string
	if json.Unmarshal(id, &text) == nil && len(id) > 0 && id[0] == '"' {
		return "text " + text
	}
	return string(id)
}

// member returns a member of an object.
func member(object json.RawMessage, name string) (json.RawMessage, bool) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(object, &members)
	value, ok := members[name]
	return value, ok
}

// unknownContent marks content that no schema knows. Tests let handlers return it to see it arrive
// unchanged.
var unknownContent = []byte(`"type":"scene"`)

// testMethodPrefix starts the tests' own methods. No schema knows their results.
const testMethodPrefix = "acme/"

// checkSent checks a message that the server sends. find returns the request with an ID. revision
// applies to messages that are not responses.
func (c *Checker) checkSent(message json.RawMessage, revision string, find func(id string) *pendingRequest) error {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Error  json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(message, &m); err != nil {
		return fmt.Errorf("not a message: %w: %.500s", err, message)
	}
	if m.Method != nil {
		return c.Message(revision, message)
	}
	request := find(sameID(m.ID))
	switch {
	case request != nil && m.Error == nil && (bytes.Contains(message, unknownContent) || strings.HasPrefix(request.method, testMethodPrefix)):
		return nil
	case request != nil:
	case m.Error != nil && m.ID == nil: // answers unreadable input
		return c.Response(revision, "an unreadable request", message)
	case string(m.ID) == "null" && isForeignError(m.Error):
		return nil
	default:
		return fmt.Errorf("a response without a request: %.500s", message)
	}
	if request.isProposalResponse(message) {
		request.revision = Proposal
	}
	if err := c.Response(request.revision, request.method, message); err != nil {
		return err
	}
	return request.checkResponse(message)
}

// checkResponse checks the rules that need both the request and the response.
func (a *pendingRequest) checkResponse(response json.RawMessage) error {
	result, ok := member(response, "result")
	meta, _ := member(result, "_meta")
	if _, named := member(meta, metaServer); ok && a.revision == Modern && !named {
		return fmt.Errorf("a result without the server's name in _meta: %.500s", response)
	}
	if !ok || a.method != "tools/call" {
		return nil
	}
	kind, _ := member(result, "resultType")
	_, wrapped := member(result, "task")
	_, guided := member(meta, "task")
	switch {
	case a.revision != Modern && wrapped && !a.augmented: // C-15
		return fmt.Errorf("a task that the client did not request: %.500s", response)
	case a.revision != Patterns && guided: // D-05
		return fmt.Errorf("a task that the client did not request: %.500s", response)
	case a.revision == Modern && string(kind) == `"task"` && !a.declares: // E-05
		return fmt.Errorf("a task for a client that did not declare support: %.500s", response)
	}
	return nil
}

// checkPushed checks a message on a subscription's stream (E-67, E-68).
func (a *pendingRequest) checkPushed(message json.RawMessage) error {
	var m struct {
		Method string `json:"method"`
		Params struct {
			Meta map[string]json.RawMessage `json:"_meta"`
		} `json:"params"`
	}
	_ = json.Unmarshal(message, &m) // checkSent reports malformed messages
	if m.Method == "" || a.method != "subscriptions/listen" {
		return nil
	}
	if id := sameID(m.Params.Meta[metaSubscription]); id != a.id {
		return fmt.Errorf("the subscription %s gets a message of %q: %.500s", a.id, id, message)
	}
	acknowledges := m.Method == "notifications/subscriptions/acknowledged"
	switch {
	case acknowledges == a.acknowledged:
		return fmt.Errorf("%s must be acknowledged exactly once, in its first message: %.500s", a.id, message)
	case m.Method == "notifications/progress", m.Method == "notifications/message":
		return fmt.Errorf("the subscription gets %s: %.500s", m.Method, message)
	}
	a.acknowledged = true
	return nil
}

// events splits server-sent events, no matter how they are written.
type events struct {
	rest []byte
	data []string
}

// feed returns the data of the events that are complete after written.
func (e *events) feed(written []byte) [][]byte {
	var out [][]byte
	e.rest = append(e.rest, written...)
	for {
		line, rest, ok := bytes.Cut(e.rest, []byte("\n"))
		if !ok {
			return out
		}
		e.rest = rest
		text := strings.TrimSuffix(string(line), "\r")
		if data, ok := strings.CutPrefix(text, "data:"); ok {
			e.data = append(e.data, strings.TrimPrefix(data, " "))
			continue
		}
		if text != "" {
			continue
		}
		if data := strings.Join(e.data, "\n"); data != "" { // an event without data only marks a position
			out = append(out, []byte(data))
		}
		e.data = nil
	}
}
