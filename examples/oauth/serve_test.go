package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/examples/oauth/releases"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
	"github.com/mcptaskgen/mcptaskgen/schema/wirecheck"
)

func TestMain(m *testing.M) { peer.Main(m, main) }

// rights are the scopes of the users of the tests. Only alice and bob may ship billing.
var rights = map[string][]string{
	"alice": {scopeReleases, scopeShip, scopeApprove},
	"bob":   {scopeReleases, scopeShip, scopeApprove},
	"carol": {scopeReleases, scopeApprove},
	"dave":  {scopeReleases, scopeShip},
}

// testServer is the example behind a proxy, whose URL is the resource, and its authorization server. The server behind the
// proxy may be another process each time.
type testServer struct {
	t    *testing.T
	as   *authServer
	url  string // the resource
	dir  string
	base string // of the server's URL
	// target is the URL of the process.
	target atomic.Pointer[url.URL]
	// shipped has a line for each release that was shipped.
	shipped chan string
}

// newTestServer starts the authorization server and the proxy.
func newTestServer(t *testing.T) *testServer {
	t.Helper()
	s := &testServer{t: t, as: startAuthServer(t, rights), dir: t.TempDir(), shipped: make(chan string, 10)}
	forward := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			target := s.target.Load()
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = target.Scheme, target.Host, r.In.Host
		},
		FlushInterval: -1,
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }, // like a broken connection
	}
	whole := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body) // otherwise a reply that comes first closes the body
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		forward.ServeHTTP(w, r)
	})
	mux := http.NewServeMux()
	mux.Handle("/", whole)
	mux.Handle("/mcp", wirecheck.Handler(t, whole))
	proxy := httptest.NewServer(mux)
	t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	s.base, s.url = proxy.URL, proxy.URL+"/mcp"
	s.as.resource = s.url
	people := `{"alice": {"services": ["billing"]}, "bob": {"services": ["billing"]}, "dave": {"services": ["web"]}}`
	if err := os.WriteFile(filepath.Join(s.dir, "people.json"), []byte(people), 0o600); err != nil {
		t.Fatal(err)
	}
	return s
}

// mode returns the flags of the server.
func (s *testServer) mode() mode {
	s.t.Helper()
	o := newOAuth()
	var err error
	if o.resource, err = url.Parse(s.url); err != nil {
		s.t.Fatal(err)
	}
	o.issuer, o.jwks = s.as.URL, s.as.URL+"/jwks"
	return mode{
		addr: "127.0.0.1:0", dir: s.dir, people: filepath.Join(s.dir, "people.json"),
		oauth: o,
	}
}

// serve starts the example with all that belongs to it, in this process. Each change is made before.
func serve(t *testing.T, changes ...func(*testServer, *mode)) *testServer {
	t.Helper()
	s := newTestServer(t)
	m := s.mode()
	for _, change := range changes {
		change(s, &m)
	}
	read, printed := io.Pipe()
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() {
		err := run(ctx, printed, m)
		_ = printed.CloseWithError(err)
		ended <- err
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	s.read(read)
	return s
}

// read reads the URL of the server from its output, and then what it ships.
func (s *testServer) read(out io.Reader) {
	s.t.Helper()
	lines := bufio.NewScanner(out)
	if !lines.Scan() {
		s.t.Fatalf("the server has not started: %v", lines.Err())
	}
	target, err := url.Parse(strings.TrimPrefix(lines.Text(), "serving "))
	if err != nil {
		s.t.Fatal(err)
	}
	s.target.Store(target)
	go func() {
		for lines.Scan() {
			s.shipped <- lines.Text()
		}
	}()
}

// startProcess starts the example in a process of its own. Call stop with a signal to end it.
func (s *testServer) startProcess() (stop func(os.Signal)) {
	s.t.Helper()
	program, err := os.Executable()
	if err != nil {
		s.t.Fatal(err)
	}
	m := s.mode()
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), program, "-http", m.addr, "-dir", m.dir, "-people", m.people,
		"-url", s.url, "-issuer", m.oauth.issuer, "-jwks", m.oauth.jwks)
	cmd.Env, cmd.Stderr = append(os.Environ(), "MCPTASK_TEST_AS_PROGRAM=1"), os.Stderr // what peer.Main looks for
	out, err := cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.read(out)
	return func(signal os.Signal) {
		s.t.Helper()
		if err := cmd.Process.Signal(signal); err != nil {
			s.t.Error(err)
		}
		if err := cmd.Wait(); err != nil && signal != os.Kill {
			s.t.Error(err)
		}
	}
}

// connect connects a client of the project with a token of a user.
func (s *testServer) connect(revision, user string, scopes ...string) *releases.ReleasesClient {
	s.t.Helper()
	conn, err := gosdk.Connect(s.t.Context(), s.url, gosdk.ClientOptions{
		Revision: revision,
		Bearer:   func(context.Context) (string, error) { return s.as.token(user, scopes...), nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	return releases.NewReleasesClient(conn)
}

// post sends the server itself a tools/call of 2026-07-28 with a token, and returns the response with its body.
func (s *testServer) post(token, tool string) (*http.Response, string) {
	s.t.Helper()
	body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{
		"name": tool, "arguments": map[string]any{},
		"_meta": map[string]any{
			"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": map[string]any{},
			"io.modelcontextprotocol/clientInfo": map[string]any{"name": "test", "version": "1"},
		},
	}})
	if err != nil {
		s.t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.target.Load().String(), bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": tool,
	} {
		r.Header.Set(name, value)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	return send(s.t, r)
}

// get reads a page, and returns the response with its body.
func get(t *testing.T, url string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return send(t, r)
}

func send(t *testing.T, r *http.Request) (*http.Response, string) {
	t.Helper()
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }() // it has been read
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(text)
}
