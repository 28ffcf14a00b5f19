package main

import (
	"os"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// interop is the directory of the published TypeScript clients.
const interop = "../pipeline/interop"

// typescriptSteps are what each client must do.
var typescriptSteps = []string{
	"sign in", "ask for the scope of a tool", "ask for the scope of a task", "another person approves", "the result of the task", "close",
}

// TestTypeScript goes through the whole flow with the published TypeScript clients: they find the authorization server,
// register, sign two users in, ask for more scopes, and run a task that the other user approves.
func TestTypeScript(t *testing.T) {
	t.Parallel()
	node := findNode(t)
	for _, c := range []struct{ version, revision string }{{"1", "2025-11-25"}, {"2", "2025-11-25"}, {"2", "2026-07-28"}} {
		t.Run(c.version+" "+c.revision, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			s.as.refreshes = c.version != "1" // it refreshes its token if it needs another scope, and gives up
			out := peer.Client(t, node, interop+"/oauth.mjs", c.version, c.revision, s.url)
			for _, step := range typescriptSteps {
				if !strings.Contains(out, "pass: "+step+"\n") {
					t.Errorf("the step %q did not pass", step)
				}
			}
		})
	}
}

// findNode finds a Node.js that the clients run on. It skips the test if there is none, or if a client's package is missing.
func findNode(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"client", "ext-tasks", "sdk"} {
		if _, err := os.Stat(interop + "/node_modules/@modelcontextprotocol/" + name); err != nil {
			peer.Missing(t, "a published client is missing: run npm ci in examples/pipeline/interop")
		}
	}
	return peer.Node(t, "../conformance")
}
