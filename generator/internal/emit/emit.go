// Package emit renders generated files with jennifer. Each file of this package covers one concern.
package emit

import (
	"bytes"
	"fmt"
	"go/types"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/templates"
)

const (
	modulePath  = "github.com/mcptaskgen/mcptaskgen"
	runtimePath = modulePath + "/runtime"
)

// writer writes one file.
type writer struct {
	pkg      *model.Package
	protocol Protocol
	file     *jen.File
	imports  map[string]string // the name of each import by its path
	locals   map[string]string // the name of each local variable
	declared []types.Type      // types that the file's own declarations use
}

func newWriter(pkg *model.Package) *writer {
	return &writer{pkg: pkg, file: jen.NewFilePathName(pkg.Path, pkg.Name), imports: map[string]string{}, locals: map[string]string{}}
}

// File renders the generated file of a package.
func File(pkg *model.Package, protocol Protocol) ([]byte, error) {
	w := newWriter(pkg)
	w.protocol = protocol
	w.chooseNames()
	if err := w.writeHeader("header.tmpl", pkg); err != nil {
		return nil, err
	}
	tasks := false
	for _, service := range pkg.Services {
		if pkg.Side.Serves() {
			var capabilities jen.Code
			if service.RunsTasks() {
				tasks, capabilities = true, jen.Id("taskCapabilities").Call()
			}
			doc := " of " + service.Name + ", for taskserver.New."
			w.writeToolsFunc(service, doc, service.Name, capabilities)
			w.writeWorkflows(service)
		}
		if pkg.Side.Calls() {
			w.writeClient(service)
		}
	}
	w.writeInputs()
	w.writeErrors()
	w.writeEnums()
	w.writeImportedEnums()
	if tasks {
		w.writeCapabilities()
	}
	if !pkg.HasOnlyEnums() {
		w.writeProtocolNames()
	}
	w.writeSchemas()
	return w.render(pkg.Path)
}

// render formats the file. source names the input, for errors.
func (w *writer) render(source string) ([]byte, error) {
	var b bytes.Buffer
	if err := w.file.Render(&b); err != nil {
		return nil, fmt.Errorf("cannot format the generated code of %s: %w", source, err)
	}
	return groupImports(b.Bytes()), nil
}

// groupImports puts the imports of the standard library before the others, as goimports does. The
// file is as jennifer renders it: with the imports sorted by path in one declaration.
func groupImports(file []byte) []byte {
	const open, end = "\nimport (\n", ")\n"
	head, rest, _ := bytes.Cut(file, []byte(open))
	imports, body, ok := bytes.Cut(rest, []byte(end))
	if !ok {
		return file // with one import or none
	}
	var standard, others []byte
	for line := range bytes.Lines(imports) {
		_, path, _ := bytes.Cut(line, []byte(`"`))
		if first, _, _ := bytes.Cut(path, []byte("/")); bytes.ContainsRune(first, '.') {
			others = append(others, line...)
		} else {
			standard = append(standard, line...)
		}
	}
	if len(standard) > 0 && len(others) > 0 {
		standard = append(standard, '\n')
	}
	return slices.Concat(head, []byte(open), standard, others, []byte(end), body)
}

// writeHeader writes the file comment, and the compile-time handshake with the runtime if the file uses it.
func (w *writer) writeHeader(template string, data any) error {
	explanation, err := templates.Render(template, data)
	if err != nil {
		return err
	}
	w.file.HeaderComment(w.pkg.Header)
	w.file.HeaderComment("//")
	lines := commentLines(explanation)
	if w.pkg.Constraint != "" {
		// Append the constraint to a line comment: jennifer copies text that begins with //
		// verbatim. It would turn other text of two lines into a block comment, which is not a
		// constraint.
		lines[len(lines)-1] += "\n\n//go:build " + w.pkg.Constraint
	}
	for _, line := range lines {
		w.file.HeaderComment(line)
	}
	if w.pkg.HasOnlyEnums() {
		return nil
	}
	handshake, err := templates.Render("handshake.tmpl", map[string]string{"Module": modulePath})
	if err != nil {
		return err
	}
	addDoc(w.file.Group, handshake)
	w.file.Const().Id("_").Op("=").Add(runtimeName("GeneratedV1"))
	return nil
}
