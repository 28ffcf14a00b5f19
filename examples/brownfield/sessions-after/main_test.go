package main

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcptaskgen/mcptaskgen/runtime/gosdk"
)

// TestBuild calls a tool of the whole server, in memory.
func TestBuild(t *testing.T) {
	tasks, err := newTasks()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tasks.Close() }()
	s, err := newServer("ann", 0, tasks)
	if err != nil {
		t.Fatal(err)
	}
	there, here := mcp.NewInMemoryTransports()
	served, err := s.Connect(t.Context(), gosdk.Transport(tasks, there), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = served.Close() }()
	client, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1.0.0"}, nil).Connect(t.Context(), here, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }()
	result, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "build", Arguments: buildInput{Target: "docs"}})
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(result.StructuredContent)
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"stages":["render","check links"],"target":"docs","user":"ann"}`; string(data) != want {
		t.Errorf("the result is %s, want %s", data, want)
	}
}
