package record

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// asServer is the environment variable that makes the test binary a server. Its value names the server's fault.
const asServer = "MCPTASK_TEST_AS_SERVER"

func TestMain(m *testing.M) {
	if wrong := os.Getenv(asServer); wrong != "" {
		serveLines(wrong)
		return
	}
	os.Exit(m.Run())
}

const initialized = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"},"instructions":"Do."}`

// recorded is the recording of the scripted servers.
const recorded = `{
  "initialize": {
    "protocolVersion": "2025-11-25",
    "capabilities": {
      "tools": {}
    },
    "serverInfo": {
      "name": "s",
      "version": "1"
    }
  },
  "tools": [
    {
      "name": "z",
      "inputSchema": {
        "type": "object",
        "minimum": 1.0
      },
      "x": "<\u00e9>"
    },
    {
      "name": "a",
      "inputSchema": {
        "type": "object"
      }
    }
  ]
}
`

const (
	firstPage  = `{"tools":[{"name":"z","inputSchema":{"type":"object","minimum":1.0},"x":"<\u00e9>"}],"nextCursor":"2"}`
	secondPage = `{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
)

// answerTo returns the result of a request to a server in order.
func answerTo(m message) string {
	params, _ := m.Params.(map[string]any)
	switch {
	case m.Method == "initialize":
		return initialized
	case m.Method == "tools/list" && params["cursor"] == "2":
		return secondPage
	}
	return firstPage
}

// serveLines is a server on the standard input and output.
func serveLines(wrong string) {
	in := bufio.NewScanner(os.Stdin)
	fmt.Println("Hello from a server that greets!")
	for in.Scan() {
		var m message
		if err := json.Unmarshal(in.Bytes(), &m); err != nil {
			panic(err)
		}
		switch {
		case m.ID == nil || m.Method == "":
			continue
		case wrong == "exit":
			os.Exit(3)
		case wrong == "silent":
			fmt.Fprintln(os.Stderr, "read")
			continue
		case wrong == "garbled":
			fmt.Println(`{"jsonrpc":"2.0","id":1,"result"`)
			continue
		case wrong == "endless":
			for {
				if _, err := os.Stdout.WriteString(strings.Repeat("x", 1<<20)); err != nil {
					return
				}
			}
		}
		fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":\"own\",\"method\":\"ping\"}\n\ufeff{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":%s}\n", m.ID, answerTo(m))
	}
}

// writerFunc is a function as an io.Writer.
type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// TestCommand records the list of a program.
func TestCommand(t *testing.T) {
	for wrong, want := range map[string]string{
		"nothing": "",
		"exit":    `the server ended with exit status 3 after it wrote "Hello from a server that greets!" to its standard output before it answered initialize`,
		"silent":  "the server did not answer initialize in time",
		"garbled": "the server sent a message that is not JSON-RPC: unexpected end of JSON input before it answered initialize",
		"endless": "the server sent more than 16 MB before it answered initialize",
	} {
		t.Run(wrong, func(t *testing.T) {
			t.Setenv(asServer, wrong)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			stop := writerFunc(func(p []byte) (int, error) { cancel(); return len(p), nil }) // once the silent one has read
			list, err := Tools(ctx, Config{Command: []string{os.Args[0]}, Stderr: stop})
			if want != "" {
				if err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
				return
			}
			if d := cmp.Diff(recorded, string(list)); d != "" || err != nil {
				t.Errorf("%v (-want +got):\n%s", err, d)
			}
		})
	}
	if _, err := Tools(t.Context(), Config{Command: []string{"/nowhere/server"}}); err == nil || !strings.Contains(err.Error(), "cannot start the server") {
		t.Error(err)
	}
}

// handler answers the requests of a recording over HTTP.
type handler struct {
	mu     sync.Mutex
	seen   []string
	answer func(w http.ResponseWriter, r *http.Request, m message)
}

func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var m message
	body, err := io.ReadAll(r.Body)
	if err == nil && len(body) > 0 {
		err = json.Unmarshal(body, &m)
	}
	if err != nil {
		panic(err)
	}
	h.mu.Lock()
	h.seen = append(h.seen, strings.TrimSpace(r.Method+" "+m.Method+string(m.Result)))
	h.mu.Unlock()
	h.answer(w, r, m)
}

func (h *handler) requests() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return strings.Join(h.seen, ", ")
}

func reply(w http.ResponseWriter, m message, result string) {
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, "\ufeff"+`{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
}

// TestHTTP records the list of a server over HTTP: in a session that wants a token, and on streams.
func TestHTTP(t *testing.T) {
	for _, streams := range []bool{false, true} {
		h := &handler{answer: func(w http.ResponseWriter, r *http.Request, m message) {
			switch {
			case r.Header.Get("Authorization") != "Bearer secret":
				w.WriteHeader(http.StatusUnauthorized)
			case m.Method == "initialize":
				w.Header().Set(sessionHeader, "session 1")
				reply(w, m, answerTo(m))
			case r.Header.Get(sessionHeader) != "session 1" || r.Header.Get(revisionHeader) != "2025-11-25":
				w.WriteHeader(http.StatusBadRequest)
			case m.ID == nil || m.Method == "":
				w.WriteHeader(http.StatusAccepted)
			case streams:
				w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
				fmt.Fprintf(w, ": hello\r\n\r\ndata: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"ping\"}\r\n\r\nid: 1\ndata:\n\n"+
					"event: message\ndata: {\"jsonrpc\":\"2.0\",\ndata: \"id\":%s,\"result\":%s}\n\n", m.ID, answerTo(m))
			default:
				reply(w, m, answerTo(m))
			}
		}}
		server := httptest.NewServer(h)
		list, err := Tools(t.Context(), Config{URL: server.URL, Header: http.Header{"Authorization": {"Bearer secret"}}})
		if d := cmp.Diff(recorded, string(list)); d != "" || err != nil {
			t.Errorf("%v (-want +got):\n%s", err, d)
		}
		want := "POST initialize, POST notifications/initialized, POST tools/list, POST tools/list, DELETE"
		if streams {
			want = "POST initialize, POST notifications/initialized, POST tools/list, POST {}, POST tools/list, POST {}, DELETE"
		}
		if got := h.requests(); got != want {
			t.Errorf("the requests are %s, want %s", got, want)
		}
		server.Close()
	}
}

// TestStateless records the list of a server that has no sessions.
func TestStateless(t *testing.T) {
	for _, revision := range []string{"", stateless} {
		h := &handler{answer: func(w http.ResponseWriter, r *http.Request, m message) {
			params, _ := m.Params.(map[string]any)
			meta, _ := params["_meta"].(map[string]any)
			if r.Header.Get(methodHeader) != m.Method || r.Header.Get(revisionHeader) != stateless || meta["io.modelcontextprotocol/protocolVersion"] != stateless {
				w.WriteHeader(http.StatusBadRequest)
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32022,"message":"unsupported"}}`, m.ID)
				return
			}
			if m.Method == "server/discover" {
				reply(w, m, `{"supportedVersions":["2026-07-28"],"serverInfo":{"name":"s"},"resultType":"complete"}`)
				return
			}
			reply(w, m, secondPage)
		}}
		server := httptest.NewServer(h)
		list, err := Tools(t.Context(), Config{URL: server.URL, Revision: revision})
		want := `{"server/discover":{"supportedVersions":["2026-07-28"],"serverInfo":{"name":"s"}},"tools":[{"name":"a","inputSchema":{"type":"object"}}]}`
		if got := strings.Join(strings.Fields(string(list)), ""); got != want || err != nil {
			t.Errorf("got %s, %v\nwant %s", got, err, want)
		}
		server.Close()
	}
}

// TestDeepList checks that a recording does not grow with the depth of a list times its leaves.
func TestDeepList(t *testing.T) {
	const depth = 900
	page := `{"tools":[{"name":"t","inputSchema":` + strings.Repeat(`{"a":`, depth) + "[1" + strings.Repeat(",1", 50_000) + "]" + strings.Repeat("}", depth) + `}]}`
	h := &handler{answer: func(w http.ResponseWriter, _ *http.Request, m message) {
		if m.Method == "initialize" {
			reply(w, m, initialized)
			return
		}
		reply(w, m, page)
	}}
	server := httptest.NewServer(h)
	defer server.Close()
	list, err := Tools(t.Context(), Config{URL: server.URL})
	if err != nil || len(list) > 5*len(page) {
		t.Errorf("%d bytes become %d, %v", len(page), len(list), err)
	}
}

// TestBadServers checks the texts of the errors.
func TestBadServers(t *testing.T) {
	list := func(result string) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, m message) { reply(w, m, result) }
	}
	status := func(code int, body string) func(http.ResponseWriter, message) {
		return func(w http.ResponseWriter, _ message) {
			w.Header().Set("Location", "https://elsewhere.example/mcp")
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	pages := 0
	for want, answer := range map[string]func(http.ResponseWriter, message){
		"give a token with --token-env": status(401, ""),
		"it often ends in /mcp":         status(404, "<html>"),
		`the server redirects to "https://elsewhere.example/mcp": if you trust that server`: status(307, ""),
		`the server answers 500 Internal Server Error: "oops"`:                              status(500, "oops"),
		`the server refused tools/list: "not today" (-32000)`: func(w http.ResponseWriter, m message) {
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"not today"}}`, m.ID)
		},
		"the server lists no tools":        list(`{"tools":[]}`),
		`it names the next page "x" twice`: list(`{"tools":[],"nextCursor":"x"}`),
		"the server's list is too long: more than 1000 pages, with 0 tools": func(w http.ResponseWriter, m message) {
			pages++
			reply(w, m, fmt.Sprintf(`{"tools":[],"nextCursor":"%d"}`, pages))
		},
		"the server sent more than 16 MB before it answered tools/list": func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			for err := error(nil); err == nil; {
				_, err = io.WriteString(w, ": still here\n\n")
			}
		},
		`the server refused tools/list: "what?" (-32700)`: func(w http.ResponseWriter, _ message) {
			fmt.Fprint(w, `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"what?"}}`)
		},
		"the server's answer to tools/list has no valid result": list(`{"tools":{}}`),
		"the server sent a message that is not JSON-RPC":        status(200, "<html>"),
		"the response ended before it answered tools/list":      status(200, ""),
		"the server sent more than 16 MB":                       status(200, strings.Repeat(" ", maxBytes)),
		"the stream ended before it answered tools/list": func(w http.ResponseWriter, _ message) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "data: {}\n\n")
		},
	} {
		h := &handler{answer: func(w http.ResponseWriter, r *http.Request, m message) {
			switch m.Method {
			case "initialize":
				reply(w, m, initialized)
			case "tools/list":
				answer(w, m)
			default:
				w.WriteHeader(http.StatusAccepted)
			}
		}}
		server := httptest.NewServer(h)
		_, err := Tools(t.Context(), Config{URL: server.URL})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
		server.Close()
	}
}
