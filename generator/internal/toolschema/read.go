// Package toolschema reads a server's answer to tools/list. It converts the JSON Schemas of the
// tools to Go types and returns a model with a service whose methods are the tools.
package toolschema

import (
	"cmp"
	"errors"
	"go/types"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

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
	// Side selects the half to generate. With both, the server's is left out if the runtime cannot
	// offer one of the tools.
	Side model.Side
	// Revisions are the revisions to call the server in. Empty means those that the list suggests.
	Revisions []string
	// Portable turns the notes about tools that hosts or providers of models do not take into errors.
	Portable bool
}

// Read returns the model of a file with a server's answer to tools/list. It adds every mistake in
// the file to problems and then returns nil.
func Read(cfg Config, text []byte, problems *diag.List) *model.Remote {
	file, err := jsontree.Read(cfg.Path, text, jsontree.MaxDepth)
	if fault := (*jsontree.Error)(nil); errors.As(err, &fault) {
		problems.Add(fault.Pos, fault.Message, "give the JSON that tools/list returned")
		return nil
	}
	l := &toolList{file: file, problems: problems, before: problems.Len(), seen: map[string]bool{}}
	for _, value := range file.Values {
		l.readMessage(value)
	}
	l.checkComplete()
	if cfg.Portable || cfg.Side.Serves() { // a host does not see the tools that a client in Go calls
		l.checkRefused(cfg.Portable)
	}
	return l.buildModel(cfg)
}

// toolList collects the tools of a file.
type toolList struct {
	file     *jsontree.File
	problems *diag.List
	before   int    // the number of problems before
	server   string // its name, if the file has the answer to initialize
	// about is the answer to initialize or server/discover, or nil.
	about  *jsontree.Node
	tools  []*tool
	seen   map[string]bool
	pages  int
	cursor *jsontree.Node // the cursor of the last page; may be nil
}

