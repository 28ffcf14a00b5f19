//go:build long && unix

package main

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// inspector is the program of the MCP Inspector.
const inspector = "../hosts/node_modules/.bin/mcp-inspector"

// TestInspector lets the MCP Inspector sign its user in and call a tool. Its command asks for no scope later: for one that is
// missing it asks for those of the sign-in again.
func TestInspector(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat(inspector); err != nil {
		peer.Missing(t, "the Inspector is missing: run npm ci in examples/hosts")
	}
	node := peer.Node(t, "../conformance")
	s := serve(t, func(_ *testServer, m *mode) { m.oauth.signIn = []string{scopeReleases, scopeApprove} })
	for _, era := range []string{"legacy", "modern"} {
		out := inspect(t, node, "--protocol-era", era, "--server-url", s.url, "--method", "tools/call", "--tool-name", "list_approvals")
		if !strings.Contains(out, `"approvals"`) {
			t.Errorf("%s: %s", era, out)
		}
	}
	s.as.mu.Lock()
	defer s.as.mu.Unlock()
	if want := []string{"releases releases:approve", "releases releases:approve"}; !slices.Equal(s.as.asked, want) {
		t.Errorf("it asked for %q, want %q", s.as.asked, want)
	}
}

// authorizePage finds the page that a program wants its user to open.
var authorizePage = regexp.MustCompile(`http://\S+/authorize\?\S+`)

// inspect runs the Inspector's command. It opens the page of the authorization server as alice whenever the Inspector shows
// its address, and returns what the Inspector prints.
func inspect(t *testing.T, node string, args ...string) string {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	callback := "http://" + listener.Addr().String() + "/oauth/callback"
	_ = listener.Close() // the Inspector listens there
	program, err := filepath.EvalSymlinks(inspector)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), node, append([]string{program, "--cli", "--format", "json", "--callback-url", callback}, args...)...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "MCP_INSPECTOR_SECRET_STORE=memory",
		"MCP_AUTO_OPEN_ENABLED=true", "BROWSER=true") // it wants a terminal or a browser, and gets one that opens nothing
	var out bytes.Buffer
	cmd.Stdout = &out
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		t.Log(lines.Text())
		if page := authorizePage.FindString(lines.Text()); page != "" {
			get(t, page+"&login_hint=alice")
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v: %s", err, out.String())
	}
	return out.String()
}
