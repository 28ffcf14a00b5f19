// Package templates holds the text templates of the generator: prose in generated files, the
// reference of tools, the upgrade report and, under init, a new user's first program.
package templates

import (
	"bytes"
	"embed"
	"text/template"
)

//go:embed *.tmpl init/*.tmpl
var files embed.FS

// Render executes a template of this directory, such as "header.tmpl" or "init/main.go.tmpl".
func Render(name string, data any) (string, error) {
	t, err := template.ParseFS(files, name)
	if err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = t.Execute(&b, data)
	return b.String(), err
}
