// Package interop tests the example server with clients that this project did not write.
package interop

import (
	"os"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
)

// The steps of the TypeScript SDK 1.x over every transport, and over each.
var (
	sdk1 = []string{
		"connect", "list tools", "call a tool as a task", "read a task again", "cancel a task", "an unknown task is refused",
		"call a tool that is never a task", "the code of a typed error", "answer a question", "refuse a question", "cancel a task that asks",
	}
	sdk1HTTP = []string{
		"no list for anonymous callers", "answer a question on the result's stream", "refuse a question on the result's stream",
		"end the session",
	}
	sdk1Stdio = []string{"list tasks", "the end of its input ends the server"}
)

// client2 has the steps of the TypeScript client 2.x in every revision.
var client2 = []string{
	"connect", "call a tool as a task", "read a task again", "take a task up by its reference", "a failed task",
	"cancel a task", "an unknown task is refused", "call a tool that is never a task", "answer a question",
	"refuse a question", "cancel a task that asks", "end the session",
}

func TestTypeScript1Speaks20251125(t *testing.T) {
	t.Parallel()
	node := node(t, "sdk")
	passes(t, peer.Client(t, node, "sdk1.mjs", peer.Serve(t, "..")), sdk1, sdk1HTTP)
}

func TestTypeScript1SpeaksOverStdio(t *testing.T) {
	t.Parallel()
	node := node(t, "sdk")
	passes(t, peer.Client(t, node, "sdk1.mjs", peer.Build(t, ".."), "-stdio"), sdk1, sdk1Stdio)
}

func TestTypeScript2SpeaksBothRevisions(t *testing.T) {
	t.Parallel()
	node := node(t, "ext-tasks")
	url := peer.Serve(t, "..")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			passes(t, peer.Client(t, node, "client2.mjs", url, revision), client2)
		})
	}
}

// plain2 has the steps of the TypeScript client 2.x in every revision without tasks.
var plain2 = []string{"connect", "answer the question of a plain call", "refuse the question of a plain call", "the code of a typed error", "end the session"}

func TestTypeScript2AsksInPlainCalls(t *testing.T) {
	t.Parallel()
	node := node(t, "ext-tasks")
	url := peer.Serve(t, "..")
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(revision, func(t *testing.T) {
			passes(t, peer.Client(t, node, "plain2.mjs", url, revision), plain2)
		})
	}
}

func TestCurlSpeaks20260728(t *testing.T) {
	t.Parallel()
	peer.Need(t, "curl", "install curl")
	peer.Need(t, "bash", "install bash")
	out := peer.Client(t, "bash", "client.sh", peer.Serve(t, ".."))
	if !strings.Contains(out, `"structuredContent":`) {
		t.Error("there is no result")
	}
}

// node finds a Node.js that the clients run on. It skips the test if there is none, or if a client's package is missing.
func node(t *testing.T, name string) string {
	t.Helper()
	if _, err := os.Stat("node_modules/@modelcontextprotocol/" + name); err != nil {
		peer.Missing(t, "a published client is missing: run npm ci in examples/pipeline/interop")
	}
	return peer.Node(t, "../../conformance")
}

// passes compares the output of a program with the steps that it has to pass.
func passes(t *testing.T, out string, lists ...[]string) {
	t.Helper()
	for _, steps := range lists {
		for _, step := range steps {
			if !strings.Contains(out, "pass: "+step+"\n") {
				t.Errorf("the step %q did not pass", step)
			}
		}
	}
}
