package golden_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mcptaskgen/mcptaskgen/generator"
)

// TestLinesPerTool holds every generated file of golden packages and examples to at most 60 lines a tool
// beyond schemas. Counted are the declarations of the services, with their comments and a blank line each:
// the function that binds a service's tools, its client with all methods, and where the file is made from a
// list of tools the interface. Not counted is what no tool adds: schemas and the types that stand for them,
// questions, and what a package has once.
func TestLinesPerTool(t *testing.T) {
	for _, path := range generatedForUsers(t) {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		services := servicesOf(file)
		lines, tools := 0, map[string]bool{}
		for _, decl := range file.Decls {
			switch kind := services.kindOf(decl); kind {
			case "":
				t.Errorf("%s is not known to TestLinesPerTool", fset.Position(decl.Pos()))
			case "service":
				lines += fset.Position(decl.End()).Line - fset.Position(begin(decl)).Line + 2
				findTools(decl, tools)
			}
		}
		if len(tools) == 0 {
			t.Errorf("%s has no tools", path)
			continue
		}
		perTool := float64(lines) / float64(len(tools))
		if perTool > 60 {
			t.Errorf("%s has %.1f lines a tool, want at most 60", path, perTool)
		}
		t.Logf("%4.1f lines a tool: %s with %d", perTool, path, len(tools))
	}
}

