// Package toolschema reads what a server answers to tools/list and makes a model of it: Go types of
// the JSON Schemas of its tools, and a service whose methods are the tools.
package toolschema

import (
	"go/types"
	"path/filepath"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
)

// Config says what the result is to be called.
type Config struct {
	Path    string // of the file, for messages
	Package string // the name of the package
	Service string // a Go identifier, or empty: the server's name if the file has it, else the file's
}

// Read makes a model of a file with the answer of a server to tools/list. What is wrong with the file
// goes to problems, everything at once; the model is nil then.
func Read(cfg Config, text []byte, problems *diag.List) *model.Remote {
	f := newFile(cfg.Path, text)
	before := problems.Len()
	values, err := f.parse()
	if err != nil {
		offset := 0
		if syntax, ok := err.(*syntaxError); ok { //nolint:errorlint // parse gives nothing else, and wraps nothing
			offset = syntax.offset
		}
		problems.Add(f.position(offset), err.Error(), "the file is to be what tools/list returned, as JSON")
		return nil
	}
	l := &listing{file: f, problems: problems, seen: map[string]bool{}}
	for _, value := range values {
		l.message(value)
	}
	l.finish()
	remote := l.remote(cfg)
	if problems.Len() > before {
		return nil
	}
	return remote
}

// listing gathers the tools of a file.
type listing struct {
	file     *file
	problems *diag.List
	server   string // its name, where the file has its answer to initialize
	tools    []*tool
	seen     map[string]bool
	pages    int
	cursor   *node // of the last page, where it has one
}

// tool is one tool as the file has it.
type tool struct {
	at                       *node
	name, title, description string
	input, output            *node
	support                  model.Support // empty where the server does not say
	hints                    []string
}

func (l *listing) problem(at *node, message, hint string) {
	l.problems.Add(l.file.position(at.offset), message, hint)
}

// message reads a value of the file: a response, a result, a list of them, or a tool.
func (l *listing) message(n *node) {
	switch {
	case n.kind == array:
		if len(n.items) == 0 {
			l.pages++
		}
		for _, item := range n.items {
			l.message(item)
		}
	case n.kind != object:
		l.problem(n, n.what()+" is no answer to tools/list", "give the result, its array of tools or the whole response")
	case n.get("method") != nil && n.get("result") == nil: // a request or a notification between the answers
	case n.get("error") != nil && n.get("jsonrpc") != nil:
		text, _ := n.get("error").get("message").text()
		l.problem(n, "the server refused: "+quote(text), "give its answer to a tools/list that it accepts")
	case n.get("result") != nil:
		l.result(n.get("result"))
	case n.get("tools") != nil || n.get("serverInfo") != nil:
		l.result(n)
	case n.get("name") != nil || n.get("inputSchema") != nil:
		l.pages++
		l.tool(n)
	default:
		l.problem(n, `the object has no "tools"`, "give the result of tools/list, its array of tools or the whole response")
	}
}

// result reads the result of a request: a page of the list, or who the server is. Others are passed
// over, a recorded session has them.
func (l *listing) result(n *node) {
	if name, ok := n.get("serverInfo").get("name").text(); ok {
		l.server = name
	}
	tools := n.get("tools")
	if tools == nil {
		return
	}
	if tools.kind != array {
		l.problem(tools, `"tools" is `+tools.what()+", not an array", "")
		return
	}
	l.pages++
	l.cursor = n.get("nextCursor")
	for _, item := range tools.items {
		l.tool(item)
	}
}

func (l *listing) finish() {
	if l.pages == 0 && l.problems.Len() == 0 {
		l.problems.Add(l.file.position(0), "there are no tools in the file", "give the result of tools/list")
	} else if len(l.tools) == 0 && l.problems.Len() == 0 {
		l.problems.Add(l.file.position(0), "the list of tools is empty", "the server may offer them to other clients; see its documentation")
	}
	if cursor, ok := l.cursor.text(); ok && cursor != "" {
		l.problem(l.cursor, "the list goes on after this page", "call tools/list with this cursor and put all pages into one array")
	}
}

func (l *listing) tool(n *node) {
	if n.kind != object {
		l.problem(n, "a tool is an object, not "+n.what(), "")
		return
	}
	t := &tool{at: n, title: l.string(n, "title"), description: l.string(n, "description")}
	name := n.get("name")
	switch s, ok := name.text(); {
	case name == nil:
		l.problem(n, "the tool has no name", "")
	case !ok || s == "":
		l.problem(name, "the name of a tool is a text that is not empty", "")
	case l.seen[s]:
		l.problem(name, "there are two tools "+quote(s), "where a page stands in the file twice, remove one")
	default:
		l.seen[s] = true
		t.name = s
	}
	if t.title == "" {
		t.title = l.string(n.get("annotations"), "title")
	}
	t.hints = l.hints(n.get("annotations"))
	switch support := n.get("execution").get("taskSupport"); {
	case support == nil:
	case support.is("forbidden"), support.is("optional"), support.is("required"):
		s, _ := support.text()
		t.support = model.Support(s)
	default:
		l.problem(support, "taskSupport is "+support.line(), `it is "forbidden", "optional" or "required"`)
	}
	t.input, t.output = n.get("inputSchema"), n.get("outputSchema")
	switch {
	case t.input == nil:
		l.problem(n, "the tool has no inputSchema", `one without arguments has {"type": "object"}`)
	case t.input.kind != object:
		l.problem(t.input, "an inputSchema is an object, not "+t.input.what(), `one without arguments has {"type": "object"}`)
		t.input = nil
	}
	if t.output.is(nil) {
		t.output = nil
	}
	l.tools = append(l.tools, t)
}

