package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/examples/internal/peer"
	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

const script = "node_modules/@modelcontextprotocol/server-everything/dist/index.js"

// node finds a Node.js, and skips the test if it or the server is missing.
func node(t *testing.T) string {
	t.Helper()
	if _, err := os.Stat(script); err != nil {
		peer.Missing(t, "the published server is missing: run npm ci in examples/everything")
	}
	return peer.Node(t, "../conformance")
}

// TestExample runs the server's task with the generated client, its question and its token included.
func TestExample(t *testing.T) {
	t.Parallel()
	out := &shared{}
	if err := run(t.Context(), out, node(t), "."); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
	for _, want := range []string{
		"weather: ", "sum: The sum of 40 and 2 is 42.\n", "\nworking ", "\ninput_required ", "\nquestion: The research query \"python\"",
		"\ncompleted ", "\nresult: # Research Report: python (snake)\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, out)
		}
	}
}

// shared is text that several write, as standard output is: a question is answered beside the rest.
type shared struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (s *shared) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

// String returns the text written so far.
func (s *shared) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// TestToolsAreTheServers compares tools.json with the server's list. It lists more to clients that can do more, and at
// times later.
func TestToolsAreTheServers(t *testing.T) {
	t.Parallel()
	conn, err := gosdk.ConnectCommand(t.Context(), exec.CommandContext(t.Context(), node(t), script, "stdio"), gosdk.ClientOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	infos, err := conn.ListTools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	type schemas struct {
		Name                      string
		InputSchema, OutputSchema any
	}
	listed := map[string]schemas{}
	for _, info := range infos {
		s := schemas{Name: info.Name}
		if err := json.Unmarshal(info.InputSchema, &s.InputSchema); err != nil {
			t.Fatal(err)
		}
		if len(info.OutputSchema) > 0 {
			if err := json.Unmarshal(info.OutputSchema, &s.OutputSchema); err != nil {
				t.Fatal(err)
			}
		}
		listed[info.Name] = s
	}
	data, err := os.ReadFile("everything/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Tools []schemas }
	if err := json.Unmarshal(data, &file); err != nil || len(file.Tools) == 0 {
		t.Fatalf("%d tools: %v", len(file.Tools), err)
	}
	for _, tool := range file.Tools {
		if !reflect.DeepEqual(tool, listed[tool.Name]) {
			t.Errorf("%s is %+v, and the server says %+v", tool.Name, tool, listed[tool.Name])
		}
	}
}
