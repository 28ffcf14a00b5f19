// Package templates holds the parts of generated files that are prose, not Go.
package templates

import (
	"bytes"
	"embed"
	"text/template"
)

//go:embed *.tmpl
var files embed.FS

// Render executes a template of this folder, such as "header.tmpl".
func Render(name string, data any) (string, error) {
	t, err := template.ParseFS(files, name)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.String(), err
}