// string reads a member that may be missing and is a text.
func (l *listing) string(n *node, name string) string {
	value := n.get(name)
	if value == nil || value.is(nil) {
		return ""
	}
	s, ok := value.text()
	if !ok {
		l.problem(value, name+" is "+value.what()+", not a text", "")
	}
	return s
}

// hints says what a tool's annotations do.
func (l *listing) hints(n *node) []string {
	var said []string
	for _, hint := range []struct{ key, yes, no string }{
		{"readOnlyHint", "read-only", "not read-only"},
		{"destructiveHint", "destructive", "not destructive"},
		{"idempotentHint", "idempotent", "not idempotent"},
		{"openWorldHint", "open world", "closed world"},
	} {
		if n.get("readOnlyHint").is(true) && (hint.key == "destructiveHint" || hint.key == "idempotentHint") {
			continue // they speak of what is changed
		}
		switch value := n.get(hint.key); {
		case value.is(true):
			said = append(said, hint.yes)
		case value.is(false):
			said = append(said, hint.no)
		}
	}
	return said
}

// The limits of names keep the lines of the output within their columns.
const (
	serviceLimit = 30
	methodLimit  = 35
	typeLimit    = 45
	defLimit     = 30 // of types that are named after a schema of their own
	fieldLimit   = 28
	tagLimit     = 45 // of a property's name
	rowLimit     = 98 // of a field's name, type and property together
	constLimit   = 60
)

// remote makes the model.
func (l *listing) remote(cfg Config) *model.Remote {
	taken := names{}
	service := cfg.Service
	if service == "" {
		service = identifier(serverName(l.server, cfg.Path), serviceLimit)
	}
	taken[service] = true
	for _, id := range model.ServiceNames(service) {
		taken[id] = true
	}
	g := &goTypes{listing: l, pkg: types.NewPackage(ownPath, cfg.Package), taken: taken, of: map[*node]form{}}
	methods := l.methods()
	roots := map[*node]string{}
	for _, t := range sortedBy(l.tools, func(t *tool) string { return preference(t.name) }) {
		for _, root := range []struct {
			schema *node
			suffix string
		}{{t.input, "Input"}, {t.output, "Output"}} {
			if root.schema != nil {
				roots[root.schema] = taken.unique(methods[t] + root.suffix)
			}
		}
	}
	s := &model.Service{Name: service}
	for _, t := range l.tools {
		m := &model.Tool{
			Method: methods[t], Name: t.name, Doc: toolDoc(t, methods[t]), Policy: model.Policy{Task: model.Optional},
			Out: resultPointer, OutKind: model.Content,
		}
		if t.support != "" {
			m.Policy.Task = t.support
		}
		if t.input != nil {
			m.In = g.input(t.input, roots[t.input], "the input of the tool "+t.name)
		}
		if t.output != nil {
			m.Out, m.OutKind = g.output(t.output, roots[t.output], "the output of the tool "+t.name), model.Structured
		}
		s.Tools = append(s.Tools, m)
	}
	return &model.Remote{
		Package: model.Package{Path: ownPath, Name: cfg.Package, Services: []*model.Service{s}, Taken: taken},
		Source:  filepath.Base(cfg.Path), Types: g.declared,
	}
}

// ownPath is the import path of the package that the file is for, which nothing depends on.
const ownPath = "."

// methods names the methods of the tools: by the names of the tools, so that the order in which a
// server lists them says nothing.
func (l *listing) methods() map[*tool]string {
	own := names{}
	methods := map[*tool]string{}
	for _, t := range sortedBy(l.tools, func(t *tool) string { return preference(t.name) }) {
		methods[t] = own.uniqueFor(identifier(t.name, methodLimit), func(id string) []string {
			return []string{id, "Start" + id, "Resume" + id}
		})
	}
	return methods
}

// serverName is what a service is called after: a server's own name without its namespace, else the
// name of the file, or of its folder where it says only that it lists tools.
func serverName(server, path string) string {
	if server = strings.TrimRight(server, "/"); server != "" {
		return server[strings.LastIndex(server, "/")+1:]
	}
	base, _, _ := strings.Cut(filepath.Base(path), ".")
	if base != "" && !strings.EqualFold(base, "tools") {
		return base
	}
	if abs, err := filepath.Abs(path); err == nil {
		if dir := filepath.Base(filepath.Dir(abs)); strings.Trim(dir, `./\`) != "" {
			return dir
		}
	}
	return "tools"
}
