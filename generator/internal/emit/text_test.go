package emit

import (
	"bytes"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/dave/jennifer/jen"
)

// value renders a declaration of a constant, checks its layout and returns the constant's value.
func value(t *testing.T, code jen.Code) string {
	t.Helper()
	file := jen.NewFile("p")
	file.Const().Id("x").Op("=").Add(code)
	var b bytes.Buffer
	if err := file.Render(&b); err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(b.String()) {
		if len(line) > lineWidth+1 {
			t.Errorf("a line has %d columns: %s", len(line), line)
		}
	}
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, "p.go", b.Bytes(), 0)
	if err != nil {
		t.Fatal(err)
	}
	pkg, err := (&types.Config{}).Check("p", fset, []*ast.File{parsed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return constant.StringVal(pkg.Scope().Lookup("x").(*types.Const).Val())
}

// FuzzLiterals checks that a string split over lines keeps its value.
func FuzzLiterals(f *testing.F) {
	for _, seed := range []string{
		"", "short", "two\nlines\n", "\n\n", strings.Repeat("word ", 100), strings.Repeat("x", 500),
		strings.Repeat("ü", 300), strings.Repeat("\"\\", 100), "a\tb\x00c\u2028", strings.Repeat(" ", 300) + "\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if !utf8.ValidString(s) {
			return
		}
		if got := value(t, stringLiteral(s).code); got != s {
			t.Errorf("literal: got %q, want %q", got, s)
		}
		if strings.ContainsAny(s, "`\ufeff") || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' && r != '\n' }) {
			return // schemas are JSON without these characters; gofmt joins lines around a form feed, for one
		}
		if got := value(t, rawLiteral(s)); got != s {
			t.Errorf("raw: got %q, want %q", got, s)
		}
	})
}

func TestCommentLines(t *testing.T) {
	lines := commentLines("Run " + strings.Repeat("runs and ", 30) + "stops.\n\nIt has a list:\n  - one\n  - two\n\nand code:\n\n\tx := 1\n")
	for _, line := range lines {
		if !strings.HasPrefix(line, "//") || len(line) > docWidth || strings.TrimRight(line, " \t") != line {
			t.Errorf("bad line %q", line)
		}
	}
	text := strings.Join(lines, "\n")
	for _, want := range []string{"stops.\n//\n// It has a list:\n//   - one\n//   - two\n", "//\tx := 1"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}
