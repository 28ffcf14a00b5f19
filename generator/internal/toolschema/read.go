// Package toolschema reads a server's answer to tools/list. It converts the JSON Schemas of the
// tools to Go types and returns a model with a service whose methods are the tools.
package toolschema

import (
	"errors"
	"go/types"
	"path/filepath"
	"strings"

	"github.com/mcptaskgen/mcptaskgen/generator/internal/diag"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/jsontree"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/model"
	"github.com/mcptaskgen/mcptaskgen/generator/internal/words"
)

// Config names the parts of the result.
type Config struct {
	Path    string // the path of the file, for messages
	Package string // the package name
	Service string // a Go identifier; empty means the server's name if the file has it, or the file's
}

// Read returns the model of a file with a server's answer to tools/list. It adds every mistake in
// the file to problems and then returns nil.
func Read(cfg Config, text []byte, problems *diag.List) *model.Remote {
	file, err := jsontree.Read(cfg.Path, text, jsontree.MaxDepth)
	if fault := (*jsontree.Error)(nil); errors.As(err, &fault) {
		problems.Add(fault.Pos, fault.Message, "give the JSON that tools/list returned")
		return nil
	}
	l := &toolList{file: file, problems: problems, seen: map[string]bool{}}
	before := problems.Len()
	for _, value := range file.Values {
		l.readMessage(value)
	}
	l.checkComplete()
	remote := l.buildModel(cfg)
	if problems.Len() > before {
		return nil
	}
	return remote
}

// toolList collects the tools of a file.
type toolList struct {
	file     *jsontree.File
	problems *diag.List
	server   string // its name, if the file has the answer to initialize
	tools    []*tool
	seen     map[string]bool
	pages    int
	cursor   *jsontree.Node // the cursor of the last page; may be nil
}

// tool is one tool of the file.
type tool struct {
	at                       *jsontree.Node
	name, title, description string
	input, output            *jsontree.Node
	support                  model.Support // empty if the server does not say
	hints                    []string
}

func (l *toolList) addProblem(at *jsontree.Node, message, hint string) {
	l.problems.Add(l.file.Position(at.Offset), message, hint)
}

// readMessage reads a value of the file: a response, a result, a list of them, or a tool.
func (l *toolList) readMessage(n *jsontree.Node) {
	switch {
	case n.Kind == jsontree.Array:
		if len(n.Items) == 0 {
			l.pages++
		}
		for _, item := range n.Items {
			l.readMessage(item)
		}
	case n.Kind != jsontree.Object:
		l.addProblem(n, n.Kind.String()+" is not an answer to tools/list", "give the result, its array of tools or the whole response")
	case n.Get("method") != nil && n.Get("result") == nil: // skip requests and notifications
	case n.Get("error") != nil && n.Get("jsonrpc") != nil:
		text, _ := n.Get("error").Get("message").Text()
		l.addProblem(n, "the server refused: "+words.QuoteJSON(text), "give the answer to a tools/list request that the server accepts")
	case n.Get("result") != nil:
		l.readResult(n.Get("result"))
	case n.Get("tools") != nil || n.Get("serverInfo") != nil:
		l.readResult(n)
	case n.Get("name") != nil || n.Get("inputSchema") != nil:
		l.pages++
		l.readTool(n)
	default:
		l.addProblem(n, `the object has no "tools"`, "give the result of tools/list, its array of tools or the whole response")
	}
}

// readResult reads the result of a request: a page of the list, or the server's name. It ignores
// other results, which a recorded session contains.
func (l *toolList) readResult(n *jsontree.Node) {
	if name, ok := n.Get("serverInfo").Get("name").Text(); ok {
		l.server = name
	}
	tools := n.Get("tools")
	if tools == nil {
		return
	}
	if tools.Kind != jsontree.Array {
		l.addProblem(tools, `"tools" is `+tools.Kind.String()+", not an array", "")
		return
	}
	l.pages++
	l.cursor = n.Get("nextCursor")
	for _, item := range tools.Items {
		l.readTool(item)
	}
}

func (l *toolList) checkComplete() {
	if l.pages == 0 && l.problems.Len() == 0 {
		l.problems.Add(l.file.Position(0), "the file contains no tools", "give the result of tools/list")
	} else if len(l.tools) == 0 && l.problems.Len() == 0 {
		l.problems.Add(l.file.Position(0), "the list of tools is empty", "the server may offer them to other clients; see its documentation")
	}
	if cursor, ok := l.cursor.Text(); ok && cursor != "" {
		l.addProblem(l.cursor, "the list continues after this page", "call tools/list with this cursor and put all pages into one array")
	}
}

