// Package schemafile reads MCP schema files as published, tells which revision of the protocol they
// are of, and, where that is none that is known, what differs from the nearest and what comes of it.
package schemafile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/schema"
)

// maxSize is the most that a file may have, in bytes: forty times what published ones do.
const maxSize = 8 << 20

// file is one schema file.
type file struct {
	name     string // relative to the working directory
	document *schema.Document
	places   map[place]token.Position
}

// Read reads schema files and returns what each revision among them is: a file of the core with tasks
// stands alone, one of the core without them goes with the file of the extension, in either order.
// Names are relative to dir. Its error says what is wrong with every file.
func Read(dir string, names []string) ([]*Schema, error) {
	var problems diag.List
	var files []*file
	for _, name := range names {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		if f := readFile(dir, path, &problems); f != nil {
			files = append(files, f)
		}
	}
	if problems.Len() > 0 {
		return nil, problems.Err(dir)
	}
	sets, err := groupFiles(files)
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

const (
	publishedHint = "take it from github.com/modelcontextprotocol/modelcontextprotocol, schema/REVISION/schema.json"
	extensionHint = "github.com/modelcontextprotocol/ext-tasks, schema/draft/schema.json"
)

func readFile(dir, path string, problems *diag.List) *file {
	at := token.Position{Filename: path}
	text, err := readLimited(path)
	if err != nil {
		problems.Add(at, err.Error(), publishedHint)
		return nil
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	document, err := schema.Parse(text)
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &syntax):
		offset := max(int(syntax.Offset)-1, 0)
		hint := publishedHint
		if int(syntax.Offset) >= len(text) {
			hint = "the file ends early; " + hint
		}
		problems.Add(newLines(path, text).position(offset), "this is not JSON: "+syntax.Error(), hint)
		return nil
	case err != nil:
		problems.Add(at, err.Error(), publishedHint)
		return nil
	}
	name := diag.Relative(dir, path)
	found, deepest := findPlaces(name, text)
	if deepest > maxDepth {
		problems.Add(at, fmt.Sprintf("the values nest deeper than %d, which no schema of MCP does", maxDepth), publishedHint)
		return nil
	}
	return &file{name: name, document: document, places: found}
}

func readLimited(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist) && strings.Contains(path, ","): // as --revision takes them
		return nil, errors.New("there is no such file; each of several takes a --schema of its own")
	case errors.Is(err, os.ErrNotExist):
		return nil, errors.New("there is no such file")
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, errors.New("this is a folder, not a schema file")
	case info.Size() > maxSize:
		return nil, fmt.Errorf("the file has %d MB; a published schema has less than one, and more than %d are not read", info.Size()>>20, maxSize>>20)
	}
	return os.ReadFile(path)
}

// define tells whether a file has one of the definitions.
func (f *file) definesAny(names ...string) bool {
	return slices.ContainsFunc(f.document.Definitions, func(d schema.Definition) bool { return slices.Contains(names, d.Name) })
}

// isCore tells a file of the core from one of the extension, which repeats some of the core's definitions.
func (f *file) isCore() bool {
	return f.definesAny("ClientCapabilities", "ServerCapabilities", "CallToolRequest", "JSONRPCMessage")
}

func (f *file) hasTasks() bool {
	return slices.ContainsFunc(f.document.Definitions, func(d schema.Definition) bool { return isTaskDefinition(d.Name) })
}

// isTaskDefinition tells whether a definition is about tasks, by its name.
func isTaskDefinition(definition string) bool { return strings.Contains(definition, "Task") }

// hasExtensions tells whether the revision of a core file moves things to extensions.
func (f *file) hasExtensions() bool {
	for _, d := range f.document.Definitions {
		if d.Name == "ServerCapabilities" {
			var form struct {
				Properties map[string]json.RawMessage `json:"properties"`
			}
			return json.Unmarshal(d.Schema, &form) == nil && form.Properties["extensions"] != nil
		}
	}
	return false
}

// groupFiles puts the files together that one revision consists of.
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
			return nil, fmt.Errorf("%s: this is a JSON Schema, but not one of MCP: it defines neither tasks nor capabilities; %s", f.name, publishedHint)
		case !f.hasExtensions():
			return nil, fmt.Errorf("%s: this schema of MCP has no tasks; the first revision that has them is 2025-11-25: %s", f.name, publishedHint)
		}
		if *part != nil {
			return nil, fmt.Errorf("%s: %s is of the same kind, a part of one revision; give one of the two", f.name, (*part).name)
		}
		*part = f
	}
	switch {
	case extension != nil && core != nil:
		sets = append(sets, []*file{core, extension})
	case extension != nil:
		sets = append(sets, []*file{extension})
	case core != nil:
		return nil, fmt.Errorf("%s: this revision has its tasks in an extension, with a file of its own; give that with another --schema: %s", core.name, extensionHint)
	}
	return sets, nil
}