// TestLongNames: where names are long, what stands beside them is broken over lines.
func TestLongNames(t *testing.T) {
	root := t.TempDir()
	writeStub(t, root)
	dir := filepath.Join(root, "long")
	writeModule(t, dir, "example.com/long")
	service := "AServiceWithANameThatGoesOnAndOnUntilNothingElse"
	writeFile(t, filepath.Join(dir, "long.go"), "package long\n\nimport (\n\t\"context\"\n\n"+
		"\tmcptask \"github.com/mcptaskgen/mcptaskgen/runtime\"\n)\n\n"+
		"// "+service+" works.\n//\n//mcptask:service fallback=tools\ntype "+service+" interface {\n"+
		"\t// WorkForALongTime works on "+strings.Repeat("a/path/", 20)+" and "+strings.Repeat("more and ", 20)+"more.\n"+
		"\tWorkForALongTime(ctx context.Context, task *mcptask.Task, in ALot, "+strings.Repeat("Sure", 10)+"OfIt Sure) (ALot, error)\n}\n\n"+
		"// Sure is asked for.\n//\n//mcptask:input message=\""+strings.Repeat("very ", 30)+"sure?\"\n"+
		"type Sure struct{ OK bool `json:\"ok\"` }\n\n"+
		"// ALot has a name.\ntype ALot struct {\n\tName string `json:\""+strings.Repeat("long_", 30)+"\"`\n}\n")
	out, err := generator.Generate(t.Context(), generator.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range lines(out.Files[generator.OutputName]) {
		comment := strings.HasPrefix(line, "// a/path/") // of one word
		if n := len([]rune(strings.ReplaceAll(line, "\t", "    "))); n > 120 && !comment {
			t.Errorf("line %d has %d columns:\n%s", i+1, n, line)
		}
	}
}

// generatedForUsers lists the generated files of golden packages and examples.
func generatedForUsers(t *testing.T) []string {
	t.Helper()
	var files []string
	for _, root := range []string{".", "../examples"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			switch {
			case err == nil && entry.Name() == "node_modules":
				return filepath.SkipDir
			case strings.HasSuffix(path, "_gen.go"):
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(files) < 20 {
		t.Fatalf("%d generated files, %v", len(files), files)
	}
	return files
}

// services are the names of a file's services.
type services map[string]bool

// servicesOf finds the services by their clients and by the functions that bind their tools.
func servicesOf(file *ast.File) services {
	found := services{}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if name, ok := strings.CutSuffix(decl.Name.Name, "Tools"); ok && decl.Recv == nil {
				found[name] = true
			}
		case *ast.GenDecl:
			spec, ok := decl.Specs[0].(*ast.TypeSpec)
			if !ok {
				continue
			}
			// A type that stands for a schema may be called so, but has no connection.
			name, isClient := strings.CutSuffix(spec.Name.Name, "Client")
			if st, ok := spec.Type.(*ast.StructType); ok && isClient && len(st.Fields.List) == 1 && st.Fields.List[0].Names[0].Name == "conn" {
				found[name] = true
			}
		}
	}
	return found
}

var (
	// question matches the functions that a //mcptask:input has.
	question = regexp.MustCompile(`^([Aa]sk|[Aa]nswer)\p{Lu}|^\p{Ll}\w*Input$`)
	// helper matches those that types with more properties than fields share.
	helper = regexp.MustCompile(`^\p{Ll}\w*(Join|Split)$`)
)

// kindOf tells what a declaration belongs to: service, schema, question, or once for what a package has
// once; empty for what is none of these, so that nothing new goes uncounted.
func (s services) kindOf(decl ast.Decl) string {
	if function, ok := decl.(*ast.FuncDecl); ok {
		name := function.Name.Name
		switch {
		case function.Recv != nil:
			return s.kindOfType(receiver(function))
		case s.has(name, "", "Tools"), s.has(name, "New", "Client"):
			return "service"
		case question.MatchString(name):
			return "question"
		case helper.MatchString(name):
			return "schema"
		case name == "taskCapabilities":
			return "once"
		}
		return ""
	}
	group := decl.(*ast.GenDecl)
	switch spec := group.Specs[0].(type) {
	case *ast.ImportSpec:
		return "once"
	case *ast.TypeSpec:
		return s.kindOfType(spec.Name.Name)
	case *ast.ValueSpec:
		name := spec.Names[0].Name
		switch {
		case group.Tok == token.VAR && name == "_": // its client has the methods of the interface
			return "service"
		case name == "_", strings.HasPrefix(name, "Code"), strings.HasPrefix(name, "TaskStatus"):
			return "once"
		case group.Tok == token.CONST:
			return "schema"
		}
	}
	return ""
}

func (s services) kindOfType(name string) string {
	switch {
	case s.has(name, "", ""), s.has(name, "", "Client"):
		return "service"
	case name == "TaskStatus":
		return "once"
	}
	return "schema"
}

// has tells whether a name is made of a service's, which need not be exported: newGreeterClient.
func (s services) has(name, prefix, suffix string) bool {
	for service := range s {
		if strings.EqualFold(name, prefix+service+suffix) {
			return true
		}
	}
	return false
}

func receiver(function *ast.FuncDecl) string {
	t := function.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	return t.(*ast.Ident).Name
}

// begin is where the comment of a declaration begins.
func begin(decl ast.Decl) token.Pos {
	var doc *ast.CommentGroup
	switch decl := decl.(type) {
	case *ast.FuncDecl:
		doc = decl.Doc
	case *ast.GenDecl:
		doc = decl.Doc
	}
	if doc != nil {
		return doc.Pos()
	}
	return decl.Pos()
}

// findTools adds the names of the tools that a declaration binds or calls.
func findTools(decl ast.Decl, tools map[string]bool) {
	ast.Inspect(decl, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.KeyValueExpr: // Name: "lint_file", of a mcptask.ToolSpec
			if key, ok := node.Key.(*ast.Ident); ok && key.Name == "Name" {
				tools[text(node.Value)] = true
			}
		case *ast.CallExpr: // mcptask.Run[Report](ctx, c.conn, "lint_file", in, opts...)
			for i, arg := range node.Args[:max(0, len(node.Args)-1)] {
				if conn, ok := arg.(*ast.SelectorExpr); ok && conn.Sel.Name == "conn" {
					tools[text(node.Args[i+1])] = true
				}
			}
		}
		return true
	})
}

// text is a string literal as it is written, of parts if it is long.
func text(expr ast.Expr) string {
	switch expr := expr.(type) {
	case *ast.BasicLit:
		return strings.Trim(expr.Value, "`\"")
	case *ast.BinaryExpr:
		return text(expr.X) + text(expr.Y)
	}
	return ""
}