func (l *toolList) readTool(n *jsontree.Node) {
	if n.Kind != jsontree.Object {
		l.addProblem(n, "a tool must be an object, not "+n.Kind.String(), "")
		return
	}
	t := &tool{at: n, title: l.readString(n, "title"), description: l.readString(n, "description")}
	name := n.Get("name")
	switch s, ok := name.Text(); {
	case name == nil:
		l.addProblem(n, "the tool has no name", "")
	case !ok || s == "":
		l.addProblem(name, "the name of a tool must be a nonempty string", "")
	case l.seen[s]:
		l.addProblem(name, "the file has two tools "+words.QuoteJSON(s), "if the file contains a page twice, remove one copy")
	default:
		l.seen[s] = true
		t.name = s
	}
	if t.title == "" {
		t.title = l.readString(n.Get("annotations"), "title")
	}
	t.hints = l.readHints(n.Get("annotations"))
	switch support := n.Get("execution").Get("taskSupport"); {
	case support == nil:
	case support.Is("forbidden"), support.Is("optional"), support.Is("required"):
		s, _ := support.Text()
		t.support = model.Support(s)
	default:
		l.addProblem(support, "unknown taskSupport "+support.Compact(), `use "forbidden", "optional" or "required"`)
	}
	t.input, t.output = n.Get("inputSchema"), n.Get("outputSchema")
	switch {
	case t.input == nil:
		l.addProblem(n, "the tool has no inputSchema", `for a tool without arguments, use {"type": "object"}`)
	case t.input.Kind != jsontree.Object:
		l.addProblem(t.input, "an inputSchema must be an object, not "+t.input.Kind.String(), `for a tool without arguments, use {"type": "object"}`)
		t.input = nil
	}
	if t.output.Is(nil) {
		t.output = nil
	}
	l.tools = append(l.tools, t)
}

// readString reads an optional string member.
func (l *toolList) readString(n *jsontree.Node, name string) string {
	value := n.Get(name)
	if value == nil || value.Is(nil) {
		return ""
	}
	s, ok := value.Text()
	if !ok {
		l.addProblem(value, name+" is "+value.Kind.String()+", not a string", "")
	}
	return s
}

// readHints describes a tool's annotations.
func (l *toolList) readHints(n *jsontree.Node) []string {
	var said []string
	for _, hint := range []struct{ key, yes, no string }{
		{"readOnlyHint", "read-only", "not read-only"},
		{"destructiveHint", "destructive", "not destructive"},
		{"idempotentHint", "idempotent", "not idempotent"},
		{"openWorldHint", "open world", "closed world"},
	} {
		if n.Get("readOnlyHint").Is(true) && (hint.key == "destructiveHint" || hint.key == "idempotentHint") {
			continue // both hints are about changes
		}
		switch value := n.Get(hint.key); {
		case value.Is(true):
			said = append(said, hint.yes)
		case value.Is(false):
			said = append(said, hint.no)
		}
	}
	return said
}

// Limits of names keep the lines of the output within their columns.
const (
	serviceLimit = 30
	methodLimit  = 35
	typeLimit    = 45
	defLimit     = 30 // for types named after a schema of their own
	fieldLimit   = 28
	tagLimit     = 45 // for the name of a property
	rowLimit     = 98 // for a field's name, type and property together
	constLimit   = 60
)

// buildModel returns the model of the tools.
func (l *toolList) buildModel(cfg Config) *model.Remote {
	taken := takenNames{}
	service := cfg.Service
	if service == "" {
		service = exportedName(chooseServiceName(l.server, cfg.Path), serviceLimit)
	}
	taken[service] = true
	for _, id := range model.ServiceNames(service) {
		taken[id] = true
	}
	g := &goTypes{toolList: l, pkg: types.NewPackage(ownPath, cfg.Package), taken: taken, of: map[*jsontree.Node]form{}}
	methods := l.nameMethods()
	roots := map[*jsontree.Node]string{}
	for _, t := range sortedBy(l.tools, func(t *tool) string { return namingOrder(t.name) }) {
		for _, root := range []struct {
			schema *jsontree.Node
			suffix string
		}{{t.input, "Input"}, {t.output, "Output"}} {
			if root.schema != nil {
				roots[root.schema] = taken.takeUnique(methods[t] + root.suffix)
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
			m.In = g.inputType(t.input, roots[t.input], "the input of the tool "+t.name)
		}
		if t.output != nil {
			m.Out, m.OutKind = g.outputType(t.output, roots[t.output], "the output of the tool "+t.name), model.Structured
		}
		s.Tools = append(s.Tools, m)
	}
	return &model.Remote{
		Package: model.Package{Path: ownPath, Name: cfg.Package, Services: []*model.Service{s}, Taken: taken},
		Source:  filepath.Base(cfg.Path), Types: g.declared,
	}
}

// ownPath is the import path of the generated package. Nothing depends on it.
const ownPath = "."

// nameMethods names the methods of the tools. It sorts the tools by name, so that the server's
// order has no effect.
func (l *toolList) nameMethods() map[*tool]string {
	own := takenNames{}
	methods := map[*tool]string{}
	for _, t := range sortedBy(l.tools, func(t *tool) string { return namingOrder(t.name) }) {
		methods[t] = own.takeUniqueSet(exportedName(t.name, methodLimit), func(id string) []string {
			return []string{id, "Start" + id, "Resume" + id}
		})
	}
	return methods
}

// chooseServiceName returns the server's name without its namespace, or else the name of the file.
// For a file named tools.json, it returns the name of the directory.
func chooseServiceName(server, path string) string {
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
