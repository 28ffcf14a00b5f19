package gosdk

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	mcptask "github.com/mcptaskgen/mcptaskgen/runtime"
)

// carriedMethod is a method whose params and results the SDK's types would
// cut. The SDK sends it under an alias, as a custom method of raw JSON, and
// the transport puts the name back on the way out.
type carriedMethod string

const aliasPrefix = "io.github.mcptaskgen/"

var carried = [...]carriedMethod{
	"tools/call", "tools/list", "tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update",
}

func (m carriedMethod) alias() string { return aliasPrefix + string(m) }

// transport is the http.RoundTripper under the SDK's client: it restores the
// carried methods, adds the headers that the SDK does not know (E-69), and
// reads the capabilities that its types drop.
type transport struct {
	base http.RoundTripper

	mu         sync.Mutex
	initialize *capture
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	base := t.base
	if base == nil {
		base = http.DefaultTransport
	}
	if r.Method != http.MethodPost || r.Body == nil {
		return base.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	_ = r.Body.Close() // it is read to its end
	if err != nil {
		return nil, err
	}
	var m struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	// What is no request goes out as it is.
	_ = json.Unmarshal(body, &m)
	out := r.Clone(r.Context())
	if method, ok := strings.CutPrefix(m.Method, aliasPrefix); ok {
		if body, err = rename(body, method); err != nil {
			return nil, err
		}
		nameHeaders(out.Header, method, m.Params)
	}
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	out.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	response, err := base.RoundTrip(out)
	if err == nil && m.Method == "initialize" {
		response.Body = t.captured(response.Body)
	}
	return response, err
}

// rename sets the method of a message.
func rename(body []byte, method string) ([]byte, error) {
	var message map[string]json.RawMessage
	if err := json.Unmarshal(body, &message); err != nil {
		return nil, err
	}
	quoted, err := json.Marshal(method)
	if err != nil {
		return nil, err
	}
	message["method"] = quoted
	return json.Marshal(message)
}

// nameHeaders sets Mcp-Method and Mcp-Name where the revision has them (E-69
// to E-71).
func nameHeaders(h http.Header, method string, params json.RawMessage) {
	if h.Get("MCP-Protocol-Version") < mcptask.Revision20260728 {
		h.Del("Mcp-Method")
		return
	}
	h.Set("Mcp-Method", method)
	var p struct {
		Name   string `json:"name"`
		TaskID string `json:"taskId"`
	}
	_ = json.Unmarshal(params, &p) // params without a name have no header
	if name := p.Name + p.TaskID; name != "" {
		h.Set("Mcp-Name", headerValue(name))
	}
}

// headerValue encodes what a header cannot carry as it is.
func headerValue(value string) string {
	plain := value == strings.TrimSpace(value) && !strings.HasPrefix(value, "=?base64?")
	for i := range len(value) {
		plain = plain && value[i] >= ' ' && value[i] <= '~'
	}
	if plain {
		return value
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(value)) + "?="
}

// capture keeps what is read of a body, up to a limit.
type capture struct {
	io.ReadCloser
	mu   sync.Mutex
	kept bytes.Buffer
}

const captureLimit = 1 << 20

func (t *transport) captured(body io.ReadCloser) io.ReadCloser {
	c := &capture{ReadCloser: body}
	t.mu.Lock()
	t.initialize = c
	t.mu.Unlock()
	return c
}

// Read implements io.Reader.
func (c *capture) Read(p []byte) (int, error) {
	n, err := c.ReadCloser.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept.Len()+n <= captureLimit {
		c.kept.Write(p[:n])
	}
	return n, err
}

// takesTasks says whether the server has declared task-augmented tool calls in
// its answer to initialize, which may be JSON or an event stream.
func (t *transport) takesTasks() bool {
	t.mu.Lock()
	c := t.initialize
	t.mu.Unlock()
	if c == nil {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := c.kept.String()
	if declaresTasks([]byte(text)) {
		return true
	}
	for line := range strings.Lines(text) {
		if data, ok := strings.CutPrefix(line, "data:"); ok && declaresTasks([]byte(data)) {
			return true
		}
	}
	return false
}

func declaresTasks(message []byte) bool {
	var m struct {
		Result json.RawMessage `json:"result"`
	}
	return json.Unmarshal(message, &m) == nil && takesTasks(m.Result)
}

// takesTasks reads the result of an initialize.
func takesTasks(result json.RawMessage) bool {
	var r struct {
		Capabilities struct {
			Tasks struct {
				Requests struct {
					Tools struct {
						Call *struct{} `json:"call"`
					} `json:"tools"`
				} `json:"requests"`
			} `json:"tasks"`
		} `json:"capabilities"`
	}
	return json.Unmarshal(result, &r) == nil && r.Capabilities.Tasks.Requests.Tools.Call != nil
}
