// Package templates holds the parts of generated files that are prose, not Go, the reference of tools,
// and under init the first program of a newcomer.
package templates

import (
	"bytes"
	"embed"
	"text/template"
)

//go:embed *.tmpl init/*.tmpl
var files embed.FS

// Render executes a template of this folder, such as "header.tmpl" or "init/main.go.tmpl".
func Render(name string, data any) (string, error) {
	t, err := template.ParseFS(files, name)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.String(), err
}
