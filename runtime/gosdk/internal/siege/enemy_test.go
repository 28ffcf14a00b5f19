//go:build long

package siege_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	legacyRevision = "2025-11-25"
	modernRevision = "2026-07-28"
)

// enemy is a client that builds its messages by hand. Without a session, it is a client of 2026-07-28.
type enemy struct {
	ctx                 context.Context
	url, token, session string
	client              *http.Client
	ids                 atomic.Int64
}

func newEnemy(t *testing.T, url, token string) *enemy {
	t.Helper()
	e := &enemy{ctx: t.Context(), url: url, token: token, client: &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	t.Cleanup(e.client.CloseIdleConnections)
	return e
}

// message is a request before it is sent.
type message struct {
	body   string
	header http.Header
	verb   string // "" is POST
}

func (m message) method() string {
	if m.verb == "" {
		return http.MethodPost
	}
	return m.verb
}

func (e *enemy) header() http.Header {
	h := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if e.token != "" {
		h.Set("Authorization", "Bearer "+e.token)
	}
	return h
}

// modern makes a request of 2026-07-28. members are the members of params without _meta, each with a comma after it.
// name goes into the headers. tasks declares the extension.
func (e *enemy) modern(method, name, members string, tasks bool) message {
	return e.modernMeta(method, name, members, "", tasks)
}

func (e *enemy) modernMeta(method, name, members, meta string, tasks bool) message {
	capabilities := `{}`
	if tasks {
		capabilities = `{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	}
	m := message{header: e.header(), body: fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s"_meta":{%s"io.modelcontextprotocol/protocolVersion":%q,`+
		`"io.modelcontextprotocol/clientInfo":{"name":"e","version":"1"},"io.modelcontextprotocol/clientCapabilities":%s}}}`,
		e.ids.Add(1), method, members, meta, modernRevision, capabilities)}
	m.header.Set("MCP-Protocol-Version", modernRevision)
	m.header.Set("Mcp-Method", method)
	if name != "" {
		m.header.Set("Mcp-Name", name)
	}
	return m
}

// tool returns a call of a tool in 2026-07-28.
func (e *enemy) tool(name, arguments string, tasks bool) message {
	return e.modern("tools/call", name, fmt.Sprintf(`"name":%q,"arguments":%s,`, name, arguments), tasks)
}

// legacy makes a request of 2025-11-25, in the session if there is one.
func (e *enemy) legacy(method, params string) message {
	m := message{header: e.header(), body: fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, e.ids.Add(1), method, params)}
	if e.session != "" {
		m.header.Set("Mcp-Session-Id", e.session)
		m.header.Set("MCP-Protocol-Version", legacyRevision)
	}
	return m
}

// start sends a message; the caller closes the body.
func (e *enemy) start(ctx context.Context, m message) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, m.method(), e.url, strings.NewReader(m.body))
	if err != nil {
		return nil, err
	}
	r.Header = m.header
	return e.client.Do(r)
}

// reply is a response. Its status is 0 if none came.
type reply struct {
	status int
	body   []byte
	header http.Header
}

// send sends a message and reads the reply. A missing reply is no failure here, because the server may have been
// killed.
func (e *enemy) send(m message) reply {
	res, err := e.start(e.ctx, m)
	if err != nil {
		return reply{body: []byte(err.Error())}
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return reply{res.StatusCode, body, res.Header}
}

// task returns the ID of the task in a reply, or "" if there is none.
func (r reply) task() string {
	var m struct {
		Result struct {
			TaskID string `json:"taskId"`
			Task   struct {
				TaskID string `json:"taskId"`
			} `json:"task"`
		} `json:"result"`
	}
	_ = json.Unmarshal(r.data(), &m)
	return m.Result.TaskID + m.Result.Task.TaskID
}

// data returns the last message of a reply, which may be a stream.
func (r reply) data() []byte {
	if i := bytes.LastIndex(r.body, []byte("data: ")); i >= 0 {
		line, _, _ := bytes.Cut(r.body[i+len("data: "):], []byte("\n"))
		return line
	}
	return r.body
}

// open opens a session of 2025-11-25.
func (e *enemy) open() reply {
	e.session = ""
	r := e.send(e.legacy("initialize", `{"protocolVersion":"2025-11-25","capabilities":{"elicitation":{}},"clientInfo":{"name":"e","version":"1"}}`))
	if e.session = r.header.Get("Mcp-Session-Id"); e.session != "" {
		m := e.legacy("notifications/initialized", "{}")
		m.body = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
		e.send(m)
	}
	return r
}

// stream returns the GET that opens the session's stream.
func (e *enemy) stream() message {
	m := e.legacy("", "")
	m.body, m.verb = "", http.MethodGet
	return m
}

// end returns the request that ends the session.
func (e *enemy) end() {
	m := e.stream()
	m.verb = http.MethodDelete
	e.send(m)
	e.session = ""
}

// raw writes a request on its own connection and reads no response.
func (e *enemy) raw(ctx context.Context, m message) (net.Conn, error) {
	conn, err := e.dial(ctx)
	if err == nil {
		err = m.write(conn, 0)
	}
	return conn, err
}

// dial opens a connection with a small buffer, so that unread bytes wait in the server.
func (e *enemy) dial(ctx context.Context) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(e.url, "http://"))
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(1 << 12)
	}
	return conn, err
}

// write writes a request without the last bytes of its body.
func (m message) write(to io.Writer, without int) error {
	var head bytes.Buffer
	head.WriteString(m.method() + " / HTTP/1.1\r\nHost: 127.0.0.1\r\n")
	_ = m.header.Write(&head)
	fmt.Fprintf(&head, "Content-Length: %d\r\n\r\n", len(m.body))
	if _, err := to.Write(head.Bytes()); err != nil {
		return err
	}
	_, err := io.WriteString(to, m.body[:len(m.body)-without])
	return err
}

// together runs something n times, a few at once.
func together(n int, run func(i int)) {
	const atOnce = 16
	var all sync.WaitGroup
	for worker := range atOnce {
		all.Go(func() {
			for i := worker; i < n; i += atOnce {
				run(i)
			}
		})
	}
	all.Wait()
}
