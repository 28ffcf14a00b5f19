package scaffold

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// exporterModule is the only module of the template full that the examples do not need. A stub stands for it.
const exporterModule = "go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"

// exporterStub has what the template needs of it.
const exporterStub = `package otlptracehttp

import (
	"context"

	"go.opentelemetry.io/otel/sdk/trace"
)

func New(context.Context) (trace.SpanExporter, error) { return nil, nil }
`

// TestFullCompiles renders the template full, and vets it with the modules of the examples.
func TestFullCompiles(t *testing.T) {
	dir := t.TempDir()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	mod := strings.Replace(readFile(t, "../../go.mod"), "module github.com/mcptaskgen/mcptaskgen/examples\n", "module example.com/hello\n", 1)
	mod = strings.ReplaceAll(mod, "=> ..", "=> "+filepath.ToSlash(root)+"/examples/..")
	mod += "\nrequire " + exporterModule + " v0.0.0\n\nreplace " + exporterModule + " => ./exporter\n\ntool github.com/mcptaskgen/mcptaskgen/cmd/mcptask\n"
	files := map[string]string{
		"go.mod": mod, "go.sum": readFile(t, "../../go.sum"),
		"exporter/go.mod": "module " + exporterModule + "\n\ngo 1.25\n", "exporter/exporter.go": exporterStub,
	}
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	scaffold, err := generator.NewScaffold(t.Context(), generator.ScaffoldConfig{Dir: dir, Template: "full"})
	if err != nil {
		t.Fatal(err)
	}
	if err := scaffold.Write(); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"generate", "./..."}, {"vet", "./..."}} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod -trimpath", "GOWORK=off", "GOPROXY=off")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, said)
		}
	}
	const example = "../../oauth/oauth.go"
	if string(scaffold.Files["oauth.go"]) != readFile(t, example) {
		t.Error("the template full has another oauth.go than the example: in the root, run cp examples/oauth/oauth.go templates/init/oauth.go.tmpl")
	}
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
