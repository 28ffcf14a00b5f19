// Package interop tests the example server with clients that this project did not write.
package interop

import (
	"os"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

func TestTypeScriptSDKSpeaks20251125(t *testing.T) {
	peer.Need(t, "node", "install Node.js 18 or newer")
	if _, err := os.Stat("node_modules/@modelcontextprotocol/sdk"); err != nil {
		peer.Missing(t, "the TypeScript SDK is missing: run npm ci in examples/pipeline/interop")
	}
	out := peer.Client(t, "node", "client.mjs", peer.Serve(t, ".."))
	for _, step := range []string{
		"connect", "list tools", "call a tool as a task", "read a task again", "no list for anonymous callers",
		"cancel a task", "an unknown task is refused", "call a tool that is never a task",
	} {
		if !strings.Contains(out, "pass: "+step+"\n") {
			t.Errorf("the step %q did not pass", step)
		}
	}
}

func TestCurlSpeaks20260728(t *testing.T) {
	peer.Need(t, "curl", "install curl")
	peer.Need(t, "bash", "install bash")
	out := peer.Client(t, "bash", "client.sh", peer.Serve(t, ".."))
	if !strings.Contains(out, `"structuredContent":`) {
		t.Error("there is no result")
	}
}
