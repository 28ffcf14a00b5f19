// Package schemafile reads published MCP schema files and identifies their revision. For an unknown
// revision, it lists the differences from the nearest known one.
package schemafile

import (
	"bytes"
	"errors"
	"fmt"
	"go/token"
	"os"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// maxSize is the maximum size of a file in bytes, forty times that of published ones.
const maxSize = 8 << 20

// maxDepth is the maximum nesting depth of a file, ten times that of published ones. The time to
// compare schemas grows with its square.
const maxDepth = 200

// file is a parsed schema file.
type file struct {
	name     string // relative to the working directory
	document *schema.Document
	tree     *jsontree.File
}

// Read reads schema files and returns a Schema for each revision in them. A core file with tasks is
// complete. A core file without tasks belongs to the file of the extension, in either order. Names
// are relative to dir. The error lists the mistakes of every file.
func Read(dir string, names []string) ([]*Schema, error) {
	sets, err := readSets(dir, names)
	if err != nil {
		return nil, err
	}
	var schemas []*Schema
	for _, set := range sets {
		s, err := identify(set)
		if err != nil {
			return nil, err
		}
		schemas = append(schemas, s)
	}
	return schemas, nil
}

// readSets reads schema files and groups them by revision.
func readSets(dir string, names []string) ([][]*file, error) {
	var problems diag.List
	var files []*file
	for _, name := range names {
		if f := readFile(dir, diag.Absolute(dir, name), &problems); f != nil {
			files = append(files, f)
		}
	}
	if problems.Len() > 0 {
		return nil, problems.Err(dir)
	}
	return groupFiles(files)
}

const (
	publishedHint = "take it from github.com/modelcontextprotocol/modelcontextprotocol, schema/REVISION/schema.json"
	extensionHint = "github.com/modelcontextprotocol/ext-tasks, schema/2026-07-28/schema.json"
)

func readFile(dir, path string, problems *diag.List) *file {
	at := token.Position{Filename: path}
	text, err := readLimited(path)
	if err != nil {
		problems.Add(at, err.Error(), publishedHint)
		return nil
	}
	name := diag.Relative(dir, path)
	tree, err := jsontree.Read(name, text, maxDepth)
	if fault := (*jsontree.Error)(nil); errors.As(err, &fault) {
		at.Offset, at.Line, at.Column = fault.Pos.Offset, fault.Pos.Line, fault.Pos.Column
		problems.Add(at, fault.Message, publishedHint)
		return nil
	}
	if len(tree.Values) != 1 {
		problems.Add(at, fmt.Sprintf("the file holds %d JSON values; a schema file holds one", len(tree.Values)), publishedHint)
		return nil
	}
	document, err := schema.Parse(bytes.TrimPrefix(text, []byte("\ufeff")))
	if err != nil {
		problems.Add(at, err.Error(), publishedHint)
		return nil
	}
	return &file{name: name, document: document, tree: tree}
}

func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && strings.Contains(path, ","): // a list as for --revision
		return nil, errors.New("the file does not exist; repeat --schema for each file")
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("the file does not exist")
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("this is a directory, not a schema file")
	case info.Size() > maxSize:
		return nil, fmt.Errorf("the file has %d MB; published schemas have less than one, and the limit is %d", info.Size()>>20, maxSize>>20)
	}
	return os.ReadFile(path)
}

// isCore reports whether a file is the core's. The extension's file repeats some of the core's
// definitions.
func (f *file) isCore() bool {
	return slices.ContainsFunc([]string{"ClientCapabilities", "ServerCapabilities", "CallToolRequest", "JSONRPCMessage"}, func(name string) bool {
		_, ok := f.document.Definition(name)
		return ok
	})
}

func (f *file) hasTasks() bool {
	return slices.ContainsFunc(f.document.Definitions, schema.Definition.IsAboutTasks)
}

// hasExtensions reports whether a core file belongs to a revision with extensions.
func (f *file) hasExtensions() bool {
	return f.definitions().Get("ServerCapabilities").Get("properties").Get("extensions") != nil
}

// definitions returns the object of the definitions, which every file has.
func (f *file) definitions() *jsontree.Node {
	if definitions := f.tree.Values[0].Get("$defs"); definitions != nil {
		return definitions
	}
	return f.tree.Values[0].Get("definitions")
}

// groupFiles groups the files by revision.
func groupFiles(files []*file) ([][]*file, error) {
	var sets [][]*file
	var core, extension *file
	for _, f := range files {
		part := &core
		switch {
		case f.isCore() && f.hasTasks():
			sets = append(sets, []*file{f})
			continue
		case f.hasTasks():
			part = &extension
		case !f.isCore():
			return nil, fmt.Errorf("%s: this is a JSON Schema but not an MCP schema: it defines neither tasks nor capabilities; %s", f.name, publishedHint)
		case !f.hasExtensions():
			return nil, fmt.Errorf("%s: this MCP schema has no tasks; the first revision with tasks is 2025-11-25: %s", f.name, publishedHint)
		}
		if *part != nil {
			return nil, fmt.Errorf("%s: %s is the same part of a revision; give only one of them", f.name, (*part).name)
		}
		*part = f
	}
	switch {
	case extension != nil && core != nil:
		sets = append(sets, []*file{core, extension})
	case extension != nil:
		sets = append(sets, []*file{extension})
	case core != nil:
		return nil, fmt.Errorf("%s: this revision defines its tasks in an extension; add the extension's file with another --schema: %s", core.name, extensionHint)
	}
	return sets, nil
}