// tool is one tool of the file.
type tool struct {
	at                       *jsontree.Node
	name, title, description string
	input, output            *jsontree.Node
	support                  model.Support // empty if the server does not state it
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
		for _, name := range []string{"initialize", "server/discover"} { // as mcptaskgen tools writes them
			if about := n.Get(name); about != nil {
				l.readResult(about)
			}
		}
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
		l.server, l.about = name, n
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
	t.hints = describeHints(n.Get("annotations"))
	switch support := n.Get("execution").Get("taskSupport"); {
	case support == nil, support.Is(nil):
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

// hints are the annotations that describe a tool's effects.
var hints = []struct{ key, yes, no string }{
	{"readOnlyHint", "read-only", "not read-only"},
	{"destructiveHint", "destructive", "not destructive"},
	{"idempotentHint", "idempotent", "not idempotent"},
	{"openWorldHint", "open world", "closed world"},
}

// describeHints describes a tool's annotations.
func describeHints(n *jsontree.Node) []string {
	var said []string
	for _, hint := range hints {
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

// Limits of names and texts from outside, in characters. Real ones are below them.
const (
	nameLimit = 64  // of a Go name; a longer one ends after a word
	tagLimit  = 128 // of a property in a struct tag
)

// buildModel returns the model of the tools, or nil if the file has mistakes.
func (l *toolList) buildModel(cfg Config) *model.Remote {
	taken := takenNames{}
	service := cfg.Service
	if service == "" {
		service = exportedName(chooseServiceName(l.server, cfg.Path), nameLimit)
	}
	taken[service] = true
	for _, id := range append(model.ServiceNames(service), model.ServerType(service)) {
		taken[id] = true
	}
	side := l.checkServer(cfg.Side)
	g := &goTypes{toolList: l, pkg: types.NewPackage(ownPath, cfg.Package), taken: taken, of: map[*jsontree.Node]form{}, byType: map[*types.Named]*declaration{}}
	// The server's order has no effect on names.
	sorted := sortedBy(l.tools, func(t *tool) string { return namingOrder(t.name) })
	methods := l.nameMethods(sorted)
	roots := map[*jsontree.Node]string{}
	for _, t := range sorted {
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
	unstated := l.unstatedSupport(cfg.Revisions)
	for _, t := range l.tools {
		m := &model.Tool{
			Method: methods[t], Name: t.name, Doc: toolDoc(t, methods[t], side), Policy: model.Policy{Task: cmp.Or(t.support, unstated)},
			Out: resultPointer, OutKind: model.Content,
		}
		if side.Serves() {
			m.Entry, m.EntryConst = formatEntry(t.at), model.EntryConst(service, m.Method)
			m.Task = l.mayServeTask(t, unstated)
		}
		if t.input != nil {
			m.In = g.inputType(t.input, roots[t.input], "the input of the tool "+t.name)
		}
		if t.output != nil {
			m.Out, m.OutKind = g.outputType(t.output, roots[t.output], "the output of the tool "+t.name), model.Structured
		}
		s.Tools = append(s.Tools, m)
	}
	if l.problems.Len() > l.before {
		return nil // there may be thousands of types, each inside the next
	}
	declared := g.nameTypes()
	for _, m := range s.Tools {
		m.In, m.Out = g.finalType(m.In), g.finalType(m.Out)
	}
	return &model.Remote{
		Package: model.Package{Path: ownPath, Name: cfg.Package, Services: []*model.Service{s}, Side: side, Taken: taken},
		Source:  filepath.Base(cfg.Path), Types: declared,
	}
}

// unstatedSupport returns the task support of tools that do not state it. In 2025-11-25 they have
// none (C-14). In 2026-07-28 no tool states it, and the server declares tasks for all.
func (l *toolList) unstatedSupport(revisions []string) model.Support {
	const statesSupport = "2025-11-25"
	extensions := l.about.Get("capabilities").Get("extensions")
	switch {
	case len(revisions) > 0:
		if slices.Equal(revisions, []string{statesSupport}) {
			return model.Forbidden
		}
	case extensions.Get("io.modelcontextprotocol/tasks") != nil:
	case l.about != nil, slices.ContainsFunc(l.tools, func(t *tool) bool { return t.support != "" }):
		return model.Forbidden
	}
	return model.Optional
}

// mayServeTask reports whether a server of the list may run a tool as a task. A list that does not state it makes no
// promise.
func (l *toolList) mayServeTask(t *tool, unstated model.Support) bool {
	if t.support == "" {
		return unstated != model.Forbidden && l.about.Get("supportedVersions") != nil
	}
	return t.support != model.Forbidden
}

// ownPath is the import path of the generated package. Nothing depends on it.
const ownPath = "."

// nameMethods names the methods of the tools.
func (l *toolList) nameMethods(sorted []*tool) map[*tool]string {
	own := takenNames{}
	methods := map[*tool]string{}
	prefix := l.sharedPrefix()
	for _, t := range sorted {
		methods[t] = own.takeUniqueSet(exportedName(t.name[prefix:], nameLimit), func(id string) []string {
			return []string{id, "Start" + id, "Resume" + id}
		})
	}
	return methods
}

// sharedPrefix returns the length of a prefix that all names have, such as browser_ or API-. One or
// two tools, or a verb, prove no prefix: get_user and get_team differ in their objects.
func (l *toolList) sharedPrefix() int {
	if len(l.tools) < 3 {
		return 0
	}
	first := l.tools[0].name
	end := strings.IndexAny(first, "_-./:") + 1
	if end < 2 || slices.Contains(verbs, strings.ToLower(first[:end-1])) {
		return 0
	}
	for _, t := range l.tools {
		rest, ok := strings.CutPrefix(t.name, first[:end])
		if r, _ := utf8.DecodeRuneInString(rest); !ok || !unicode.IsLetter(r) {
			return 0
		}
	}
	return end
}

// verbs are words that names of tools often begin with.
var verbs = strings.Fields("add ask build call check clear close convert copy count create delete describe do download edit execute export fetch " +
	"find generate get import insert is list load lookup make manage move open patch post put query read remove render reset resolve retrieve run " +
	"save scan scrape search select send set show start stop sync test toggle translate trigger update upload validate view write")

// chooseServiceName returns the server's name without its namespace and without saying that it is a
// server, or else the name of the file. For a file named tools.json, it returns the name of the
// directory.
func chooseServiceName(server, path string) string {
	if server = strings.TrimRight(server, "/"); server != "" {
		words := strings.FieldsFunc(server[strings.LastIndex(server, "/")+1:], func(r rune) bool { return strings.ContainsRune(" -_", r) })
		isKind := func(word string) bool {
			return slices.Contains([]string{"mcp", "fastmcp", "server"}, strings.ToLower(word))
		}
		if kept := slices.DeleteFunc(slices.Clone(words), isKind); len(kept) > 0 {
			words = kept
		}
		if len(words) > 0 {
			return strings.Join(words, " ")
		}
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
