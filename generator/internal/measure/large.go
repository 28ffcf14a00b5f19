//go:build linux

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"text/template"
)

// The size of the large package. Half of its tools may run as tasks.
const (
	largeTools = 200
	largeTypes = 12
)

var largeSource = template.Must(template.New("large").Parse(`package large

import (
	"context"
	"time"

	mcptask "{{.Runtime}}"
)

// Large has many tools.
//
//mcptask:service
type Large interface {
{{- range .Tools}}
	// Tool{{.Number}} does the work on what it is given, and says how it went.
	Tool{{.Number}}(ctx context.Context, {{if .Task}}task *mcptask.Task, {{end}}in T{{.In}}) (T{{.Out}}, error)
{{- end}}
}
{{range .Types}}
// T{{.}} is what the tools work on.
type T{{.}} struct {
	// Name is its name.
	Name string ` + "`json:\"name\" jsonschema:\"minLength=1,maxLength=100\"`" + `
	// Count is how many there are.
	Count int ` + "`json:\"count,omitempty\" jsonschema:\"minimum=0\"`" + `
	// Since is when it began.
	Since time.Time ` + "`json:\"since\"`" + `
	// Parts are its parts.
	Parts []Part{{.}} ` + "`json:\"parts,omitempty\"`" + `
}

// Part{{.}} is a part.
type Part{{.}} struct {
	ID     int64   ` + "`json:\"id\"`" + `
	Weight float64 ` + "`json:\"weight\"`" + `
}
{{end}}`))

// writeLarge writes the large package into a module.
func writeLarge(dir string) error {
	type tool struct {
		Number, In, Out int
		Task            bool
	}
	data := struct {
		Runtime string
		Tools   []tool
		Types   [largeTypes]int
	}{Runtime: module + "/runtime"}
	for i := range largeTools {
		data.Tools = append(data.Tools, tool{Number: i, In: i % largeTypes, Out: (i*7 + 3) % largeTypes, Task: i%2 == 1})
	}
	for i := range data.Types {
		data.Types[i] = i
	}
	var source bytes.Buffer
	if err := largeSource.Execute(&source, data); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(dir, "large"), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, "large", "large.go"), source.Bytes(), 0o600)
}

// countLines returns the number of lines that were generated for the large package.
func countLines(dir string) (int, error) {
	text, err := os.ReadFile(filepath.Join(dir, "large", "mcptask_gen.go"))
	return bytes.Count(text, []byte("\n")), err
}
