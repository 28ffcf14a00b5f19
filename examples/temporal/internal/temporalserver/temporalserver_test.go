package temporalserver

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// TestServer checks that the server serves its namespace, and that it is gone after Close.
func TestServer(t *testing.T) {
	s := ForTest(t)
	options := client.Options{HostPort: s.Address()}
	c, err := client.DialContext(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	found, err := c.WorkflowService().DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: client.DefaultNamespace})
	if err != nil || found.GetNamespaceInfo().GetName() != client.DefaultNamespace {
		t.Errorf("%v, %v", found, err)
	}
	c.Close()
	if s.input == nil {
		return // it runs on without this test
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if c, err := client.DialContext(t.Context(), options); err == nil {
		c.Close()
		t.Error("the server serves after Close")
	}
}

// TestMissing checks the error if the server is not built, and that a running server needs no program.
func TestMissing(t *testing.T) {
	t.Setenv(Variable, "")
	t.Chdir(t.TempDir())
	if _, err := Start(t.Context()); err == nil || errors.Is(err, ErrMissing) {
		t.Errorf("outside of the checkout: %v", err)
	}
	writeModule(t)
	if _, err := Start(t.Context()); !errors.Is(err, ErrMissing) {
		t.Errorf("not built: %v", err)
	}
	t.Setenv(Variable, "temporal.example.com:7233")
	s, err := Start(t.Context())
	if err != nil || s.Address() != "temporal.example.com:7233" || s.Close() != nil {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestProgramFails checks that a program that ends without an address is an error with its output.
func TestProgramFails(t *testing.T) {
	t.Setenv(Variable, "")
	t.Chdir(t.TempDir())
	writeModule(t)
	if err := Build(t.Context(), t.Output()); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context()); err == nil || !strings.Contains(err.Error(), "no port is free") {
		t.Errorf("the error is %v", err)
	}
}

// writeModule writes a testserver that fails into the working directory.
func writeModule(t *testing.T) {
	t.Helper()
	for name, text := range map[string]string{
		"go.mod":  "module example.com/testserver\n",
		"main.go": "package main\n\nimport \"os\"\n\nfunc main() { os.Stderr.WriteString(\"no port is free\\n\"); os.Exit(1) }\n",
	} {
		if err := os.MkdirAll("testserver", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join("testserver", name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
